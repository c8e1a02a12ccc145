"""Whatever rows come in, they are read alike, and what cannot be read is named."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_paraphrase.augmentation.inputs import write_rows
from hf_paraphrase.augmentation.steps import RowReader
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.common.text_tables import ROWS_AT_ONCE

TEXTS = ("how do i learn ?", "", 'a "cat",')
ROWS = [{"question": text, "label": label} for label, text in enumerate(TEXTS, start=1)]


def read(path: Path | str, tmp_path: Path, **options) -> list[dict]:
    write_rows(tmp_path / "rows.parquet", str(path), "question", **options)
    return pq.read_table(tmp_path / "rows.parquet").to_pylist()


def write(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        datasets.Dataset.from_list(rows).to_csv(path, sep="," if path.suffix == ".csv" else "\t")
    return path


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_file_of_any_kind(ending: str, tmp_path: Path) -> None:
    rows = read(write(tmp_path / f"in{ending}", ROWS), tmp_path)
    first = 2 if ending in (".csv", ".tsv") else 1
    # Values of csv and tsv stay as they stand there, for "01" and "NA" are neither a number nor a gap.
    expected = [{**row, "label": str(row["label"])} for row in ROWS] if first == 2 else ROWS
    assert rows == [{**row, "source_id": f"in{ending}:{line}"} for line, row in enumerate(expected, start=first)]


def test_a_folder_of_files(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.jsonl"):
        write(tmp_path / "in" / name, ROWS)
    (tmp_path / "in" / "LICENCE").touch()
    rows = read(tmp_path / "in", tmp_path)
    names = [f"{name}:{line}" for name in ("a.jsonl", "b.parquet") for line in (1, 2, 3)]
    assert [row["source_id"] for row in rows] == names
    write(tmp_path / "in" / "c.jsonl", [{"question": "a", "lable": 1}])
    with pytest.raises(InputError, match=r"c\.jsonl and .*a\.jsonl differ in their columns: label, lable"):
        read(tmp_path / "in", tmp_path)


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write(tmp_path / "in" / folder / "q.jsonl", ROWS[:1])
    assert [row["source_id"] for row in read(tmp_path / "in", tmp_path)] == ["a/q.jsonl:1", "b/q.jsonl:1"]


def test_a_corpus_keeps_what_datasets_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = datasets.Features(question=datasets.Value("string"), label=datasets.ClassLabel(names=["no", "yes"]))
    rows = datasets.Dataset.from_dict({"question": ["a", None], "label": [1, 0]}, features=classes)
    monkeypatch.setattr(
        "hf_paraphrase.augmentation.inputs.read_splits", lambda path: {"you/yours": {"test": rows}}[path]
    )
    assert read("you/yours", tmp_path, split="test") == [
        {"question": "a", "label": 1, "source_id": "test:0"},
        {"question": None, "label": 0, "source_id": "test:1"},
    ]
    kept = datasets.Features.from_arrow_schema(pq.read_schema(tmp_path / "rows.parquet"))
    assert kept["label"] == classes["label"]


def test_types_of_jsonl_are_those_of_all_lines(tmp_path: Path) -> None:
    """The first of them may know no better."""
    rows = [{"question": "a", "weight": None}] * ROWS_AT_ONCE + [{"question": "b", "weight": 1}, {"question": "c"}]
    rows += [{"question": "d", "weight": 0.5, "late": ["x"]}]
    found = read(write(tmp_path / "in.jsonl", rows), tmp_path)
    assert [(row["weight"], row["late"]) for row in found[-4:]] == [
        (None, None),
        (1, None),
        (None, None),
        (0.5, ["x"]),
    ]


def test_columns_are_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "in.csv", [{**row, "rank": 1} for row in ROWS])
    assert read(path, tmp_path, keep_columns=[])[0] == {"question": ROWS[0]["question"], "source_id": "in.csv:2"}
    with pytest.raises(InputError, match="has a column `rank`"):
        read(path, tmp_path)
    with pytest.raises(InputError, match=r"in\.csv has no column `lable`; it has: question, label, rank"):
        read(path, tmp_path, keep_columns=["lable"])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "in.jsonl",
            '{"question": "a"}\n{"question": 3}\n',
            r"in\.jsonl, line 2, column `question`: expected text, not a number: 3",
        ),
        (
            "in.jsonl",
            '{"question": "a"}\n{"query": "b"}\n',
            r"in\.jsonl, line 2: no column `question`; there are: query",
        ),
        ("in.jsonl", '{"question": "a"}\nwhat\n', r"in\.jsonl, line 2: not JSON"),
        (
            "in.jsonl",
            '{"question": "a", "label": 1}\n{"question": "b", "label": "x"}\n',
            r"in\.jsonl, line 2: column `label` has another type than before: 'x'",
        ),
        ("in.csv", "question,label\na,1\nb\n", r"in\.csv, line 3: 1 cells for 2 columns"),
        ("in.csv", "query,label\na,1\n", r"in\.csv: no column `question`; there are: query, label"),
        ("in.csv", "question,label\n", "the input has no rows"),
        ("in.parquet", "question", r"in\.parquet is not a Parquet file"),
        ("in.txt", "question", r"in\.txt: no column `question`; there are: text"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / name, tmp_path)


@pytest.mark.parametrize("kept", ['"\\ud800"', '["\\ud800"]', '{"a": "\\ud800"}', "1" * 5000, '{"\\ud800": 1}'])
def test_a_kept_column_that_no_file_holds(kept: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(f'{{"question": "a"}}\n{{"question": "b", "label": {kept}}}\n')
    with pytest.raises(InputError, match=r"in\.jsonl, line 2"):
        read(tmp_path / "in.jsonl", tmp_path)


def test_a_number_too_large_for_any_column(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(f'{{"question": "a", "label": {10**30}}}\n')
    with pytest.raises(InputError, match=r"in\.jsonl, line"):
        read(tmp_path / "in.jsonl", tmp_path)


@pytest.mark.parametrize("place", range(4, 400, 12))
def test_damaged_parquet_is_named(place: int, tmp_path: Path) -> None:
    path = write(tmp_path / "in.parquet", ROWS * 20)
    content = bytearray(path.read_bytes())
    content[place : place + 4] = bytes(byte ^ 0xFF for byte in content[place : place + 4])
    path.write_bytes(content)
    with contextlib.suppress(InputError):  # or nothing that it reads has changed
        assert all(isinstance(row["question"], str) for row in read(path, tmp_path))


def test_bytes_that_are_no_text_are_found_before_work_is_spent(tmp_path: Path) -> None:
    column = pa.array([b"a", b"\xff"]).view(pa.string())
    pq.write_table(pa.table({"question": column}), tmp_path / "in.parquet")
    with pytest.raises(InputError, match=r"in\.parquet is damaged"):
        read(tmp_path / "in.parquet", tmp_path)


def test_a_column_that_is_no_text(tmp_path: Path) -> None:
    path = write(tmp_path / "in.parquet", [{"question": 1}])
    with pytest.raises(InputError, match=r"in\.parquet: column `question` must hold text, not int64"):
        read(path, tmp_path)


@pytest.mark.parametrize(("path", "message"), [("none.csv", "no file none.csv"), ("none", "none is not a file")])
def test_nothing_is_there(path: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(path, tmp_path)


@pytest.mark.parametrize("tasks", [1, 3, 7, 64])
def test_tasks_share_the_rows(tasks: int, tmp_path: Path) -> None:
    """Every row has one task; none has more than one row more than another."""
    rows = [{"question": f"{number}", "label": number} for number in range(3000)]
    read(write(tmp_path / "in.jsonl", rows), tmp_path)
    reader = RowReader(str(tmp_path), "rows.parquet", "question")
    shares = [list(reader.run(None, rank, tasks)) for rank in range(tasks)]
    documents = [document for share in shares for document in share]
    assert [document.text for document in documents] == [row["question"] for row in rows]
    assert documents[5].id == "in.jsonl:6" and documents[5].metadata == rows[5]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
