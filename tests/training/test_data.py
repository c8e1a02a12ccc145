from __future__ import annotations

from datasets import Dataset

from hf_paraphrase.training.batching import fingerprint, token_counts


def test_counts_and_fingerprint():
    encoded = Dataset.from_dict({"input_ids": [[4, 2], [4, 5, 2]], "labels": [[4, 5, 6, 2], [4, 2]]})
    assert token_counts(encoded, "input_ids").tolist() == [2, 3]
    assert token_counts(encoded.select([1]), "labels").tolist() == [2]
    assert fingerprint(encoded) == fingerprint(encoded.select(range(2)))
    assert fingerprint(encoded) != fingerprint(encoded.select([1, 0]))


def test_fingerprint_sees_numbers_and_nested_lists():
    def of(label: int, lists: list[list[int]]) -> str:
        return fingerprint(Dataset.from_dict({"label": [label], "pairs": [lists]}))

    assert len({of(0, [[1, 2], [3]]), of(1, [[1, 2], [3]]), of(0, [[1], [2, 3]]), of(0, [[1, 2, 3]])}) == 4
