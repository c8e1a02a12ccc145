from __future__ import annotations

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import load_dataset, make_builder

ROWS = [(f'a "quoted", {number}\nnext line', f"target {number}") for number in range(60)]
COLUMNS = {"source_column": "my text", "target_column": "b"}


@pytest.fixture(params=["csv", "tsv", "jsonl", "parquet"])
def path(request, tmp_path):
    path = tmp_path / f"pairs.{request.param}"
    if request.param == "jsonl":
        lines = [json.dumps({"my text": first, "b": second, "more": 1}) for first, second in ROWS]
        path.write_text("\n".join(lines), encoding="utf-8")
    elif request.param == "parquet":
        pq.write_table(
            pa.table({"more": range(60), "b": [row[1] for row in ROWS], "my text": [row[0] for row in ROWS]}), path
        )
    else:
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            writer = csv.writer(file, delimiter="," if request.param == "csv" else "\t")
            # In a tsv file a line is a row.
            rows = [
                (first.replace("\n", "\n" if request.param == "csv" else " "), 1, second) for first, second in ROWS
            ]
            writer.writerows([("my text", "more", "b"), *rows])
    return path


def test_one_file_becomes_three_splits(path):
    splits = load_dataset("pairs", data_files=path, max_held_out=0.4, **COLUMNS)
    assert list(splits) == ["train", "validation", "test"]
    found = {(row["source"], row.get("target") or row["references"][0]) for rows in splits.values() for row in rows}
    assert found == {(" ".join(first.split()), second) for first, second in ROWS}
    assert sum(splits.num_rows.values()) == 60


def test_all_formats_give_the_same_rows(path, tmp_path):
    rows = load_dataset("pairs", data_files=[path], split="train", **COLUMNS).to_list()
    other = tmp_path / "again.jsonl"
    other.write_text("\n".join(json.dumps({"source": first, "target": second}) for first, second in reversed(ROWS)))
    assert rows == load_dataset("pairs", data_files=str(other), split="train").to_list()


def test_no_source_is_in_two_splits_in_capitals(tmp_path):
    path = tmp_path / "pairs.tsv"
    rows = [
        f"{form(f'Question {number}')}\t{form(f'Answer {number}')}"
        for number in range(90)
        for form in (str, str.lower)
    ]
    # Every other pair stands in the other direction too.
    rows += [f"ANSWER {number}\tQuestion {number}" for number in range(0, 90, 2)]
    path.write_text("source\ttarget\n" + "\n".join(rows) + "\n")
    splits = load_dataset("pairs", data_files=path, max_held_out=0.4)
    sources = {split: [text.casefold() for text in rows["source"]] for split, rows in splits.items()}
    assert len(sources["validation"]) > 5 and len(sources["test"]) > 5
    held_out = {*sources["validation"], *sources["test"]}
    assert not held_out & {*sources["train"], *map(str.casefold, splits["train"]["target"])}
    assert len(held_out) == len(sources["validation"]) + len(sources["test"])


def test_given_splits_are_kept(path):
    files = {"train": [path, path], "test": path}
    splits = load_dataset("pairs", data_files=files, **COLUMNS)
    assert splits.num_rows == {"train": 120, "test": 60}
    assert splits["train"][61] == {"source": 'a "quoted", 1 next line', "target": "target 1"}
    assert splits["test"][1] == {"source": 'a "quoted", 1 next line', "references": ["target 1"]}


def test_several_processes_give_the_same_rows(path):
    files = {"train": [path, path, path], "validation": [path]}
    alone = load_dataset("pairs", data_files=files, **COLUMNS)
    # Another seed, which given splits do not heed, keeps the rows from coming out of the cache.
    together = load_dataset("pairs", data_files=files, num_proc=2, seed=1, **COLUMNS)
    assert {split: rows.to_list() for split, rows in together.items()} == {
        split: rows.to_list() for split, rows in alone.items()
    }


def test_references(tmp_path):
    path = tmp_path / "test.jsonl"
    path.write_text('{"source": "a", "refs": ["b", " c "]}\n{"source": "d", "refs": "e"}\n')
    files = {"train": path, "test": path}
    rows = load_dataset("pairs", data_files={"test": path}, split="test", references_column="refs")
    assert rows["references"][:] == [["b", "c"], ["e"]]
    with pytest.raises(InputError, match="2 of 2 lines are bad.*has no text in 'source' or 'target'"):
        load_dataset("pairs", data_files=files, references_column="refs")


def test_damage_in_another_process_is_named(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text('{"source": "a", "target": "b"}\n{"source": 1, "target": "b"}\n')
    files = {"train": [path, path], "test": [path]}
    with pytest.raises(InputError, match="line 2, has no text in 'source' or 'target'"):
        load_dataset("pairs", data_files=files, num_proc=2)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"x,y\n1,2\n", "has no column 'source'; it has: x, y; expected"),
        ("a.csv", b"", "a.csv is empty: its first line must name the columns"),
        ("a.tsv", b"source,target\n", "has no column 'source'; it has: source,target"),
        ("a.jsonl", b"{}\n", "has no text in 'source' or 'target'"),
        ("a.parquet", b"PAR1 no", "is not a Parquet file that can be read"),
        ("a.jsonl", b'{"source": "a", "target": "\\ud83d"}\n', "line 1, column `target`: half of a surrogate"),
        ("a.tsv", "source\ttarget\n".encode("utf-16"), "a.tsv is UTF-16"),
        ("a.docx", b"", "ends in .docx; expected are files that end in .csv"),
    ],
)
def test_other_files(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_dataset("pairs", data_files=tmp_path / name)


def test_a_stray_quote_in_a_tsv_file_merges_no_rows(tmp_path):
    lines = ["source\ttarget", '"a\tb', "c\td", "e\tf", 'g"\th', "i\tj"]
    path = write_lines(tmp_path / "a.tsv", lines)
    rows = load_dataset("pairs", data_files={"train": path, "test": path}, split="train").to_list()
    assert [(row["source"], row["target"]) for row in rows] == [tuple(line.split("\t")) for line in lines[1:]]


def test_nul_characters_are_dropped(tmp_path, caplog):
    rows = [{"source": "a\0", "target": "\0b"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    write_lines(tmp_path / "a.jsonl", map(json.dumps, rows))
    for path in (tmp_path / "a.parquet", tmp_path / "a.jsonl"):
        found = load_dataset("pairs", data_files={"train": path, "test": path}, split="train").to_list()
        assert found == [{"source": "a", "target": "b"}]
    assert caplog.text.count("2 NUL characters are dropped") == 4


def test_damaged_parquet_files_are_refused(tmp_path):
    """Every byte of a file is turned over once, then each file is cut."""
    path = tmp_path / "a.parquet"
    rows = [{"source": f"source {number}", "target": f"target {number}"} for number in range(20)]
    pq.write_table(pa.Table.from_pylist(rows), path)
    content = path.read_bytes()
    damaged = [content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :] for at in range(0, len(content), 7)]
    refused = 0
    for changed in [*damaged, *(content[:at] for at in range(0, len(content), 97))]:
        path.write_bytes(changed)
        builder = make_builder("pairs", data_files={"train": path, "test": path}, max_bad_fraction=1)
        try:
            list(builder.as_streaming_dataset()["test"])
        except InputError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > 50


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_missing_files(tmp_path):
    with pytest.raises(InputError, match="`data_files` is missing; expected are files"):
        load_dataset("pairs")
    with pytest.raises(FileNotFoundError, match="there is no file .*nowhere.csv"):
        load_dataset("pairs", data_files=tmp_path / "nowhere.csv")
    (tmp_path / "a.csv").write_text("source,target\na,b\n")
    with pytest.raises(InputError, match="has the split 'dev'; there are: train, validation, test"):
        load_dataset("pairs", data_files={"train": tmp_path / "a.csv", "dev": tmp_path / "a.csv"})
    with pytest.raises(InputError, match="`data_files` is for the corpora `groups` and `pairs`"):
        load_dataset("quora", data_files=tmp_path / "a.csv")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(["csv", "tsv", "jsonl", "parquet"]), data=st.data())
def test_any_bytes_are_read_or_refused(kind, data, tmp_path_factory):
    start = {"csv": b"source,target\n", "tsv": b"source\ttarget\n", "parquet": b"PAR1"}.get(kind, b"")
    marks = st.sampled_from([b",", b"\t", b'"', b"\n", b"\r", b"text", b'{"source": "a", "target": "b"}\n', b"\0"])
    content = b"".join(data.draw(st.lists(st.one_of(st.binary(max_size=10), marks), max_size=40)))
    path = tmp_path_factory.mktemp("pairs") / f"a.{kind}"
    path.write_bytes(start + content)
    try:
        splits = make_builder(
            "pairs", data_files={"train": path, "test": path}, max_bad_fraction=1
        ).as_streaming_dataset()
        rows = [row for rows in splits.values() for row in rows]
    except InputError:
        return
    assert all(row["source"] and (row["target"] or all(row["references"])) for row in rows)
