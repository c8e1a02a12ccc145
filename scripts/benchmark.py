"""Measure speed as ratios, both sides of each taken in turn in one run.

    python scripts/benchmark.py                 # everything
    python scripts/benchmark.py train generate  # some parts
    python scripts/benchmark.py datasets --repeats 1
    python scripts/benchmark.py --device cuda --threads 8
    python scripts/benchmark.py report --threads 1   # what is claimed, as a table in Markdown; or of some parts

Each row prints ours, the yardstick and the median of their ratios. Sizes are those of the papers, not of a demo, so
the whole takes some minutes on a CPU. A row that a part gives a goal is a claim, and stands in the report.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated

import torch
import typer
from benchmarks.timing import Row

from hf_paraphrase.training.loop import keep_freed_memory

# Part: module and function, loaded when it is asked for, since some need extras.
PARTS = {
    "train": ("recurrent", "benchmark_train"),
    "generate": ("recurrent", "benchmark_generate"),
    "beam": ("beam", "benchmark_beam"),
    "paraphraser": ("paraphraser", "benchmark_paraphraser"),
    "int8": ("int8", "benchmark_int8"),
    "peer": ("peer", "benchmark_peer"),
    "ctranslate2": ("recurrent", "benchmark_ctranslate2"),
    "autoencoder": ("autoencoder", "benchmark_autoencoder"),
    "fset": ("fset", "benchmark_fset"),
    "language-model": ("language_model", "benchmark_language_model"),
    "import": ("recurrent", "benchmark_import"),
    "matching": ("matching", "benchmark_matching"),
    "metrics": ("metrics", "benchmark_metrics"),
    "datasets": ("corpora", "benchmark_datasets"),
    "neighbors": ("retrieval", "benchmark_neighbors"),
    "retrieval": ("retrieval", "benchmark_retrieval"),
    "memory": ("vocabulary", "benchmark_memory"),
    "sampled": ("vocabulary", "benchmark_sampled"),
    "growth": ("growth", "benchmark_growth"),
    "augment": ("augmentation", "benchmark_augment"),
}
REPORT = "report"


def main(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"What to measure: {', '.join(PARTS)}; all by default. Before them, `{REPORT}` prints the claims "
            "among what they measure as a table in Markdown."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    threads: Annotated[int, typer.Option(help="CPU threads.")] = torch.get_num_threads(),
    repeats: Annotated[int, typer.Option(help="Pairs of runs; the median counts.")] = 5,
    quora_dir: Annotated[
        Path | None, typer.Option(help="Quora's folder, for neighbors; else questions of the built-in grammar.")
    ] = None,
    twitter_dir: Annotated[
        Path | None, typer.Option(help="Twitter URL's folder, for the perplexity in sampled; else that is left out.")
    ] = None,
    language_model: Annotated[
        Path | None, typer.Option(help="A causal model's folder, for paraphraser; else that is left out.")
    ] = None,
    joeynmt: Annotated[
        Path | None,
        typer.Option(
            help="The Python of an environment with JoeyNMT and the torch of this one (`python -m venv joey`, "
            "`joey/bin/pip install joeynmt importlib_metadata torch==…`: `joey/bin/python`), for peer; else that is "
            "left out."
        ),
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="A PNG file for the curves of growth; else none.")] = None,
) -> None:
    """Print tokens/s, sentences/s and ratios as a table."""
    as_report, parts = REPORT in (parts or ()), [part for part in parts or () if part != REPORT] or list(PARTS)
    for part in set(parts) - PARTS.keys():
        raise typer.BadParameter(f"no part {part}; there are {', '.join(PARTS)}")
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    keep_freed_memory()  # as training does
    print(f"{name_machine(device)}, torch {torch.__version__}, {threads} threads, medians of {repeats}", end="\n\n")
    show = print_claims if as_report else print_rows
    options = {
        "neighbors": {"quora_dir": quora_dir},
        "sampled": {"twitter_dir": twitter_dir},
        "paraphraser": {"language_model": language_model},
        "peer": {"joeynmt": joeynmt},
        "growth": {"picture": picture},
    }
    show((part, row) for part in parts for row in measure(part, device, repeats, options.get(part, {})))


def measure(part: str, device: str, repeats: int, options: dict[str, Path | None]) -> Iterator[Row]:
    module, function = PARTS[part]
    for values in getattr(import_module(f"benchmarks.{module}"), function)(device, repeats, **options):
        yield Row(*values)


def print_rows(rows: Iterator[tuple[str, Row]]) -> None:
    print(f"{'ours':<28}{'against':<30}{'ours':>10}{'theirs':>10}  ratio")
    for _, row in rows:
        print(f"{row.name:<28}{row.against:<30}{row.ours:>10}{row.theirs:>10}  {row.ratio}", flush=True)


def print_claims(rows: Iterator[tuple[str, Row]]) -> None:
    print("| claim | against | ours | theirs | ratio | goal | verdict | command |\n|---|---|---|---|---|---|---|---|")
    for part, row in rows:
        if row.goal:
            print(f"| {' | '.join(row)} | {judge(row)} | `python scripts/benchmark.py {part}` |", flush=True)


def judge(row: Row) -> str:
    """Whether the number that the ratio begins with is at least, or at most, that of the goal."""
    sign, bound, *_ = row.goal.split()
    ratio = float(row.ratio.split()[0].replace(",", ""))
    return "met" if (ratio >= float(bound) if sign == "≥" else ratio <= float(bound)) else "missed"


def name_machine(device: str) -> str:
    """The GPU, or else the processor and how many of its cores are there."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


if __name__ == "__main__":
    typer.run(main)
