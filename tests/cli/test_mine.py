from __future__ import annotations

import gzip
import json

import pandas
import pytest

from hf_paraphrase import load_dataset

from .runner import run

JACCARD = ("--encoder", "jaccard", "--min-score", "0.5")


@pytest.fixture
def lines(tmp_path):
    """Twenty questions, each in three wordings that share most words."""
    words = [f"{chr(97 + number)}{chr(98 + number)}{chr(99 + number)}" for number in range(20)]
    texts = [f"{word} a{word} b{word} {end}" for word in words for end in ("one", "two", "three")]
    path = tmp_path / "lines.txt"
    path.write_text("\n\n".join([*texts, "nothing like it at all"]) + "\n")
    return path


def read(folder) -> dict[str, list[dict]]:
    return {
        split: [json.loads(line) for line in (folder / f"{split}.jsonl").read_text().splitlines()]
        for split in ("train", "validation", "test")
    }


def test_pairs_are_written_that_share_no_text_between_splits(lines, tmp_path, capsys):
    assert run("mine", lines, "--output", tmp_path / "mined", *JACCARD) == 0
    rows = read(tmp_path / "mined")
    assert capsys.readouterr().out == "".join(
        f"{tmp_path}/mined/{split}.jsonl: {len(rows[split])} pairs\n" for split in rows
    )
    assert {split: len(found) for split, found in rows.items()} == {"train": 48, "validation": 6, "test": 6}
    texts = {
        split: {text for row in found for text in (row["source"], row["target"])} for split, found in rows.items()
    }
    assert (
        not texts["train"] & texts["validation"] | texts["train"] & texts["test"] | texts["validation"] & texts["test"]
    )
    for row in rows["train"]:
        numbered = lines.read_text().split("\n")
        assert [numbered[number - 1] for number in row["lines"]] == [row["source"], row["target"]]
        assert row["score"] == 0.6


def test_the_corpus_pairs_reads_them(lines, tmp_path):
    assert run("mine", lines, "--output", tmp_path / "mined", *JACCARD) == 0
    rows = read(tmp_path / "mined")
    splits = load_dataset("pairs", data_files={split: tmp_path / f"mined/{split}.jsonl" for split in rows})
    assert [(row["source"], row["target"]) for row in rows["train"]] == [
        tuple(row.values()) for row in splits["train"]
    ]
    assert splits["test"][0] == {"source": rows["test"][0]["source"], "references": [rows["test"][0]["target"]]}


def test_the_seed_decides_and_the_sizes_bound(lines, tmp_path):
    options = (*JACCARD, "--validation-size", 3, "--test-size", 0)
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        assert run("mine", lines, "--output", tmp_path / name, *options, "--seed", seed) == 0
    assert read(tmp_path / "one") == read(tmp_path / "again") != read(tmp_path / "other")
    assert {split: len(found) for split, found in read(tmp_path / "one").items()} == {
        "train": 57,
        "validation": 3,
        "test": 0,
    }


def test_a_gzipped_file_is_read_and_one_written_is_not_replaced(lines, tmp_path, capsys):
    (tmp_path / "lines.txt.gz").write_bytes(gzip.compress(lines.read_bytes()))
    command = ("mine", tmp_path / "lines.txt.gz", "--output", tmp_path / "mined", *JACCARD)
    assert run(*command) == 0
    before = read(tmp_path / "mined")
    assert run(*command) == 2
    assert "train.jsonl" in (error := capsys.readouterr().err) and "--overwrite" in error
    assert run(*command, "--overwrite", "--seed", 1) == 0
    assert read(tmp_path / "mined") != before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\nb\xff\nc\n", "bad.txt is not valid UTF-8 (invalid start byte at byte 4, line 2)"),
        (b"a\n\xc3\n", "bad.txt is not valid UTF-8 (invalid continuation byte at byte 3, line 2)"),
        (b"", "bad.txt: no two of its 0 texts are from 0.5 to 1.0 alike"),
        (b"a b\nc d\n", "bad.txt: no two of its 2 texts are from 0.5 to 1.0 alike"),
    ],
)
def test_errors_name_file_and_line(content, message, tmp_path, capsys):
    (tmp_path / "bad.txt").write_bytes(content)
    assert run("mine", tmp_path / "bad.txt", "--output", tmp_path / "mined", *JACCARD) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "mined").exists()


@pytest.mark.parametrize("name", ["texts.csv", "texts.jsonl", "texts.parquet"])
def test_texts_of_a_table(name, lines, tmp_path, capsys):
    texts = [{"id": "7", "question": text} for text in lines.read_text().split("\n") if text]
    pandas.DataFrame(texts).to_json(tmp_path / "texts.jsonl", orient="records", lines=True)
    pandas.DataFrame(texts).to_csv(tmp_path / "texts.csv", index=False)
    pandas.DataFrame(texts).to_parquet(tmp_path / "texts.parquet")
    command = ("mine", tmp_path / name, "--output", tmp_path / "mined", *JACCARD)
    assert run(*command) == 2
    assert "no column `text` or `source`; there are: id, question" in capsys.readouterr().err
    assert run(*command, "--column", "question") == 0
    first = 2 if name == "texts.csv" else 1
    for row in read(tmp_path / "mined")["train"]:
        assert [texts[line - first]["question"] for line in row["lines"]] == [row["source"], row["target"]]
