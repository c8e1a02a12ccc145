from __future__ import annotations

from .paper import ArchitectureNotes, Paper

# transformers' own class; the recipes `transformer-…` train it.
PAPER = Paper(
    "Vaswani et al. 2017",
    {
        "marian": ArchitectureNotes(
            "a Transformer with {encoder_layers} layers in the encoder and {decoder_layers} in the decoder, "
            "{d_model} units wide",
            "to reword sentences of the kind it was trained on, for writing aids and data augmentation under a "
            "person's eye, and as a baseline",
            "text of another kind or language, and any use in which a changed meaning does harm",
            (
                "It may add, drop or contradict what the source says; nothing checks that the meaning stays.",
                "Its likeliest output is often the source itself, or nearly so.",
                "It reads one sentence at a time, and knows nothing of those around it.",
            ),
        )
    },
)
