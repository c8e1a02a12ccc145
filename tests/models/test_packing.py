from __future__ import annotations

import torch

from hf_paraphrase.models.layers.lstm_kernels import order_of_real, packed_order


def test_packed_order_has_no_padding():
    sentence, number = torch.tensor([0, 0, 1, 1, 1, 2]), torch.tensor([0, 1, 0, 1, 2, 0])
    order = packed_order(sentence, number, torch.tensor([2, 3, 1]))
    # The longest first: sentence 1, 0, 2.
    assert order.sentences.tolist() == [1, 0, 2] and order.sizes == [3, 2, 1]
    assert order.words.tolist() == [2, 0, 5, 3, 1, 4]
    assert order.words[order.last].tolist() == [4, 1, 5]
    reference = torch.nn.utils.rnn.pack_sequence([torch.arange(2, 5), torch.arange(0, 2), torch.tensor([5])])
    assert torch.equal(order.words, reference.data)


def test_real_positions_are_places_of_the_flat_batch():
    order = order_of_real(torch.tensor([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]]).bool())
    assert order.sentences.tolist() == [2, 0] and order.sizes == [2, 2, 1]
    assert order.words.tolist() == [8, 1, 9, 3, 10]
    assert order.words[order.last].tolist() == [10, 3]
    nothing = order_of_real(torch.zeros(2, 3).bool())
    assert nothing.sizes == [] and not len(nothing.words) and not len(nothing.sentences)
