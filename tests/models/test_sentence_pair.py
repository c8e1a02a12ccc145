from __future__ import annotations

import pytest
import torch
from huggingface_hub.errors import StrictDataclassClassValidationError

from hf_paraphrase.models.layers.sentence_pair import (
    SentencePairConfig,
    matching_loss,
    max_margin_loss,
    ranked_pairs,
    split_pair,
)
from hf_paraphrase.tokenization import train_word_tokenizer
from tests.models.small_batches import pad

FIRST, SECOND = [[5, 6, 7, 2], [2], [8, 2]], [[9, 2], [4, 5, 6, 7, 8, 2], [2]]


def words(sentences) -> list[list[int]]:
    rows = [row[:length].tolist() for row, length in zip(sentences.input_ids, sentences.lengths, strict=True)]
    assert [row[mask].tolist() for row, mask in zip(sentences.input_ids, sentences.mask, strict=True)] == rows
    return rows


@pytest.mark.parametrize("side", ["right", "left", "between"])
def test_two_sequences_are_compacted(side):
    ones = [[[1] * len(row) for row in rows] for rows in (FIRST, SECOND)]
    x, y = split_pair(
        pad(FIRST, side, 0),
        pad(ones[0], side, 0),
        pair_input_ids=pad(SECOND, side, 0),
        pair_attention_mask=pad(ones[1], side, 0),
    )
    assert words(x) == FIRST and words(y) == SECOND
    assert x.input_ids.shape[1] == 5 and y.input_ids.shape[1] == 7


@pytest.mark.parametrize("side", ["right", "left", "between"])
def test_one_sequence_is_split_by_its_types(side):
    both = [one + other for one, other in zip(FIRST, SECOND, strict=True)]
    types = [[0] * len(one) + [1] * len(other) for one, other in zip(FIRST, SECOND, strict=True)]
    masks = [[1] * len(row) for row in both]
    x, y = split_pair(pad(both, side, 0), pad(masks, side, 0), pad(types, side, 0))
    assert words(x) == FIRST and words(y) == SECOND
    assert x.input_ids.shape[1] == 4 and y.input_ids.shape[1] == 6


def test_without_masks_all_positions_are_words():
    x, y = split_pair(torch.tensor([[5, 0]]), pair_input_ids=torch.tensor([[0, 0, 2]]))
    assert words(x) == [[5, 0]] and words(y) == [[0, 0, 2]]
    x, y = split_pair(torch.tensor([[5, 0, 2]]), token_type_ids=torch.tensor([[0, 1, 1]]))
    assert words(x) == [[5]] and words(y) == [[0, 2]]


def test_a_pair_of_texts_from_the_tokenizer():
    tokenizer = train_word_tokenizer(["a b c d"], vocab_size=10, sentence_pairs=True)
    encoded = tokenizer(["a b", ""], ["c", "d a b"], padding=True, padding_side="left", return_tensors="pt")
    x, y = split_pair(**encoded)
    assert [tokenizer.decode(ids) for ids in words(x)] == ["a b </s>", "</s>"]
    assert [tokenizer.decode(ids) for ids in words(y)] == ["c </s>", "d a b </s>"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "a pair is either"),
        ({"token_type_ids": [[0, 1]], "pair_input_ids": [[1]]}, "a pair is either"),
        ({"token_type_ids": [[0, 0]]}, "without words"),
        ({"token_type_ids": [[0, 1]], "attention_mask": [[0, 1]]}, "without words"),
    ],
)
def test_what_is_no_pair_is_refused(inputs, message):
    with pytest.raises(ValueError, match=message):
        split_pair(torch.tensor([[5, 6]]), **{name: torch.tensor(value) for name, value in inputs.items()})


def test_max_margin_loss_by_hand():
    scores = torch.tensor([0.5, 0.2, -1.0, 3.0, 1.0])
    labels = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0])
    # The first query: 1 - 0.5 + 0.2 and 1 - 0.5 - 1.0 < 0; the second: 1 - 1 + 3.
    group_ids = torch.tensor([7, 7, 7, 3, 3])
    torch.testing.assert_close(max_margin_loss(scores, labels, group_ids), torch.tensor((0.7 + 0.0 + 3.0) / 3))
    assert ranked_pairs(labels, group_ids).nonzero().tolist() == [[0, 1], [0, 2], [4, 3]]
    assert ranked_pairs(labels).sum() == 6


def test_a_batch_without_wrong_candidates_costs_nothing():
    scores = torch.ones(3, requires_grad=True)
    loss = max_margin_loss(scores, torch.ones(3))
    loss.backward()
    assert loss == 0 and not scores.grad.any()


def test_matching_loss_follows_the_problem_type():
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1]))
    torch.testing.assert_close(matching_loss(logits, torch.tensor([0, 1]), "single_label_classification"), expected)
    torch.testing.assert_close(matching_loss(logits[:, :1], torch.tensor([0.0, 1.0]), "ranking"), torch.tensor(3.0))
    with pytest.raises(ValueError, match="classes from 0 to 1"):
        matching_loss(logits, torch.tensor([0, 2]), "single_label_classification")


def test_problem_type_and_number_of_labels_agree():
    assert SentencePairConfig().problem_type == "single_label_classification"
    assert SentencePairConfig(num_labels=3).problem_type == "single_label_classification"
    assert SentencePairConfig(num_labels=1).problem_type == "ranking"
    assert SentencePairConfig(problem_type="ranking").num_labels == 1
    assert SentencePairConfig.from_dict(SentencePairConfig(problem_type="ranking").to_dict()).num_labels == 1
    with pytest.raises(StrictDataclassClassValidationError, match="gives one score"):
        SentencePairConfig(problem_type="ranking", num_labels=2)
