"""Figures that the papers report, to print beside ours."""

from __future__ import annotations

from typing import NamedTuple

from transformers import PreTrainedConfig

__all__ = ["PaperRow", "find_compared_rows", "find_matching_rows", "find_paper_rows"]


class PaperRow(NamedTuple):
    """One row of a paper's table.

    Attributes:
        model: The paper, and which of its models.
        num_beams: How it decoded; None where the paper does not say.
        scores: By the names that `metrics.score_table` gives them, in its units.
    """

    model: str
    num_beams: int | None
    scores: dict[str, float]


# Prakash et al. 2016, Table 3: corpus -> (kind, layers) -> beam width -> BLEU, METEOR, embedding greedy, TER.
# All models have 512 units a layer.
_PRAKASH_2016_SCORES = ("bleu_4", "meteor", "embedding_greedy", "ter")
_PRAKASH_2016 = {
    "ppdb": {
        ("sequence to sequence", 2): {5: (12.5, 21.3, 32.55, 82.9), 10: (12.9, 20.5, 32.65, 83.0)},
        ("attention", 2): {5: (13.0, 21.2, 32.95, 82.2), 10: (13.8, 20.6, 32.29, 81.9)},
        ("sequence to sequence", 4): {5: (18.3, 23.5, 33.18, 82.7), 10: (18.8, 23.5, 33.78, 82.1)},
        ("bi-directional", 4): {5: (19.2, 23.1, 34.39, 77.5), 10: (19.7, 23.2, 34.56, 84.4)},
        ("attention", 4): {5: (19.9, 23.2, 34.71, 83.8), 10: (20.2, 22.9, 34.90, 77.1)},
        ("residual", 4): {5: (20.3, 23.1, 34.77, 77.1), 10: (21.2, 23.0, 34.78, 77.0)},
    },
    "wikianswers": {
        ("sequence to sequence", 2): {5: (19.2, 26.1, 62.65, 35.1), 10: (19.5, 26.2, 62.95, 34.8)},
        ("attention", 2): {5: (21.2, 22.9, 63.22, 37.1), 10: (21.2, 23.0, 63.50, 37.0)},
        ("sequence to sequence", 4): {5: (33.2, 29.6, 73.17, 28.3), 10: (33.5, 29.6, 73.19, 28.3)},
        ("bi-directional", 4): {5: (34.0, 30.8, 73.80, 27.3), 10: (34.3, 30.7, 73.95, 27.0)},
        ("attention", 4): {5: (34.7, 31.2, 73.45, 27.1), 10: (34.9, 31.2, 73.50, 27.1)},
        ("residual", 4): {5: (37.0, 32.2, 75.13, 27.0), 10: (37.2, 32.2, 75.19, 26.8)},
    },
    "mscoco": {
        ("sequence to sequence", 2): {5: (15.9, 14.8, 54.11, 66.9), 10: (16.5, 15.4, 55.81, 67.1)},
        ("attention", 2): {5: (17.5, 16.6, 58.92, 63.9), 10: (18.6, 16.8, 59.26, 63.0)},
        ("sequence to sequence", 4): {5: (28.2, 23.0, 67.22, 56.7), 10: (28.9, 23.2, 67.10, 56.3)},
        ("bi-directional", 4): {5: (32.6, 24.5, 68.62, 53.8), 10: (32.8, 24.9, 68.91, 53.7)},
        ("attention", 4): {5: (33.1, 25.4, 69.10, 54.3), 10: (33.4, 25.2, 69.34, 53.8)},
        ("residual", 4): {5: (36.7, 27.3, 69.69, 52.3), 10: (37.0, 27.0, 69.21, 51.6)},
    },
}

# Li et al. 2015, Table 3: corpus -> (hierarchy, attention) -> BLEU, ROUGE-1, ROUGE-2 and coherence L.
_LI_2015_SCORES = ("bleu_4", "rouge1_recall", "rouge2_recall", "coherence")
_LI_2015 = {
    "hotel_reviews": {
        ("none", False): (24.1, 57.1, 30.2, 1.92),
        ("sentence", False): (26.7, 59.0, 33.0, 1.71),
        ("sentence", True): (28.5, 62.4, 35.5, 1.57),
    },
    "wikipedia_paragraphs": {
        ("none", False): (17.8, 50.2, 22.8, 2.75),
        ("sentence", False): (20.2, 52.9, 25.0, 2.30),
        ("sentence", True): (22.0, 54.4, 29.1, 2.04),
    },
}


# Kazemnejad et al. 2020, Tables 2 and 5: corpus -> (with z, with M) -> ROUGE-2, ROUGE-1, BLEU-4, BLEU-2, METEOR.
_KAZEMNEJAD_2020_SCORES = ("rouge2", "rouge1", "bleu_4", "bleu_2", "meteor")
_KAZEMNEJAD_2020 = {
    "quora": {
        (True, True): ("FSET", (39.55, 66.17, 33.46, 51.03, 38.57)),
        (False, True): ("FSET without z", (38.31, 65.44, 30.40, 47.77)),
        (True, False): ("FSET without attention on M", (39.36, 65.72, 29.73, 46.66)),
    },
    "twitter_url": {(True, True): ("FSET", (32.04, 49.53, 34.62, 46.35, 31.67))},
}
# Table 2 again: the systems that FSET is compared with. None stands for a dash.
_COMPARED_2020 = {
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


def find_compared_rows(dataset: str | None) -> list[PaperRow]:
    """The rows of Table 2 of Kazemnejad et al. 2020, FSET's last; all are of another split than ours.

    "As reported" marks what that paper took over from the papers of the systems.

    Args:
        dataset: A corpus name, as `load_dataset` takes it; None where it is unknown.
    """
    if dataset not in _COMPARED_2020:
        return []
    name, figures = _KAZEMNEJAD_2020[dataset][True, True]
    rows = {**_COMPARED_2020[dataset], name: figures}
    return [
        PaperRow(
            f"Kazemnejad et al. 2020, {model}",
            None,
            {
                metric: score
                for metric, score in zip(_KAZEMNEJAD_2020_SCORES, scores, strict=True)
                if score is not None
            },
        )
        for model, scores in rows.items()
    ]


def find_paper_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    """The rows of a paper to compare a model with: the same architecture and depth, whatever the width.

    Args:
        config: The model's configuration.
        dataset: A corpus name, as `load_dataset` takes it; None where it is unknown.
    """
    find = {
        "edit_lstm": _kazemnejad_2020_baselines,
        "fset": _kazemnejad_2020,
        "hierarchical_autoencoder": _li_2015,
        "residual_lstm": _prakash_2016,
    }
    return find[config.model_type](config, dataset) if config.model_type in find else []


def _prakash_2016(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    kind, layers = _prakash_2016_kind(config), config.num_layers
    figures = _PRAKASH_2016.get(dataset, {}).get((kind, layers), {})
    return [
        PaperRow(
            f"Prakash et al. 2016, {layers}-layer {kind}, 512 units",
            num_beams,
            dict(zip(_PRAKASH_2016_SCORES, scores, strict=True)),
        )
        for num_beams, scores in figures.items()
    ]


def _prakash_2016_kind(config: PreTrainedConfig) -> str | None:
    kinds = {
        (False, False, None): "sequence to sequence",
        (False, False, "additive"): "attention",
        (False, True, None): "bi-directional",
        (True, False, None): "residual",
        # The paper's residual model has no attention; for one that has, it is still the row to compare with.
        (True, False, "additive"): "residual",
    }
    return kinds.get((config.residual_interval > 0, config.bidirectional_encoder, config.attention))


def _kazemnejad_2020(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    found = _KAZEMNEJAD_2020.get(dataset, {}).get((config.use_edit_vector, config.use_micro_edits))
    if found is None:
        return []
    name, scores = found
    # Table 5 has no METEOR.
    figures = dict(zip(_KAZEMNEJAD_2020_SCORES, scores, strict=False))
    return [PaperRow(f"Kazemnejad et al. 2020, {name}, another split", None, figures)]


def _kazemnejad_2020_baselines(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    # The editor of RaE is that of CopyEditor+Ret: they differ in the retriever alone.
    names = ("CopyEditor+Ret", "RaE") if config.copy else ("Seq2Seq+Ret",)
    figures = _COMPARED_2020.get(dataset, {})
    return [
        PaperRow(
            f"Kazemnejad et al. 2020, {name}, another split",
            None,
            dict(zip(_KAZEMNEJAD_2020_SCORES, figures[name], strict=True)),
        )
        for name in names
        if name in figures
    ]


def _li_2015(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    scores = _LI_2015.get(dataset, {}).get((config.hierarchy, config.attention))
    if scores is None:
        return []
    name = {"none": "standard", "sentence": "hierarchical"}[config.hierarchy] + ", attention" * config.attention
    greedy = 1
    return [PaperRow(f"Li et al. 2015, {name}", greedy, dict(zip(_LI_2015_SCORES, scores, strict=True)))]


# Lan et al. 2017, A Continuously Growing Dataset of Sentential Paraphrases: the largest F1 on the whole test file.
_LAN_2017 = {"edit distance": 0.526, "LEX-WMF": 0.693, "DeepPairwiseWord": 0.749}


def find_matching_rows(config: PreTrainedConfig, dataset: str | None) -> list[PaperRow]:
    """The published rows to put beside a model of sentence pairs; scores are 0 to 1.

    Args:
        config: The model's configuration.
        dataset: A corpus name, as `load_dataset` takes it; None where it is unknown.
    """
    if dataset == "twitter_url":
        return [PaperRow(f"Lan et al. 2017, {name}", None, {"max_f1": f1}) for name, f1 in _LAN_2017.items()]
    if dataset == "snli" and config.model_type in ("coupled_lstm", "pair_lstm"):
        # The one figure of its table that our source of the paper has.
        return [PaperRow("Liu et al. 2016, four stacked TC-LSTMs, 190k parameters", None, {"accuracy": 0.851})]
    return []
