"""Figures that the papers report, to print beside ours."""

from __future__ import annotations

from typing import NamedTuple

from transformers import PreTrainedConfig

__all__ = ["PaperRow", "find_paper_row"]


class PaperRow(NamedTuple):
    """One model's row in a paper: what it is, and its corpus BLEU for each beam width."""

    model: str
    bleu: dict[int, float]


# Prakash et al. 2016, Table 3: (kind, layers) -> BLEU. All models have 512 units a layer.
_PRAKASH_2016 = {
    "mscoco": {
        ("sequence to sequence", 2): {5: 15.9, 10: 16.5},
        ("attention", 2): {5: 17.5, 10: 18.6},
        ("sequence to sequence", 4): {5: 28.2, 10: 28.9},
        ("bi-directional", 4): {5: 32.6, 10: 32.8},
        ("attention", 4): {5: 33.1, 10: 33.4},
        ("residual", 4): {5: 36.7, 10: 37.0},
    },
}


def find_paper_row(config: PreTrainedConfig, dataset: str | None) -> PaperRow | None:
    """The row of a paper to compare a model with: the same architecture and depth, whatever the width; None for none.

    Args:
        config: The model's configuration.
        dataset: A corpus name, as `load_dataset` takes it; None where it is unknown.
    """
    if config.model_type != "residual_lstm":
        return None
    kind = _prakash_2016_kind(config)
    bleu = _PRAKASH_2016.get(dataset, {}).get((kind, config.num_layers))
    return PaperRow(f"Prakash et al. 2016, {config.num_layers}-layer {kind}, 512 units", bleu) if bleu else None


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
