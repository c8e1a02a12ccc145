"""Tries to break the package, and prints a table of what was tried and what failed.

python -m tests.reliability --files 10000 --calls 2000 --kills 50 --pair-kills 5 --checkpoints 50 --pushes 100 \\
    --damages 50 --stages 18 --panics 10 --connections 6
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from unittest.mock import patch

# As in `tests/conftest.py`: before datasets and the Hub's client read it.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description=__doc__.split("\n")[0])
    for name, what in COUNTS.items():
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N", help=what)
    parser.add_argument("--seed", type=int, default=0, help="Of all that is drawn.")
    parser.add_argument("--shown", type=int, default=20, help="Failures of each kind that are spelled out.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reliability-") as home, patch.dict(os.environ, {"HF_HOME": home}):
        return report(options)


COUNTS = {
    "files": "Fuzzed files, of all corpora in turn.",
    "calls": "Hostile calls, of all architectures in turn.",
    "threads": "Calls from eight threads at once.",
    "kills": "Trainings that are killed and resumed.",
    "pair-kills": "The same of trainings in two processes.",
    "stages": "Commands that are killed at a stage by name: paraphrase, augment, evaluate, train, push.",
    "pushes": "Pushes through a server that fails 30%% of the requests.",
    "disks": "Writes to a disk that is full (needs the right to mount one).",
    "checkpoints": "Checkpoints that would run code or reach what is not in them.",
    "damages": "Checkpoints that are damaged, or ask for too much.",
    "panics": "Texts that make a worker of serve or augment panic.",
    "connections": "Attacks on a server: 20 MB of header, 1,300 slow clients, 100 that hang up.",
    "locks": "1 to count the tests of two runs in one folder.",
}


def report(options: argparse.Namespace) -> int:
    from .attacks import ATTACKS

    failed = []
    print("| what | tried | failed |\n|---|--:|--:|", flush=True)
    for name, attack in ATTACKS.items():
        if count := getattr(options, name.replace("-", "_")):
            trials = attack(count, options.seed)
            number = trials.skipped or f"{len(trials.failed):,}"
            print(f"| {trials.name} | {trials.tried:,} | {number} |", flush=True)
            failed.append(trials)
    for trials in failed:
        for failure in trials.failed[: options.shown]:
            print(f"{trials.name}: {failure}")
    return int(any(trials.failed for trials in failed))


if __name__ == "__main__":
    sys.exit(main())
