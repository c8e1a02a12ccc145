"""The released model as a judge of meaning, and the texts that it refuses."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from hf_paraphrase import Paraphraser
from hf_paraphrase.generation.judges import Judged, load_adequacy

OTHER_TEXTS = Path(__file__).parents[2] / "model_cards" / "paraphraser-en-small" / "other-texts.tsv"
SOURCE = "He did not sell the four old houses before Peter came."


@pytest.fixture(scope="module")
def paraphraser() -> Paraphraser:
    return Paraphraser.from_pretrained(device="cpu")


def test_it_sees_what_changes_the_meaning(paraphraser: Paraphraser) -> None:
    candidates = [
        "He hadn't sold the four old houses before Peter came.",
        "He sold the four old houses before Peter came.",
        "He did not sell the five old houses before Peter came.",
        "She did not sell the four old houses before Peter came.",
        "He did not sell the four old houses before Anna came.",
        "The weather will be fine tomorrow.",
    ]
    judge = load_adequacy("open", paraphraser.writer)
    same, *others = judge([Judged(SOURCE, candidate) for candidate in candidates], 8)
    assert same > 0.7 and max(others) < 0.5 and others[-1] < 0.01


def test_it_refuses_texts_of_other_kinds(paraphraser: Paraphraser) -> None:
    """The examples that the card counts."""
    with OTHER_TEXTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    refusals = paraphraser.own_text.find_refusals([row["text"] for row in rows], 16)
    refused = Counter(row["kind"] for row, refusal in zip(rows, refusals, strict=True) if refusal)
    assert len(refused) == 5 and min(refused.values()) >= 28
    ordinary = [
        SOURCE,
        "Two climbers rescued after night on Ben Nevis",
        "how can i improve my handwriting?",
        "It's late.",
    ]
    assert paraphraser.own_text.find_refusals(ordinary, 16) == [None] * 4
    assert paraphraser("Ich weiß nicht, wo ich meine Schlüssel gelassen habe.") == []
