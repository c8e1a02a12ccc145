from __future__ import annotations

from .paper import Paper, describe_paraphraser

PAPER = Paper(
    "Kim et al. 2019",
    """@inproceedings{kim-etal-2019-research,
  title = {From Research to Production and Back: Ludicrously Fast Neural Machine Translation},
  author = {Kim, Young Jin and Junczys-Dowmunt, Marcin and Hassan, Hany and Fikri Aji, Alham and Heafield, Kenneth and
            Grundkiewicz, Roman and Bogoychev, Nikolay},
  booktitle = {Proceedings of the 3rd Workshop on Neural Generation and Translation},
  year = {2019}
}""",
    {
        "ssru_transformer": describe_paraphraser(
            "a Transformer of {encoder_layers} encoder layers, and {decoder_layers} decoder layers with simple "
            "recurrent units (SSRU) for self-attention, {d_model} wide,"
        ),
    },
)
