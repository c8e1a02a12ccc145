from __future__ import annotations

import pytest
import torch

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.training.losses import load_reward, reward_by_rouge
from tests.models.tiny import save, tiny_matcher, word_tokenizer


def test_rouge_compares_with_the_target_alone():
    targets, outputs = ["how do i cook", "a b c", "a b"], ["how do i learn", "", "a b"]
    assert reward_by_rouge(["x"] * 3, targets, outputs) == pytest.approx([2 / 3, 0, 1])
    assert load_reward("rouge") is reward_by_rouge


def test_a_matcher_compares_with_the_source(tmp_path):
    model = tiny_matcher(2)
    reward = load_reward(save(model, tmp_path))
    sources, outputs = ["the cat sat on the mat", "a dog"], ["on a mat the cat sat", " "]
    inputs = word_tokenizer()(sources[0], outputs[0], return_tensors="pt")
    with torch.no_grad():
        expected = float(model(**inputs).logits.softmax(-1)[0, 1])
    assert reward(sources, ["ignored"] * 2, outputs) == pytest.approx([expected, 0])


@pytest.mark.parametrize("labels", [1, 3])
def test_a_matcher_has_to_label_paraphrases(tmp_path, labels):
    folder = save(tiny_matcher(labels), tmp_path)
    with pytest.raises(InputError, match="labels pairs" if labels == 1 else "name the label"):
        load_reward(folder)
    with pytest.raises(InputError, match="nowhere is not a loadable sentence-pair model"):
        load_reward(str(tmp_path / "nowhere"))
