from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from datasets import Dataset

from hf_paraphrase import ParaphraseRetriever
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.retrieval.encoders import AutoModelEncoder
from hf_paraphrase.retrieval.training import measure_recall, train_encoder

# Targets have no word of their sources: only training tells which go together.
TOPICS = ["cats dogs", "bread cheese", "rain snow", "red blue", "one two", "left right", "north south", "iron gold"]
ROWS = [
    (f"what about {topic.split()[0]} {end}", f"tell of {topic.split()[1]} {end}") for topic in TOPICS for end in "abc"
]


@pytest.fixture(scope="module")
def pairs() -> Dataset:
    return Dataset.from_dict({"source": [source for source, _ in ROWS], "target": [target for _, target in ROWS]})


@pytest.fixture(scope="module")
def folder(pairs, tmp_path_factory) -> str:
    pytest.importorskip("sentence_transformers", reason="needs the extra `retrieval`")
    path = tmp_path_factory.mktemp("trained") / "encoder"
    train_encoder(pairs, path, hidden_size=32, num_train_epochs=40, train_batch_size=8, learning_rate=5e-3)
    return str(path)


def test_it_learns_which_sentences_go_together(folder, pairs, tmp_path):
    train_encoder(pairs, tmp_path / "untrained", hidden_size=32, num_train_epochs=0.01, train_batch_size=8)
    untrained, trained = (AutoModelEncoder(path, device="cpu") for path in (tmp_path / "untrained", folder))
    assert measure_recall(untrained, pairs) < 0.5 < 0.9 < measure_recall(trained, pairs)


def test_the_retriever_takes_it_and_keeps_it(folder, pairs, tmp_path):
    encoder = shutil.copytree(folder, tmp_path / "encoder")
    retriever = ParaphraseRetriever.from_pairs(pairs, encoder=encoder, device="cpu")
    (found,) = retriever.retrieve(["tell of dogs b"], k=3)
    assert any(pair.source == "what about cats b" for pair in found)
    retriever.save_pretrained(tmp_path / "retriever")
    shutil.rmtree(encoder)
    moved = shutil.move(tmp_path / "retriever", tmp_path / "moved")
    for _ in range(2):  # the second time, one saved again where it is
        again = ParaphraseRetriever.from_pretrained(moved, device="cpu")
        assert again.retrieve(["tell of dogs b"], k=3) == [found]
        again.save_pretrained(moved)
    assert not list(Path(moved).rglob("*.bin"))


def test_the_same_seed_gives_the_same_weights(pairs, tmp_path):
    pytest.importorskip("sentence_transformers", reason="needs the extra `retrieval`")
    weights = []
    for seed in (1, 1, 2):
        options = {"hidden_size": 8, "num_layers": 0, "num_train_epochs": 1, "train_batch_size": 8, "seed": seed}
        train_encoder(pairs, tmp_path / "encoder", **options)
        weights.append(AutoModelEncoder(tmp_path / "encoder", device="cpu").model.embeddings.word_embeddings.weight)
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def test_what_is_missing_is_named(pairs, tmp_path, monkeypatch):
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'hf-paraphrase\[retrieval\]'"):
        train_encoder(pairs, tmp_path)
