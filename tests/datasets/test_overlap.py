from __future__ import annotations

import random

from hf_paraphrase.datasets.gutenberg import fingerprints, group_overlapping


def paragraphs(name: str, count: int) -> list[str]:
    return [f"Paragraph {number} of {name}. " + "It has some more words. " * 5 for number in range(count)]


def test_a_collection_is_grouped_with_its_parts_and_nothing_else():
    parts = [paragraphs(name, 60) for name in "abc"]
    collection = [text for part in parts for text in part]
    documents = [*parts, paragraphs("d", 60), collection, paragraphs("e", 200)]
    assert group_overlapping([fingerprints(document) for document in documents]) == [[0, 1, 2, 4], [3], [5]]


def test_the_order_of_documents_has_no_say():
    texts = [paragraphs("a", 40), paragraphs("b", 40), paragraphs("a", 40) + paragraphs("b", 40), paragraphs("c", 40)]
    for seed in range(5):
        order = random.Random(seed).sample(range(4), 4)
        groups = group_overlapping([fingerprints(texts[place]) for place in order])
        assert sorted(sorted(order[place] for place in group) for group in groups) == [[0, 1, 2], [3]]


def test_what_is_short_or_everywhere_does_not_group():
    short = [f"A line {number}." for number in range(100)]
    note = paragraphs("a note of the transcriber", 40)
    assert fingerprints(short) == set()
    documents = [fingerprints([*paragraphs(f"book {number}", 40), *note]) for number in range(30)]
    assert len(group_overlapping(documents)) == 30
    assert len(group_overlapping(documents[:10])) == 1


def test_white_space_is_the_readers_business_but_case_is_not():
    assert fingerprints(text.upper() for text in paragraphs("a", 40)) == fingerprints(paragraphs("A", 40)) != set()
    assert group_overlapping([]) == []
