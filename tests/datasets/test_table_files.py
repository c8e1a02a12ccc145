"""Files and folders as data sets: their splits, and what becomes of lists, numbers and rows without a text."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_paraphrase import load_dataset
from hf_paraphrase.augmentation.inputs import write_rows
from hf_paraphrase.common.errors import InputError

PAIRS = "source,target\na,b\nc,d\n"
ROWS = [{"source": "a", "target": "b"}, {"source": "c", "target": "d"}]
LISTS = [{"source": "a", "target": ["b", "c"]}, {"source": "d", "target": "e"}, {"source": "f", "target": []}]


def write_json(path: Path, rows: list) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_numbers_and_words_of_a_cell_stay_text(tmp_path):
    (tmp_path / "a.csv").write_text("source,target\n007,null\n2020,None\n1.50,n/a\n")
    rows = load_dataset(tmp_path / "a.csv")["train"].to_list()
    assert [(row["source"], row["target"]) for row in rows] == [("007", "null"), ("2020", "None"), ("1.50", "n/a")]


def test_two_stray_quotes_lose_none_of_a_thousand_rows(tmp_path):
    marks = ['"' if number in (100, 900) else "" for number in range(1000)]
    lines = [f"{mark}question {number}\tanswer {number}\n" for number, mark in enumerate(marks)]
    (tmp_path / "a.tsv").write_text("source\ttarget\n" + "".join(lines))
    splits = load_dataset(tmp_path / "a.tsv")
    assert sum(splits.num_rows.values()) == 1000


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_list_of_targets_is_several_rows(kind, tmp_path):
    expected = [("a", "b"), ("a", "c"), ("d", "e")]
    if kind == "jsonl":
        path = write_json(tmp_path / "a.jsonl", LISTS)
    else:
        path = tmp_path / "a.parquet"
        rows = [{**row, "target": [row["target"]] if row["target"] == "e" else row["target"]} for row in LISTS]
        pq.write_table(pa.Table.from_pylist(rows), path)
    rows = load_dataset(path)["train"].to_list()
    assert [(row["source"], row["target"]) for row in rows] == expected
    streamed = load_dataset(path, streaming=True, split="train")
    assert [(row["source"], row["target"]) for row in streamed if row["target"]] == expected
    pairs = load_dataset("pairs", data_files={"train": path, "validation": path}, max_bad_fraction=0.5)
    assert [tuple(row.values()) for row in pairs["train"].to_list()] == expected


def test_a_single_reference_is_a_list(tmp_path):
    (tmp_path / "train.csv").write_text(PAIRS)
    (tmp_path / "test.csv").write_text("source,references\na,b\nc,\n")
    assert load_dataset(tmp_path)["test"].to_list() == [{"source": "a", "references": ["b"]}]


@pytest.mark.parametrize("content", ["source,target\n", "source,target\n,\n"])
def test_nothing_to_train_on_is_refused(content, tmp_path):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InputError, match=r"a.csv: no row"):
        load_dataset(tmp_path / "a.csv")


def test_other_columns_are_named(tmp_path, caplog):
    (tmp_path / "a.csv").write_text("question;answer\na;b\n")
    assert list(load_dataset(tmp_path / "a.csv")) == ["train"]
    assert "no column is named source and target" in caplog.text
    assert "`columns` renames those there are: question, answer" in caplog.text
    caplog.clear()
    columns = {"source": "question", "target": "answer"}
    assert load_dataset(tmp_path / "a.csv", columns=columns)["train"].to_list() == [{"source": "a", "target": "b"}]
    assert not caplog.text


def test_a_number_of_parquet_is_refused(tmp_path):
    pq.write_table(pa.table({"source": [1], "target": ["b"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a.parquet: column `source` must hold text, not int64"):
        load_dataset(tmp_path / "a.parquet")


def test_a_folder_reads_every_ending(tmp_path):
    (tmp_path / "TRAIN.CSV").write_text(PAIRS)
    write_json(tmp_path / "dev.ndjson", ROWS)
    (tmp_path / "test-1.tab").write_text(PAIRS.replace(",", "\t"))
    splits = load_dataset(tmp_path)
    assert {split: rows.to_list() for split, rows in splits.items()} == dict.fromkeys(
        ("train", "validation", "test"), ROWS
    )


def test_files_whose_names_tell_no_split_are_named(tmp_path, caplog):
    (tmp_path / "train.csv").write_text(PAIRS)
    (tmp_path / "more.csv").write_text(PAIRS)
    load_dataset(tmp_path)
    assert "left out, as their names tell no split: more.csv" in caplog.text


@pytest.mark.parametrize("given", [str, Path])
def test_patterns_and_paths(given, tmp_path):
    for name in ("a[1].csv", "b.csv"):
        (tmp_path / name).write_text(PAIRS)
    for pattern, count in (("*.csv", 4), ("a[1].csv", 2)):
        files = {"train": given(tmp_path / pattern), "validation": given(tmp_path / "b.csv")}
        assert load_dataset("pairs", data_files=files).num_rows == {"train": count, "validation": 2}
        assert load_dataset("csv", data_files=files).num_rows == {"train": count, "validation": 2}
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\*.csv"):
        load_dataset("csv", data_files=given(tmp_path / "none*.csv"))


def test_files_that_a_card_lists_are_read_alike(tmp_path):
    """As those of a repository, which datasets finds, and pandas would read."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("source,target\nnull,007\n")
    card = "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n    path: data/*.csv\n---\n"
    (tmp_path / "README.md").write_text(card)
    assert load_dataset(tmp_path)["train"].to_list() == [{"source": "null", "target": "007"}]


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_json_that_a_card_lists_is_read_alike(ending, tmp_path):
    """As that of a repository: datasets would make a time of a date, and take the last of two equal names."""
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / f"x.{ending}"
    rows = [{"source": "2020-05-12", "target": ["a", "b"], "more": {"n": 1}}, {"source": None, "target": "c"}]
    path.write_text("\n".join(map(json.dumps, rows)) if ending == "jsonl" else json.dumps(rows, indent=1))
    card = f"---\nconfigs:\n- config_name: default\n  data_files: data/*.{ending}\n---\n"
    (tmp_path / "README.md").write_text(card)
    found, local = load_dataset(tmp_path)["train"].to_list(), load_dataset(path)["train"].to_list()
    assert found == local == [{"source": "2020-05-12", "target": text, "more": {"n": 1}} for text in "ab"]
    for row, message in (
        ('{"source": 7, "target": "a"}', "line 1, column `source`: expected text, not a number: 7"),
        ('{"source": "a", "source": "b"}', "line 1: two fields are called `source`"),
    ):
        path.write_text(row)
        with pytest.raises(InputError, match=message):
            load_dataset(tmp_path)


def test_changed_files_are_read_anew(tmp_path):
    path = tmp_path / "a.csv"
    for target in ("b", "c"):
        path.write_text(f"source,target\na,{target}\n")
        assert load_dataset(path)["train"]["target"][:] == [target]


def test_options_of_pandas_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text(PAIRS.replace(",", ":"))
    assert load_dataset(tmp_path / "a.csv", delimiter=":")["train"].to_list() == ROWS
    with pytest.raises(InputError, match="`skiprows` is not an option of files"):
        load_dataset(tmp_path / "a.csv", skiprows=1)


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch, caplog):
    import datasets

    (tmp_path / "file").touch()
    (tmp_path / "a.csv").write_text(PAIRS)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "file" / "cache")
    assert load_dataset(tmp_path / "a.csv")["train"].to_list() == ROWS
    assert "cannot be written" in caplog.text and "set HF_HOME" in caplog.text


def test_types_of_parquet_that_datasets_does_not_know(tmp_path):
    columns = {
        "source": pa.array(["a"]).cast(pa.string_view()),
        "kind": pa.array(["x"]).dictionary_encode(),
        "more": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    row = {"source": "a", "kind": "x", "more": [{"key": "k", "value": 1}]}
    assert load_dataset(tmp_path / "a.parquet")["train"].to_list() == [row]
    write_rows(tmp_path / "rows", str(tmp_path / "a.parquet"), "source")
    assert pq.read_table(tmp_path / "rows").to_pylist() == [{**row, "source_id": "a.parquet:1"}]
