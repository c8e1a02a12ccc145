from __future__ import annotations

import gzip
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import load_dataset, make_builder


def lines(start: int, count: int) -> str:
    return "".join(f"sentence number {number} is here .\n" for number in range(start, start + count))


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "books_large_p1.txt").write_text(lines(0, 1005), encoding="utf-8")
    (folder / "books_large_p2.txt").write_text(lines(2000, 1000), encoding="utf-8")
    return folder


def load(folder, name=None, **kwargs):
    settings = {"lines_per_document": 10, "validation_fraction": 0.1, "test_fraction": 0.2}
    return load_dataset("books", name, data_dir=folder, **{**settings, **kwargs})


def documents(folder, **kwargs) -> dict[str, list[list[str]]]:
    return {name: split["sentences"][:] for name, split in load(folder, **kwargs).items()}


def test_documents_have_a_fixed_number_of_lines(corpus):
    splits = load(corpus)
    assert splits["train"].column_names == ["title", "author", "sentences"]
    found = [row for split in splits.values() for row in split]
    assert len(found) == 201 and {row["title"] for row in found} == {row["author"] for row in found} == {None}
    # The last document of a file is what is left; none goes on in the next file.
    assert sorted(len(row["sentences"]) for row in found) == [5] + [10] * 200
    assert sorted(line for row in found for line in row["sentences"]) == sorted(
        (lines(0, 1005) + lines(2000, 1000)).splitlines()
    )


def test_splits_have_their_shares_and_depend_on_seed_and_text_alone(corpus):
    found = documents(corpus)
    assert 120 < len(found["train"]) < 160 and 28 < len(found["test"]) < 55 and 8 < len(found["validation"]) < 35
    assert documents(corpus, seed=1)["test"] != found["test"] == documents(corpus)["test"]
    (corpus / "books_large_p1.txt").rename(corpus / "z.txt")
    again = documents(corpus)
    assert {name: sorted(rows) for name, rows in again.items()} == {name: sorted(rows) for name, rows in found.items()}


def test_the_same_document_twice_is_in_one_split(corpus):
    (corpus / "again.txt").write_text(lines(0, 1000), encoding="utf-8")
    splits = {name: {tuple(row) for row in rows} for name, rows in documents(corpus).items()}
    assert not splits["train"] & splits["test"] and not splits["train"] & splits["validation"]


def test_pairs(corpus):
    rows = load(corpus, "pairs", test_fraction=0.0, validation_fraction=0.0)
    assert list(rows) == ["train"] and len(rows["train"]) == 4 + 200 * 9
    assert rows["train"][0] == {
        "source": "sentence number 0 is here .",
        "target": "sentence number 1 is here . sentence number 2 is here . sentence number 3 is here .",
    }


def test_gzip_blank_lines_and_white_space(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b" one two . \r\n\r\n \t\r\n\tthree .\r\nfour ."))
    assert documents(tmp_path, test_fraction=0.0, validation_fraction=0.0) == {
        "train": [["one two .", "three .", "four ."]]
    }


def test_several_processes_and_streaming_give_the_same_rows(corpus):
    alone = documents(corpus)
    assert documents(corpus, num_proc=2) == alone
    builder = make_builder("books", data_dir=corpus, lines_per_document=10, validation_fraction=0.1, test_fraction=0.2)
    streamed = {name: [row["sentences"] for row in split] for name, split in builder.as_streaming_dataset().items()}
    assert streamed == alone


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "books_large_p1.txt"
    path.touch()
    builder = make_builder("books", data_dir=tmp_path, test_fraction=0.0, lines_per_document=100)

    def peak(count: int) -> int:
        path.write_text(lines(0, 1000) * count, encoding="utf-8")
        tracemalloc.start()
        rows = sum(1 for _ in builder.generate_rows([path], "train"))
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert rows > 0
        return highest

    assert peak(200) < 2 * peak(40) + (1 << 20)


def test_damaged_lines_and_missing_files(corpus, tmp_path):
    (corpus / "bad.txt").write_bytes(b"a \xff line\n" * 50 + b"with \0 and \xff\n")
    with pytest.raises(InputError, match="51 of 2,056 lines are bad.*bad.txt, line 1, is not UTF-8.*books_large_p1"):
        load(corpus)
    assert sum(map(len, documents(corpus, max_bad_fraction=0.05).values())) == 201
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no such file.*books_large_p1.txt.*BookCorpus"):
        load(tmp_path / "empty")
    with pytest.raises(InputError, match="`lines_per_document` must be at least 2"):
        load(corpus, lines_per_document=1)
    with pytest.raises(InputError, match="`test_fraction` must be at least 0 and at most 1"):
        load(corpus, test_fraction=2.0)
    with pytest.raises(InputError, match="`validation_fraction` and `test_fraction` leave nothing to train on"):
        load(corpus, test_fraction=0.6, validation_fraction=0.5)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("bytes")


@settings(max_examples=60, deadline=None)
@given(
    content=st.binary(max_size=200)
    | st.lists(st.sampled_from([b"a line .\n", b"\n", b"\r", b" ", b"\xff", b"\0", b"\xe2\x80\xa8"])).map(b"".join)
)
def test_any_bytes_are_read_or_refused(scratch, content):
    (scratch / "a.txt").write_bytes(content)
    builder = make_builder("books", data_dir=scratch, lines_per_document=3)
    try:
        for split in builder.as_streaming_dataset().values():
            for row in split:
                assert 1 <= len(row["sentences"]) <= 3 and all(sentence.split() for sentence in row["sentences"])
    except InputError as error:
        assert str(scratch / "a.txt") in str(error)
