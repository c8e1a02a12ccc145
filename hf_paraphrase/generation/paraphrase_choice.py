"""Chooses paraphrases among a text's candidates by scores and rules, and says why it rejects the others."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from ..common.checks import is_number, whole_number
from ..common.errors import InputError
from ..datasets.sentences import split_by_rules
from ..metrics.pinc.scoring import pinc
from ..metrics.words import ngrams, split_words
from .protected_text import DEFAULT_KEEP, check_keep, find_change
from .writers import Candidate, Judged

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
# By what the logarithm of a score falls for all the novelty that is wanted and missing.
NOVELTY_PENALTY = 10.0
# The floors of that measurement.
MIN_ADEQUACY, MIN_NOVELTY = 0.03, 0.1
# Of the open judge: of 260 pairs of one meaning, 2% have less than 0.34; of those that differ in a negation, 75% have
# less than 0.07.
MIN_OPEN_ADEQUACY = 0.1
# Quotation marks are counted together, for a paraphrase may write “yes” for "yes"; backticks enclose code.
QUOTATION_MARKS = '"“”„‟«»「」『』'
BRACKETS = ("()", "[]", "{}", "（）")
# Longest n-grams by which texts are compared.
MAX_ORDER = 4
# Spaces, punctuation and invisible characters; symbols such as + stay, and so do marks, which are vowels in many
# scripts.
IGNORED = ("Z", "P", "C")
IGNORED_ASCII = {code: None for code in range(128) if unicodedata.category(chr(code))[0] in IGNORED}


class Paraphrase(NamedTuple):
    """A paraphrase of a text, or a candidate that was rejected, with its scores from 0 to 1.

    Args:
        text: The paraphrase.
        score: All three in one, by which paraphrases are ordered: see `combine_scores`; less where `wanted_novelty` is
            missed.
        adequacy: How well it preserves the meaning, by the chosen judge: see `generation.judges`.
        fluency: How well it reads, by a language model: see `generation.judges`.
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
        are_weights = len(weights) == len(SCORES) and all(
            is_number(weight) and 0 <= weight < math.inf for weight in weights
        )
        if not are_weights or not sum(weights) > 0:
            raise InputError(
                f"`weights` must be three numbers, of {', '.join(SCORES)}, none negative and not all 0, not "
                f"{self.weights!r}"
            )
        object.__setattr__(self, "weights", tuple(map(float, weights)))

    def sift(self, source: str, candidates: Iterable[Candidate], *, ignore_case: bool = False) -> list[Paraphrase]:
        """Reject without a model: empty texts, copies, duplicates, faults, violations of `keep`, low scores.

        Args:
            source: The text.
            candidates: Its candidates; of two with the same text the first counts.
            ignore_case: Whether the model that wrote them knows no case.

        Returns:
            The distinct texts, in order, with the reasons for rejection. Those that a score is
            below keep what is known.
        """
        first: dict[str, Candidate] = {}
        for candidate in candidates:
            first.setdefault(candidate.text, candidate)
        forms: dict[str, str | None] = {normal_form(source): None}
        sifted = []
        for text, candidate in first.items():
            form = normal_form(text)
            reason: str | None
            if not form:
                reason = "has no words"
            elif form in forms:
                reason = "is the source" if forms[form] is None else f"is the same as {forms[form]!r}"
            else:
                forms[form] = text
                reason = candidate.reason or find_fault(source, text)
                reason = reason or find_change(source, text, self.keep, ignore_case=ignore_case)
            sifted.append(Paraphrase(text, reason=reason))
        left = [one for one in sifted if one.reason is None]
        novelty = iter(score_novelty([source] * len(left), [one.text for one in left]))
        return [
            self._check_floors(one._replace(novelty=next(novelty), fluency=first[one.text].fluency))
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

    def judge(
        self,
        groups: Sequence[list[Paraphrase]],
        judged: Sequence[Sequence[Judged]],
        score: Callable[[list[Judged], int], Sequence[float]],
        batch_size: int,
        judges_alone: bool,
    ) -> None:
        """Give the candidates of many texts that passed all rules their adequacy, in place.

        Where a judge looks at each candidate alone and only the best scores count, the most hopeful of each text are
        judged first, then those that could still score as well. The others, which no adequacy would help, get the
        reason `NOT_CHOSEN` instead: the choice is the same.

        Args:
            groups: For each text its candidates, with fluency and novelty, or with a reason for rejection.
            judged: For each text what the judge reads of those without a reason.
            score: The judge.
            batch_size: Candidates at once.
            judges_alone: Whether its number for a candidate is that for any others beside it.
        """
        passing = [[place for place, one in enumerate(group) if one.reason is None] for group in groups]
        # Of a text alone, a second batch takes longer than it saves.
        may_skip = judges_alone and len(groups) > 1 and not self.diversity and not self.return_rejected
        for find in (self._find_most_hopeful, self._find_hopeful) if may_skip else (_find_all,):
            asked = [
                (group, places[number], texts[number])
                for group, places, texts in zip(groups, passing, judged, strict=True)
                for number in find([group[place] for place in places])
            ]
            scores = score([text for *_, text in asked], batch_size) if asked else []
            for (group, place, _), adequacy in zip(asked, scores, strict=True):
                group[place] = group[place]._replace(adequacy=adequacy)
        for group in groups:
            group[:] = [
                one._replace(reason=NOT_CHOSEN) if one.reason is None and one.adequacy is None else one
                for one in group
            ]

    def _find_most_hopeful(self, candidates: Sequence[Paraphrase]) -> list[int]:
        """Places of the `n` candidates that would score best if all were fully adequate."""
        bounds = [self._bound(one) for one in candidates]
        return sorted(range(len(bounds)), key=lambda place: -bounds[place])[: self.n]

    def _find_hopeful(self, candidates: Sequence[Paraphrase]) -> list[int]:
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


def _find_all(candidates: Sequence[Paraphrase]) -> range:
    return range(len(candidates))


def normal_form(text: str) -> str:
    """A text without case, spaces and punctuation, in one Unicode form: where it is equal, two texts count as one."""
    if text.isascii():
        return text.lower().translate(IGNORED_ASCII)
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(character for character in text if unicodedata.category(character)[0] not in IGNORED)


def find_fault(source: str, candidate: str) -> str | None:
    """Describe a formal fault of a candidate; None if nothing is.

    A model that stops too late continues after the paraphrase: it opens a quotation or adds a sentence. A
    sentence that is merely divided in two, and gets no longer by it, passes.

    Args:
        source: The text; of marks that it leaves open itself, nothing is asked.
    """
    open_before = _find_open(source)
    for mark in _find_open(candidate):
        if mark not in open_before:
            return f"leaves {mark!r} unpaired"
    is_longer = len(candidate.split()) > len(source.split())
    if is_longer and len(split_by_rules(candidate)) > len(split_by_rules(source)):
        return "adds a sentence"
    return None


def _find_open(text: str) -> list[str]:
    """The marks that come in pairs, each by its first, which a text has too many or too few of."""
    odd = [marks[0] for marks in (QUOTATION_MARKS, "`") if sum(map(text.count, marks)) % 2]
    return odd + [pair[0] for pair in BRACKETS if text.count(pair[0]) != text.count(pair[1])]


def choose_diverse(
    source: str, candidates: Sequence[str], scores: Sequence[float], n: int, diversity: float
) -> list[int]:
    """Choose candidates in turn by maximal marginal relevance (Carbonell and Goldstein 1998).

    Each is the one with most of `(1 - diversity) * score - diversity * likeness`, where likeness is the mean of two
    shares of n-grams, n from 1 to 4: that which a candidate has in common with the source, so that 1 less that is its
    PINC, and the greatest that it has in common with one chosen before, averaged over both directions. Beyond the
    paper, which knows the latter alone: sets are to be unlike the source as well. At 0 these are the `n` of the
    highest scores.

    Args:
        source: The text.
        candidates: Its paraphrases.
        scores: A number for each, from 0 to 1.
        n: Maximum number to choose.
        diversity: From 0 to 1.

    Returns:
        Their places, in the order in which they were chosen; of equals, what comes first.
    """
    *grams, of_source = (_ngram_sets(words) for words in split_words([*candidates, source], lowercase=True))
    to_source, to_chosen = [_share(each, of_source) for each in grams], [0.0] * len(grams)
    chosen: list[int] = []
    left = list(range(len(grams)))

    def margin(place: int) -> float:
        return (1 - diversity) * scores[place] - diversity * (to_source[place] + to_chosen[place]) / 2

    while left and len(chosen) < n:
        best = max(left, key=margin)
        left.remove(best)
        chosen.append(best)
        for place in left:
            likeness = (_share(grams[place], grams[best]) + _share(grams[best], grams[place])) / 2
            to_chosen[place] = max(to_chosen[place], likeness)
    return chosen


def _ngram_sets(words: list[str]) -> list[set[tuple[str, ...]]]:
    return [set(ngrams(words, order)) for order in range(1, MAX_ORDER + 1)]


def _share(grams: list[set], others: list[set]) -> float:
    shares = [len(one & other) / len(one) for one, other in zip(grams, others, strict=True) if one]
    return sum(shares) / len(shares) if shares else 0.0
