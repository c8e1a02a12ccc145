from __future__ import annotations

import numpy as np
import pytest

from hf_paraphrase.training.batching import DrawnBatches, EpochDraw, share_out

# Groups of 1 to 6 rows, which do not lie together.
GROUPS = np.random.default_rng(0).permutation(np.repeat(np.arange(6), np.arange(1, 7)))


def test_each_group_gives_its_pairs_anew_in_every_epoch():
    draw = EpochDraw(GROUPS, pairs_per_group=2, seed=1)
    epochs = [draw(epoch) for epoch in range(40)]
    for rows in epochs:
        assert np.bincount(GROUPS[rows]).tolist() == [1, 2, 2, 2, 2, 2]
        assert len(set(rows.tolist())) == len(rows)
    assert len({tuple(rows) for rows in epochs}) > 30
    assert set(np.concatenate(epochs).tolist()) == set(range(len(GROUPS)))


def test_seed_and_epoch_alone_decide():
    first, second = (EpochDraw(GROUPS, pairs_per_group=1, seed=7) for _ in range(2))
    for epoch in (5, 0, 3):
        assert first(epoch).tolist() == second(epoch).tolist()
    assert EpochDraw(GROUPS, pairs_per_group=1, seed=8)(5).tolist() != first(5).tolist()


def test_shares_of_an_epoch():
    """A corpus with more than its pass is passed over again, with other pairs; one with less gives a part."""
    corpora = (GROUPS >= 3).astype(int)
    draw = EpochDraw(GROUPS, corpora, np.array([0.75, 0.25]), pairs_per_group=2)
    assert draw.sizes.tolist() == [8, 3]  # passes of 5 and 6 rows
    for epoch in range(5):
        rows = draw(epoch)
        assert np.bincount(corpora[rows]).tolist() == [8, 3]
        assert np.bincount(rows).max() == 2
    parts = {tuple(rows[corpora[rows] == 1]) for rows in map(draw, range(9))}
    assert len(parts) > 5


def test_without_shares_a_corpus_has_its_pass():
    corpora = (GROUPS >= 3).astype(int)
    assert EpochDraw(GROUPS, corpora, None, pairs_per_group=2).sizes.tolist() == [5, 6]
    draw = EpochDraw(GROUPS, corpora, np.array([0.5, 0.5]))
    assert draw.sizes.tolist() == [10, 11]  # all rows: 6 and 15
    assert np.bincount(draw(0)[corpora[draw(0)] == 0]).max() == 2


def test_share_out():
    assert share_out(10, np.array([1, 1, 1]) / 3).tolist() == [3, 4, 3]
    assert share_out(100, np.array([0.999, 0.001])).tolist() == [100, 1]


@pytest.mark.parametrize("accumulation", [1, 3])
def test_epochs_of_drawn_rows_have_the_same_steps_and_hardly_any_padding(accumulation):
    random = np.random.default_rng(3)
    groups = np.repeat(np.arange(2000), 6)
    lengths = random.integers(4, 40, len(groups)), random.integers(4, 40, len(groups))
    draw = EpochDraw(groups, pairs_per_group=1, seed=2)
    batches = DrawnBatches(draw, *lengths, max_tokens=600, accumulation=accumulation, seed=2)
    counts, padding = [], []
    for epoch in range(4):
        steps = batches.epoch(epoch)
        assert len(steps) == batches.steps_per_epoch
        found = [batch for step in steps for batch in step]
        tokens = [len(rows) * sum(part[rows].max() for part in lengths) for rows in found]
        assert max(tokens) <= 600
        padding.append(1 - sum(part[rows].sum() for rows in found for part in lengths) / sum(tokens))
        rows = np.concatenate(found)
        counts.append(len(rows))
        assert len(set(rows) & set(draw(epoch))) > 0.97 * 2000
        assert set(rows) <= set(draw(epoch))
    assert max(padding) < 0.1
    assert [rows.tolist() for step in batches.epoch(3) for rows in step] == [
        rows.tolist() for step in batches.epoch(3) for rows in step
    ]
    assert all(abs(count - 2000) < 60 for count in counts)


def test_missing_batches_are_the_first_ones_again():
    """One long row more or less makes a batch more or less."""
    rows = {0: np.arange(6), 1: np.arange(4), 2: np.arange(8)}
    lengths = np.full(8, 5)
    batches = DrawnBatches(rows.get, lengths, lengths, max_rows=2, seed=0)
    assert batches.steps_per_epoch == 3
    fewer, more = ([step[0].tolist() for step in batches.epoch(epoch)] for epoch in (1, 2))
    assert fewer[2] == fewer[0] != fewer[1]
    assert len({tuple(rows) for rows in more}) == 3
