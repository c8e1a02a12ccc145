"""Judges of meaning: labelled pairs, the calibration of a model as a judge, and how well judges tell pairs apart."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.stats import mannwhitneyu

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.judges import FEATURES, Adequacy, find_foreign_form, pair_features, text_features
from hf_paraphrase.generation.writers import Judged, ModelWriter

from .meaning_edits import EDITS, MeaningEditor

# Weight of the squared standardised coefficients in the loss: enough that a feature which no pair of one meaning has,
# since the corpus was filtered by it, does not decide alone.
RIDGE = 1e-3
# Share of a corpus that may be refused as another language, and of other languages that may pass if both lie apart.
MOST_REFUSED, MOST_MISSED = 0.005, 0.05


class LabelledPair(NamedTuple):
    """Two texts; `kind` is "same" where they say the same, and else what makes them differ."""

    kind: str
    source: str
    candidate: str


def make_pairs(pairs: Sequence[tuple[str, str]], seed: int = 0) -> list[LabelledPair]:
    """Make pairs that do not say the same out of pairs that do.

    Args:
        pairs: Two sentences of one meaning each, in English.
        seed: Of all that is drawn.

    Returns:
        For each pair itself, its source with the target of another ("shuffled"), and its source with its target
        edited in one way that fits it, a key of `EDITS`; the ways take turns.
    """
    draw, editor = random.Random(seed), MeaningEditor([target for _, target in pairs])
    used = dict.fromkeys(EDITS, 0)
    found = []
    for place, (source, target) in enumerate(pairs):
        other = pairs[(place + draw.randrange(1, len(pairs))) % len(pairs)][1]
        found += [LabelledPair("same", source, target), LabelledPair("shuffled", source, other)]
        for kind in sorted(EDITS, key=used.__getitem__):
            edited = editor.edit(kind, target, draw)
            if edited is not None and edited.lower() != source.lower():
                found.append(LabelledPair(kind, source, edited))
                used[kind] += 1
                break
    return found


def fit_judge(writer: ModelWriter, pairs: Sequence[LabelledPair], batch_size: int = 16) -> dict[str, Any]:
    """Calibrate the judge of a model: the field `judge` of its config.

    Pairs of one meaning count as much as all others together.

    Args:
        writer: Runs the model.
        pairs: As `make_pairs` returns them.
        batch_size: Pairs at once.
    """
    features = pair_features(writer, [one.source for one in pairs], [one.candidate for one in pairs], batch_size)
    same = np.array([one.kind == "same" for one in pairs])
    weights, bias = _fit_logistic(features, same)
    return {"weights": dict(zip(FEATURES, weights, strict=True)), "bias": bias}


def fit_own_text(
    writer: ModelWriter, ordinary: Sequence[str], other: Sequence[str], batch_size: int = 16
) -> dict[str, Any]:
    """Fit the field `own_text` of a config: how a model recognises the kind of text it was trained on.

    Args:
        writer: Runs the model.
        ordinary: Texts of the kind; at most `MOST_REFUSED` of them will be refused.
        other: Texts in other languages, and code.
        batch_size: Texts at once.
    """
    other = [text for text in other if find_foreign_form(text) is None]
    features = text_features(writer, [*ordinary, *other], batch_size)
    is_own = np.arange(len(features)) < len(ordinary)
    weights, _ = _fit_logistic(features, is_own)
    scores = features @ np.array(weights)
    own, others = np.quantile(scores[is_own], MOST_REFUSED), np.quantile(scores[~is_own], 1 - MOST_MISSED)
    # Halfway between the two kinds if they do not overlap.
    return {"weights": weights, "bias": round(-min(float(own), float(own + others) / 2), 4)}


def _fit_logistic(features: np.ndarray, labels: np.ndarray) -> tuple[list[float], float]:
    """The weights and the bias of a logistic regression in which both labels count the same."""
    mean, scale = features.mean(0), features.std(0)
    scale[scale == 0] = 1.0
    standard, signs = (features - mean) / scale, np.where(labels, 1.0, -1.0)
    shares = np.where(labels, 0.5 / max(labels.sum(), 1), 0.5 / max((~labels).sum(), 1))

    def loss(parameters: np.ndarray) -> float:
        margins = signs * (standard @ parameters[:-1] + parameters[-1])
        return float(shares @ np.logaddexp(0.0, -margins) + RIDGE * parameters[:-1] @ parameters[:-1])

    found = minimize(loss, np.zeros(features.shape[1] + 1)).x
    weights = found[:-1] / scale
    return [round(float(weight), 4) for weight in weights], round(float(found[-1] - weights @ mean), 4)


def compare_judges(
    judges: Mapping[str, Adequacy], pairs: Sequence[LabelledPair], batch_size: int = 16
) -> dict[str, dict[str, float]]:
    """Measure how well judges separate paraphrases from other pairs, by the area under the ROC curve.

    Args:
        judges: By their names.
        pairs: Labelled pairs, including the kind "same".
        batch_size: Pairs at once.

    Returns:
        For each judge the area for each other kind, and for "all" of them.
    """
    kinds = dict.fromkeys(one.kind for one in pairs if one.kind != "same")
    judged = [Judged(one.source, one.candidate) for one in pairs]
    table = {}
    for name, judge in judges.items():
        scores = np.array(judge(judged, batch_size))
        same = scores[[one.kind == "same" for one in pairs]]
        of_kinds = {kind: scores[[one.kind == kind for one in pairs]] for kind in kinds}
        of_kinds["all"] = scores[[one.kind != "same" for one in pairs]]
        table[name] = {kind: round(area_under_curve(same, others), 3) for kind, others in of_kinds.items()}
    return table


def area_under_curve(right: np.ndarray, wrong: np.ndarray) -> float:
    """How probable it is that a right item has a higher score than a wrong one; equal scores count half.

    Raises:
        InputError: There are no items of either kind.
    """
    if not len(right) or not len(wrong):
        raise InputError("the area under the curve needs pairs that say the same and pairs that do not")
    return float(mannwhitneyu(right, wrong).statistic / (len(right) * len(wrong)))
