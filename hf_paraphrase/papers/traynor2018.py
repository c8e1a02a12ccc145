from __future__ import annotations

from .paper import ArchitectureNotes, Paper
from .table import Claim, Measurement, Settings, Table, Trained

NAME = "Traynor 2018"
SYSTEMS = {"SARAh": "sarah", "GRU": "gru", "Transformer": "transformer"}


def _make_table() -> Table:
    nits = "nits_per_character"
    return Table(
        name="traynor-gutenberg",
        title=f"{NAME}, figure 3.2, Gutenberg",
        settings={
            "small": Settings(
                {name: Trained(f"{kind}-lm-gutenberg-small") for name, kind in SYSTEMS.items()}, minutes=60
            ),
            "paper": Settings({name: Trained(f"{kind}-lm-gutenberg") for name, kind in SYSTEMS.items()}),
        },
        measurements=(
            Measurement(
                claims=(
                    # Within the spread of the runs of figure 3.2.
                    Claim("SARAh", "GRU", nits, margin=0.02),
                    Claim("GRU", "Transformer", nits),
                    Claim("SARAh", "Transformer", nits),
                )
            ),
        ),
        max_samples=20_000,
        cards="sarah-lm-paraphrase-small",
    )


def _make_table_of_paraphrases() -> Table:
    """Chapter 4's way to paraphrase, and two that depart from it: no noise, and the encoder learns too.

    The thesis' way learns what follows with noise and then to repeat, by the sentence decoder alone.
    """
    follows, noisy, thesis, departure = (
        "what follows",
        "what follows, noisy",
        "the thesis' way",
        "all parts repeat, no noise",
    )
    gru_follows, gru_departure = (f"GRU: {name}" for name in (follows, departure))
    systems = {
        follows: Trained("sarah-lm-gutenberg-small"),
        noisy: Trained("sarah-lm-noisy-small", start=follows),
        thesis: Trained("sarah-lm-paraphrase-small", start=noisy),
        departure: Trained("sarah-lm-gutenberg-small", {"objective": "autoencode"}, start=follows),
        gru_follows: Trained("gru-lm-gutenberg-small"),
        gru_departure: Trained("gru-lm-gutenberg-small", {"objective": "autoencode"}, start=gru_follows),
    }
    pairs = [
        (thesis, follows),
        (departure, follows),
        (departure, thesis),
        (gru_departure, gru_follows),
        (gru_departure, departure),
    ]
    return Table(
        name="traynor-gutenberg-paraphrases",
        title=f"{NAME}, chapter 4, Gutenberg",
        settings={"small": Settings(systems, minutes=60)},
        measurements=(
            Measurement(
                claims=tuple(Claim(*pair, "content_words_kept") for pair in pairs),
                row_options={name: {"noise": 0.0} for name in (departure, gru_departure)},
                evaluator="rewriting",
            ),
        ),
        max_samples=500,
        cards="sarah-lm-paraphrase-small",
    )


PAPER = Paper(
    NAME,
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
    tables=(_make_table(), _make_table_of_paraphrases()),
)
