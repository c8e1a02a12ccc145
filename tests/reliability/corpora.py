"""Fuzzed files of every corpus: read or refused, soon, and no row lost uncounted."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from hf_paraphrase.augmentation.inputs import write_rows
from hf_paraphrase.cli.terminal import read_texts
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import list_datasets, make_builder
from hf_paraphrase.datasets.builder import CorpusBuilder
from hf_paraphrase.datasets.corpus_reader import CorpusReader
from tests.datasets.corpora import load_arguments, sentence
from tests.datasets.test_yahoo_answers import feed, questions

from .trials import Trials

# Per file, of this process's time.
MOST_SECONDS = 20.0
# What has broken readers before, here or elsewhere.
PIECES = [
    b"\0",
    b'"',
    b"'",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b",",
    b"|||",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"1e999",
    b"NaN",
]
PIECES += [
    b"\xff",
    b"\xfe\xff",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xc3",
    b"\xe2\x80\xa8",
    b"\x85",
    b"\x1f\x8b",
]
PIECES += [
    b"7" * 5000,
    b"x" * 200_000,
    b"[" * 20_000,
    b"{}",
    b"null",
    b"[]",
    b'{"source": 1}',
    b"<document>",
    b"]]>",
    b"&#0;",
]
PIECES += [
    b'encoding="shift_jis"',
    b'encoding="hex"',
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
    b"*** START OF",
    b"<unk>",
    b"=" * 99,
]


def fuzz_corpora(count: int, seed: int = 0) -> Trials:
    """Change files of every corpus in turn, `count` in all."""
    trials = Trials("fuzzed corpus files")
    kinds: list[tuple[str, Callable[[Path], dict[str, Any]]]] = [
        (path, lambda folder, path=path: load_arguments(path, None, folder))
        for path in list_datasets()
        if path != "synthetic_questions"
    ]
    kinds += [
        (f"{reader}, {ending}", lambda folder, ending=ending: write_pairs(folder, ending))
        for reader in ("pairs", *READERS)
        for ending in WRITERS
    ]
    kinds.append(("yahoo_answers, xml", write_xml))
    for number, (name, write) in enumerate(kinds):
        share = count // len(kinds) + (number < count % len(kinds))
        if share:
            fuzz(trials, name, write, share, seed)
    return trials


def fuzz(trials: Trials, name: str, write: Callable[[Path], dict[str, Any]], count: int, seed: int) -> None:
    corpus = name.partition(",")[0]

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.data())
    def once(data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            arguments = write(Path(scratch))
            files = sorted(path for path in Path(scratch).rglob("*") if path.is_file())
            file = data.draw(st.sampled_from(files))
            content, label = change(data, file.read_bytes())
            file.write_bytes(content)
            with trials.trial(f"{name}, {file.name}, {label}", (InputError, FileNotFoundError), MOST_SECONDS):
                read(corpus, arguments)

    once()


def change(data: st.DataObject, content: bytes) -> tuple[bytes, str]:
    """Damage a file in one to four places, and perhaps pack it."""
    label = []
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        how = data.draw(st.sampled_from(["insert", "insert", "delete", "cut", "flip", "repeat", "noise"]))
        label.append(f"{how} at {at}")
        if how == "insert":
            piece = data.draw(st.sampled_from(PIECES))
            label[-1] += f" {piece[:20]!r}"
            content = content[:at] + piece + content[at:]
        elif how == "delete":
            content = content[:at] + content[at + data.draw(st.integers(1, 50)) :]
        elif how == "cut":
            content = content[:at]
        elif how == "flip":
            content = content[:at] + bytes(byte ^ 0xFF for byte in content[at : at + 1]) + content[at + 1 :]
        elif how == "repeat":
            content += content[at:]
        else:
            content = content[:at] + data.draw(st.binary(max_size=30)) + content[at:]
    packed = data.draw(st.sampled_from(["", "", "", "gzip", "half a gzip"]))
    if packed:
        content = gzip.compress(content, compresslevel=1)
        content = content[: len(content) // 2] if packed.startswith("half") else content
    return content, "; ".join([*label, *([packed] if packed else [])])


def read_to_augment(path: Path) -> None:
    """Read rows as `hf-paraphrase augment` does."""
    write_rows(path.with_name("rows"), str(path), "source")
    assert set(pq.read_table(path.with_name("rows")).column_names) >= {"source", "source_id"}


def read_to_paraphrase(path: Path) -> None:
    """Read texts as `hf-paraphrase paraphrase -n --input` does."""
    for text in read_texts(str(path), "source"):
        text.encode()


READERS = {"augment": read_to_augment, "paraphrase": read_to_paraphrase}


def read(corpus: str, arguments: dict[str, Any]) -> None:
    """Read all rows of a corpus, and check them and their number."""
    if corpus in READERS:
        READERS[corpus](arguments["data_files"]["train"])
        return
    readers: list[CorpusReader] = []

    def make_reader(builder: CorpusBuilder, *args: Any, **kwargs: Any) -> CorpusReader:
        readers.append(original(builder, *args, **kwargs))
        return readers[-1]

    original = CorpusBuilder.reader
    with patch.object(CorpusBuilder, "reader", make_reader):
        builder = make_builder(corpus, max_bad_fraction=1, **arguments)
        rows = [row for split in builder.as_streaming_dataset().values() for row in split]
    for row in rows:
        for text in find_texts(row):
            assert "\0" not in text, f"a NUL is in {text!r:.80}"
            text.encode()
    if isinstance(arguments.get("data_files"), dict):
        check_count(arguments["data_files"]["train"], readers, len(rows))


def check_count(path: Path, readers: list[CorpusReader], rows: int) -> None:
    """Every line of a file that both splits were read from is a row, a name of columns, or counted as bad."""
    # A second reader of each split leaves out the rows that lack a text.
    of_lines = [reader for reader in readers if reader.unit != "rows"]
    good = sum(reader.lines_read for reader in of_lines) - sum(reader.bad_lines for reader in readers)
    if path.suffix == ".csv":  # where a row may have several lines
        assert rows <= good
        return
    headers = len(of_lines) if path.suffix == ".tsv" else 0
    assert rows == good - headers, f"{good - headers - rows} rows are lost"
    if path.suffix != ".parquet":
        content = path.read_bytes()
        content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        # An empty file counts as a line that is missing.
        content = content.removeprefix(b"\xef\xbb\xbf") or b"missing"
        lines = [line.replace(b"\0", b"").strip(b"\r") for line in content.split(b"\n")]
        assert sum(reader.lines_read for reader in of_lines) == len(of_lines) * sum(map(bool, lines))


def find_texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for item in value for text in find_texts(item)] if isinstance(value, list) else []


def write_pairs(folder: Path, ending: str) -> dict[str, Any]:
    """Pairs in a format, with both splits given, so that each good row is served."""
    rows = [{"source": sentence(2 * number), "target": sentence(2 * number + 1)} for number in range(12)]
    path = folder / f"pairs.{ending}"
    WRITERS[ending](path, rows)
    return {"data_files": {"train": path, "test": path}}


def write_separated(path: Path, rows: list[dict[str, str]]) -> None:
    separator = "," if path.suffix == ".csv" else "\t"
    lines = [separator.join(("source", "target")), *(separator.join(row.values()) for row in rows)]
    path.write_text("".join(f"{line}\n" for line in lines))


def write_jsonl(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_parquet(path: Path, rows: list[dict[str, str]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


WRITERS = {"csv": write_separated, "tsv": write_separated, "jsonl": write_jsonl, "parquet": write_parquet}


def write_xml(folder: Path) -> dict[str, Any]:
    """The other format of Yahoo! Answers."""
    (folder / "manner.xml").write_text(feed(*questions(12)))
    return {"data_dir": folder}
