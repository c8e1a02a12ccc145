"""Models in int8 against themselves in single precision, by CPU time."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from typing import Any

import torch
from transformers import PreTrainedModel

from hf_paraphrase import ResidualLstmConfig, ResidualLstmForConditionalGeneration
from hf_paraphrase.generation.int8 import quantize_weights
from hf_paraphrase.generation.loading import load_paraphraser
from hf_paraphrase.models.search.beam_search import beam_search

from .timing import Row, in_turn

QUESTIONS = ("How can I learn to cook{}?", "Why do people travel to India{}?", "Is it safe to drink tap water{}?")
QUESTIONS += ("How do I find a good job{}?", "How much does a new phone cost{}?", "Which book should I read{}?")
ENDINGS = ("", " today", " next year", " with friends", " in London")
BEAMS = {5: "≥ 1.5", 1: ""}
# Residual LSTMs with attention and random weights: layers, width and words.
LSTM_SIZES = ((4, 256, 12_000), (2, 512, 50_000))
ROWS, LENGTH = 32, 12


def benchmark_int8(device: str, repeats: int) -> Iterator[Row]:
    """CPU-seconds of `generate()` for one batch, both precisions in turn; int8 runs on the CPU whatever the device."""
    (int8, tokenizer), (single, _) = (load_paraphraser(device="cpu", dtype=dtype) for dtype in ("int8", "float32"))
    texts = [question.format(ending) for question in QUESTIONS for ending in ENDINGS]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    yield from _compare("int8", int8, single, batch, 40, repeats)
    for layers, width, words in LSTM_SIZES:
        sizes = {"num_layers": layers, "embedding_size": width, "hidden_size": width, "vocab_size": words}
        single = ResidualLstmForConditionalGeneration(ResidualLstmConfig(attention="additive", **sizes)).eval()
        # Without an end mark every output has the same length, whatever the random weights say.
        single.generation_config.eos_token_id = None
        int8 = copy.deepcopy(single)
        quantize_weights(int8)
        batch = {"input_ids": torch.randint(4, words, (ROWS, LENGTH))}
        yield from _compare(f"int8, LSTM {layers} × {width}, {words:,} words", int8, single, batch, LENGTH, repeats)


def _compare(
    name: str, int8: PreTrainedModel, single: PreTrainedModel, batch: Any, length: int, repeats: int
) -> Iterator[Row]:
    for beams, goal in BEAMS.items():
        options = {"num_beams": beams, "do_sample": False, "max_new_tokens": length, "custom_generate": beam_search}
        ours, theirs, ratio = in_turn(
            lambda options=options: int8.generate(**batch, **options),
            lambda options=options: single.generate(**batch, **options),
            repeats,
            "cpu",
            time.process_time,
        )
        yield Row(f"{name}, beam {beams}, s", "float32", f"{ours:.3f}", f"{theirs:.3f}", f"{ratio:.2f}", goal)
