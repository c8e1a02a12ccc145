from __future__ import annotations

import json
import os
import subprocess
import sys

import datasets
import pytest

import hf_paraphrase
from hf_paraphrase import datasets as corpora
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import builder, list_datasets, load_dataset, loading
from hf_paraphrase.datasets.addresses import RELEASES
from hf_paraphrase.datasets.loading import find_builder

SMALL = {"train_size": 30, "validation_size": 5, "test_size": 5}


NEW_CORPUS = """
import datasets
from hf_paraphrase.datasets.builder import CorpusConfig, ParaphraseBuilder


class TwoRowsBuilder(ParaphraseBuilder):
    \"\"\"Two rows.\"\"\"

    corpus_name = "two_rows"
    BUILDER_CONFIG_CLASS = CorpusConfig

    def _split_generators(self, dl_manager):
        return [datasets.SplitGenerator("train", {})]

    def generate_rows(self):
        for number in range(2):
            yield {"source": f"ask {number}", "target": "answer"}
"""


def test_public_names():
    assert hf_paraphrase.load_dataset is load_dataset
    assert hf_paraphrase.list_datasets() == list_datasets()
    # A corpus is called as its module is.
    assert all(find_builder(name).__module__ == f"hf_paraphrase.datasets.{name}" for name in list_datasets())


def test_a_module_is_enough_for_a_corpus(tmp_path, monkeypatch):
    """It declares its name itself: no list has it."""
    (tmp_path / "two_rows.py").write_text(NEW_CORPUS)
    monkeypatch.setattr(corpora, "__path__", [*corpora.__path__, str(tmp_path)])
    known = list_datasets()
    loading._builders.cache_clear()
    try:
        assert list_datasets() == sorted([*known, "two_rows"])
        assert load_dataset("two_rows", split="train")["source"][:] == ["ask 0", "ask 1"]
    finally:
        loading._builders.cache_clear()


def test_listing_loads_no_library_of_a_single_corpus():
    code = "import sys\nfrom hf_paraphrase.datasets import list_datasets\nlist_datasets()\nprint(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert not {"torch", "transformers", "matplotlib", "bm25s", "nltk", "spacy", "pysbd"} & set(loaded.stdout.split())


def test_all_splits_or_one():
    everything = load_dataset("synthetic_questions", **SMALL)
    assert isinstance(everything, datasets.DatasetDict)
    assert {split: (rows.num_rows, rows.column_names) for split, rows in everything.items()} == {
        "train": (30, ["source", "target"]),
        "validation": (5, ["source", "target"]),
        "test": (5, ["source", "references"]),
    }
    for split, rows in everything.items():
        assert load_dataset("synthetic_questions", split=split, **SMALL).to_list() == rows.to_list()


def test_empty_split_is_left_out():
    assert list(load_dataset("synthetic_questions", **{**SMALL, "validation_size": 0})) == ["train", "test"]


def test_nothing_is_printed(capfd):
    load_dataset("synthetic_questions", **SMALL)
    assert capfd.readouterr() == ("", "")
    assert datasets.is_progress_bar_enabled()


def test_cache_serves_the_second_call(cache):
    load_dataset("synthetic_questions", **SMALL)
    files = {path: path.stat().st_mtime_ns for path in cache.rglob("*.arrow")}
    load_dataset("synthetic_questions", **SMALL)
    assert len(files) == 3
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.arrow")} == files


def test_cache_depends_on_what_the_builder_is_made_of(monkeypatch):
    """Another corpus, be it new, leaves it alone."""
    read, snli = [], find_builder("snli")
    monkeypatch.setattr(builder, "state_of_file", lambda path: read.append(path.name) or path.name)
    before = snli.state_of(None)
    assert {"snli.py", "builder.py", "corpus_reader.py", "sampling.py", "text_tables.py", "files.py"} <= set(read)
    assert not {"quora.py", "sentence_pairs.py", "addresses.py", "loading.py", "card.py"} & set(read)
    released = RELEASES["snli"]
    monkeypatch.setitem(RELEASES, "new", RELEASES["quora"])
    assert snli.state_of(None) == before
    monkeypatch.setitem(RELEASES, "snli", RELEASES["quora"])
    assert snli.state_of(None) != before
    monkeypatch.setitem(RELEASES, "snli", released)
    assert snli.state_of(None) == before
    monkeypatch.setattr(builder, "state_of_file", lambda path: path.name + "changed" * (path.name == "sampling.py"))
    assert snli.state_of(None) != before


def test_cache_is_keyed_by_every_argument():
    def sources(**kwargs):
        return load_dataset("synthetic_questions", split="train", **{**SMALL, **kwargs})["source"][:]

    first = sources()
    assert len(sources(train_size=31)) == 31
    assert sources(seed=1) != first == sources() == sources(seed=42)


def test_failure_leaves_nothing_behind(cache, monkeypatch):
    monkeypatch.setattr("hf_paraphrase.datasets.synthetic_questions.PATIENCE", 50)
    with pytest.raises(InputError, match="`test_size` is 1000000"):
        load_dataset("synthetic_questions", **{**SMALL, "test_size": 1_000_000})
    assert not list(cache.rglob("*.arrow"))


def test_processes_at_once(cache):
    code = (
        "import datasets, json, sys\n"
        "datasets.config.HF_DATASETS_CACHE = sys.argv[1]\n"
        "from hf_paraphrase.datasets import load_dataset\n"
        "print(json.dumps(load_dataset('synthetic_questions', split='train', train_size=5000).to_list()))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(cache)], stdout=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    first, second = (json.loads(process.communicate()[0]) for process in processes)
    assert first == second and len(first) == 5000


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"path": "synthetic_question"}, "unknown corpus `synthetic_question`; did you mean synthetic_questions"),
        ({"path": "xyz"}, "unknown corpus `xyz`; there are: books, groups, gutenberg, hotel_reviews, mscoco"),
        ({"name": "x"}, "unknown configuration `x`; there are: default"),
        ({"train_sise": 1}, "unknown argument `train_sise`; did you mean train_size"),
        ({"version": "2.0.0"}, "unknown argument `version`"),
        ({"split": "tests"}, "unknown split `tests`; did you mean test"),
        ({"test_size": -1}, "`test_size` must be at least 0, not -1"),
        ({"test_size": "5"}, "`test_size` must be int, not '5'"),
        ({"seed": True}, "`seed` must be int, not True"),
    ],
)
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(InputError, match=message):
        load_dataset(**{"path": "synthetic_questions", **SMALL, **kwargs})
