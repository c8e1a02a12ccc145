from __future__ import annotations

import random

import pytest

from scripts.judging.meaning_edits import EDITS, MeaningEditor

EDITOR = MeaningEditor(["He met Anna in the garden.", "They were singing.", "She was reading."])


@pytest.mark.parametrize(
    ("kind", "text", "edited"),
    [
        ("negation", "She isn't here.", "She is here."),
        ("negation", "We can't go.", "We can go."),
        ("negation", "He did not go.", "He did go."),
        ("negation", "The door was open.", "The door was not open."),
        ("negation", "Come in.", None),
        ("number", "It costs money.", None),
        ("name", "Yesterday Peter left.", "Yesterday Anna left."),
        ("name", "Yesterday she left.", None),
        ("person", "He left.", "She left."),
        ("person", "Yes, he left.", "Yes, she left."),
        ("person", "The dog left.", None),
        ("antonym", "It is always cold.", "It is never cold."),
        ("antonym", "Stop it.", "Start it."),
        ("clause", "She stayed at home all day because it was raining.", "She stayed at home all day."),
        ("clause", "When it rains, she stays at home all day.", "She stays at home all day."),
        ("clause", "She stayed at home.", None),
        ("word", "He was reading.", "He was singing."),
        ("word", "He ate.", None),
    ],
)
def test_each_edit(kind: str, text: str, edited: str | None) -> None:
    found = {EDITOR.edit(kind, text, random.Random(seed)) for seed in range(20)}
    assert edited in found and (edited is not None or found == {None})


def test_another_number() -> None:
    for seed in range(20):
        edited = EDITOR.edit("number", "He has 25 cows.", random.Random(seed))
        assert edited != "He has 25 cows." and edited.startswith("He has ") and edited.endswith("5 cows.")
        assert EDITOR.edit("number", "He has four cows.", random.Random(seed)) != "He has four cows."


def test_edits_depend_on_the_seed_alone() -> None:
    text = "Before he left, Peter bought two old books because they were cheap."
    for kind in EDITS:
        assert EDITOR.edit(kind, text, random.Random(1)) == EDITOR.edit(kind, text, random.Random(1)) != text
