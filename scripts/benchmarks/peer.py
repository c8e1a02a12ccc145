"""Our LSTM against JoeyNMT's of the same sizes: training and beam search, in turn, each in its own environment."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

from hf_paraphrase import ResidualLstmConfig, ResidualLstmForConditionalGeneration
from hf_paraphrase.training.losses import SampledCrossEntropy

from .recurrent import decode, random_batch, training_step
from .timing import Row, seconds

# A batch, its words a sentence, the vocabulary, and the width of embeddings and LSTMs.
ROWS, LENGTH, VOCABULARY, SIZE = 64, 11, 10_000, 256
# Words drawn of the vocabulary where training does not score all.
DRAWN = 2048
WORKER = Path(__file__).with_name("joeynmt_peer.py")


def benchmark_peer(device: str, repeats: int, joeynmt: Path | None = None) -> Iterator[Row]:
    """Target tokens a CPU-second in training, and sentences with beam 5.

    Args:
        device: Not used: both run on the CPU.
        repeats: Pairs of runs.
        joeynmt: The Python of an environment with JoeyNMT; None measures nothing.
    """
    if joeynmt is None:
        return
    sizes = map(str, (torch.get_num_threads(), ROWS, LENGTH, VOCABULARY, SIZE))
    command = [str(joeynmt), str(WORKER), *sizes]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for name, count, work, ours, goal in make_works():
            taken, theirs, ratio = compare(ours, partial(ask, process, work), repeats)
            yield Row(name, "JoeyNMT", f"{count / taken:,.0f}", f"{count / theirs:,.0f}", f"{ratio:.2f}", goal)


def make_works() -> Iterator[tuple[str, int, str, Callable[[], object], str]]:
    """For each row its name, what is counted, JoeyNMT's work, ours, and the goal."""
    config = ResidualLstmConfig(
        vocab_size=VOCABULARY,
        embedding_size=SIZE,
        hidden_size=SIZE,
        num_layers=2,
        bidirectional_encoder=True,
        attention="additive",
        residual_interval=0,
        dropout=0.2,
    )
    model = ResidualLstmForConditionalGeneration(config).train()
    batch = random_batch(ROWS, LENGTH, VOCABULARY, "cpu")
    step = training_step(model, lambda: model(**batch).loss)
    yield "training, tokens/s", ROWS * LENGTH, "train", step, "≥ 2"
    model.flat_loss = SampledCrossEntropy(1e6 / np.arange(1, VOCABULARY + 1), DRAWN)
    yield f"training, {DRAWN:,} words drawn", ROWS * LENGTH, "train", step, ""
    yield "beam 5, sentences/s", ROWS, "decode", decode(model.eval(), batch, LENGTH), "≥ 2"


def ask(process: subprocess.Popen[str], work: str) -> float:
    """Let JoeyNMT do some work, and return its CPU-seconds."""
    assert process.stdin is not None and process.stdout is not None
    print(work, file=process.stdin, flush=True)
    if not (answer := process.stdout.readline()):
        raise SystemExit("JoeyNMT's process has ended: see its error above; JoeyNMT 2.3 needs importlib_metadata, too")
    return float(answer)


def compare(ours: Callable[[], object], theirs: Callable[[], float], repeats: int) -> tuple[float, float, float]:
    """As `in_turn`, of another process's own times."""
    ours(), theirs()
    pairs = [(seconds(ours, "cpu", time.process_time), theirs()) for _ in range(repeats)]
    ratio = statistics.median(their_time / our_time for our_time, their_time in pairs)
    return *(statistics.median(times) for times in zip(*pairs, strict=True)), ratio
