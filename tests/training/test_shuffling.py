from __future__ import annotations

import numpy as np
import pytest

from hf_paraphrase.training.batching import ShuffledDocuments, interleave

DOCUMENTS = np.repeat([0, 1, 2, 5, 6], [7, 1, 4, 9, 3])


def test_documents_take_turns():
    documents = [(0, 3), (3, 4), (4, 6), (6, 8)]
    assert list(interleave(documents, 2)) == [0, 3, 1, 4, 2, 5, 6, 7]
    assert list(interleave(documents, 9)) == [0, 3, 4, 6, 1, 5, 7, 2]
    assert list(interleave([(0, 0), (0, 2), (2, 2)], 1)) == [0, 1]


@pytest.mark.parametrize(("batch_size", "accumulation"), [(5, 1), (5, 2), (100, 1)])
def test_every_row_once_an_epoch(batch_size, accumulation):
    order = ShuffledDocuments(DOCUMENTS, batch_size, accumulation, buffer_size=8, interleaved=2, seed=1)
    for epoch in (0, 1):
        steps = order.epoch(epoch)
        assert len(steps) == order.steps_per_epoch
        batches = [batch for step in steps for batch in step]
        assert sorted(np.concatenate(batches)) == list(range(len(DOCUMENTS)))
        assert all(len(batch) == batch_size for batch in batches[:-1])


def test_seed_and_epoch_decide():
    def rows(seed: int, epoch: int) -> list[int]:
        order = ShuffledDocuments(DOCUMENTS, 5, buffer_size=8, interleaved=2, seed=seed)
        return np.concatenate([batch for step in order.epoch(epoch) for batch in step]).tolist()

    assert rows(0, 0) == rows(0, 0)
    assert len({tuple(rows(seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4


def test_a_buffer_has_rows_of_many_documents():
    documents = np.repeat(range(100), 50)
    order = ShuffledDocuments(documents, 64, buffer_size=512, interleaved=16, seed=0)
    first = np.concatenate([batch for step in order.epoch(0)[:8] for batch in step])
    assert len(set(documents[first])) == 16
    assert len(set(documents[order.epoch(0)[0][0]])) > 10
