from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ...common.errors import InputError
from ..inputs import check_lengths, check_list


def cohen_kappa(first: Iterable[Hashable], second: Iterable[Hashable]) -> float | None:
    """Cohen's kappa: how far two raters agree beyond what their own habits make likely.

    Args:
        first: One rater's category for each item: choices, or points on a scale.
        second: The other rater's, in the same order.

    Returns:
        At most 1; 0 is chance. None where chance alone makes agreement certain, since both always chose the same.

    Raises:
        InputError: Different numbers of ratings, or none.

    Source: Cohen 1960.
    """
    first, second = check_list("first", first), check_list("second", second)
    check_lengths(first=first, second=second)
    if not first:
        raise InputError("`first` is empty: no ratings to compare")
    total = len(first)
    observed = sum(one == other for one, other in zip(first, second, strict=True)) / total
    ours, theirs = Counter(first), Counter(second)
    expected = sum(ours[category] * theirs[category] for category in ours) / total**2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def mean_cohen_kappa(ratings: Mapping[Any, Mapping[Any, Hashable]]) -> float | None:
    """The mean of Cohen's kappa over all pairs of raters, each pair over the items that both rated.

    Args:
        ratings: For each rater the category of each item.

    Returns:
        None where no two raters share items, or kappa is undefined for every pair.
    """
    kappas = []
    for one, other in combinations(ratings.values(), 2):
        shared = [item for item in one if item in other]
        if shared:
            kappas.append(cohen_kappa([one[item] for item in shared], [other[item] for item in shared]))
    defined = [kappa for kappa in kappas if kappa is not None]
    return sum(defined) / len(defined) if defined else None


def fleiss_kappa(counts: Sequence[Sequence[int]]) -> float | None:
    """Fleiss' kappa: agreement beyond chance among several raters, who need not be the same for every item.

    Args:
        counts: For each item how many raters chose each category. Items with fewer than two ratings say nothing about
            agreement and are left out; where the number differs between items, each counts the same.

    Returns:
        At most 1; 0 is chance. None where no item has two ratings, or all ratings are in one category.

    Source: Fleiss 1971.
    """
    table = np.asarray(counts, dtype=float)
    table = table[table.sum(axis=1) >= 2] if table.size else table
    if not table.size:
        return None
    raters = table.sum(axis=1)
    observed = float(((table * (table - 1)).sum(axis=1) / (raters * (raters - 1))).mean())
    expected = float(((table.sum(axis=0) / table.sum()) ** 2).sum())
    return None if expected == 1 else (observed - expected) / (1 - expected)
