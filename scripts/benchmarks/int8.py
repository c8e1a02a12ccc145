"""The released model in int8 against itself in single precision, by CPU time."""

from __future__ import annotations

import time
from collections.abc import Iterator

from hf_paraphrase.generation.loading import load_paraphraser

from .timing import Row, in_turn

QUESTIONS = ("How can I learn to cook{}?", "Why do people travel to India{}?", "Is it safe to drink tap water{}?")
QUESTIONS += ("How do I find a good job{}?", "How much does a new phone cost{}?", "Which book should I read{}?")
ENDINGS = ("", " today", " next year", " with friends", " in London")
BEAMS = {5: "≥ 1.5", 1: ""}


def benchmark_int8(device: str, repeats: int) -> Iterator[Row]:
    """CPU-seconds of `generate()` for one batch, both precisions in turn; int8 runs on the CPU whatever the device."""
    (int8, tokenizer), (single, _) = (load_paraphraser(device="cpu", dtype=dtype) for dtype in ("int8", "float32"))
    texts = [question.format(ending) for question in QUESTIONS for ending in ENDINGS]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    for beams, goal in BEAMS.items():
        options = {"num_beams": beams, "do_sample": False, "max_new_tokens": 40}
        ours, theirs, ratio = in_turn(
            lambda options=options: int8.generate(**batch, **options),
            lambda options=options: single.generate(**batch, **options),
            repeats,
            "cpu",
            time.process_time,
        )
        yield Row(f"int8, beam {beams}, s", "float32", f"{ours:.3f}", f"{theirs:.3f}", f"{ratio:.2f}", goal)
