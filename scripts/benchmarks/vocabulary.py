"""The softmax over large vocabularies: what its loss takes in memory and time, and what drawing words saves."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from hf_paraphrase import ResidualLstmConfig, ResidualLstmForConditionalGeneration
from hf_paraphrase.training.arguments import ParaphraseConfig
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.losses import SampledCrossEntropy, flat_cross_entropy
from hf_paraphrase.training.recipe import Recipe

from .matching import memory_in_use
from .recurrent import random_batch, training_step
from .timing import Row, in_turn

# Li et al. 2015 on Wikipedia: documents of a batch, their words, units, the vocabulary with its special tokens.
DOCUMENTS, WORDS, UNITS, VOCABULARY = 32, 250, 1000, 120_005
# Words to draw; a step's words are those of Prakash et al. 2016 on MSCOCO, whose vocabulary is the configuration's.
SAMPLES = 2048
# A model small enough for a training of minutes, on Twitter URL's 34,714 words.
SMALL = {"model_type": "residual_lstm", "vocab_size": 40_000, "embedding_size": 64, "hidden_size": 64, "num_layers": 1}
DRAWN, STEPS, SEEDS = 4096, 200, (0, 1)


def whole_cross_entropy(states: torch.Tensor, projection: nn.Linear, labels: torch.LongTensor) -> torch.Tensor:
    """The plain equation: the logits of all positions at once."""
    return nn.functional.cross_entropy(projection(states).flatten(0, 1), labels.flatten())


LOSSES = {"whole": whole_cross_entropy, "flat": flat_cross_entropy}


def cost_of(kind: str, documents: int, device: str) -> tuple[float, float]:
    """Processor seconds of the output layer's loss and gradients, and the GB that memory peaked above the layer's."""
    torch.manual_seed(0)
    projection = nn.Linear(UNITS, VOCABULARY, device=device)
    states = torch.randn(documents, WORDS, UNITS, device=device, requires_grad=True)
    labels = torch.randint(VOCABULARY, (documents, WORDS), device=device)
    # What is made once, in a process, is not part of it.
    LOSSES[kind](states[:1, :2], projection, labels[:1, :2]).backward()
    projection.zero_grad()
    before, start = memory_in_use("VmRSS"), time.process_time()
    LOSSES[kind](states, projection, labels).backward()
    elapsed = time.process_time() - start
    peak = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else memory_in_use("VmHWM") - before
    return elapsed, max(peak, 1) / 1024  # what is tiny fits into what was there before


def fresh_cost_of(kind: str, documents: int, device: str) -> tuple[float, float]:
    """The same in a fresh process, whose memory has no other peak."""
    code = (
        f"import torch; torch.set_num_threads({torch.get_num_threads()})\n"
        f"from benchmarks.vocabulary import cost_of; print(*cost_of({kind!r}, {documents}, {device!r}))"
    )
    folder = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    elapsed, memory = map(float, done.stdout.split())
    return elapsed, memory


def benchmark_memory(device: str, repeats: int) -> Iterator[Row]:
    """The output layer's loss and gradients on Li's Wikipedia, flat against whole; each runs once, for minutes."""
    ours, theirs = (fresh_cost_of(kind, DOCUMENTS, device) for kind in ("flat", "whole"))
    name = f"flat loss, {DOCUMENTS} x {WORDS} words of {VOCABULARY:,}"
    yield Row(
        f"{name}, s", "all logits", f"{ours[0]:.1f}", f"{theirs[0]:.1f}", f"{theirs[0] / ours[0]:.2f}", goal="≥ 1"
    )
    yield Row(
        f"{name}, GB", "all logits", f"{ours[1]:.2f}", f"{theirs[1]:.2f}", f"{theirs[1] / ours[1]:.1f}", goal="≥ 5"
    )


def benchmark_sampled(device: str, repeats: int, twitter_dir: Path | None = None) -> Iterator[Row]:
    """A training step of two layers of 512, the size of Prakash et al. 2016, with drawn words against all of them.

    Args:
        device: cpu or cuda, for the steps.
        repeats: Pairs of steps.
        twitter_dir: Twitter URL's folder, to compare trainings on, for minutes; None for the steps alone.
    """
    config = ResidualLstmConfig(num_layers=2, residual_interval=0)
    batch = random_batch(64, 12, config.vocab_size, device)
    # As frequent as words of a text are.
    sampled = SampledCrossEntropy(1e6 / np.arange(1, config.vocab_size + 1), SAMPLES)
    steps = {
        kind: step_of(config, batch, loss, device)
        for kind, loss in (("sampled", sampled), ("flat", flat_cross_entropy), ("whole", None))
    }
    for other, against, goal in (("whole", "all logits", "≥ 2.5"), ("flat", "all words, flat", "")):
        ours, theirs, ratio = in_turn(steps["sampled"], steps[other], repeats, device)
        name = f"steps/s, {SAMPLES:,} of {config.vocab_size:,} words"
        yield Row(name, against, f"{1 / ours:.2f}", f"{1 / theirs:.2f}", f"{ratio:.2f}", goal)
    if twitter_dir is not None:
        for seed in SEEDS:
            yield from compare_trainings(twitter_dir, seed)


def compare_trainings(twitter_dir: Path, seed: int) -> Iterator[Row]:
    """Equal steps by drawn words and by all: steps per processor second, and what all words cost in validation."""
    ours, theirs = (train_small(twitter_dir, seed, samples) for samples in (DRAWN, None))
    name = f"{DRAWN:,} of {ours['vocab_size']:,} words, seed {seed}"
    speeds = [STEPS / summary["train_cpu_seconds"] for summary in (ours, theirs)]
    yield Row(f"steps/s, {name}", "all words", *(f"{n:.2f}" for n in (*speeds, speeds[0] / speeds[1])), goal="≥ 2.5")
    found, expected = (summary["last"]["eval_perplexity"] for summary in (ours, theirs))
    ratio = f"{expected / found:.2f}"
    yield Row(f"perplexity, {name}", "all words", f"{found:.0f}", f"{expected:.0f}", ratio, goal="≥ 0.97")


def train_small(twitter_dir: Path, seed: int, samples: int | None) -> dict:
    """The summary of a short training on Twitter URL's pairs (Lan et al. 2017) as Li et al. 2018 cut them."""
    training = ParaphraseConfig(
        dataset="twitter_url",
        dataset_name="li2018",
        data_dir=str(twitter_dir),
        max_source_length=32,
        max_target_length=32,
        max_steps=STEPS,
        sampled_softmax=samples,
        seed=seed,
        disable_tqdm=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        return train(Recipe("twitter", SMALL, {}, training), folder, overwrite=True)


def step_of(
    config: ResidualLstmConfig, batch: dict[str, torch.Tensor], loss: Callable | None, device: str
) -> Callable[[], None]:
    model = ResidualLstmForConditionalGeneration(config).to(device).train()
    model.flat_loss = loss
    return training_step(model, lambda: model(**batch).loss)
