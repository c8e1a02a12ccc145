"""Judging the candidates of many texts, without those that cannot be chosen any more."""

from __future__ import annotations

from collections.abc import Sequence

from .adequacy import Adequacy, judges_alone
from .paraphrase_choice import NOT_CHOSEN, Choice, Paraphrase
from .writers import Judged


def judge_candidates(
    groups: Sequence[list[Paraphrase]],
    judged: Sequence[Sequence[Judged]],
    choice: Choice,
    judge: Adequacy,
    batch_size: int,
) -> None:
    """Give the candidates that passed all rules their adequacy, in place.

    Where a judge looks at each candidate alone and only the best scores count, the most hopeful of each text are
    judged first, then those that could still score as well. The others, which no adequacy would help, get the reason
    `NOT_CHOSEN` instead: the choice is the same.

    Args:
        groups: For each text its candidates, with fluency and novelty, or with a reason for rejection.
        judged: For each text what the judge reads of those without a reason.
        choice: The criteria.
        judge: The judge.
        batch_size: Candidates at once.
    """
    passing = [[place for place, one in enumerate(group) if one.reason is None] for group in groups]
    # Of a text alone, a second batch takes longer than it saves.
    may_skip = len(groups) > 1 and judges_alone(judge) and not choice.diversity and not choice.return_rejected
    for find in (choice.find_most_hopeful, choice.find_hopeful) if may_skip else (_find_all,):
        asked = [
            (group, places[number], texts[number])
            for group, places, texts in zip(groups, passing, judged, strict=True)
            for number in find([group[place] for place in places])
        ]
        scores = judge([text for *_, text in asked], batch_size) if asked else []
        for (group, place, _), score in zip(asked, scores, strict=True):
            group[place] = group[place]._replace(adequacy=score)
    if not may_skip:
        return
    for group in groups:
        group[:] = [
            one._replace(reason=NOT_CHOSEN) if one.reason is None and one.adequacy is None else one for one in group
        ]


def _find_all(candidates: Sequence[Paraphrase]) -> range:
    return range(len(candidates))
