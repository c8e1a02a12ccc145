"""Sampling whose result for a text does not depend on the rest of its batch."""

from __future__ import annotations

import copy
from typing import Any, cast

import torch
import xxhash
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, PreTrainedModel, StoppingCriteriaList

from ..models.search.found_sentences import Frame


def seed_of(seed: int, text: str) -> int:
    """The seed of a text, from its content and the seed of the call."""
    return xxhash.xxh3_64_intdigest(text.encode(), seed=seed % 2**64) % 2**63


def sample_seeded(
    model: PreTrainedModel,
    input_ids: torch.Tensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    inputs_tensor: torch.Tensor,
    seed: int = 0,
    recorder: LogitsProcessor | None = None,
    **model_kwargs: Any,
) -> Any:
    """Sample with one generator per text: `generate(custom_generate=sample_seeded, do_sample=True)`.

    `temperature`, `top_k`, `top_p` and the other warpers are transformers' own. The likeliest token
    after Gumbel noise is a sample of it; as the noise is drawn from the seed and the tokens of the text alone, a text
    gets the same samples in any batch, at any place. (One uniform number a step, searched for in the cumulated
    distribution, would be cheaper, but that sum differs in its last digits with the batch, at each of its thousands of
    steps; the gap between the two likeliest tokens is one number.)

    Arguments are those that `generate()` makes: `input_ids` `(texts * num_return_sequences, begun)`, `inputs_tensor`
    `(texts, source_length)`; `recorder` reads the scores before anything shapes them. Returns what sampling returns.
    """
    mask = model_kwargs.get("attention_mask")
    count = len(input_ids) // len(inputs_tensor)
    mask = None if mask is None else mask[::count].bool()
    frame = Frame(generation_config, inputs_tensor.device)
    words = frame.words(inputs_tensor, mask).tolist()
    seeds = [seed_of(seed, " ".join(str(word) for word in row if word >= 0)) for row in words]
    config = copy.copy(generation_config)
    config.do_sample = False
    noise = GumbelNoise(seeds, count, input_ids.shape[1], frame.ends)
    first = [] if recorder is None else [recorder]
    processors = LogitsProcessorList([*first, *logits_processor, noise])
    return cast(Any, model)._sample(input_ids, processors, stopping_criteria, config, **model_kwargs)


class GumbelNoise(LogitsProcessor):
    """Adds Gumbel noise, each text's drawn by its own seed.

    Each number is a hash of the seed, the place among the text's sequences, the step and the token (a counter-based
    generator; Salmon et al. 2011): it depends on neither the batch nor the vocabulary size, which for models that copy
    words grows with the words of the batch, and all are computed at once, where the scores are. Only tokens that may
    follow get any, and no sequence that has ended.

    Args:
        count: The sequences of each text, consecutive.
        prompt_length: Tokens before those that are written.
        ends: The tokens that end a text.
    """

    def __init__(self, seeds: list[int], count: int, prompt_length: int, ends: torch.Tensor):
        self.prompt_length, self.ends = prompt_length, ends
        keys = [seed_of(place, str(seed)) for seed in seeds for place in range(count)]
        self.keys = torch.tensor(keys, device=ends.device)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        # A prompt of a language model may be padded; an encoder-decoder begins with one token.
        written = input_ids[:, self.prompt_length :]
        is_open = ~torch.isin(written, self.ends).any(dim=1, keepdim=True)
        rows, tokens = (scores.isfinite() & is_open).nonzero(as_tuple=True)
        keys = _mix(self.keys + STRIDE * torch.tensor(written.shape[1] + 1))
        # 23 bits and a half are a number of single precision, never 0 or 1.
        uniform = (_mix(keys[rows] + STRIDE * tokens) & LOW_BITS).float().add_(0.5).div_(LOW_BITS + 1)
        noisy = scores.clone()
        noisy[rows, tokens] -= uniform.log_().neg_().log_().to(scores)
        return noisy


# Of splitmix64 (Steele et al. 2014), as signed numbers: the golden ratio, and what its finalizer multiplies by.
STRIDE, FACTORS = 0x9E3779B97F4A7C15 - 2**64, (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)
LOW_BITS = 2**23 - 1


def _mix(numbers: torch.Tensor) -> torch.Tensor:
    """The finalizer of splitmix64, whose shifts bring in zeros."""
    for shift, factor in zip((30, 27), FACTORS, strict=True):
        shifted = (numbers >> shift).bitwise_and_((1 << 64 - shift) - 1)
        numbers = shifted.bitwise_xor_(numbers).mul_(factor)
    return (numbers >> 31).bitwise_and_((1 << 33) - 1).bitwise_xor_(numbers)
