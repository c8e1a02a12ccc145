from __future__ import annotations

from .paper import Paper, describe_paraphraser

PAPER = Paper(
    "Kim et al. 2019",
    {
        "ssru_transformer": describe_paraphraser(
            "a Transformer of {encoder_layers} encoder layers, and {decoder_layers} decoder layers with simple "
            "recurrent units (SSRU) for self-attention, {d_model} wide,"
        ),
    },
)
