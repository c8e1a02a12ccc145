from __future__ import annotations

import math

import pytest
import torch

from hf_paraphrase.generation.seeded_sampling import GumbelNoise, seed_of
from tests.models.test_pipeline_text2text import text2text
from tests.models.tiny import tiny_bart, tiny_t5


def splitmix(number: int) -> int:
    """The finalizer of splitmix64, in whole numbers of Python."""
    number %= 2**64
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
    return number ^ number >> 31


def plain_noise(seeds: list[int], count: int, step: int, scores: torch.Tensor) -> torch.Tensor:
    """Noise for every token of every text, at a step from 1."""
    golden, noise = 0x9E3779B97F4A7C15, []
    for seed in seeds:
        for place in range(count):
            key = splitmix(seed_of(place, str(seed)) + golden * step)
            drawn = [(splitmix(key + golden * token) % 2**23 + 0.5) / 2**23 for token in range(scores.shape[1])]
            noise.append([-math.log(-math.log(one)) for one in drawn])
    return scores + torch.tensor(noise)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("impossible", [0.0, 0.9])
def test_noise_is_left_out_only_where_it_changes_nothing(count: int, impossible: float) -> None:
    generator = torch.Generator().manual_seed(count)
    seeds, ends, prompt_length = [5, 11, 7, 2**40], torch.tensor([2, 3]), 2
    scores = torch.randn(4 * count, 301, generator=generator)
    scores[torch.rand(scores.shape, generator=generator) < impossible] = -torch.inf
    input_ids = torch.randint(4, 9, (4 * count, 5), generator=generator)
    input_ids[:, 0] = 2  # an end in the prompt ends nothing
    input_ids[count : 2 * count, 3] = 3
    before = scores.clone()
    noisy = GumbelNoise(seeds, count, prompt_length, ends)(input_ids, scores)
    expected = plain_noise(seeds, count, input_ids.shape[1] - prompt_length + 1, scores)
    ended = slice(count, 2 * count)
    assert torch.equal(noisy[ended], before[ended])
    expected[ended] = before[ended]
    torch.testing.assert_close(noisy, expected, rtol=1e-6, atol=1e-6)
    assert torch.equal(noisy.argmax(dim=1), expected.argmax(dim=1))
    assert torch.equal(scores, before)


def test_noise_is_as_gumbel_says() -> None:
    """Neighbouring tokens, sequences, steps and seeds: mean and variance of each, no correlation between them."""
    draws = [
        GumbelNoise([seed], 2, 1, torch.tensor([0]))(torch.ones(2, 1 + step, dtype=torch.long), torch.zeros(2, 20_000))
        for seed, step in ((1, 0), (1, 1), (2, 0))
    ]
    rows = torch.cat([*draws, draws[0].roll(1, dims=1)])
    torch.testing.assert_close(rows.mean(1), torch.full((8,), 0.5772), rtol=0, atol=0.04)
    torch.testing.assert_close(rows.var(1), torch.full((8,), math.pi**2 / 6), rtol=0, atol=0.1)
    assert (rows.corrcoef() - torch.eye(8)).abs().max() < 0.03


@pytest.mark.parametrize("make", [tiny_t5, tiny_bart])
def test_samples_with_a_seed_depend_on_their_text_alone(make):
    pipe = text2text(make())
    texts = ["the cat", "how do i learn faster ?", "", "a dog sat on the mat"]
    options = {"do_sample": True, "num_return_sequences": 2, "max_new_tokens": 6, "temperature": 2.0}
    alone = [pipe(text, seed=1, **options) for text in texts]
    for batch_size in (1, 3, 4):
        torch.manual_seed(batch_size)
        assert pipe(texts, seed=1, batch_size=batch_size, **options) == alone
    assert pipe(texts[::-1], seed=1, batch_size=2, **options) == alone[::-1]
    assert pipe(texts, seed=2, **options) != alone
    assert alone[1][0] != alone[1][1]
    with pytest.raises(ValueError, match="`seed` is for sampling without beams"):
        pipe(texts, do_sample=True, seed=1, num_beams=2)
