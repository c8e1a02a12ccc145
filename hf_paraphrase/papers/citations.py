"""The papers behind the architectures, as a card tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ARCHITECTURE_NOTES", "ArchitectureNotes"]

PRAKASH_2016 = """@inproceedings{prakash-etal-2016-neural,
  title = {Neural Paraphrase Generation with Stacked Residual {LSTM} Networks},
  author = {Prakash, Aaditya and Hasan, Sadid A. and Lee, Kathy and Datla, Vivek and Qadir, Ashequl and Liu, Joey and
            Farri, Oladimeji},
  booktitle = {Proceedings of COLING 2016},
  year = {2016}
}"""
KAZEMNEJAD_2020 = """@inproceedings{kazemnejad-etal-2020-paraphrase,
  title = {Paraphrase Generation by Learning How to Edit from Samples},
  author = {Kazemnejad, Amirhossein and Salehi, Mohammadreza and Soleymani Baghshah, Mahdieh},
  booktitle = {Proceedings of ACL 2020},
  year = {2020}
}"""
LIU_2016 = """@inproceedings{liu-etal-2016-modelling,
  title = {Modelling Interaction of Sentence Pair with Coupled-{LSTM}s},
  author = {Liu, Pengfei and Qiu, Xipeng and Zhou, Yaqian and Chen, Jifan and Huang, Xuanjing},
  booktitle = {Proceedings of EMNLP 2016},
  year = {2016}
}"""
LI_2015 = """@inproceedings{li-etal-2015-hierarchical,
  title = {A Hierarchical Neural Autoencoder for Paragraphs and Documents},
  author = {Li, Jiwei and Luong, Minh-Thang and Jurafsky, Dan},
  booktitle = {Proceedings of ACL 2015},
  year = {2015}
}"""
TRAYNOR_2018 = """@mastersthesis{traynor-2018-unsupervised,
  title = {Unsupervised Paraphrase Generation from Hierarchical Language Models},
  author = {Traynor, Michael},
  school = {Dalhousie University},
  year = {2018}
}"""

REWRITES = (
    "It keeps to what is frequent: rare things, names and numbers may turn into common ones.",
    "It may add, drop or contradict what the source says; nothing checks that the meaning stays.",
    "Words outside its vocabulary are not written, and all look alike to it when it reads them.",
)
MATCHES = (
    "It goes by the words it knows: pairs that turn on a rare word, a number or a negation are easily misjudged.",
    "It has learnt its labels' frequencies with them: on text of another origin its scores are not probabilities.",
)


@dataclass(frozen=True)
class ArchitectureNotes:
    """What a card says about every model of an architecture.

    Args:
        summary: What it is, as one clause, in which fields of the configuration stand in braces.
        paper: Author and year.
        citation: BibTeX of the paper.
        use: What it is for.
        misuse: What it is not for.
        failures: What goes wrong with every model of this kind.
        traits: What a model has where a field of its configuration is set.
    """

    summary: str
    paper: str
    citation: str
    use: str
    misuse: str
    failures: tuple[str, ...]
    traits: Mapping[str, str] = field(default_factory=dict)

    def summarise(self, config: Mapping[str, Any]) -> str:
        """The summary of a model with this configuration."""
        traits = [text for name, text in self.traits.items() if config.get(name)]
        return self.summary.format(**config) + (f" with {' and '.join(traits)}" if traits else "")


def _paraphraser(summary: str, paper: str, citation: str, **traits: str) -> ArchitectureNotes:
    return ArchitectureNotes(
        summary,
        paper,
        citation,
        "to reword sentences of the kind it was trained on, for study, for data augmentation under a person's eye, "
        "and as a baseline",
        "text of another kind or language, which comes back in the manner of the training data, and any use in which "
        "a changed meaning does harm",
        REWRITES,
        traits,
    )


def _matcher(summary: str, paper: str, citation: str) -> ArchitectureNotes:
    return ArchitectureNotes(
        summary,
        paper,
        citation,
        "to label or rank pairs of sentences of the kind it was trained on, for study and as a baseline",
        "pairs of another kind or language, and decisions about people",
        MATCHES,
    )


# By `model_type`.
ARCHITECTURE_NOTES = {
    "residual_lstm": _paraphraser(
        "an LSTM encoder-decoder of {num_layers} layers of {hidden_size} units",
        "Prakash et al. 2016",
        PRAKASH_2016,
        residual_interval="residual connections",
        bidirectional_encoder="a bi-directional encoder",
        attention="attention",
    ),
    "fset": _paraphraser(
        "a Transformer of {num_layers} layers of {hidden_size} units, given a retrieved pair of paraphrases whose "
        "source is like its input, which applies the edits between the two",
        "Kazemnejad et al. 2020",
        KAZEMNEJAD_2020,
    ),
    "edit_lstm": _paraphraser(
        "an LSTM editor that rewrites its input as a retrieved pair of paraphrases was rewritten, a baseline of the "
        "paper",
        "Kazemnejad et al. 2020",
        KAZEMNEJAD_2020,
    ),
    "coupled_lstm": _matcher(
        "a grid of {coupling}ly coupled LSTMs of {hidden_size} units (blocks: {num_blocks}, directions: "
        "{num_directions}), which reads two sentences together, word against word",
        "Liu et al. 2016",
        LIU_2016,
    ),
    "pair_lstm": _matcher(
        "a reader of two sentences, of the kind `{encoder}` with {hidden_size} units, a baseline of the paper",
        "Liu et al. 2016",
        LIU_2016,
    ),
    "hierarchical_autoencoder": ArchitectureNotes(
        "an LSTM autoencoder of whole paragraphs, {num_layers} + {num_layers} layers of {hidden_size} units, with the "
        "hierarchy `{hierarchy}`",
        "Li et al. 2015",
        LI_2015,
        "to turn a paragraph of the kind it was trained on into one vector and back, for study",
        "texts that have to come back as they were: what is rebuilt differs from the source",
        (
            "What it rebuilds drifts from the source with every sentence; names and numbers change first.",
            "Words outside its vocabulary are not written, and all look alike to it when it reads them.",
        ),
        {"attention": "attention"},
    ),
    "hierarchical_lm": ArchitectureNotes(
        "a language model that reads and writes characters, words and sentences, each made of the one below, with "
        "{num_layers} + {num_layers} sentence layers of the kind `{sentence_encoder}`, {value_size} units wide",
        "Traynor 2018",
        TRAYNOR_2018,
        "to study what vectors of words and sentences hold, and, after the training stage of autoencoding, to draw "
        "candidates of paraphrases for a person to choose from",
        "rewording without a person's eye: most candidates change the meaning",
        (
            "It keeps the kind of a sentence better than its content: names, numbers and things are exchanged.",
            "It spells, so that it can write words that do not exist.",
            "It goes by one vector a sentence: long sentences come back as others.",
        ),
    ),
}
