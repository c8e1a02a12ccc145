"""Chooses paraphrases among a text's candidates by scores and rules, and says why it rejects the others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from ..common.checks import is_number, whole_number
from ..errors import InputError
from ..metrics.pinc.scoring import pinc
from .faults import find_fault
from .protected_text import DEFAULT_KEEP, check_keep, find_change
from .set_selection import choose_diverse, normal_form

SCORES = ("adequacy", "fluency", "novelty")
# They gave the best iBLEU on validation questions of Quora, by a model of words and one of pieces together. Adequacy
# by the round trip varies far more than fluency, and much weight on novelty takes the best candidates away.
WEIGHTS = (1.0, 3.0, 0.25)
# Where another language model judges fluency: by them 59 of 107 first paraphrases were good, by those above 55
# (`python scripts/readings.py model_cards/paraphraser-en-small/readings.tsv --fluency MODEL`).
CAUSAL_WEIGHTS = (1.0, 1.0, 0.25)
# One rule instead of the three scores: what judges adequacy, and the weights.
PRESETS: Mapping[str, tuple[str, tuple[float, float, float]]] = {
    "score": ("round_trip", (0.0, 1.0, 0.0)),
    **{rule: (rule, (1.0, 0.0, 0.0)) for rule in ("jaccard", "mbr", "embedding", "matcher")},
}
# The reason of a candidate that passed every rule.
NOT_CHOSEN = "others were chosen"
NOTHING: Mapping[str, Any] = MappingProxyType({})
# By what the logarithm of a score falls for all the novelty that is wanted and missing.
NOVELTY_PENALTY = 10.0
# The floors of that measurement.
MIN_ADEQUACY, MIN_NOVELTY = 0.03, 0.1
# Of the open judge: of 260 pairs of one meaning, 2% have less than 0.34; of those that differ in a negation, 75% have
# less than 0.07.
MIN_OPEN_ADEQUACY = 0.1


class Paraphrase(NamedTuple):
    """A paraphrase of a text, or a candidate that was rejected, with its scores from 0 to 1.

    Args:
        text: The paraphrase.
        score: All three in one, by which paraphrases are ordered: see `combine_scores`; less where `wanted_novelty` is
            missed.
        adequacy: How well it preserves the meaning, by the chosen judge: see `generation.adequacy`.
        fluency: How well it reads, by a language model: see `generation.fluency`.
        novelty: How much of the wording is new: see `score_novelty`.
        reason: Why it was rejected; None for a paraphrase. Candidates rejected by a rule or an earlier score are not
            scored further.
    """

    text: str
    score: float | None = None
    adequacy: float | None = None
    fluency: float | None = None
    novelty: float | None = None
    reason: str | None = None

    def __repr__(self) -> str:
        scores = "".join(
            f", {name}={getattr(self, name):.2f}" for name in ("score", *SCORES) if getattr(self, name) is not None
        )
        return f"Paraphrase({self.text!r}{scores}{'' if self.reason is None else f', reason={self.reason!r}'})"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The criteria for a text's paraphrases.

    Args:
        n: Maximum number of paraphrases.
        min_adequacy: Minimum adequacy, from 0 to 1, like the next two. `model_cards/PARAPHRASER.md` measures the
            defaults.
        min_fluency: Minimum fluency.
        min_novelty: Minimum novelty.
        wanted_novelty: Novelty below which a candidate's score falls, by a factor of e for every 0.1.
        diversity: Penalty for similarity to the text and each other, from 0 to 1: see `choose_diverse`.
        keep: What must be neither lost nor invented: keys of `keep.KEPT`, and words.
        weights: Of adequacy, fluency and novelty in the score.
        return_rejected: Whether the other candidates are returned too.

    Raises:
        InputError: An argument that cannot be.
    """

    n: int = 3
    min_adequacy: float = MIN_ADEQUACY
    min_fluency: float = 0.0
    min_novelty: float = MIN_NOVELTY
    wanted_novelty: float = 0.0
    diversity: float = 0.0
    keep: Sequence[str] = DEFAULT_KEEP
    weights: Sequence[float] = WEIGHTS
    return_rejected: bool = False

    def __post_init__(self):
        whole_number("n", self.n, 1)
        for name in (*(f"min_{score}" for score in SCORES), "wanted_novelty", "diversity"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value <= 1:
                raise InputError(f"`{name}` must be from 0 to 1, not {value!r}")
        object.__setattr__(self, "keep", check_keep(self.keep))
        weights = list(self.weights) if isinstance(self.weights, Iterable) else []
        are_weights = len(weights) == len(SCORES) and all(is_number(weight) and weight >= 0 for weight in weights)
        if not are_weights or not sum(weights) > 0:
            raise InputError(
                f"`weights` must be three numbers, of {', '.join(SCORES)}, none negative and not all 0, not "
                f"{self.weights!r}"
            )
        object.__setattr__(self, "weights", tuple(map(float, weights)))

    def sift(
        self,
        source: str,
        texts: Sequence[str],
        *,
        fluency: Mapping[str, float | None] = NOTHING,
        reasons: Mapping[str, str | None] = NOTHING,
        ignore_case: bool = False,
    ) -> list[Paraphrase]:
        """Reject without a model: empty texts, copies, duplicates, faults, violations of `keep`, low scores.

        Args:
            source: The text.
            texts: Its candidates.
            fluency: Of those texts of which it is known.
            reasons: Why those texts cannot be paraphrases that whoever wrote them rejects.
            ignore_case: Whether the model that wrote them knows no case.

        Returns:
            The distinct texts, in order, with the reasons for rejection. Those that a score is
            below keep what is known.
        """
        forms: dict[str, str | None] = {normal_form(source): None}
        sifted = []
        for text in dict.fromkeys(texts):
            form = normal_form(text)
            reason: str | None
            if not form:
                reason = "has no words"
            elif form in forms:
                reason = "is the source" if forms[form] is None else f"is the same as {forms[form]!r}"
            else:
                forms[form] = text
                reason = reasons.get(text) or find_fault(source, text)
                reason = reason or find_change(source, text, self.keep, ignore_case=ignore_case)
            sifted.append(Paraphrase(text, reason=reason))
        left = [one for one in sifted if one.reason is None]
        novelty = iter(score_novelty([source] * len(left), [one.text for one in left]))
        return [
            self._check_floors(one._replace(novelty=next(novelty), fluency=fluency.get(one.text)))
            if one.reason is None
            else one
            for one in sifted
        ]

    def choose(self, source: str, candidates: Sequence[Paraphrase]) -> list[Paraphrase]:
        """Choose the paraphrases among candidates that `sift` has seen, and whose other ones are scored since.

        Returns:
            At most `n` paraphrases, best first; then, if requested, the others, best first.
        """
        rated = [self._rate(one) if one.reason is None else one for one in candidates]
        passing = [one for one in rated if one.reason is None]
        scores = [cast(float, one.score) for one in passing]
        chosen = set(choose_diverse(source, [one.text for one in passing], scores, self.n, self.diversity))
        left = [one._replace(reason=NOT_CHOSEN) for i, one in enumerate(passing) if i not in chosen]
        rejected = [one for one in rated if one.reason is not None] + left if self.return_rejected else []
        return _best_first([passing[place] for place in sorted(chosen)]) + _best_first(rejected)

    def find_most_hopeful(self, candidates: Sequence[Paraphrase]) -> list[int]:
        """Places of the `n` candidates that would score best if all were fully adequate."""
        bounds = [self._bound(one) for one in candidates]
        return sorted(range(len(bounds)), key=lambda place: -bounds[place])[: self.n]

    def find_hopeful(self, candidates: Sequence[Paraphrase]) -> list[int]:
        """Places of the candidates without adequacy that could yet be chosen, whatever theirs is, with no diversity.

        A score grows with adequacy, so none exceeds that with an adequacy of 1.
        """
        scored = [self._rate(one) for one in candidates if one.adequacy is not None]
        passing = sorted(cast(float, one.score) for one in scored if one.reason is None)
        least = passing[-self.n] if len(passing) >= self.n else -math.inf
        return [place for place, one in enumerate(candidates) if one.adequacy is None and self._bound(one) >= least]

    def _bound(self, candidate: Paraphrase) -> float:
        return cast(float, self._rate(candidate._replace(adequacy=1.0)).score)

    def _rate(self, candidate: Paraphrase) -> Paraphrase:
        score = combine_scores([getattr(candidate, name) for name in SCORES], self.weights)
        missing = max(0.0, self.wanted_novelty - (candidate.novelty or 0.0))
        return self._check_floors(candidate._replace(score=score * math.exp(-NOVELTY_PENALTY * missing)))

    def _check_floors(self, candidate: Paraphrase) -> Paraphrase:
        """Give a candidate a reason where a score that it has is too low."""
        for name in SCORES:
            value, least = getattr(candidate, name), getattr(self, f"min_{name}")
            if value is not None and value < least:
                return candidate._replace(reason=f"{name} {value:.3f} is below {least:g}")
        return candidate


def find_rule(
    select: str | None, adequacy: Any, weights: Sequence[float] | None, is_causal: bool
) -> tuple[Any, Sequence[float]]:
    """The judge of adequacy and the weights by which candidates are ordered: those of a preset, or the given ones.

    Without weights it depends on whether another, causal model judges fluency.
    """
    if select is None:
        return adequacy, (CAUSAL_WEIGHTS if is_causal else WEIGHTS) if weights is None else weights
    if select not in PRESETS:
        raise InputError(f"`select` must be one of {', '.join(PRESETS)}, not {select!r}")
    if weights is not None or adequacy not in ("round_trip", PRESETS[select][0]):
        raise InputError("`select` decides on `adequacy` and `weights`: leave them out")
    return PRESETS[select]


def combine_scores(scores: Sequence[float | None], weights: Sequence[float] = WEIGHTS) -> float:
    """The weighted geometric mean of scores: 0 where any that counts is 0, so that none makes up for another.

    It orders candidates of one text by one model. It is not a probability that a candidate is a good paraphrase.

    Args:
        scores: Adequacy, fluency and novelty, each from 0 to 1; None, which does not count, where unknown.
        weights: Theirs.
    """
    counted = [
        (score, weight) for score, weight in zip(scores, weights, strict=True) if weight > 0 and score is not None
    ]
    if not counted or any(score <= 0 for score, _ in counted):
        return 0.0
    return math.exp(sum(weight * math.log(score) for score, weight in counted) / sum(w for _, w in counted))


def score_novelty(sources: Sequence[str], candidates: Sequence[str]) -> list[float]:
    """PINC of each candidate against its source (Chen and Dolan 2011).

    That is the share of its n-grams, n from 1 to 4, that are not in the source, ignoring case. It measures
    new wording, regardless of meaning: nonsense is entirely new, and a truncated source not at all.

    Args:
        sources: Texts.
        candidates: One for each.
    """
    if not candidates:
        return []
    return pinc(candidates, sources, lowercase=True).statistics["pinc"].rows[:, 0].tolist()


def _best_first(candidates: list[Paraphrase]) -> list[Paraphrase]:
    return sorted(candidates, key=lambda one: -1.0 if one.score is None else one.score, reverse=True)
