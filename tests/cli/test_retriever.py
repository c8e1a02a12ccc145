from __future__ import annotations

import pytest
from datasets import Dataset, DatasetDict

import hf_paraphrase.datasets
from hf_paraphrase import ParaphraseRetriever

from .runner import run

PAIRS = Dataset.from_dict(
    {
        "source": [f"what about {word} {end}" for word in ("cats", "bread", "rain") for end in "abc"],
        "target": [f"tell of {word} {end}" for word in ("dogs", "cheese", "snow") for end in "abc"],
    }
)


def test_it_trains_and_says_how_well(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sentence_transformers", reason="needs the extra `retrieval`")
    splits = DatasetDict(train=PAIRS, validation=PAIRS.select(range(6)))
    monkeypatch.setattr(hf_paraphrase.datasets, "load_dataset", lambda *args, **kwargs: splits)
    options = ["--hidden-size", 8, "--num-layers", 0, "--num-train-epochs", 1, "--train-batch-size", 8]
    assert run("retriever", "train", "--output-dir", tmp_path / "encoder", *options) == 0
    assert "% of 6 sources find their own target first" in capsys.readouterr().out
    assert len(ParaphraseRetriever.from_pairs(PAIRS, encoder=tmp_path / "encoder", device="cpu")) == len(PAIRS)


def test_a_corpus_without_a_validation_split(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(hf_paraphrase.datasets, "load_dataset", lambda *args, **kwargs: DatasetDict(train=PAIRS))
    assert run("retriever", "train", "--output-dir", tmp_path / "encoder") == 2
    assert capsys.readouterr().err == "error: the corpus has no split validation; it has: train\n"
