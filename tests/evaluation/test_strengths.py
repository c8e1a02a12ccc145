"""The table of strengths, by a paraphraser that obeys to the letter."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hf_paraphrase import Paraphraser
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.paraphrase_choice import Paraphrase
from scripts.strengths import STRENGTHS, StrengthRow, format_strengths, measure_strengths

TEXTS = ["a b c d", "e f g h"]


def replace_share(texts: list[str], n: int, strength: float, **options: Any) -> list[list[Paraphrase]]:
    """Replace the last words, a share of `strength`; answer the second text below strength 1 only."""
    assert n == 1 and options == {"seed": 3}
    kept = round(4 * (1 - strength))
    answers = [[Paraphrase(" ".join([*text.split()[:kept], *"wxyz"[kept:]]))] for text in texts]
    return answers if strength < 1 else [answers[0], []]


def encode(texts: list[str]) -> np.ndarray:
    """Unit vectors of the words."""
    vectors = np.array([[word in text.split() for word in "abcdefghwxyz"] for text in texts], dtype=float)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_scores_are_of_answered_texts_at_each_strength():
    rows = measure_strengths(replace_share, TEXTS, encode, seed=3)
    assert [row.strength for row in rows] == list(STRENGTHS)
    assert [row.answered for row in rows] == [2, 2, 2, 2, 1]
    # By hand at 0.5: half of the words, two of three bigrams, and all longer n-grams are new.
    assert [row.pinc for row in rows] == pytest.approx([0, 52.08333, 79.16667, 93.75, 100])
    assert [row.cosine for row in rows] == pytest.approx([1, 0.75, 0.5, 0.25, 0])


def test_without_encoder_or_answers_figures_are_left_out():
    (row,) = measure_strengths(lambda texts, **_: [[] for _ in texts], TEXTS, encode, [0.5])
    assert row == StrengthRow(0.5, 0, None, None)
    (plain,) = measure_strengths(replace_share, TEXTS, strengths=[0.0], seed=3)
    assert plain == StrengthRow(0.0, 2, 0.0, None)
    assert format_strengths([row, plain], 2).splitlines()[2:] == [
        "| 0.5 | 0 of 2 | – | – |",
        "| 0 | 2 of 2 | 0.0 | – |",
    ]


def test_no_texts_are_refused():
    with pytest.raises(InputError, match="`texts`"):
        measure_strengths(replace_share, [])


def test_the_script_reads_lines_and_names_the_model(tmp_path, monkeypatch, capsys):
    asked = []

    def load(*names: str):
        asked.append(names)
        return lambda texts, **options: replace_share(texts, **options, seed=3)

    monkeypatch.setattr(Paraphraser, "from_pretrained", load)
    (tmp_path / "texts.txt").write_text("\n\n".join(TEXTS), encoding="utf-8")
    script = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "strengths.py"))
    script["main"]([str(tmp_path / "texts.txt"), "--model", "runs/open"])
    assert asked == [("runs/open",)]
    assert capsys.readouterr().out.splitlines()[-1] == "| 1 | 1 of 2 | 100.0 | – |"
