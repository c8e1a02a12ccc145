from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from hf_paraphrase.tokenization import train_word_tokenizer
from hf_paraphrase.training.batching import PairCollator
from hf_paraphrase.training.losses import SelfCritical, cross_entropy_sums

from .tiny_runs import WORDS, make_recipe

LENGTH = 5
SPECIAL = [0, 1, 3]


def share_of_w1(sources, targets, outputs):
    """The part of an output that says w1."""
    return [output.split().count("w1") / max(1, len(output.split())) for output in outputs]


@pytest.fixture(scope="module")
def tokenizer():
    return train_word_tokenizer(WORDS, 20)


@pytest.fixture
def model(tokenizer):
    torch.manual_seed(0)
    recipe = make_recipe(dropout=0.0)
    model = AutoModelForSeq2SeqLM.from_config(recipe.make_config(tokenizer))
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.8, 0.8)
    # All that the objective must not decode with, and the ban that it must heed.
    model.generation_config.update(num_beams=3, top_k=1, repetition_penalty=3.0, suppress_tokens=SPECIAL)
    return model.train()


@pytest.fixture(scope="module")
def batch(tokenizer):
    sources, targets = ["w1 w2 w3", "w4", "w5 w6"], ["w2 w1", "w4 w4 w4", "w7"]
    rows = zip(tokenizer(sources)["input_ids"], tokenizer(targets)["input_ids"], strict=True)
    return PairCollator(0)([{"input_ids": source, "labels": target} for source, target in rows])


class Recorder:
    """A reward that keeps what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, sources, targets, outputs):
        self.asked.append((sources, targets, outputs))
        return [(7 * len(output) + len(source)) % 5 / 4 for source, output in zip(sources, outputs, strict=True)]


def step_probabilities(model, source: list[int], words: list[int]) -> torch.Tensor:
    """What the model gives each word of an output, one step after the other, never a special token."""
    steps = []
    for place, word in enumerate(words):
        inputs = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([[1, *words[:place]]])}
        odds = model(**inputs).logits[0, -1].exp()
        odds = odds * torch.tensor([float(token not in SPECIAL) for token in range(len(odds))])
        steps.append(odds[word] / odds.sum())
    return torch.stack(steps)


def naive_loss(model, tokenizer, batch, reward, weight) -> torch.Tensor:
    """The equation, row by row, of the texts that the reward was asked about: drawn ones, then greedy ones."""
    (sources, targets, drawn), (_, _, greedy) = reward.asked
    better = [
        one - other
        for one, other in zip(reward(sources, targets, drawn), reward(sources, targets, greedy), strict=True)
    ]
    loss = weight * cross_entropy_sums(model, batch)[0]
    for source, output, advantage in zip(sources, drawn, better, strict=True):
        words = tokenizer(output)["input_ids"][:LENGTH]
        loss -= (1 - weight) * advantage * step_probabilities(model, tokenizer(source)["input_ids"], words).log().sum()
    return loss


@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_gradient_is_that_of_the_naive_equation(model, tokenizer, batch, weight):
    reward = Recorder()
    objective = SelfCritical(reward, tokenizer, LENGTH, weight)
    torch.manual_seed(3)
    loss, likelihood = objective.loss_sums(model, batch)
    assert likelihood == cross_entropy_sums(model, batch)[1] and not likelihood.requires_grad
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    expected = naive_loss(model, tokenizer, batch, reward, weight)
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-5)
    assert any(gradient.abs().max() > 0.01 for gradient in gradients)
    for gradient, wanted in zip(gradients, torch.autograd.grad(expected, parameters), strict=True):
        torch.testing.assert_close(gradient, wanted, rtol=1e-3, atol=1e-5)


def test_outputs_are_drawn_from_the_model_and_compared_with_the_likeliest(model, tokenizer, batch):
    reward = Recorder()
    torch.manual_seed(4)
    SelfCritical(reward, tokenizer, LENGTH).loss_sums(model, batch)
    (sources, targets, drawn), (_, _, greedy) = reward.asked
    assert (sources, targets) == (["w1 w2 w3", "w4", "w5 w6"], ["w2 w1", "w4 w4 w4", "w7"])
    for source, output in zip(sources, greedy, strict=True):
        ids, words = tokenizer(source)["input_ids"], tokenizer(output)["input_ids"][:LENGTH]
        inputs = {"input_ids": torch.tensor([ids]), "decoder_input_ids": torch.tensor([[1, *words[:-1]]])}
        logits = model(**inputs).logits[0].index_fill(-1, torch.tensor(SPECIAL), -torch.inf)
        assert logits.argmax(-1).tolist() == words
    assert drawn != greedy
    draws = set()
    for _ in range(20):
        SelfCritical(reward, tokenizer, LENGTH).loss_sums(model, batch)
        draws.update(reward.asked[-2][2])
    assert len(draws) > 20  # top_k=1 of the generation config would leave one for each row


def test_the_model_is_left_as_it_was(model, tokenizer, batch):
    before = model.generation_config
    SelfCritical(share_of_w1, tokenizer, LENGTH).loss_sums(model, batch)
    assert model.training and model.generation_config is before
    SelfCritical(share_of_w1, tokenizer, LENGTH).greedy_rewards(model.eval(), batch)
    assert not model.training


@pytest.mark.parametrize("sign", [1, -1])
def test_training_moves_the_reward(model, tokenizer, sign):
    """Up where it is rewarded, down where it is punished."""
    asked = []

    def reward(sources, targets, outputs):
        asked.append(share_of_w1(sources, targets, outputs))
        return [sign * share for share in asked[-1]]

    sources = tokenizer(["w1 w2 w3", "w4", "w5 w6"] * 10)["input_ids"]
    batch = PairCollator(0)([{"input_ids": source, "labels": [5, 2]} for source in sources])
    objective, optimizer = SelfCritical(reward, tokenizer, LENGTH), torch.optim.Adam(model.parameters(), lr=0.05)
    with torch.no_grad():  # Some w1 to begin with.
        model.lm_head.bias[tokenizer.convert_tokens_to_ids("w1")] += 1.0
    torch.manual_seed(5)
    for _ in range(20):
        optimizer.zero_grad()
        objective.loss_sums(model, batch)[0].backward()
        optimizer.step()
    drawn = [sum(shares) / len(shares) for shares in asked[::2]]
    assert 0.1 < drawn[0] < 0.4
    assert drawn[-1] > 0.9 if sign == 1 else drawn[-1] < 0.02
