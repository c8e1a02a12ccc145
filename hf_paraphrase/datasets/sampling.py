from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .builder import seeded_order

if TYPE_CHECKING:
    import bm25s

Item = TypeVar("Item")


def cut(text: str, max_words: int | None) -> str:
    """Collapse white space and keep the first `max_words` words; None keeps all."""
    return " ".join(text.split()[:max_words])


def pair_key(first: str, second: str) -> tuple[str, str]:
    """What makes two pairs the same: their sentences in either order, upper or lower case."""
    first, second = first.casefold(), second.casefold()
    return (first, second) if first < second else (second, first)


def held_out_sizes(total: int, validation: int, test: int, most: float) -> tuple[int, int]:
    """How many of `total` items to validate and to test on.

    Both together are at most the share `most` of the items; larger sizes shrink in proportion, but each keeps at least
    one item if possible.
    """
    wanted = validation + test
    held_out = min(wanted, int(most * total))
    if not (validation and test and held_out > 1):
        return min(validation, held_out if not test else 0), min(test, held_out)
    validation = min(max(round(validation * held_out / wanted), 1), held_out - 1)
    return validation, held_out - validation


def deal(
    groups: Iterable[list[Item]], sizes: dict[str, int | None], key: Callable[[Item], Any], seed: int
) -> dict[str, list[Item]]:
    """Deal groups to splits at random, whole groups each, so that splits share no group.

    Args:
        groups: Lists of items, in any order.
        sizes: The splits, filled in this order, with the items that each may have at most; None is all the rest.
        key: The item's unique key, which determines the order together with the seed.
        seed: Another seed gives another order.
    """
    ordered = {}
    for group in groups:
        group = sorted(group, key=key)
        ordered[key(group[0])] = group
    dealt: dict[str, list[Item]] = {split: [] for split in sizes}
    waiting = list(sizes)
    for first in seeded_order(ordered, seed):
        while waiting and (size := sizes[waiting[0]]) is not None and len(dealt[waiting[0]]) >= size:
            waiting.pop(0)
        if not waiting:
            break
        dealt[waiting[0]] += ordered[first]
    return {split: items[: sizes[split]] for split, items in dealt.items()}


def linked_groups(items: Iterable[Item], ends: Callable[[Item], Sequence[Hashable]]) -> list[list[Item]]:
    """Group items, such as pairs, that are linked by a common end, directly or through others."""
    parents: dict[Hashable, Hashable] = {}

    def root(end: Hashable) -> Hashable:
        while (parent := parents.setdefault(end, end)) != end:
            parents[end] = parents[parent]
            end = parent
        return end

    items = list(items)
    for item in items:
        first, *others = ends(item)
        for other in others:
            parents[root(first)] = root(other)
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(root(ends(item)[0]), []).append(item)
    return list(groups.values())


def divide_linked(ends: Sequence[Sequence[str]], validation: int, test: int, seed: int) -> dict[str, list[int]]:
    """Divide rows at random, whatever their order, so that no split shares a text with another one.

    Args:
        ends: The texts of each row, at least two; of a row with one text, that twice.
        validation: Most rows to validate on.
        test: Most rows to test on.
        seed: Another seed gives another division.

    Returns:
        The numbers of the rows of `train`, `validation` and `test`, ascending, each row in one of them. Rows that are
        linked by common texts stay together; those for which a sample has no room left are in `train`.
    """
    folded = [tuple(" ".join(text.casefold().split()) for text in texts) for texts in ends]
    groups = {
        min((*folded[place][:2], place) for place in group): group
        for group in linked_groups(range(len(folded)), folded.__getitem__)
    }
    sizes = {"test": test, "validation": validation}
    divided: dict[str, list[int]] = {"train": [], "validation": [], "test": []}
    for first in seeded_order(groups, seed):
        group = groups[first]
        split = next((name for name, size in sizes.items() if len(divided[name]) + len(group) <= size), "train")
        divided[split] += group
    return {split: sorted(places) for split, places in divided.items()}


def index_texts(texts: list[str]) -> bm25s.BM25:
    """Index texts for `search_index`, scored as Lucene does: for wrong candidates that look right."""
    import bm25s

    # It reports every index that it makes.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    return index


def search_index(index: bm25s.BM25, text: str, size: int) -> np.ndarray:
    """The places of the texts that are most like another, in order of place; of equal ones the first count.

    Args:
        index: What `index_texts` made.
        text: The other.
        size: Maximum number of results; texts without a common word are not found.
    """
    import bm25s

    (tokens,) = bm25s.tokenize([text], return_ids=False, show_progress=False)
    if not tokens:
        return np.array([], dtype=np.int64)
    scores = index.get_scores(tokens)
    # bm25s's own selection breaks ties depending on installed packages, and is slower.
    found = np.flatnonzero(scores > 0)
    if len(found) <= size:
        return found
    scores = scores[found]
    least = np.partition(scores, -size)[-size]
    better, equal = found[scores > least], found[scores == least]
    return np.sort(np.concatenate((better, equal[: size - len(better)])))
