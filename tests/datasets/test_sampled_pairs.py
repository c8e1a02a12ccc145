from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import load_dataset, make_builder, sampled_pairs
from hf_paraphrase.datasets.sampled_pairs import PairStore, TextIndex, hash_texts
from tests.datasets.corpora import ppdb, sentence, wikianswers, write


def texts(*values: str) -> pa.Array:
    return pa.array(values, pa.string())


def test_hashes_are_the_same_everywhere():
    # A change here changes what every published figure was measured on.
    assert hash_texts(texts("", "phrase", "ünïcode"), 42).tolist() == HASHES
    assert hash_texts(texts("phrase"), -1).tolist() != hash_texts(texts("phrase"), 42).tolist()


HASHES = [12693748630217917650, 2159381243069656057, 9517453336159056858]


@pytest.mark.parametrize("rows_at_once", [1, 7, 1000])
def test_store_gives_all_pairs_in_the_order_of_their_keys(rows_at_once, tmp_path, monkeypatch):
    monkeypatch.setattr(sampled_pairs, "ROWS_AT_ONCE", rows_at_once)
    keys = np.random.default_rng(0).integers(0, 2**64, 500, dtype=np.uint64)
    store = PairStore(tmp_path)
    for part in np.array_split(keys, 9):
        store.add(part, texts(*(f"s{key}" for key in part)), texts(*(f"t{key}" for key in part)))
    store.close()
    rows = [row for table in store.tables() for row in table.to_pylist()]
    assert rows == [{"key": key, "source": f"s{key}", "target": f"t{key}"} for key in sorted(keys.tolist())]
    assert store.count_keys() == 500


def test_store_groups_by_source(tmp_path):
    store = PairStore(tmp_path)
    for source, target in (("a", "x"), ("b", "y"), ("a", "z"), ("a", "x")):
        store.add(hash_texts(texts(source), 0), texts(source), texts(target))
    store.close()
    assert dict(store.groups()) == {"a": ["x", "z"], "b": ["y"]}


def test_text_index(tmp_path):
    store = PairStore(tmp_path)
    store.add(hash_texts(texts("be", "go", "be"), 0), texts("be", "go", "be"), texts("is", "went", "are"))
    store.close()
    index = TextIndex(store, tmp_path / "index")
    assert index.find(texts("go", "be", "do", "go")).to_pylist() == ["went", "are", None, "went"]
    assert index.find(texts()).to_pylist() == []


def test_an_empty_text_index(tmp_path):
    store = PairStore(tmp_path)
    store.close()
    assert TextIndex(store, tmp_path / "index").find(texts("go")).to_pylist() == [None]


def test_ppdb_leaves_out_digits_slots_and_repetitions(tmp_path):
    splits = load_dataset("ppdb", data_dir=write(tmp_path, ppdb()), max_held_out=0.0)
    assert list(splits) == ["train"]
    pairs = list(zip(splits["train"]["source"], splits["train"]["target"], strict=True))
    expected = {
        (source, target)
        for line in ppdb()["ppdb-2.0-l-all"]
        for _, source, target, *_ in [line.split(" ||| ")]
        if source != target and not any(mark.isdigit() or mark == "[" for mark in source + target)
    }
    # Superscripts are not decimal digits, but the line has one of another script.
    expected = {pair for pair in expected if "٣" not in pair[0]}
    assert len(pairs) == len(set(pairs)) and set(pairs) == expected


def test_ppdb_holds_out_whole_sources(tmp_path):
    splits = load_dataset("ppdb", data_dir=write(tmp_path, ppdb()), max_held_out=0.3, max_references=4)
    held_out = {*splits["validation"]["source"], *splits["test"]["source"]}
    assert not held_out & {*splits["train"]["source"], *splits["train"]["target"]}
    assert max(map(len, splits["test"]["references"])) == 4
    assert all(len(set(references)) == len(references) for references in splits["test"]["references"])


def test_ppdb_chooses_files(tmp_path):
    lines = {name: [f"[X] ||| {name} {mark} ||| y {mark} ||| f ||| a ||| e" for mark in "abcdefgh"] for name in "pqrs"}
    names = {"p": "s-all", "q": "xl-lexical", "r": "xl-phrasal", "s": "l-all"}
    folder = write(tmp_path, {f"ppdb-2.0-{names[name]}": rows for name, rows in lines.items()})

    def read(**kwargs) -> set[str]:
        rows = load_dataset("ppdb", data_dir=folder, split="train", max_held_out=0.0, **kwargs)
        return {source[0] for source in rows["source"]}

    assert read() == {"q", "r"}
    assert read(part="lexical") == {"q"}
    assert read(size="s") == {"p"}
    with pytest.raises(FileNotFoundError, match="ppdb-2.0-m-PART"):
        read(size="m")
    with pytest.raises(InputError, match="`size` must be one of 's', 'm', 'l'"):
        read(size="huge")


def test_wikianswers_references_are_the_cluster(tmp_path):
    files = wikianswers()
    splits = load_dataset("wikianswers", data_dir=write(tmp_path, files), max_held_out=0.2)
    partners = defaultdict(set)
    for line in files["word_alignments.txt"]:
        first, second, _ = line.split("\t")
        partners[first].add(second)
    assert len(splits["test"]) > 20
    for row in splits["test"]:
        assert set(row["references"]) == partners[row["source"]]


def test_wikianswers_pairs_in_one_direction(tmp_path):
    # The one source of these pairs is a reference of every target.
    lines = [f"{sentence(0)}\t{sentence(number)}" for number in range(1, 60)]
    rows = load_dataset(
        "wikianswers", data_dir=write(tmp_path, {"word_alignments.txt": lines}), max_held_out=0.5, split="test"
    )
    assert len(rows) > 10
    assert {tuple(row["references"]) for row in rows if row["source"] != sentence(0)} == {(sentence(0),)}


def test_wikianswers_train_size(tmp_path):
    folder = write(tmp_path, wikianswers())
    everything = load_dataset("wikianswers", data_dir=folder, split="train")
    some = load_dataset("wikianswers", data_dir=folder, split="train", train_size=100)
    assert some.to_list() == everything.select(range(100)).to_list()
    assert len(set(some["source"])) > 60, "a sample of pairs, not of whole clusters"


def test_wikianswers_as_written(tmp_path, caplog):
    files = wikianswers()
    lemmas = sorted({line.split("\t")[0] for line in files["word_alignments.txt"]})
    files["questions.txt"] = [f"Written {one}?\ttokens\ttags\t{one}" for one in lemmas[1:]]
    splits = load_dataset("wikianswers", data_dir=write(tmp_path, files), as_written=True)
    assert all(row["source"].startswith("Written s") for rows in splits.values() for row in rows)
    assert all(row["target"].startswith("Written s") for row in splits["train"])
    assert "6 pairs left out: one of their questions is not in questions.txt" in caplog.text
    (tmp_path / "questions.txt").unlink()
    with pytest.raises(FileNotFoundError, match="questions.txt is missing"):
        load_dataset("wikianswers", data_dir=tmp_path, as_written=True)


def test_scratch_files_go(tmp_path, cache):
    builder = make_builder("ppdb", data_dir=write(tmp_path / "corpus", ppdb()))
    rows = builder.as_streaming_dataset(split="train")
    assert list(cache.glob("pairs-*"))
    assert next(iter(rows))
    del builder, rows
    gc.collect()
    assert not list(cache.glob("*pairs-*"))


def test_scratch_files_of_killed_builds_go_with_the_next_one(tmp_path, cache):
    data_dir = write(tmp_path / "corpus", ppdb())
    program = (
        "import os, signal, sys\n"
        "from hf_paraphrase.datasets import make_builder\n"
        "builder = make_builder('ppdb', data_dir=sys.argv[1])\n"
        "builder.scratch_folder()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "HF_DATASETS_CACHE": str(cache), "PYTHONPATH": os.getcwd()}
    killed = subprocess.run([sys.executable, "-c", program, str(data_dir)], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = cache.glob("pairs-*")
    living = make_builder("ppdb", data_dir=data_dir)
    mine = living.scratch_folder()
    other = make_builder("ppdb", data_dir=data_dir).scratch_folder
    assert not left.exists()
    assert other() != mine
    assert mine.is_dir()


def test_memory_of_the_store_follows_distinct_pairs(tmp_path, monkeypatch):
    """A million rows of two pairs leave a few kilobytes on disk, and never more than some batches in memory."""
    monkeypatch.setattr(sampled_pairs, "ROWS_AT_ONCE", 1000)
    store, repeated = PairStore(tmp_path), texts(*["a", "b"] * 500)
    for _ in range(1000):
        store.add(hash_texts(repeated, 0), repeated, repeated)
    store.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 1_000_000
    seen = []
    distinct = sampled_pairs._distinct
    monkeypatch.setattr(sampled_pairs, "_distinct", lambda table: seen.append(len(table)) or distinct(table))
    assert dict(store.groups()) == {"a": ["a"], "b": ["b"]}
    assert max(seen) <= 2000
