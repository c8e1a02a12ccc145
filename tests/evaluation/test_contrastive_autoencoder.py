"""`scripts/contrastive_autoencoder.py`."""

from __future__ import annotations

import random
from itertools import count

import pytest
import torch

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.models.hierarchical_lm.configuration_hierarchical_lm import HierarchicalLmConfig
from hf_paraphrase.models.hierarchical_lm.modeling_hierarchical_lm import HierarchicalLmForConditionalGeneration
from hf_paraphrase.models.hierarchical_lm.tokenization_hierarchical_lm import HierarchicalLmTokenizer
from scripts.contrastive_autoencoder import contrastive_loss, disturb, draw_batches, read_groups, train

GROUPS = [[["a", "b"], ["b", "a"]], [["c"], ["c", "d"]], [["e", "f"], ["f"]], [["g"], ["h", "g"]]]


def test_the_contrastive_loss_is_that_of_telling_each_pair_from_the_others():
    torch.manual_seed(0)
    first, second = torch.randn(2, 5, 7).double().unbind()
    cosines = [[torch.cosine_similarity(one, other, dim=0).item() for other in second] for one in first]
    chances = (torch.tensor(cosines).double() / 0.1).exp()
    naive = [
        -(chances[row, row] / side[row].sum()).log().item()
        for side in (chances, chances.T)
        for row in range(len(first))
    ]
    assert contrastive_loss(first, second).item() == pytest.approx(sum(naive) / 10)


def test_a_disturbed_sentence_has_words_of_the_sentence():
    words = [str(number) for number in range(200)]
    found = disturb(words, random.Random(0))
    assert set(found) < set(words) and found != sorted(found, key=int)
    assert 160 < len(found) < 195
    assert disturb(["a"], random.Random(1)) == ["a"]


def test_lines_with_one_sentence_are_no_groups(tmp_path):
    (tmp_path / "groups.tsv").write_text("I am.\tIt is me.\nAlone.\n")
    assert read_groups(tmp_path / "groups.tsv") == [[["I", "am", "."], ["It", "is", "me", "."]]]


def test_an_epoch_has_every_group_once():
    batches = draw_batches(list(GROUPS), 2, random.Random(0))
    drawn = [pair for _ in range(2) for pair in next(batches)]
    with pytest.raises(InputError, match="4 groups are fewer than a batch, which has 5"):
        next(draw_batches(list(GROUPS), 5, random.Random(0)))
    assert sorted(GROUPS.index(group) for pair in drawn for group in GROUPS if pair[0] in group) == [0, 1, 2, 3]


@pytest.mark.parametrize("weight", [0.0, 0.1])
def test_training_lowers_the_loss(weight, monkeypatch):
    seconds = count()
    monkeypatch.setattr("time.process_time", lambda: next(seconds))
    torch.manual_seed(0)
    tokenizer = HierarchicalLmTokenizer.from_texts("abcdefgh")
    sizes = {"word_encoder_sizes": [16, 16], "word_decoder_sizes": [16, 16], "word_decoder_hidden_size": 16}
    config = HierarchicalLmConfig(
        vocab_size=len(tokenizer),
        embedding_size=8,
        value_size=16,
        key_size=8,
        dropout=0.0,
        sentence_encoder="gru",
        **sizes,
    )
    model = HierarchicalLmForConditionalGeneration(config)
    texts = [" ".join(group[0]) for group in GROUPS]
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)

    def measure() -> float:
        with torch.no_grad():
            return model.eval()(**inputs, labels=labels).loss.item()

    before = measure()
    assert train(model, tokenizer, list(GROUPS), 0.5, weight, batch_size=4, learning_rate=1e-2) == 30
    assert measure() < before
