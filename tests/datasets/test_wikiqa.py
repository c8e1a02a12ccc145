from __future__ import annotations

from hf_paraphrase.datasets import load_dataset
from tests.datasets.corpora import wikiqa, write


def test_questions_with_an_answer(tmp_path):
    splits = load_dataset("wikiqa", data_dir=write(tmp_path, wikiqa()))
    # Of 12 questions a third has no answer; question 16 is one of the test file.
    assert splits.num_rows == {"train": 8, "validation": 2, "test": 3}
    for row in splits["train"]:
        assert (row["label"], row["relevance"], len(row["candidates"])) == (1, [0, 1, 0, 1], 4)


def test_questions_without_an_answer(tmp_path):
    splits = load_dataset("wikiqa", data_dir=write(tmp_path, wikiqa()), unanswered=True)
    assert splits.num_rows == {"train": 12, "validation": 3, "test": 5}
    assert splits["train"]["label"][:4] == [-1, 1, 1, -1]
