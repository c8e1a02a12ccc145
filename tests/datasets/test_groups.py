from __future__ import annotations

import json

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import load_dataset, make_builder
from hf_paraphrase.datasets.pair_filter import ComparedSentence, word_overlap

GROUPS = [[f"alpha {number}", f"beta {number}", f"gamma {number}"] for number in range(40)]


def write_lines(path, groups):
    path.write_text("".join("\t".join(group) + "\n" for group in groups), encoding="utf-8")
    return path


def sentences_of(rows):
    columns = [rows[name] for name in ("source", "target") if name in rows.column_names]
    references = rows["references"] if "references" in rows.column_names else []
    return {text.casefold() for column in [*columns, *references] for text in column}


@pytest.mark.parametrize("kind", ["tsv", "txt", "jsonl", "parquet"])
def test_every_format_gives_every_pair_in_both_orders(kind, tmp_path):
    path = tmp_path / f"groups.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps({"texts": group, "id": 1}) + "\n" for group in GROUPS))
    elif kind == "parquet":
        pq.write_table(pa.table({"id": range(40), "texts": GROUPS}), path)
    else:
        write_lines(path, GROUPS)
    rows = load_dataset("groups", data_files={"train": path}, group_column="texts", max_held_out=0.0)["train"]
    pairs = [(row["source"], row["target"]) for row in rows]
    assert pairs == [
        (group[one], group[other])
        for group in GROUPS
        for one, other in ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1))
    ]
    groups = rows["group"][:]
    assert len(set(groups)) == 40
    assert groups == [number for number in groups[::6] for _ in range(6)]


def test_one_set_of_files_is_split_by_group_without_leaks(tmp_path):
    # Links through sentences in another case, directly and through a third group.
    linked = [["First.", "Alpha 0"], ["first.", "second"], ["SECOND", "gamma 1"]]
    path = write_lines(tmp_path / "groups.tsv", [*GROUPS, *linked])
    splits = load_dataset("groups", data_files=path, validation_size=8, test_size=8, max_held_out=0.5)
    assert splits["validation"].num_rows == splits["test"].num_rows == 8
    seen = {split: sentences_of(rows) for split, rows in splits.items()}
    assert not seen["train"] & (seen["validation"] | seen["test"])
    assert not seen["validation"] & seen["test"]
    held_out = seen["validation"] | seen["test"]
    for members in ([*GROUPS[0], *linked[0]], [*linked[1], *linked[2], *GROUPS[1]]):
        assert len({text.casefold() in held_out for text in members}) <= 2


def test_linked_groups_share_a_split(tmp_path):
    chain = [[f"link {number}", f"Link {number + 1}"] for number in range(6)]
    for seed in range(8):
        path = write_lines(tmp_path / f"{seed}.tsv", [*GROUPS, *chain])
        splits = load_dataset("groups", data_files=path, validation_size=10, test_size=10, max_held_out=0.6, seed=seed)
        there = [split for split, rows in splits.items() if any("link" in text for text in sentences_of(rows))]
        assert len(there) == 1


def test_given_splits_keep_test_whole_and_drop_what_it_shares(tmp_path):
    files = {
        "train": [["a one", "a two"], ["B ONE", "b two"], ["c one", "c two"], ["d one", "d two"]],
        "validation": [["b one", "b three"], ["C ONE", "c three"]],
        "test": [["c one", "c four"], ["e one", "e two"]],
    }
    paths = {split: write_lines(tmp_path / f"{split}.tsv", groups) for split, groups in files.items()}
    for streaming in (False, True):
        splits = load_dataset("groups", data_files=paths, streaming=streaming)
        texts = {split: {row["source"] for row in rows} for split, rows in splits.items()}
        assert texts["train"] == {"a one", "a two", "d one", "d two"}
        assert len(texts["validation"]) == 1 and texts["validation"] < {"b one", "b three"}
        assert len(texts["test"]) == 2


def test_train_files_of_given_splits_are_streamed(tmp_path):
    train, test = tmp_path / "train.tsv", write_lines(tmp_path / "test.tsv", [["x", "y"]])
    # Further on than one block of the reader, the file is not text.
    train.write_bytes(b"one\ttwo\n" * 200_000 + b"\xff\n" * 200_000)
    stream = load_dataset("groups", data_files={"train": train, "test": test}, streaming=True)["train"]
    assert isinstance(stream, datasets.IterableDataset)
    assert [row["source"] for row in stream.take(2)] == ["one", "two"]


def test_a_group_has_its_number_whoever_reads_it(tmp_path):
    first = write_lines(tmp_path / "a.tsv", GROUPS[:20])
    second = write_lines(tmp_path / "b.tsv", [group[::-1] for group in reversed(GROUPS)])
    numbers = []
    for files, processes in (([first, second], None), ([second], None), ([second, first], 2)):
        rows = load_dataset(
            "groups", data_files={"train": files, "test": first}, num_proc=processes, test_size=len(numbers)
        )["train"]
        numbers.append({row["source"]: row["group"] for row in rows})
    assert len(numbers[0]) == 60
    assert numbers[0] == numbers[1] == numbers[2]


def test_test_rows_have_other_sentences_as_references(tmp_path):
    path = write_lines(tmp_path / "test.tsv", [["a", "b", "A", " c  d "], ["e", "f"]])
    rows = load_dataset("groups", data_files={"test": path}, split="test")
    assert rows.column_names == ["source", "references"]
    for row, group in zip(rows, ({"a", "b", "c d"}, {"e", "f"}), strict=True):
        assert {row["source"], *row["references"]} == group
        assert len(row["references"]) == len(group) - 1
    (row, _) = load_dataset("groups", data_files={"test": path}, split="test", max_references=1)
    assert len(row["references"]) == 1


def kept(tmp_path, *sentences, **arguments):
    """The pairs of a group that the arguments keep."""
    path = write_lines(tmp_path / "group.tsv", [sentences, ["other", "words"]])
    rows = make_builder("groups", data_files={"train": path}, max_held_out=0.0, **arguments).as_streaming_dataset()
    pairs = {frozenset((row["source"], row["target"])) for row in rows["train"]}
    return pairs - {frozenset(("other", "words"))}


@pytest.mark.parametrize(
    ("arguments", "first", "alike", "unlike"),
    [
        ({"min_overlap": 0.5}, "a b c d", "a b e f", "a e f g"),
        ({"max_overlap": 0.5}, "a b c d", "a b e f", "a, B, c e!"),
        ({"max_length_ratio": 1.5}, "a b", "c d e", "c d e f"),
        ({"min_words": 2}, "a b", "c d", "c!"),
        ({"max_words": 2}, "a b", "c d", "c d e"),
        ({"same_numbers": True}, "four for 1,500 of them", "1500 for 4 of us", "three for 1,500 of them"),
        ({"same_numbers": True}, "it was twice", "one did it twice", "it was 2.5"),
        ({"same_names": True}, "I saw Mr. Smith's dog", "Smith has a dog, I see", "I saw Mr. Jones's dog"),
        ({"same_names": True}, "Yes. The dog is in Rome", "A dog lives in rome", "The dog is in Paris"),
        ({"same_pronouns": True}, "I'll give her mine", "My gift is for her", "You'll give her mine"),
        ({"same_pronouns": True}, "it rains", "that rains", "he rains"),
        ({"same_polarity": True}, "he isn't here", "he is not here", "he is here"),
        ({"same_polarity": True}, "is it so?", 'who says: "so?"', "it is so."),
    ],
)
def test_each_filter(arguments, first, alike, unlike, tmp_path):
    assert kept(tmp_path, first, alike, **arguments) == {frozenset((first, alike))}
    assert kept(tmp_path, first, unlike, **arguments) == set()
    assert kept(tmp_path, first, unlike) == {frozenset((first, unlike))}


def test_the_others_of_a_group_stay(tmp_path):
    assert kept(tmp_path, "a b", "a c", "x y", min_overlap=0.5) == {frozenset(("a b", "a c"))}


def test_overlap_is_the_f1_of_bags():
    assert word_overlap(ComparedSentence("The cat, the dog."), ComparedSentence("the cat")) == pytest.approx(
        2 * 2 / (4 + 2)
    )
    assert word_overlap(ComparedSentence("!"), ComparedSentence("?")) == 0


def test_filtered_is_what_its_docstring_says(tmp_path):
    """The faults that readers refuse, and pairs that are nearly the same or hardly alike."""
    source = "Tom did not meet his four friends in Paris last week."
    good = "Last week in Paris Tom failed to see his four friends, and did not write."
    for changed in (("four", "three"), ("Paris", "London"), ("his", "her"), ("did not write", "wrote"), (".", "?")):
        assert kept(tmp_path, source, good.replace(*changed), name="filtered") == set()
    assert kept(tmp_path, source, source.replace("last", "this"), name="filtered") == set()
    assert kept(tmp_path, source, good, name="filtered") == {frozenset((source, good))}


def test_groups_without_a_pair_are_in_no_split(tmp_path):
    path = write_lines(tmp_path / "groups.tsv", [*([f"x{number}", "y"] for number in range(5)), *GROUPS])
    splits = load_dataset("groups", data_files=path, min_overlap=0.4, validation_size=4, test_size=4)
    assert not any(text.startswith(("x", "y")) for rows in splits.values() for text in sentences_of(rows))
    assert splits["validation"].num_rows == splits["test"].num_rows == 2  # a tenth of the 40 that are left


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"one sentence\n", "line 1, has fewer than two different sentences; expected"),
        ("a.tsv", b"same\tSAME\n", "line 1, has fewer than two different sentences"),
        ("a.jsonl", b'{"sentences": "a"}\n', "line 1, has fewer than two different sentences"),
        ("a.jsonl", b'{"sentences": ["a", 2]}\n', "line 1, has fewer than two different sentences"),
        ("a.parquet", b"PAR1 no", "a.parquet.*Parquet"),
        ("a.csv", b"a,b\n", "ends in .csv; expected are .tsv or .txt files"),
    ],
)
def test_other_files(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_dataset("groups", data_files=tmp_path / name)


def test_a_missing_column_is_named(tmp_path):
    pq.write_table(pa.table({"texts": GROUPS}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="has no column 'sentences'; it has: texts"):
        load_dataset("groups", data_files=tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`data_files` is missing; expected"),
        (
            {"data_files": {"dev": "groups.tsv"}},
            "`data_files` has the split 'dev'; there are: train",
        ),
        ({"data_files": "groups.tsv", "min_overlap": 2.0}, "`min_overlap` must be at least 0 and at most 1"),
        ({"data_files": "groups.tsv", "min_overlap": 0.9, "max_overlap": 0.3}, "`min_overlap` must not exceed"),
        ({"data_files": "groups.tsv", "min_words": 9, "max_words": 3}, "`min_words` must not exceed"),
        ({"data_files": "groups.tsv", "max_length_ratio": 0.5}, "`max_length_ratio` must be at least 1"),
        ({"data_files": "groups.tsv", "same_names": 1}, "`same_names` must be bool"),
    ],
)
def test_arguments_are_checked(arguments, message, tmp_path):
    write_lines(tmp_path / "groups.tsv", GROUPS)
    with pytest.raises(InputError, match=message):
        load_dataset("groups", data_dir=tmp_path, **arguments)


def test_relative_files_start_at_the_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    write_lines(tmp_path / "sub" / "groups.tsv", GROUPS)
    rows = load_dataset("groups", data_dir=tmp_path, data_files={"train": "sub/groups.tsv", "test": "sub/groups.tsv"})
    assert rows["test"].num_rows == 40
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "groups.tsv")):
        load_dataset("groups", data_dir=tmp_path, data_files="groups.tsv")
