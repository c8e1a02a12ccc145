from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hf_paraphrase.training.batching import LengthBatches, PairCollator, share_batches


@pytest.fixture
def lengths():
    random = np.random.default_rng(0)
    return random.integers(3, 17, 500), random.integers(3, 17, 500)


def flat(steps):
    return [rows for step in steps for rows in step]


@pytest.mark.parametrize("bounds", [{"max_rows": 32}, {"max_tokens": 400}, {"max_rows": 8, "max_tokens": 200}])
def test_every_row_is_once_in_an_epoch_and_batches_keep_their_bounds(lengths, bounds):
    sources, targets = lengths
    batches = LengthBatches(sources, targets, **bounds)
    for epoch in (0, 1):
        rows = flat(batches.epoch(epoch))
        assert sorted(np.concatenate(rows)) == list(range(500))
        assert all(len(batch) <= bounds.get("max_rows", 500) for batch in rows)
        cost = [len(batch) * (sources[batch].max() + targets[batch].max()) for batch in rows]
        assert max(cost) <= bounds.get("max_tokens", 10**6)
    # A batch is only closed when the next row in order does not fit any more.
    assert len(flat(batches.epoch(0))) < 1.2 * max(500 / bounds.get("max_rows", 500), sum(cost) / 400)


def test_order_depends_on_seed_and_epoch_alone(lengths):
    first, again, other = (LengthBatches(*lengths, max_rows=16, seed=seed) for seed in (1, 1, 2))
    same = zip(flat(first.epoch(3)), flat(again.epoch(3)), strict=True)
    assert all(np.array_equal(one, two) for one, two in same)
    contents = [
        {tuple(sorted(rows)) for rows in flat(batches.epoch(epoch))}
        for batches, epoch in ((first, 0), (first, 1), (other, 0))
    ]
    assert contents[0] != contents[1] != contents[2] != contents[0]


def test_batches_are_shuffled_and_equally_many_in_each_epoch(lengths):
    batches = LengthBatches(*lengths, max_tokens=300, accumulation=3)
    counts = {len(batches.epoch(epoch)) for epoch in range(5)}
    assert counts == {batches.steps_per_epoch}
    longest = [lengths[0][step[0]].max() for step in batches.epoch(0)]
    assert longest != sorted(longest)


def test_padding_is_small(lengths):
    sources, targets = lengths
    rows = flat(LengthBatches(sources, targets, max_rows=16).epoch(0))
    padded = sum(len(batch) * (sources[batch].max() + targets[batch].max()) for batch in rows)
    assert padded / (sources.sum() + targets.sum()) < 1.2


@pytest.mark.parametrize("bounds", [{"max_rows": 32}, {"max_tokens": 400}])
def test_no_batch_has_more_padding_than_its_share(lengths, bounds):
    """Without the bound some batches of the same rows have more."""
    sources, targets = lengths

    def shares(**bounds) -> list[float]:
        rows = flat(LengthBatches(sources, targets, **bounds).epoch(0))
        assert sorted(np.concatenate(rows)) == list(range(500))
        tokens = [len(batch) * (sources[batch].max() + targets[batch].max()) for batch in rows]
        words = [sources[batch].sum() + targets[batch].sum() for batch in rows]
        return [1 - real / padded for real, padded in zip(words, tokens, strict=True)]

    assert max(shares(**bounds)) > 0.05
    bounded = shares(**bounds, max_padding=0.05)
    assert 0.01 < max(bounded) <= 0.05 + 1e-9
    assert len(bounded) < 250


def test_row_beyond_the_budget_has_its_own_batch():
    batches = LengthBatches(np.array([5, 5, 90, 5]), np.array([5, 5, 90, 5]), max_tokens=40)
    assert sorted(sorted(rows) for rows in flat(batches.epoch(0))) == [[0, 1, 3], [2]]


def test_accumulated_batches_are_one_larger_batch(lengths):
    small = LengthBatches(*lengths, max_rows=4, accumulation=2).epoch(1)
    large = LengthBatches(*lengths, max_rows=8).epoch(1)
    for pair, (whole,) in zip(small, large, strict=True):
        assert np.array_equal(np.concatenate(pair), whole)


def test_in_order_covers_all_rows_by_length(lengths):
    rows = LengthBatches(*lengths, max_rows=64).in_order()
    order = np.concatenate(rows)
    assert sorted(order) == list(range(500))
    assert (np.diff(lengths[0][order]) >= 0).all()


def test_collator_pads_each_side_with_its_own_value():
    batch = PairCollator(7)([{"input_ids": [1, 2], "labels": [5]}, {"input_ids": [3], "labels": [5, 6, 2]}])
    assert batch["input_ids"].tolist() == [[1, 2], [3, 7]]
    assert batch["attention_mask"].tolist() == [[1, 1], [1, 0]]
    assert batch["labels"].tolist() == [[5, -100, -100], [5, 6, 2]]


def test_processes_share_each_batch_between_them():
    def make_batch(rows: list[int]) -> dict[str, torch.Tensor]:
        return {"labels": torch.tensor(rows)}

    batches = [np.array([4, 1, 9]), np.array([7])]
    seen = []
    for rank in range(2):
        accelerator = SimpleNamespace(process_index=rank, num_processes=2, device=torch.device("cpu"))
        shares = share_batches(batches, make_batch, accelerator)
        seen.append([(batch["labels"].tolist(), rows.tolist()) for batch, rows in shares])
    # The second process has no row of the second batch: it runs one that does not count.
    assert seen == [[([4, 9], [4, 9]), ([7], [7])], [([1], [1]), ([7], [])]]
