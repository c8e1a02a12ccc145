"""What ten times as much costs: sentences, words, beams and remembered pairs, each size in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch

from hf_paraphrase import Paraphraser, ResidualLstmConfig, ResidualLstmForConditionalGeneration
from hf_paraphrase.common.pictures import add_legend, curve_style, in_style, new_figure, save_figure
from hf_paraphrase.retrieval import load_encoder
from hf_paraphrase.retrieval.vector_index import VectorIndex

from .matching import memory_in_use
from .paraphraser import SENTENCES
from .recurrent import STEP_SIZES, decode, random_batch
from .retrieval import K, clustered_vectors
from .timing import Row, seconds

# What grows, and how far: a size is so many times the first.
SIZES = {
    "sentences": (16, 160, 1_600),
    "words": (10, 100, 1_000),
    "beams": (1, 10, 100),
    "pairs": (10_000, 100_000, 1_000_000),
}
# Texts in a batch where their words grow, and where the beams do; words in these.
TEXTS_OF_WORDS, TEXTS_OF_BEAMS, WORDS = 4, 8, 12
# Numbers in a vector, few so that a million are indexed within minutes; vectors made at once; queries.
DIMENSION, BLOCK, QUERIES = 32, 50_000, 1_000

Costs = dict[str, float]


def cost_of_sentences(count: int) -> Costs:
    """Paraphrase sentences by the model that comes with the package, as a user does."""
    before = memory_in_use("VmRSS")
    texts = [f"Note {number}: {SENTENCES[number % len(SENTENCES)]}" for number in range(count)]
    return {"s": _time(partial(Paraphraser(), texts)), "MB": memory_in_use("VmHWM") - before}


def cost_of_words(count: int) -> Costs:
    """Write as many words as are read, by an LSTM with attention and random weights, beam 5."""
    return _cost_of_generation(TEXTS_OF_WORDS, count, beams=5)


def cost_of_beams(count: int) -> Costs:
    """Search by the same model with so many beams."""
    return _cost_of_generation(TEXTS_OF_BEAMS, WORDS, count)


def _cost_of_generation(texts: int, words: int, beams: int) -> Costs:
    before = memory_in_use("VmRSS")
    config = ResidualLstmConfig(**STEP_SIZES, attention="additive")
    model = ResidualLstmForConditionalGeneration(config).eval()
    batch = random_batch(texts, words, config.vocab_size, "cpu")
    decode(model, random_batch(1, 2, config.vocab_size, "cpu"), 2)()
    return {"s": _time(decode(model, batch, words, beams=beams)), "MB": memory_in_use("VmHWM") - before}


def cost_of_pairs(count: int) -> Costs:
    """Index clustered vectors by `ivf_pq_refine`, and search; memory is what the index holds, without files.

    The vectors are made in blocks, each by its own seed, and are in no one's memory. What the nearest are is found by
    comparing each of some queries with all of them.
    """
    faiss.omp_set_num_threads(torch.get_num_threads())
    before = memory_in_use("RssAnon")
    index = VectorIndex(load_encoder(make_block), "ivf_pq_refine")
    size = min(count, BLOCK)
    building = _time(lambda: index.add(([str(block)] * size for block in range(count // size)), count))
    held = memory_in_use("RssAnon") - before
    index.encoder = load_encoder(lambda texts: clustered_vectors(len(texts), count, dimension=DIMENSION))
    asked = [""] * QUERIES
    searching = _time(partial(index.search, asked, K))
    scores, _ = index.search(asked, K)
    recall = (scores >= index.exact.kth_score(index.encoder(asked), K)[:, None] - 1e-6).mean()
    return {"to index, s": building, f"{QUERIES:,} searches, s": searching, "MB": held, f"recall@{K}": float(recall)}


def make_block(texts: list[str]) -> np.ndarray:
    """The vectors of a block, whose number is each of its texts; of anything, as many as there are texts."""
    return clustered_vectors(len(texts), seed=int(texts[0]) + 10, dimension=DIMENSION)


def _time(work: Callable[[], object]) -> float:
    return seconds(work, "cpu", time.process_time)


def fresh_cost_of(kind: str, size: int) -> Costs:
    """Measure in a fresh process, whose memory has no other peak."""
    code = (
        f"import json, torch; torch.set_num_threads({torch.get_num_threads()}); torch.manual_seed(0)\n"
        f"from benchmarks import growth; print(json.dumps(growth.cost_of_{kind}({size})))"
    )
    folder = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def exponent(sizes: tuple[int, ...], values: list[float]) -> float:
    """The slope of a straight line through both logarithms: 1 where cost grows as size does, 0 where it does not."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def benchmark_growth(device: str, repeats: int, picture: Path | None = None) -> Iterator[Row]:
    """Processor time and memory at every size beside those at the first, with the exponent of all; each runs once.

    Args:
        device: Not used: memory is that of the process.
        repeats: Not used: the largest sizes take minutes.
        picture: A PNG file for the curves; None for none.
    """
    curves = {}
    for kind, sizes in SIZES.items():
        costs = [fresh_cost_of(kind, size) for size in sizes]
        for measure in costs[0]:
            values = [cost[measure] for cost in costs]
            power = exponent(sizes, values)
            curves[f"{kind}, {measure}"] = [size / sizes[0] for size in sizes], values, power
            for size, value in zip(sizes[1:], values[1:], strict=True):
                figures = f"{value:,.3g}", f"{values[0]:,.3g}", f"{power:.2f}, the exponent"
                yield Row(f"{size:,} {kind}, {measure}", f"{sizes[0]:,}", *figures)
    if picture is not None:
        draw_growth(curves, picture)


@in_style
def draw_growth(curves: dict[str, tuple[list[float], list[float], float]], path: Path) -> None:
    """Draw seconds and memory by how many times the first size, on logarithmic axes."""
    figure = new_figure(8, 4)
    for number, unit in enumerate(("s", "MB")):
        axes: Any = figure.add_subplot(1, 2, number + 1, xscale="log", yscale="log")
        for color, (name, (times, values, power)) in enumerate(curves.items()):
            if name.endswith(f" {unit}"):
                axes.plot(times, values, label=f"{name}: exponent {power:.2f}", **curve_style(color))
        axes.set(xlabel="times the first size", ylabel="CPU-seconds" if unit == "s" else "MB")
        axes.grid(True)
    add_legend(axes, [line for axes in figure.axes for line in axes.lines])
    save_figure(figure, path)
