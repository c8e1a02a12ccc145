from __future__ import annotations

import torch

from hf_paraphrase.models.hierarchical_autoencoder.sentences import find_sentences, reverse

# 4 and 2 close; two positions are padding.
IDS = torch.tensor([[5, 4, 0, 6, 7, 4, 2], [8, 9, 0, 0, 0, 0, 0], [4, 4, 9, 9, 9, 9, 9]])
REAL = torch.tensor([[1, 1, 0, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0]]).bool()


def test_sentences_are_found_across_padding():
    found = find_sentences(IDS, REAL, (4, 2))
    assert found.document.tolist() == [0, 0, 0, 1, 2, 2, 2]
    assert found.number.tolist() == [0, 1, 2, 0, 0, 1, 2]
    assert found.length.tolist() == [2, 3, 1, 2, 1, 1, 1]
    assert found.closed.tolist() == [True, True, True, False, True, True, False]
    assert found.word_sentence.tolist() == [0, 0, 1, 1, 1, 2, 3, 3, 4, 5, 6]
    assert found.word_number.tolist() == [0, 1, 0, 1, 2, 0, 0, 1, 0, 0, 0]


def test_a_row_may_be_one_sentence():
    found = find_sentences(IDS, REAL, (4, 2), whole=True)
    assert found.document.tolist() == [0, 1, 2] and found.length.tolist() == [6, 2, 3]
    assert found.closed.tolist() == [True, False, False]


def test_rows_without_words_have_no_sentence():
    found = find_sentences(IDS, torch.zeros_like(REAL), (4, 2))
    assert len(found.document) == len(found.word_sentence) == 0


def test_reversing_leaves_a_closing_mark_at_the_end():
    number, length = torch.arange(4), torch.full((4,), 4)
    assert reverse(number, length, torch.ones(4, dtype=torch.bool)).tolist() == [2, 1, 0, 3]
    assert reverse(number, length, torch.zeros(4, dtype=torch.bool)).tolist() == [3, 2, 1, 0]
