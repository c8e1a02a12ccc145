"""Every command reads the same rows out of the same file, and refuses the same files, by name, line and column."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_paraphrase import load_dataset
from hf_paraphrase.augmentation.inputs import write_rows
from hf_paraphrase.cli.terminal import Lines, open_table, read_texts
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.common.text_tables import TextTable, expand_globs, find_tables, split_records, table_kind
from hf_paraphrase.metrics.score_files import read_scored_texts
from hf_paraphrase.tokenization.word_vectors import load_word_vectors


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache of datasets")


def read_for_augment(path: Path) -> list[str]:
    rows = path.with_name("rows.parquet")
    write_rows(rows, str(path), "source")
    return pq.read_table(rows)["source"].to_pylist()


READERS = {
    "load_dataset": lambda path: load_dataset(path, split="train")["source"][:],
    "pairs": lambda path: load_dataset("pairs", data_files={"train": path, "test": path}, split="train")["source"][:],
    "paraphrase": lambda path: list(read_texts(str(path), "source")),
    "score": lambda path: read_scored_texts([path]).sources,
    "augment": read_for_augment,
}
STRICT = [name for name in READERS if name != "pairs"]
OBJECTS = [{"source": text, "target": "t", "prediction": "p"} for text in ("null", "007", "NA")]
PLAIN = ["null", "007", "NA"]
LONG = "long " * 40_000


def lines(*rows: str, end: str = "\n") -> bytes:
    return "".join(row + end for row in rows).encode()


def json_lines(objects=OBJECTS) -> bytes:
    return lines(*map(json.dumps, objects))


def parquet(**columns: pa.Array) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


CSV = lines("source,target,prediction", "null,t,p", "007,t,p", "NA,t,p")
TSV = CSV.replace(b",", b"\t")
TEXTS = pa.array(PLAIN)
SAME = pa.array(["t", "t", "t"])
READ = {
    "endings in capitals": ("UP.CSV", CSV, PLAIN),
    "tab": ("a.tab", TSV, PLAIN),
    "tsv in capitals, gzipped": ("A.TSV.GZ", gzip.compress(TSV), PLAIN),
    "gzip": ("a.csv.gz", gzip.compress(CSV), PLAIN),
    "ndjson": ("a.ndjson", json_lines(), PLAIN),
    "gzipped jsonl": ("a.jsonl.gz", gzip.compress(json_lines()), PLAIN),
    "json array": ("a.json", json.dumps(OBJECTS).encode(), PLAIN),
    "indented json array": ("a.JSON", json.dumps(OBJECTS, indent=2).encode(), PLAIN),
    "json lines named json": ("a.json", json_lines(), PLAIN),
    "mark of a spreadsheet": ("a.csv", b"\xef\xbb\xbf" + CSV, PLAIN),
    "mark before json": ("a.jsonl", b"\xef\xbb\xbf" + json_lines(), PLAIN),
    "semicolons": ("a.csv", CSV.replace(b",", b";"), PLAIN),
    "tabs in csv": ("a.csv", TSV, PLAIN),
    "semicolons, and a comma in a name": (
        "a.csv",
        CSV.replace(b",", b";").replace(b"prediction", b"prediction;more, or less", 1).replace(b"p\n", b"p;m\n"),
        PLAIN,
    ),
    "a line for spreadsheets": ("a.csv", b"sep=;\r\n" + CSV.replace(b",", b";"), PLAIN),
    "ends of Windows": ("a.csv", CSV.replace(b"\n", b"\r\n"), PLAIN),
    "blank lines": ("a.csv", b"\n" + CSV.replace(b"\n", b"\n\n"), PLAIN),
    "blank lines of tsv": ("a.tsv", TSV + b"\n\r\n", PLAIN),
    "blank lines of jsonl": ("a.jsonl", json_lines() + b"\n \n", PLAIN),
    "index of pandas": (
        "a.csv",
        lines(",source,target,prediction", "0,null,t,p", "1,007,t,p", "2,NA,t,p"),
        PLAIN,
    ),
    "header with a delimiter behind": (
        "a.csv",
        lines("source,target,prediction,", "null,t,p,", "007,t,p,", "NA,t,p,"),
        PLAIN,
    ),
    "stray quotes in tsv": (
        "a.tsv",
        lines("source\ttarget\tprediction", '"a\tt\tp', "b\tt\tp", 'c"\tt\tp', '"d\tt\tp'),
        ['"a', "b", 'c"', '"d'],
    ),
    "a stray quote in csv": (
        "a.csv",
        lines("source,target,prediction", '"a,t,p', "b,t,p", '5" c,t,p'),
        ['"a', "b", '5" c'],
    ),
    "cells over lines": (
        "a.csv",
        lines("source,target,prediction", '"a', *["b"] * 50, 'c",t,p', "d,t,p"),
        ["a " + "b " * 50 + "c", "d"],
    ),
    "a long cell": ("a.csv", lines("source,target,prediction", f'"{LONG}",t,p', "b,t,p"), [LONG.strip(), "b"]),
    "a long cell of tsv": ("a.tsv", lines("source\ttarget\tprediction", f'"{LONG}"\tt\tp'), [LONG.strip()]),
    "categories": ("a.parquet", parquet(source=TEXTS.dictionary_encode(), target=SAME, prediction=SAME), PLAIN),
    "views": ("a.parquet", parquet(source=TEXTS.cast(pa.string_view()), target=SAME, prediction=SAME), PLAIN),
    "large": ("A.PARQUET", parquet(source=TEXTS.cast(pa.large_string()), target=SAME, prediction=SAME), PLAIN),
    "maps": (
        "a.parquet",
        parquet(
            source=TEXTS,
            target=SAME,
            prediction=SAME,
            more=pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        ),
        PLAIN,
    ),
}


@pytest.mark.parametrize("case", READ)
@pytest.mark.parametrize("reader", READERS)
def test_every_command_reads_the_same(reader: str, case: str, tmp_path: Path) -> None:
    name, content, expected = READ[case]
    (tmp_path / name).write_bytes(content)
    assert [" ".join(text.split()) for text in READERS[reader](tmp_path / name)] == expected


@pytest.mark.parametrize(("name", "content"), [("a.csv", CSV), ("a.tsv", TSV), ("a.jsonl", json_lines())])
@pytest.mark.parametrize("reader", READERS)
def test_carriage_returns_alone_end_lines(reader: str, name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content.replace(b"\n", b"\r"))
    assert READERS[reader](tmp_path / name) == PLAIN


@pytest.mark.parametrize("reader", ["paraphrase", "augment", "score"])
def test_carriage_returns_inside_of_texts(reader: str, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(TSV.replace(b"null", b"a\rb"))
    assert READERS[reader](tmp_path / "a.tsv") == ["a\rb", *PLAIN[1:]]


def test_carriage_returns_of_a_file_of_many_blocks(tmp_path: Path) -> None:
    """Lines without a break, in which the block after the first begins or ends anywhere."""
    rows = [f"text {number},target {number}" for number in range(70_000)]
    (tmp_path / "a.csv").write_bytes("\r".join(["source,target", *rows]).encode())
    splits = load_dataset("pairs", data_files={"train": tmp_path / "a.csv", "test": tmp_path / "a.csv"})
    assert splits["train"]["source"][:] == [f"text {number}" for number in range(70_000)]


REFUSED = {
    "a name twice": ("a.csv", b"source,source,target,prediction\na,b,t,p\n", "a.csv: two columns are called `source`"),
    "a field twice": (
        "a.jsonl",
        b'{"source": "a", "source": "b", "target": "t", "prediction": "p"}\n',
        "a.jsonl, line 1: two fields are called `source`",
    ),
    "a delimiter behind each row": (
        "a.csv",
        lines("source,target,prediction", "a,t,p", "b,t,p,"),
        "a.csv, line 3: 4 cells for 3 columns",
    ),
    "a number": (
        "a.jsonl",
        json_lines([*OBJECTS, {**OBJECTS[0], "source": 2020}]),
        "a.jsonl, line 4, column `source`: expected text, not a number: 2020",
    ),
    "an object in an array": (
        "a.json",
        json.dumps([*OBJECTS, {**OBJECTS[0], "source": {"a": 1}}], indent=1).encode(),
        "a.json, line 17, column `source`: expected text, not an object",
    ),
    "numbers of an array": ("a.json", b"[\n1]", "a.json, line 2: expected a JSON object with a field for each column"),
    "an array that goes on": (
        "a.json",
        b'[{"source": "a"}\n{"source": "b"}]',
        "a.json, line 1: the array is not closed",
    ),
    "no array and no lines": ("a.json", b'{\n"source": ["a"]\n}', "line 1: not JSON .*; a .json file holds an array"),
    "a list of cells": ("a.jsonl", b'["a"]', "^[^ ]*a.jsonl, line 1: expected a JSON object .*, not a list$"),
    "utf-16 without its mark": (
        "a.csv",
        CSV.decode().encode("utf-16-le"),
        "a.csv, line 1: it has null characters, as UTF-16 has: save it as UTF-8",
    ),
    "utf-16": ("a.csv", CSV.decode().encode("utf-16"), "it begins as UTF-16 does, line 1: save it as UTF-8"),
    "a cut gzip file": ("a.csv.gz", gzip.compress(CSV * 100)[:-9], "a.csv.gz is a damaged gzip file"),
    "bad bytes in gzip": ("a.tsv.gz", gzip.compress(TSV + b"\xff\tt\tp\n"), "not valid UTF-8 .*line 5"),
    "nothing": ("a.csv", b"", "a.csv is empty"),
    "cut parquet": ("a.parquet", parquet(source=TEXTS)[:-9], "a.parquet is not a Parquet file that can be read"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("reader", STRICT)
def test_every_command_refuses_the_same(reader: str, case: str, tmp_path: Path) -> None:
    name, content, message = REFUSED[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        READERS[reader](tmp_path / name)


@pytest.mark.parametrize("case", ["a name twice", "a field twice", "nothing", "cut parquet"])
def test_pairs_refuses_them_too(case: str, tmp_path: Path) -> None:
    name, content, message = REFUSED[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message.replace(": two fields", ", two fields")):
        READERS["pairs"](tmp_path / name)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet"])
@pytest.mark.parametrize("reader", ["paraphrase", "augment", "pairs"])
def test_a_missing_column_shows_those_there_are(reader: str, name: str, tmp_path: Path) -> None:
    content = {"a.csv": b"one;two\n1;2\n", "a.tsv": b"one\ttwo\n1\t2\n"}
    (tmp_path / name).write_bytes(content.get(name) or parquet(one=TEXTS, two=SAME))
    with pytest.raises(InputError, match=f"{name}.* no column .source.; .*: one, two"):
        READERS[reader](tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"source,target,prediction\na,t,p\n,t,p\nb,t,p\n"),
        ("a.jsonl", json_lines([{"source": text, "target": "t", "prediction": "p"} for text in ("a", None, "b")])),
        ("a.parquet", parquet(source=pa.array(["a", None, "b"]), target=SAME, prediction=SAME)),
    ],
)
def test_an_empty_cell_is_missing(name: str, content: bytes, tmp_path: Path) -> None:
    """It has no paraphrase, which is scored as an empty text, and cannot be trained on."""
    path = tmp_path / name
    path.write_bytes(content)
    assert READERS["paraphrase"](path) == READERS["score"](path) == ["a", "", "b"]
    assert [text or "" for text in READERS["augment"](path)] == ["a", "", "b"]
    assert READERS["load_dataset"](path) == ["a", "b"]


ENDLESS = "x" * 400
BOMBS = {
    "a.csv": lines("source,target,prediction", "a,t,p", f"{ENDLESS},t,p"),
    "a.tsv": lines("source\ttarget\tprediction", "a\tt\tp", f"{ENDLESS}\tt\tp"),
    "a.jsonl": json_lines([{"source": text, "target": "t", "prediction": "p"} for text in ("a", "b", ENDLESS)]),
    "a.json": json.dumps([{"source": ENDLESS, "target": "t", "prediction": "p"}]).encode(),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("reader", STRICT)
@pytest.mark.parametrize("zipped", [False, True])
def test_an_endless_line_is_refused(zipped, reader, name, tmp_path, monkeypatch) -> None:
    path = tmp_path / f"{name}{'.gz' if zipped else ''}"
    path.write_bytes(gzip.compress(BOMBS[name]) if zipped else BOMBS[name])
    number = 1 if name == "a.json" else 3
    monkeypatch.setenv("HF_PARAPHRASE_MAX_LINE_LENGTH", "399")
    reason = f"{path.name}, line {number}: its length is 400, above the limit of 399; .*HF_PARAPHRASE_MAX_LINE_LENGTH"
    with pytest.raises(InputError, match=reason):
        READERS[reader](path)
    monkeypatch.setenv("HF_PARAPHRASE_MAX_LINE_LENGTH", "500")
    assert ENDLESS in READERS[reader](path)


@pytest.mark.parametrize("reader", STRICT)
def test_a_gzip_bomb_is_refused(reader, tmp_path, monkeypatch) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(CSV + b"z,t,p\n" * 100_000))
    monkeypatch.setenv("HF_PARAPHRASE_MAX_UNPACKED_BYTES", "500_000")
    with pytest.raises(InputError, match="a.csv.gz: its unpacked size is .*HF_PARAPHRASE_MAX_UNPACKED_BYTES"):
        READERS[reader](path)
    monkeypatch.setenv("HF_PARAPHRASE_MAX_UNPACKED_BYTES", "600_100")
    assert len(READERS[reader](path)) == 100_003


def test_an_endless_line_of_standard_input_or_vectors_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HF_PARAPHRASE_MAX_LINE_LENGTH", "399")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"a\n{ENDLESS}\n".encode())))
    with pytest.raises(InputError, match="standard input, line 2: its length is 400"):
        list(Lines())
    (tmp_path / "vectors.txt").write_text(f"a 1 2\n{ENDLESS} 1 2\n")
    with pytest.raises(InputError, match=r"vectors.txt, line 2: its length is 400"):
        load_word_vectors(tmp_path / "vectors.txt")


def test_lines_of_text_have_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n\ntwo\n")
    assert list(read_texts(str(path))) == ["one", "", "two"]
    assert load_dataset(path)["train"]["text"][:] == ["one", "two"]
    with pytest.raises(InputError, match="--column: .*a.txt has no columns, only lines; only .csv, .tsv"):
        read_texts(str(path), "source")


def test_written_tables_are_read_back(tmp_path: Path) -> None:
    """Texts with all that a cell may hold; in tsv, where a line is a row, the ends of lines become spaces."""
    texts = ['"a', 'b "c", d', "e\tf", "g\nh", "g\rh", "g\r\nh", " i ", "null", "", ";", "=1+1"]
    for name in ("A.CSV", "a.tsv", "a.jsonl", "a.parquet"):
        with open_table(tmp_path / name, {"text": "string", "rank": "int64"}) as write:
            write([{"text": text, "rank": 1} for text in texts])
        expected = [" ".join(text.splitlines()) for text in texts] if name == "a.tsv" else texts
        quoted = ["'=1+1" if text == "=1+1" and name == "A.CSV" else text for text in expected]
        assert list(read_texts(str(tmp_path / name))) == quoted
        if name in ("A.CSV", "a.tsv"):
            with (tmp_path / name).open(newline="") as file:
                rows = csv.DictReader(file, delimiter="," if name == "A.CSV" else "\t")
                assert [row["text"] for row in rows] == quoted


def test_kinds() -> None:
    assert [table_kind(name) for name in ("A.CSV", "b.tab.gz", "c.NDJSON", "d", "e.gz", "f.docx")] == [
        "csv",
        "tsv",
        "jsonl",
        None,
        None,
        None,
    ]


def test_a_folder_and_patterns(tmp_path: Path) -> None:
    for name in ("b.CSV", "in/a.ndjson", "README.txt", ".hidden.csv", "dataset_infos.json", "c[1].tab"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [path.name for path in find_tables(tmp_path)] == ["b.CSV", "c[1].tab", "a.ndjson"]
    assert [path.name for path in expand_globs(tmp_path / "**" / "*.[Cn]*")] == ["b.CSV", "a.ndjson"]
    assert expand_globs(tmp_path / "c[1].tab") == [tmp_path / "c[1].tab"]
    with pytest.raises(FileNotFoundError, match="there is no file .*none"):
        expand_globs(tmp_path / "none*")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty has no file that ends in .csv"):
        find_tables(tmp_path / "empty")


def test_a_quote_that_is_never_closed_costs_one_row_and_no_time() -> None:
    """Every line begins a cell that might go on to the end."""
    rows = [(number, f'"{number},a\n') for number in range(20_000)]
    found = list(split_records(rows, ",", over_lines=True))
    assert len(found) == 20_000 and found[-1] == (19_999, ['"19999', "a"])


def test_rows_that_are_rejected_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(lines("a,b", "1,2", "3", "4,5"))
    rejected = []
    rows = list(TextTable(path).rows(reject=lambda *problem: rejected.append(problem)))
    assert [row.values for row in rows] == [{"a": "1", "b": "2"}, {"a": "4", "b": "5"}]
    assert rejected == [(path, 3, "1 cells for 2 columns; quote cells that hold the delimiter")]
