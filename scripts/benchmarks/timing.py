"""Taking the time of two things in turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch


class Row(NamedTuple):
    """What is measured, its yardstick, both figures and their ratio; with a goal for that, it is a claim."""

    name: str
    against: str
    ours: str
    theirs: str
    ratio: str
    goal: str = ""


def seconds(work: Callable[[], object], device: str, clock: Callable[[], float] = time.perf_counter) -> float:
    """Run `work` once and take its time; by `time.process_time` what other processes do counts less."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = clock()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return clock() - start


def in_turn(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    repeats: int,
    device: str,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float, float]:
    """Median seconds of both, and the median over the pairs of theirs / ours: how many times as fast we are."""
    ours(), theirs()
    pairs = [(seconds(ours, device, clock), seconds(theirs, device, clock)) for _ in range(repeats)]
    ratio = statistics.median(their_time / our_time for our_time, their_time in pairs)
    return *(statistics.median(times) for times in zip(*pairs, strict=True)), ratio
