from __future__ import annotations

from .paper import ArchitectureNotes, Paper

__all__ = ["PAPER"]

PAPER = Paper(
    "Traynor 2018",
    """@mastersthesis{traynor-2018-unsupervised,
  title = {Unsupervised Paraphrase Generation from Hierarchical Language Models},
  author = {Traynor, Michael},
  school = {Dalhousie University},
  year = {2018}
}""",
    {
        "hierarchical_lm": ArchitectureNotes(
            "a language model that reads and writes characters, words and sentences, each made of the one below, with "
            "{num_layers} + {num_layers} sentence layers of the kind `{sentence_encoder}`, {value_size} units wide",
            "to study what vectors of words and sentences hold, and, after the training stage of autoencoding, to "
            "draw candidates of paraphrases for a person to choose from",
            "rewording without a person's eye: most candidates change the meaning",
            (
                "It keeps the kind of a sentence better than its content: names, numbers and things are exchanged.",
                "It spells, so that it can write words that do not exist.",
                "It goes by one vector a sentence: long sentences come back as others.",
            ),
        ),
    },
)
