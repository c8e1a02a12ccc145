from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .paper import Paper, PaperRow, describe_paraphraser
from .table import Claim, Measurement, Settings, Table, Trained

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

NAME = "Kazemnejad et al. 2020"
# Tables 2 and 5: corpus -> (with z, with M) -> ROUGE-2, ROUGE-1, BLEU-4, BLEU-2, METEOR.
SCORES = ("rouge2", "rouge1", "bleu_4", "bleu_2", "meteor")
FSET: dict[str, dict[tuple[bool, bool], tuple[str, tuple[float, ...]]]] = {
    "quora": {
        (True, True): ("FSET", (39.55, 66.17, 33.46, 51.03, 38.57)),
        (False, True): ("FSET without z", (38.31, 65.44, 30.40, 47.77)),
        (True, False): ("FSET without attention on M", (39.36, 65.72, 29.73, 46.66)),
    },
    "twitter_url": {(True, True): ("FSET", (32.04, 49.53, 34.62, 46.35, 31.67))},
}
# Table 2 again: the systems that FSET is compared with. None stands for a dash.
COMPARED: dict[str, dict[str, tuple[float | None, ...]]] = {
    "quora": {
        "Residual LSTM": (32.71, 59.69, 24.56, 38.52, 29.39),
        "Seq2Seq+Ret": (32.71, 60.83, 25.23, 42.71, 32.51),
        "DiPS": (31.77, 59.79, 25.37, 40.35, 29.28),
        "Transformer": (34.23, 61.25, 30.38, 42.91, 34.65),
        "DNPG, as reported": (37.75, 63.73, 25.03, None, None),
        "RbM, as reported": (38.11, 64.39, None, 43.54, 32.84),
        "RaE": (35.07, 62.71, 29.22, 46.21, 29.92),
        "CopyEditor+Ret": (35.59, 62.93, 29.78, 46.55, 35.56),
    },
    "twitter_url": {
        "Residual LSTM": (27.94, 41.77, 25.92, 32.13, 24.88),
        "Seq2Seq+Ret": (21.56, 40.18, 20.11, 31.58, 22.38),
        "DiPS": (23.67, 43.64, 27.66, 37.92, 25.69),
        "Transformer": (29.55, 44.53, 32.14, 40.34, 28.26),
        "RbM, as reported": (24.23, 41.87, None, 44.67, 19.97),
        "RaE": (31.53, 47.55, 34.16, 44.33, 30.09),
        "CopyEditor+Ret": (27.35, 45.54, 28.06, 40.30, 26.93),
    },
}


# The schedules of a hundred thousand steps would hardly begin within a small budget.
SHORT = {"lr_scheduler_type": "linear", "warmup_steps": 500}
# What a system has of its own within a small budget. No pretrained encoder is needed to find pairs by the words they
# share (Table 5 has the cost); and DNPG has the Transformer's width, and so about its size and its learning rate.
SMALL: dict[str, dict[str, Any]] = {
    "FSET": {"retriever_encoder": "jaccard"},
    "DNPG": {"hidden_size": 192, "learning_rate": 1.14e-3},
}
# Where no pair hands over the answer of a test row, FSET ends by learning from such pairs, as in fset-quora-small.
WITHOUT_ANSWERS = {"exclude_shared_sentences": True, "self_pair_annealing_epochs": 2}
SMALL_CLEAN = {**SMALL, "FSET": {**SMALL["FSET"], **WITHOUT_ANSWERS}}


def find_compared_rows(dataset: str | None) -> list[PaperRow]:
    """The rows of Table 2 of Kazemnejad et al. 2020, FSET last, all on another split than ours; "as reported" marks
    what that paper took over from the papers of the systems."""
    if dataset is None or dataset not in COMPARED:
        return []
    name, figures = FSET[dataset][True, True]
    rows = {**COMPARED[dataset], name: figures}
    return [
        PaperRow(
            f"{NAME}, {model}",
            None,
            {metric: score for metric, score in zip(SCORES, scores, strict=True) if score is not None},
        )
        for model, scores in rows.items()
    ]


def _find_fset_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    found = FSET.get(dataset or "", {}).get((config.use_edit_vector, config.use_micro_edits))
    if found is None:
        return []
    name, scores = found
    # Table 5 has no METEOR.
    figures = dict(zip(SCORES, scores, strict=False))
    return [PaperRow(f"{NAME}, {name}, another split", None, figures)]


def _find_editor_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    # The editor of RaE is that of CopyEditor+Ret: they differ in the retriever alone.
    names = ("CopyEditor+Ret", "RaE") if config.copy else ("Seq2Seq+Ret",)
    figures = COMPARED.get(dataset or "", {})
    return [
        PaperRow(f"{NAME}, {name}, another split", None, dict(zip(SCORES, figures[name], strict=True)))
        for name in names
        if name in figures
    ]


def _find_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    find = _find_fset_rows if config.model_type == "fset" else _find_editor_rows
    return find(config, dataset)


def _make_table(
    dataset_name: str,
    title: str,
    measurements: tuple[Measurement, ...],
    minutes: float,
    fields: dict[str, dict[str, Any]],
) -> Table:
    """Table 2 on one of the splits of Quora, for the systems that learn from nothing but its pairs; `fields` are what
    a system has of its own within the small budget."""
    corpus = {"dataset_name": dataset_name}
    recipes = {
        "FSET": "fset-quora",
        "Transformer": "transformer-quora",
        "residual LSTM": "residual-lstm-quora",
        "DNPG": "dnpg-quora",
    }
    return Table(
        name=f"kazemnejad-quora-{dataset_name}",
        title=f"{NAME}, Table 2, Quora, {title}",
        settings={
            "small": Settings(
                {name: Trained(recipe, corpus | SHORT | fields.get(name, {})) for name, recipe in recipes.items()},
                minutes,
            ),
            "paper": Settings({name: Trained(recipe, corpus) for name, recipe in recipes.items()}),
        },
        measurements=measurements,
        max_samples=5000,
        cards="fset-quora-small",
    )


def _measure(claims: tuple[Claim, ...], name: str = "", **options: Any) -> Measurement:
    """Of the likeliest five, the one most similar to the source (section 4.3)."""
    chosen = {"num_beams": 5, "num_candidates": 5, "select": "jaccard"}
    return Measurement(name, claims, {**chosen, **options})


def _measure_leaking_split(claims: tuple[Claim, ...]) -> tuple[Measurement, ...]:
    """By the paper's protocol, without the answers that it hands over, and without its choice too."""
    return (
        _measure(claims, "a row's own pair allowed, as in the paper", allow_own_pair=True),
        _measure(claims, "own pairs left out", allow_own_pair=False),
        _measure_likeliest(claims),
    )


def _measure_likeliest(claims: tuple[Claim, ...]) -> Measurement:
    """Choosing the output most like the source rewards copies; the likeliest is chosen for its own sake."""
    return Measurement("the likeliest output, own pairs left out", claims, {"num_beams": 5, "allow_own_pair": False})


def _make_table_of_neighbors() -> Table:
    """Appendix A.2: a model for each K, which writes five outputs: by its own K pairs, or all by the same five."""
    recipes = {"K = 1": "fset-quora", "K = 3": "fset-quora-k3", "K = 5": "fset-quora-k5"}
    corpus = {"dataset_name": "clean"}
    # The share of a row's own pair is that of K = 5, K' = 4 for all, so that K alone differs.
    small = {**corpus, "retriever_encoder": "jaccard", "self_pair_share": 0.444, **SHORT}
    grows = tuple(
        Claim(more, less, metric)
        for metric in ("self_bleu_2", "pinc")
        for more, less in (("K = 5", "K = 3"), ("K = 3", "K = 1"), ("K = 5", "K = 1"))
    )
    falls = tuple(Claim("K = 1", "K = 5", metric) for metric in ("bleu_2", "rouge2"))
    return Table(
        name="kazemnejad-quora-neighbors",
        title=f"{NAME}, appendix A.2, Quora, no test question in train",
        settings={
            "small": Settings({name: Trained(recipe, small) for name, recipe in recipes.items()}, minutes=60),
            "paper": Settings({name: Trained(recipe, corpus) for name, recipe in recipes.items()}),
        },
        measurements=(
            Measurement(
                "five outputs by as many pairs as in training",
                grows + falls,
                {"num_beams": 5, "num_return_sequences": 5},
                {f"K = {k}": {"num_neighbors": [k]} for k in (1, 3, 5)},
            ),
            Measurement("five outputs by five pairs", grows + falls, {"num_beams": 5, "num_neighbors": [5]}),
        ),
        max_samples=5000,
        cards="fset-quora-small",
    )


def _make_table_of_retrievers() -> Table:
    """The retrievers of Table 5 and two more, a model for each, which edits in evaluation as it did in training."""
    retrievers = {
        "Jaccard": {"retriever_encoder": "jaccard"},
        "Jaccard, of the whole pair": {"retriever_encoder": "jaccard", "retriever_compare": "pair"},
        "sentence vectors": {},
        # Made by `hf-paraphrase retriever train --dataset-name li2018 --output-dir runs/quora-encoder`.
        "vectors of RaE": {"retriever_encoder": "runs/quora-encoder"},
    }
    # The mean of word vectors that can be had without the Hub; PAPERS.md says how.
    general = {"sentence vectors": {"retriever_encoder": "runs/wordllama-encoder"}}
    corpus = {"dataset_name": "li2018"}
    small, paper = (
        {name: Trained("fset-quora", corpus | fields | size) for name, fields in systems.items()}
        for systems, size in ((retrievers | general, {**SHORT, "max_steps": 2500}), (retrievers, {}))
    )
    return Table(
        name="kazemnejad-quora-retrievers",
        title=f"{NAME}, Table 5, Quora, retrievers",
        # One model with pairs of several kinds: its steps cost the same, and so are equal.
        settings={"small": Settings(small), "paper": Settings(paper)},
        measurements=_measure_leaking_split(
            tuple(Claim("sentence vectors", "Jaccard", metric) for metric in ("bleu_4", "rouge2"))
        ),
        max_samples=5000,
        cards="fset-quora-small",
    )


BEST = tuple(
    Claim("FSET", other, metric)
    for metric in ("bleu_4", "rouge2")
    for other in ("Transformer", "residual LSTM", "DNPG")
)
TABLES = (
    _make_table("li2018", "the split that papers share, which leaks", _measure_leaking_split(BEST), 240, SMALL),
    _make_table("clean", "no test question in train", (_measure(BEST), _measure_likeliest(BEST)), 30, SMALL_CLEAN),
    _make_table_of_neighbors(),
    _make_table_of_retrievers(),
)


PAPER = Paper(
    NAME,
    {
        "fset": describe_paraphraser(
            "a Transformer of {num_layers} layers of {hidden_size} units, given a retrieved pair of paraphrases whose "
            "source is like its input, which applies the edits between the two",
        ),
        "edit_lstm": describe_paraphraser(
            "an LSTM editor that rewrites its input as a retrieved pair of paraphrases was rewritten, a baseline of "
            "the paper",
        ),
    },
    _find_rows,
    TABLES,
)
