from __future__ import annotations

import re

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.retrieval import pairs as pairs_module
from hf_paraphrase.retrieval.pairs import PairMemory, count_each, pair_keys, sentence_keys
from tests.retrieval.corpus import PAIRS


def as_dataset(pairs: list[tuple[str, str]], **columns) -> datasets.Dataset:
    sources, targets = zip(*pairs, strict=True)
    return datasets.Dataset.from_dict({"target": list(targets), "source": list(sources), **columns})


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS,
        tuple(PAIRS),
        iter(PAIRS),
        [list(pair) for pair in PAIRS],
        [{"source": source, "target": target, "id": 1} for source, target in PAIRS],
        as_dataset(PAIRS, id=list(range(len(PAIRS)))),
        as_dataset(PAIRS[::-1]).select(range(len(PAIRS) - 1, -1, -1)),
        as_dataset(PAIRS).with_format("torch"),
        as_dataset(PAIRS).cast_column("source", datasets.Value("large_string")),
    ],
    ids=["list", "tuple", "iterator", "lists", "dicts", "dataset", "permuted", "formatted", "large-strings"],
)
def test_forms_of_pairs(pairs):
    memory = PairMemory(pairs)
    assert memory[range(len(memory))] == PAIRS
    assert [text for texts in memory.read_compared("source") for text in texts] == [source for source, _ in PAIRS]


def test_a_pair_is_kept_once(monkeypatch):
    monkeypatch.setattr(pairs_module, "ROWS_AT_ONCE", 2)
    memory = PairMemory([*PAIRS[:3], *PAIRS[1:], PAIRS[0]])
    assert memory[range(len(memory))] == PAIRS
    first = memory.checksum
    assert memory.add(PAIRS[2:]) == 0
    assert memory.checksum == first
    # The other direction, and other capitals, are pairs of their own.
    more = [PAIRS[0][::-1], ("How do I learn Python", PAIRS[0][1]), PAIRS[0]]
    assert memory.add(more) == 2
    assert memory[range(len(PAIRS), len(memory))] == more[:2]
    assert list(memory.read_compared("source", len(PAIRS))) == [[source for source, _ in more[:2]]]
    assert memory.checksum != first
    assert memory.keys.shape == (2, len(memory)) == (2, len(PAIRS) + 2)


def test_sentences_are_equal_whatever_their_case_and_white_space():
    keys = sentence_keys(["a b", " A  b\n", "\tA B", "ab", "", "straße", "STRASSE"])
    assert keys[0] == keys[1] == keys[2] and keys[5] == keys[6]
    assert len(set(keys.tolist())) == 4


def test_keys_of_pairs_are_those_of_the_two_sentences_in_any_order():
    sources, targets = ["a", "B", "A", "a", ""], ["b", "a", "B", "c", "ab"]
    keys = pair_keys(sentence_keys(sources), sentence_keys(targets))
    assert keys[0] == keys[1] == keys[2]
    assert len(set(keys.tolist())) == 3


def test_counting_keys():
    memory = PairMemory([("a", "b"), ("b", "a"), ("A", "b"), ("c", "d")])
    assert count_each(sentence_keys(["a", "b", "d", "x"]), memory.keys).tolist() == [3, 3, 1, 0]
    memory.add([("d", "c")])
    assert count_each(sentence_keys(["d"]), memory.keys).tolist() == [2]
    assert count_each(np.empty((2, 0), np.uint64), memory.keys).shape == (2, 0)


def test_pairs_of_a_file_stay_there(tmp_path):
    PairMemory(PAIRS).write(tmp_path / "pairs.parquet")
    memory = PairMemory.read(tmp_path / "pairs.parquet")
    assert memory[range(len(PAIRS))] == PAIRS
    assert memory.dataset.cache_files
    memory.add([("one", "more")])
    assert memory.dataset.cache_files
    assert memory[[0, len(PAIRS)]] == [PAIRS[0], ("one", "more")]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("how", "is of type str"),
        ({"source": ["a"], "target": ["b"]}, "is of type dict"),
        (3, "is of type int"),
        ([("a", "b"), "cde"], "row 1: 'cde' is not a (source, target) pair"),
        ([("a", "b", "c")], "row 0: ('a', 'b', 'c') is not a (source, target) pair"),
        ([{"source": "a"}], "row 0"),
        ([None], "row 0: None is no"),
        ([("a", "b"), ("a", None)], "row 1: the target is of type NoneType"),
        ([("a", "b"), (" ", "b")], "row 1: `source` is blank"),
        ([("a\ud800", "b")], "row 0: the source 'a\\ud800' is not valid Unicode"),
        (
            datasets.Dataset.from_dict({"source": ["a", "b"], "target": ["a", None]}),
            "row 1: `target` is blank",
        ),
        (datasets.Dataset.from_dict({"source": ["a"], "references": [["b"]]}), "no column target, only source, ref"),
        (datasets.Dataset.from_dict({"source": ["a"], "target": [["b"]]}), "the column target of `pairs` has List"),
        (datasets.DatasetDict(train=as_dataset(PAIRS)), "has several splits (train)"),
    ],
)
def test_what_is_no_pair_is_named(pairs, message):
    with pytest.raises(InputError, match=re.escape(message)):
        PairMemory(pairs)


def test_a_failed_addition_adds_nothing():
    memory = PairMemory(PAIRS)
    with pytest.raises(InputError):
        memory.add([("good", "pair"), ("bad", "")])
    assert len(memory) == memory.keys.shape[1] == len(PAIRS)


def write_repeated(path, text: str, rows: int) -> None:
    """A small file of one text, in every row of both columns."""
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [text])
    pq.write_table(pa.table({"source": column, "target": column}), path, compression="zstd")


def test_a_small_file_of_millions_of_pairs_is_refused_at_once(tmp_path, monkeypatch):
    write_repeated(tmp_path / "pairs.parquet", "the cat sat", 10_000_001)
    assert (tmp_path / "pairs.parquet").stat().st_size < 9_000_000
    monkeypatch.setattr(datasets.Dataset, "from_parquet", None)
    with pytest.raises(InputError, match="the number of pairs is 10,000,001, .*HF_PARAPHRASE_MAX_RETRIEVER_PAIRS"):
        PairMemory.read(tmp_path / "pairs.parquet")


def test_a_small_file_of_large_texts_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    write_repeated(tmp_path / "pairs.parquet", "cat " * 1_000_000, 2_000)
    assert (tmp_path / "pairs.parquet").stat().st_size < 100_000
    monkeypatch.setattr(datasets.Dataset, "from_parquet", None)
    with pytest.raises(InputError, match="once unpacked is 16,000,000,000,.*HF_PARAPHRASE_MAX_RETRIEVER_BYTES"):
        PairMemory.read(tmp_path / "pairs.parquet")


def test_the_bounds_can_be_raised(tmp_path, monkeypatch):
    write_repeated(tmp_path / "pairs.parquet", "the cat sat", 30)
    monkeypatch.setenv("HF_PARAPHRASE_MAX_RETRIEVER_PAIRS", "29")
    with pytest.raises(InputError, match="RETRIEVER_PAIRS"):
        PairMemory.read(tmp_path / "pairs.parquet")
    monkeypatch.setenv("HF_PARAPHRASE_MAX_RETRIEVER_PAIRS", "30")
    monkeypatch.setenv("HF_PARAPHRASE_MAX_RETRIEVER_BYTES", str(30 * 2 * len("the cat sat")))
    assert len(PairMemory.read(tmp_path / "pairs.parquet")) == 1
