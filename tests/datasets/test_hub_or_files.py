from __future__ import annotations

import csv
import json
import logging

import datasets
import pytest
from datasets import ClassLabel, Dataset, DatasetDict

from hf_paraphrase import load_dataset
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import hub_or_files

from .corpora import ARGUMENTS, sentence, write_corpus

COLUMNS = {"source": "question1", "target": "question2"}


def duplicates(count: int = 60) -> Dataset:
    """Chains of three questions, each the duplicate of the next."""
    rows = [
        {"id": number, "question1": sentence(3 * number + place), "question2": sentence(3 * number + (place + 1) % 3)}
        for number in range(count)
        for place in range(3)
    ]
    return Dataset.from_list(rows)


def texts_of(rows) -> set[str]:
    found = set()
    for row in rows:
        for value in row.values():
            found.update([value] if isinstance(value, str) else value if isinstance(value, list) else [])
    return {text.casefold() for text in found}


@pytest.fixture
def saved(tmp_path):
    """Reads splits back that were written to a folder."""

    def save_and_load(splits: DatasetDict) -> DatasetDict:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        splits.save_to_disk(folder)
        return load_dataset(str(folder))

    return save_and_load


def write(kind: str, folder):
    rows, path = duplicates(), folder / f"questions.{kind}"
    if kind == "parquet":
        rows.to_parquet(path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows.column_names, delimiter="\t" if kind == "tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "tsv", "jsonl"])
def test_files_of_all_kinds_are_read_alike(kind, tmp_path):
    splits = load_dataset(str(write(kind, tmp_path)), columns=COLUMNS)
    expected = load_dataset(str(write("parquet", tmp_path)), columns=COLUMNS)
    assert list(splits) == ["train", "validation", "test"]
    assert {split: rows.to_list() for split, rows in splits.items()} == {
        split: rows.to_list() for split, rows in expected.items()
    }
    assert splits["train"].column_names == splits["validation"].column_names == ["source", "target"]
    assert splits["test"].column_names == ["source", "references"]


def test_made_splits_share_no_text(tmp_path):
    splits = load_dataset(str(write("parquet", tmp_path)), columns=COLUMNS)
    texts = {split: texts_of(rows) for split, rows in splits.items()}
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        assert texts[one].isdisjoint(texts[other])
    assert splits["train"].num_rows + splits["validation"].num_rows + splits["test"].num_rows == 180
    assert splits["validation"].num_rows == splits["test"].num_rows == 18


def test_what_is_linked_to_much_is_trained_on(saved):
    """A chain through most of the rows: drawn for a split it would be cut, and what is cut off lost or known."""
    chain = [{"source": sentence(number), "target": sentence(number + 1)} for number in range(100)]
    lone = [{"source": sentence(1000 + 2 * number), "target": sentence(1001 + 2 * number)} for number in range(100)]
    folder = DatasetDict(train=Dataset.from_list(chain + lone))
    for order in (folder, folder.shuffle(seed=1)):
        splits = saved(order)
        assert {len(splits["validation"]), len(splits["test"])} == {20}
        assert len(splits["train"]) == 160
        assert texts_of(splits["train"]).isdisjoint(texts_of(splits["validation"]) | texts_of(splits["test"]))
        assert texts_of(chain) < texts_of(splits["train"])


def test_no_row_is_lost_and_no_test_source_lacks_a_target(saved):
    """Groups of five do not fill a split exactly."""
    rows = [
        {"source": sentence(number), "target": f"{sentence(number)} {place}"}
        for number in range(42)
        for place in "abcde"
    ]
    splits = saved(DatasetDict(train=Dataset.from_list(rows)))
    assert all(len(row["references"]) == 5 for row in splits["test"])
    assert len(splits["train"]) + len(splits["validation"]) + 5 * len(splits["test"]) == len(rows)


def test_rows_are_cached_whatever_the_seed_of_hashes(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        hub_or_files, "read_table_files", lambda files, texts, *others: asked.append(texts) or DatasetDict()
    )
    hub_or_files.read_splits(str(write("csv", tmp_path)))
    assert asked == [sorted(asked[0])] and len(asked[0]) > 5


def test_all_targets_of_a_made_test_source_are_references(saved):
    rows = [
        {"source": sentence(number), "target": f"{sentence(number)} {place}"} for number in range(40) for place in "ab"
    ]
    test = saved(DatasetDict(train=Dataset.from_list(rows)))["test"]
    assert all(row["references"] == [f"{row['source']} a", f"{row['source']} b"] for row in test)
    assert len(test) == 4


def test_splits_that_there_are_stay_and_only_the_missing_one_is_made(saved):
    test = Dataset.from_list([{"source": "a b", "target": "c"}] * 3)
    pairs = duplicates().select_columns(["question1", "question2"]).rename_columns({v: k for k, v in COLUMNS.items()})
    splits = saved(DatasetDict(train=pairs, test=test))
    assert list(splits) == ["train", "validation", "test"]
    assert splits["test"].to_list() == test.to_list()
    assert splits["validation"].num_rows == 18 and splits["train"].num_rows == 162
    splits = saved(DatasetDict(train=pairs, dev=test, test=test))
    assert splits["validation"].to_list() == test.to_list() and splits["train"].num_rows == 180


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1], [False, True]])
def test_labels_become_classes(labels, saved):
    rows = [
        {"sentence1": sentence(2 * n), "sentence2": sentence(2 * n + 1), "label": labels[n % 2]} for n in range(50)
    ]
    splits = saved(DatasetDict(train=Dataset.from_list(rows)))
    assert {split: rows.num_rows for split, rows in splits.items()} == {"train": 40, "validation": 5, "test": 5}
    expected = ClassLabel(names=[str(label) for label in labels])
    assert all(rows.features["label"] == expected for rows in splits.values())
    known = {row["sentence1"]: row["label"] for row in rows}
    for row in splits["test"]:
        assert expected.int2str(row["label"]) == str(known[row["sentence1"]])


def test_a_text_column_with_labels(tmp_path):
    rows = [{"review": sentence(n % 25), "stars": n % 3} for n in range(50)]
    Dataset.from_list(rows).to_csv(tmp_path / "reviews.csv")
    splits = load_dataset(str(tmp_path / "reviews.csv"), columns={"text": "review", "label": "stars"})
    assert splits["train"].features["label"].names == ["0", "1", "2"]
    # A review stands there twice.
    assert not set(splits["train"]["text"]) & {*splits["validation"]["text"], *splits["test"]["text"]}


def test_rows_that_lack_a_text_or_label_are_left_out_and_counted(caplog, saved):
    rows = {"text": ["a", None, " ", "d", "e"], "label": [0, 1, 1, -1, 1]}
    features = datasets.Features({"text": datasets.Value("string"), "label": ClassLabel(names=["x", "y"])})
    with caplog.at_level(logging.WARNING):
        splits = saved(DatasetDict(train=Dataset.from_dict(rows, features)))
    assert splits["train"].to_list() == [{"text": "a", "label": 0}, {"text": "e", "label": 1}]
    assert "left out 3 of 5 rows, which lack a text or a label" in caplog.text


def test_without_columns_of_ours_everything_stays(tmp_path):
    splits = load_dataset(str(write("parquet", tmp_path)))
    assert list(splits) == ["train"] and splits["train"].to_list() == duplicates().to_list()


def test_streaming_keeps_nothing(tmp_path, cache):
    splits = load_dataset(str(write("parquet", tmp_path)), columns=COLUMNS, streaming=True)
    assert isinstance(splits, datasets.IterableDatasetDict) and list(splits) == ["train"]
    first = duplicates()[0]
    assert list(splits["train"].take(1)) == [{"source": first["question1"], "target": first["question2"]}]
    assert not list(cache.rglob("*.arrow"))
    rows = load_dataset(str(write("csv", tmp_path)), split="train", streaming=True)
    assert next(iter(rows)) == {**first, "id": "0"}  # a cell is text
    with pytest.raises(InputError, match=r"of a streamed split no part can be named, as train\[:5\] does"):
        load_dataset(str(write("csv", tmp_path)), split="train[:5]", streaming=True)


@pytest.mark.parametrize("corpus", ["synthetic_questions", "mscoco", "quora", "ppdb"])
def test_our_corpora_stream_too(corpus, tmp_path, cache):
    where = {"data_dir": write_corpus(corpus, None, tmp_path)} if corpus != "synthetic_questions" else {}
    arguments = {**where, **ARGUMENTS.get(corpus, {})}
    streamed = load_dataset(corpus, streaming=True, **arguments)
    assert isinstance(streamed, datasets.IterableDatasetDict)
    assert not list(cache.glob(f"{corpus}/**/*.arrow"))
    found = {split: list(rows) for split, rows in streamed.items()}
    assert found == {split: rows.to_list() for split, rows in load_dataset(corpus, **arguments).items()}


def test_a_split_or_a_part_of_one(tmp_path):
    path = str(write("parquet", tmp_path))
    whole = load_dataset(path, columns=COLUMNS)
    assert load_dataset(path, columns=COLUMNS, split="test").to_list() == whole["test"].to_list()
    for part, places in (("[10:30]", range(10, 30)), ("[:25%]", range(36))):
        found = load_dataset(path, columns=COLUMNS, split=f"train{part}")
        assert found.to_list() == whole["train"].select(places).to_list()


def test_a_reader_by_name_and_a_folder_of_files(tmp_path):
    (tmp_path / "folder").mkdir()
    path = write("parquet", tmp_path / "folder")
    expected = load_dataset(str(path), columns=COLUMNS)["test"].to_list()
    assert load_dataset("parquet", data_files=str(path), columns=COLUMNS)["test"].to_list() == expected
    assert load_dataset(str(tmp_path / "folder"), columns=COLUMNS)["test"].to_list() == expected


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"source": "question"}, r"has no column 'question'; it has: id, question1, question2"),
        ({"source": "question1", "target": "question1"}, "`columns` gives each new name a column of its own"),
        ({}, "`columns` gives each"),
        ("question1", "`columns` gives each"),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_columns_are_checked(columns, message, streaming, tmp_path):
    with pytest.raises(InputError, match=message):
        load_dataset(str(write("csv", tmp_path)), columns=columns, streaming=streaming)


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "notes.docx").write_text("x")
    with pytest.raises(InputError, match=r"notes.docx ends in .docx; readable are: .csv, .tsv"):
        load_dataset(str(tmp_path / "notes.docx"))
    (tmp_path / "broken.parquet").write_text("x")
    with pytest.raises(InputError, match=r"broken.parquet is not a Parquet file that can be read"):
        load_dataset(str(tmp_path / "broken.parquet"))
    with pytest.raises(InputError, match="nobody/nothing is neither a data set folder nor .*; HF_HUB_OFFLINE"):
        load_dataset("nobody/nothing")
    with pytest.raises(InputError, match="unknown split `tests`; did you mean test"):
        load_dataset(str(write("csv", tmp_path)), columns=COLUMNS, split="tests")
    with pytest.raises(InputError, match="`columns` is only for datasets from outside this package"):
        load_dataset("synthetic_questions", columns=COLUMNS)
