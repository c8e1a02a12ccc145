from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from ...common.errors import InputError
from ..inputs import check_lengths, check_text_list
from .agreement import fleiss_kappa, mean_cohen_kappa

CHOICES = ("win", "tie", "loss")


def preference(items: Iterable[str], raters: Iterable[str], choices: Iterable[str]) -> dict[str, Any]:
    """Preference: wins, ties and losses of human judgements, with Cohen's and Fleiss' kappa.

    How often raters preferred the first of two systems, and how far they agreed beyond chance.

    Args:
        items: The item of each judgement, for instance the number of the source.
        raters: Who judged it.
        choices: `win` where the rater preferred the first system, `tie`, or `loss`.

    Returns:
        `wins`, `ties`, `losses` (counts), `win_share`, `tie_share`, `loss_share` (0 to 1), `judgements`, `items`,
        `raters`, `cohen_kappa` (mean over the pairs of raters, each over the items that they share) and `fleiss_kappa`
        (over the items with two judgements or more); a kappa is None where it is not defined.

    Raises:
        InputError: Judgements that cannot be counted; the message names the argument and the index.

    Examples:
        >>> metric = load_metric("preference")
        >>> metric.compute(items=["1", "1"], raters=["ann", "bob"], choices=["win", "win"])["wins"]
        2

    Limits:
        - Show raters the two outputs in random order, and undo that order before counting: the forms of
          `hf-paraphrase rating make` and `hf-paraphrase rating read` do both.
        - For ratings on a scale use `cohen_kappa` and `fleiss_kappa` of `hf_paraphrase.metrics.preference.agreement`.

    Source: Kazemnejad et al. 2020, figure 5 (preference with ties); Cohen 1960; Fleiss 1971.
    """
    items, raters, choices = check_judgements(items, raters, choices)
    counts, total = Counter(choices), len(choices)
    by_rater: dict[str, dict[str, str]] = defaultdict(dict)
    by_item: dict[str, Counter[str]] = defaultdict(Counter)
    for item, rater, choice in zip(items, raters, choices, strict=True):
        by_rater[rater][item] = choice
        by_item[item][choice] += 1
    return {
        "wins": counts["win"],
        "ties": counts["tie"],
        "losses": counts["loss"],
        **{f"{choice}_share": counts[choice] / total for choice in CHOICES},
        "judgements": total,
        "items": len(by_item),
        "raters": len(by_rater),
        "cohen_kappa": mean_cohen_kappa(by_rater),
        "fleiss_kappa": fleiss_kappa([[counter[choice] for choice in CHOICES] for counter in by_item.values()]),
    }


def check_judgements(
    items: Iterable[str], raters: Iterable[str], choices: Iterable[str]
) -> tuple[list[str], list[str], list[str]]:
    """Check columns of judgements: of one length, known choices, and no rater twice on an item."""
    given = {"items": items, "raters": raters, "choices": choices}
    columns = {name: check_text_list(name, column) for name, column in given.items()}
    check_lengths(**columns)
    seen: dict[tuple[str, str], int] = {}
    for index, (item, rater, choice) in enumerate(zip(*columns.values(), strict=True)):
        if choice not in CHOICES:
            raise InputError(f"choices[{index}] must be one of {', '.join(CHOICES)}, got {choice!r}")
        first = seen.setdefault((item, rater), index)
        if first != index:
            raise InputError(f"choices[{index}]: rater {rater!r} judged item {item!r} before, at {first}")
    return columns["items"], columns["raters"], columns["choices"]
