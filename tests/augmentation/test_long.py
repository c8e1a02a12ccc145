"""Augmentations as long as they are meant to be; `pytest -m slow`, minutes."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import datasets
import pytest

from hf_paraphrase import Paraphrase, Paraphraser
from hf_paraphrase.augmentation.inputs import write_rows
from hf_paraphrase.augmentation.steps import ParaphraseStep, RowReader, ShardWriter
from tests.models.tiny import save, tiny_bart

from .runs import OPTIONS, ask, kill_and_restart, read_output, run, write_questions

pytestmark = pytest.mark.slow


def test_twenty_kills_over_twenty_thousand_rows(tmp_path: Path) -> None:
    save(tiny_bart(), tmp_path / "model")
    options = {**OPTIONS, "num_candidates": 2, "max_new_tokens": 4, "batch_size": 64}
    source = write_questions(tmp_path / "questions.csv", 20_000)
    asked = ask(source, tmp_path / "model", n=1, tasks=128, options=options)
    done = kill_and_restart(partial(run, asked, tmp_path / "out", 2), tmp_path / "out", 20)
    print(f"after 20 kills there were {done} of 128 shards")
    assert 0 < done < 128
    run(asked, tmp_path / "quiet")
    rows = read_output(tmp_path / "out")
    assert rows == read_output(tmp_path / "quiet")
    names = [(row["source_id"], row["rank"]) for row in rows]
    assert len(set(names)) == len(names) and len({name for name, _ in names}) == 20_000


class Echo(Paraphraser):
    """Writes three paraphrases of any text, without a model."""

    def __init__(self):
        pass

    def __call__(self, texts, **options):
        return [[Paraphrase(f"{text} {n}", 0.5, 0.5, 0.5, 0.5) for n in range(3)] for text in texts]


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    with path.open("w") as file:
        file.write("question,label\n")
        file.writelines(f"what is question number {number} about ?,{number % 3}\n" for number in range(1_000_000))
    write_rows(tmp_path / "rows.parquet", str(path), "question")
    kept = datasets.Features(question=datasets.Value("string"), label=datasets.Value("string"))
    reader = RowReader(str(tmp_path), "rows.parquet", "question")
    data = ShardWriter(str(tmp_path / "out"), kept)(ParaphraseStep(Echo(), n=3)(reader(None, 0, 1), 0, 1), 0, 1)
    resident = {number: resident_bytes() for number, _ in enumerate(data, start=1) if number in (10_000, 1_000_000)}
    print({number: f"{count / 2**20:.1f} MiB" for number, count in resident.items()})
    assert resident[1_000_000] <= 1.1 * resident[10_000]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
