from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .paper import ArchitectureNotes, Paper, PaperRow
from .table import Claim, Measurement, Settings, Table, Trained

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

NAME = "Liu et al. 2016"


def _find_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    if dataset != "snli":
        return []
    # The one figure of its table that our source of the paper has.
    return [PaperRow(f"{NAME}, four stacked TC-LSTMs, 190k parameters", None, {"accuracy": 0.851})]


def _describe_matcher(summary: str) -> ArchitectureNotes:
    return ArchitectureNotes(
        summary,
        "to label or rank pairs of sentences of the kind it was trained on, for study and as a baseline",
        "pairs of another kind or language, and decisions about people",
        (
            "It goes by the words it knows: pairs that turn on a rare word, a number or a negation are easily "
            "misjudged.",
            "It has learnt its labels' frequencies with them: on text of another origin its scores are not "
            "probabilities.",
        ),
    )


# GloVe vectors (https://nlp.stanford.edu/projects/glove), fine-tuned as in the paper, and models of their width: tens
# of thousands of pairs are too few to learn word vectors from scratch.
TWITTER_WIDTH = {"embeddings": "data/glove.twitter.27B.25d.txt", "embedding_size": 25, "hidden_size": 25}
QUORA_WIDTH = {"embeddings": "data/glove.6B.50d.txt", "embedding_size": 50, "hidden_size": 50}

# The rows of its table on SNLI, and how the small models differ from the first recipe of each kind.
COUPLED: dict[str, dict[str, Any]] = {
    "tight, 4 directions": {},
    "tight, 1 direction": {"num_directions": 1},
    "tight, 4 directions, 2 blocks": {"num_blocks": 2},
    "loose, 4 directions": {"coupling": "loose"},
    "loose, 1 direction": {"coupling": "loose", "num_directions": 1},
    "tight, 4 directions, match features": {"match_features": True},
}
BASELINES = ("nbow", "single", "parallel", "attention")


def _make_table(
    corpus: str, title: str, minutes: float, fields: dict[str, Any], max_steps: Mapping[str, int]
) -> Table:
    """Coupled LSTMs and the baselines of the paper, as wide as each other, on pairs with two labels."""
    settings = {"num_train_epochs": 100, "optim": "adamw", "lr_scheduler_type": "linear", "dropout": 0.3, **fields}
    settings |= {"vocab_size": 30_000, "eval_strategy": "steps"}
    recipes = {name: ("coupled-lstm-twitter-small", changes) for name, changes in COUPLED.items()}
    recipes |= {name: ("pair-lstm-twitter-small", {"encoder": name}) for name in BASELINES}
    systems = {
        name: Trained(recipe, settings | changes, max_steps=max_steps.get(name))
        for name, (recipe, changes) in recipes.items()
    }
    return Table(
        name=f"liu-{corpus}",
        title=f"{NAME}, coupled LSTMs and baselines, {title}",
        settings={"small": Settings(systems, minutes=minutes, seeds=(1, 2, 3))},
        measurements=(
            Measurement(
                claims=tuple(
                    Claim("tight, 4 directions", other, "max_f1")
                    for other in (*BASELINES, "tight, 1 direction", "loose, 4 directions")
                )
            ),
        ),
        cards="coupled-lstm-twitter-small",
    )


TABLES = (
    # More than five minutes are of no use: the train pairs are learnt by heart.
    _make_table(
        "twitter",
        "Twitter URL",
        5,
        {"learning_rate": 2e-3, "warmup_steps": 50, "eval_steps": 270, **TWITTER_WIDTH},
        max_steps={},
    ),
    _make_table(
        "quora",
        "Quora, pairs with mined negatives",
        20,
        {
            "dataset": "quora",
            "dataset_name": "clean_pairs",
            "max_source_length": 30,
            "max_target_length": 30,
            "max_eval_samples": 3000,
            "learning_rate": 4e-3,
            "warmup_steps": 200,
            "eval_steps": 500,
            **QUORA_WIDTH,
        },
        # 12 epochs and 36. With every seed these are best in validation before their last step, then learn the pairs
        # by heart; the bag of words, whose steps are shorter, still gains 0.03 after 22,000.
        max_steps={
            name: 66_000 if name == "nbow" else 22_000
            for name in (*BASELINES, "tight, 1 direction", "loose, 1 direction")
        },
    ),
)


PAPER = Paper(
    NAME,
    {
        "coupled_lstm": _describe_matcher(
            "a grid of {coupling}ly coupled LSTMs of {hidden_size} units (blocks: {num_blocks}, directions: "
            "{num_directions}), which reads two sentences together, word against word",
        ),
        "pair_lstm": _describe_matcher(
            "a reader of two sentences, of the kind `{encoder}` with {hidden_size} units, a baseline of the paper",
        ),
    },
    _find_rows,
    TABLES,
)
