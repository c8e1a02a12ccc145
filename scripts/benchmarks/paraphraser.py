"""The paraphraser whole, and the pipeline, with the model that comes with the package: sentences a CPU-second."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

from transformers import pipeline

from hf_paraphrase import Paraphraser
from hf_paraphrase.generation import paraphraser as whole

from .timing import Row, in_turn, seconds

# Sentences of 5 to 33 words; each is asked for with every opening, so that none is a copy.
SENTENCES = (
    "The meeting was moved to Thursday because the room was taken.",
    "Where can I buy a good umbrella near the station?",
    "She has lived in the same small village for most of her life.",
    "Scientists found that the ice is melting faster than anyone had expected.",
    "Please send us your comments before the end of the month, so that we can take them into account when we prepare "
    "the next version of the report.",
    "A man in a blue shirt is riding a bicycle down a busy street.",
    "The company said that it would open twelve new shops in the north of the country next year, although sales have "
    "fallen in most of the regions where it already has some.",
    "If it rains tomorrow, the game will be played indoors.",
)
OPENINGS = ("", "I think that it is true: ", "As far as we know now, this is what happened: ", "He wrote: ")
BATCH_SIZE, BEAMS = 16, 4


def benchmark_paraphraser(device: str, repeats: int, language_model: Path | None = None) -> Iterator[Row]:
    """`Paraphraser`, and its share beyond the search; the pipeline with beam 4. By processor time."""
    paraphraser, texts = Paraphraser(), [opening + text for text in SENTENCES for opening in OPENINGS]
    if language_model is not None:
        yield compare_language_model(paraphraser, language_model, repeats)
    for n, goal in ((1, "≥ 30"), (3, "")):
        taken, searching = zip(*(time_search(paraphraser, texts, n) for _ in range(repeats + 1)), strict=True)
        rate = len(texts) / statistics.median(taken[1:])
        yield Row(f"Paraphraser, n = {n}", "sentences a CPU-second", f"{rate:.1f}", "", f"{rate:.1f}", goal)
        times = zip(searching[1:], taken[1:], strict=True)
        share = statistics.median(1 - of_search / of_all for of_search, of_all in times)
        figures = (f"{statistics.median(part[1:]):.2f} s" for part in (taken, searching))
        goal = "≤ 0.25" if n == 1 else ""
        yield Row(f"Paraphraser, n = {n}, whole", "its search: share beyond it", *figures, f"{share:.2f}", goal)
    pipe = pipeline("text2text-generation", model=paraphraser.model, tokenizer=paraphraser.tokenizer)
    run = partial(pipe, sorted(texts, key=len), batch_size=BATCH_SIZE, num_beams=BEAMS)
    rate = len(texts) / statistics.median([seconds(run, "cpu", time.process_time) for _ in range(repeats + 1)][1:])
    yield Row(f"pipeline, beam {BEAMS}", "sentences a CPU-second", f"{rate:.1f}", "", f"{rate:.1f}", "≥ 60")


def compare_language_model(paraphraser: Paraphraser, path: Path, repeats: int) -> Row:
    """The built-in model against a causal one by CTranslate2 in int8, which reads the plain sentences too."""
    causal = Paraphraser.from_pretrained(path, backend="ctranslate2", compute_type="int8")
    runs = [partial(one, list(SENTENCES), 1) for one in (paraphraser, causal)]
    *taken, ratio = in_turn(*runs, repeats, "cpu", time.process_time)
    rates = [f"{len(SENTENCES) / each:.1f}/s" for each in taken]
    return Row("Paraphraser, n = 1", f"{path.name}, CTranslate2, int8", *rates, f"{ratio:.1f}", "≥ 10")


def time_search(paraphraser: Paraphraser, texts: list[str], n: int) -> tuple[float, float]:
    """CPU-seconds of a call, and those of them in which candidates are written."""
    spent: list[float] = []

    def timed(search: Callable, *arguments: object) -> object:
        found: list[object] = []
        spent.append(seconds(lambda: found.append(search(*arguments)), "cpu", time.process_time))
        return found[0]

    with patch.object(whole, "write", partial(timed, whole.write)):
        taken = seconds(lambda: paraphraser(texts, n), "cpu", time.process_time)
    return taken, sum(spent)
