"""Measure speed as ratios, both sides of each taken in turn in one run.

    python scripts/benchmark.py                 # everything
    python scripts/benchmark.py train generate  # some parts
    python scripts/benchmark.py datasets --repeats 1
    python scripts/benchmark.py --device cuda --threads 8

Each row prints ours, the yardstick and the median of their ratios. Sizes are those of the papers, not of a demo, so
the whole takes some minutes on a CPU.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import torch
import typer

from hf_paraphrase.training.allocator import keep_freed_memory

# Part: module and function, loaded when it is asked for, since some need extras.
PARTS = {
    "train": ("recurrent", "benchmark_train"),
    "generate": ("recurrent", "benchmark_generate"),
    "peer": ("recurrent", "benchmark_peer"),
    "autoencoder": ("autoencoder", "benchmark_autoencoder"),
    "language-model": ("language_model", "benchmark_language_model"),
    "import": ("recurrent", "benchmark_import"),
    "matching": ("matching", "benchmark_matching"),
    "metrics": ("metrics", "benchmark_metrics"),
    "datasets": ("corpora", "benchmark_datasets"),
    "neighbors": ("retrieval", "benchmark_neighbors"),
    "retrieval": ("retrieval", "benchmark_retrieval"),
    "augment": ("augmentation", "benchmark_augment"),
}


def main(
    parts: Annotated[
        list[str] | None, typer.Argument(help=f"What to measure: {', '.join(PARTS)}; all by default.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    threads: Annotated[int, typer.Option(help="CPU threads.")] = torch.get_num_threads(),
    repeats: Annotated[int, typer.Option(help="Pairs of runs; the median counts.")] = 5,
    quora_dir: Annotated[
        Path | None, typer.Option(help="Quora's folder, for neighbors; else questions of the built-in grammar.")
    ] = None,
) -> None:
    """Print tokens/s, sentences/s and ratios as a table."""
    for part in set(parts or ()) - PARTS.keys():
        raise typer.BadParameter(f"no part {part}; there are {', '.join(PARTS)}")
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    keep_freed_memory()  # as training does
    print(f"torch {torch.__version__}, {device}, {threads} threads, medians of {repeats}")
    print(f"{'ours':<28}{'against':<30}{'ours':>10}{'theirs':>10}  ratio")
    for part in parts or PARTS:
        module, function = PARTS[part]
        measure = getattr(import_module(f"benchmarks.{module}"), function)
        options = {"quora_dir": quora_dir} if part == "neighbors" else {}
        for name, against, ours, theirs, ratio in measure(device, repeats, **options):
            print(f"{name:<28}{against:<30}{ours:>10}{theirs:>10}  {ratio}", flush=True)


if __name__ == "__main__":
    typer.run(main)
