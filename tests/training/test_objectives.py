from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from hf_paraphrase.training.losses import cross_entropy_sums

from .tiny_runs import make_recipe


@pytest.fixture
def model():
    return AutoModelForSeq2SeqLM.from_config(make_recipe().make_config()).eval()


@pytest.fixture
def batch():
    return {
        "input_ids": torch.tensor([[5, 6, 2], [7, 2, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1], [1, 1, 0]]),
        "labels": torch.tensor([[6, 5, 2], [7, 2, -100]]),
    }


def test_sums_are_over_the_tokens_that_count(model, batch):
    loss, likelihood = cross_entropy_sums(model, batch)
    scores = model(**batch).logits.log_softmax(-1)
    expected = -sum(scores[row, at, batch["labels"][row, at]] for row, at in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)])
    torch.testing.assert_close(loss, expected)
    assert loss.requires_grad
    assert likelihood == loss
    assert not likelihood.requires_grad


def test_smoothing_spreads_probability_but_reports_the_likelihood(model, batch):
    plain, likelihood = cross_entropy_sums(model, batch)
    smoothed, reported = cross_entropy_sums(model, batch, label_smoothing=0.3)
    kept = batch["labels"] != -100
    uniform = -model(**batch).logits.log_softmax(-1).mean(-1)[kept].sum()
    torch.testing.assert_close(smoothed, 0.7 * plain + 0.3 * uniform)
    torch.testing.assert_close(reported, likelihood)
