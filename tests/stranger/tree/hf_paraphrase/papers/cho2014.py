from __future__ import annotations

from .paper import Paper, describe_paraphraser

PAPER = Paper(
    "Cho et al. 2014",
    """@inproceedings{cho-etal-2014-learning,
  title = {Learning Phrase Representations using {RNN} Encoder--Decoder for Statistical Machine Translation},
  author = {Cho, Kyunghyun and van Merri{\\"e}nboer, Bart and Gulcehre, Caglar and Bahdanau, Dzmitry and
            Bougares, Fethi and Schwenk, Holger and Bengio, Yoshua},
  booktitle = {Proceedings of EMNLP 2014},
  year = {2014}
}""",
    {"bag_gru": describe_paraphraser("a GRU of {hidden_size} units that starts from the mean of its source's words")},
)
