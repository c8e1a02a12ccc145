"""A judge of whether two texts mean the same: a paraphrasing model, calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from transformers import PreTrainedConfig

from ..datasets.pair_filter import ComparedSentence
from ..errors import InputError
from .loading import load_paraphraser
from .writers import Judged, ModelWriter

FEATURES = ("mean", "worst", "numbers", "names", "persons", "polarity")


def pair_features(
    writer: ModelWriter, sources: Sequence[str], candidates: Sequence[str], batch_size: int
) -> np.ndarray:
    """Compute the judge's features for pairs of texts with words, `(pairs, len(FEATURES))`.

    The first two are averages over both directions, source to candidate and back, of the mean and of the least
    log-probability of a token. The others are 1 if the texts differ in numbers, names, persons (I, you, …) or
    negation, else 0.
    """
    if not sources:
        return np.zeros((0, len(FEATURES)))
    forward = writer.token_log_probs(sources, candidates, batch_size)
    backward = writer.token_log_probs(candidates, sources, batch_size)
    compared = {text: ComparedSentence(text) for text in {*sources, *candidates}}
    rows = []
    for there, back, source, candidate in zip(forward, backward, sources, candidates, strict=True):
        mean, worst = (np.mean([of(there), of(back)]) for of in (np.mean, np.min))
        one, other = compared[source], compared[candidate]
        # The other text may start with the name, or write it without the capital.
        names_differ = not (one.names <= other.bare_words and other.names <= one.bare_words)
        numbers_differ, persons_differ = one.numbers != other.numbers, one.persons != other.persons
        rows.append([mean, worst, numbers_differ, names_differ, persons_differ, one.polarity != other.polarity])
    return np.array(rows, dtype=float)


@dataclass(frozen=True)
class Calibration:
    """A logistic regression from the `FEATURES` to the probability that two texts say the same."""

    weights: Mapping[str, float]
    bias: float

    @classmethod
    def read(cls, config: PreTrainedConfig) -> Calibration | None:
        """Read the field `judge` of a model's config; None where it has none."""
        found = getattr(config, "judge", None)
        if found is None:
            return None
        if set(found["weights"]) != set(FEATURES):
            raise InputError(f"`judge` of the model's config needs weights of {', '.join(FEATURES)}; fit it anew")
        return cls(found["weights"], found["bias"])

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Return the probability for each row of features."""
        logits = features @ np.array([self.weights[name] for name in FEATURES]) + self.bias
        return (1 + np.tanh(logits / 2)) / 2


class OpenJudge:
    """Whether a paraphrasing model can write each of two texts from the other (Thompson and Post 2020).

    The model's mean log-probability of candidate given source and of source given candidate, and the least of a token,
    are joined by a calibrated logistic regression with what a language model overlooks: numbers, names, persons and
    negation that differ. Scores are near 1 for the same meaning and near 0 for another, and comparable between models,
    since one model judges all. It knows English sentences. It hardly sees an antonym, or a detail left out.
    """

    def __init__(self, writer: ModelWriter, calibration: Calibration):
        self.writer, self.calibration = writer, calibration

    def __call__(self, judged: Sequence[Judged], batch_size: int) -> list[float]:
        """Return a number from 0 to 1 for each candidate."""
        columns = ([one.source for one in judged], [one.candidate for one in judged])
        return self.calibration(pair_features(self.writer, *columns, batch_size)).tolist()


def find_open_judge(writer: ModelWriter) -> OpenJudge | None:
    """Make the judge of the model that paraphrases, if calibrated, else of the package's; None if neither is."""
    if writer.model is not None and (calibration := Calibration.read(writer.model.config)):
        return OpenJudge(ModelWriter(writer.model, writer.tokenizer, prefix=writer.prefix), calibration)
    return _load_released_judge(writer.device)


@cache
def _load_released_judge(device: torch.device) -> OpenJudge | None:
    model, tokenizer = load_paraphraser(device=device)
    calibration = Calibration.read(model.config)
    return None if calibration is None else OpenJudge(ModelWriter(model, tokenizer), calibration)
