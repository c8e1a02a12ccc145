"""An augmentation on the Hub: pushed from a folder, or written there shard by shard."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.augmentation.runs import read_output, write_questions
from tests.models.tiny import save, tiny_bart


@pytest.fixture
def command(tmp_path: Path) -> list[object]:
    save(tiny_bart(), tmp_path / "model")
    source = write_questions(tmp_path / "in.csv", 20)
    options = ["--column", "question", "--keep", "none", "--max-new-tokens", "4", "--tasks", "2"]
    return ["augment", source, "--model", tmp_path / "model", *options]


def test_a_folder_is_pushed(client, server, command: list[object], tmp_path: Path) -> None:
    push = ["--push-to-hub", "--hub-dataset-id", "you/augmented", "--hub-private-repo"]
    answer = client(*command, "--output", tmp_path / "out", *push)
    assert answer.status == 0, answer
    assert "/you/augmented/commit/" in answer.output.splitlines()[-1]
    repository = server.repository("you/augmented", "datasets")
    assert repository.private
    names = {"README.md", "data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"}
    assert repository.files().keys() - {".gitattributes"} == names


def test_shards_are_written_to_the_hub(client, server, command: list[object], tmp_path: Path) -> None:
    """Each as one upload; what is done is known in the cache."""
    answer = client(*command, "--output", "hf://datasets/you/augmented")
    assert answer.status == 0, answer
    files = server.repository("you/augmented", "datasets").files()
    assert client(*command, "--output", tmp_path / "out").status == 0
    shards = sorted(name for name in files if name.startswith("data/"))
    found = [row for name in shards for row in pq.read_table(io.BytesIO(files[name].content)).to_pylist()]
    assert len(shards) == 2 and "README.md" in files
    assert {row["source_id"] for row in found} == {row["source_id"] for row in read_output(tmp_path / "out")}
    assert client(*command, "--output", "hf://datasets/you/augmented").status == 0
