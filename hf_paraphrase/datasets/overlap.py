from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

__all__ = ["fingerprints", "group_overlapping"]

# Shorter paragraphs are the same in many books by chance.
SHORTEST = 100
# Every n-th paragraph is sampled: enough for a short story, and thousands of books fit into memory.
SAMPLING = 4
# Paragraphs of more books than that are notes of the transcribers.
MOST_OWNERS = 20


def fingerprints(paragraphs: Iterable[str]) -> set[int]:
    """Hashes of a document's longer paragraphs, or rather of the fourth of them whose hashes are multiples of four."""
    texts = (paragraph.lower() for paragraph in paragraphs if len(paragraph) >= SHORTEST)
    hashes = (int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) for text in texts)
    return {value // SAMPLING for value in hashes if value % SAMPLING == 0}


def group_overlapping(documents: Sequence[set[int]], shared: int = 3) -> list[list[int]]:
    """Group documents, by their fingerprints, that share some, such as a collection and its parts; whatever their
    order.

    Returns the groups, as the places of their documents.
    """
    owners: dict[int, list[int]] = defaultdict(list)
    for place, marks in enumerate(documents):
        for mark in marks:
            owners[mark].append(place)
    common: Counter[tuple[int, int]] = Counter()
    for places in owners.values():
        if len(places) <= MOST_OWNERS:
            common.update(combinations(places, 2))
    group_of = {place: [place] for place in range(len(documents))}
    for (first, second), count in common.items():
        if count >= shared and group_of[first] is not group_of[second]:
            group_of[first].extend(group_of[second])
            for place in group_of[second]:
                group_of[place] = group_of[first]
    return [sorted(group) for place, group in group_of.items() if place == min(group)]
