"""A checkpoint that looks pairs up brings them along."""

from __future__ import annotations

import shutil

import pytest

retrieval = pytest.importorskip("hf_paraphrase.retrieval")

PAIRS = [("the cat sat", "a cat was sitting"), ("a dog ran", "the dog was running")]
RETRIEVE = """
from hf_paraphrase.retrieval import ParaphraseRetriever
retriever = ParaphraseRetriever.from_pretrained({where!r}, subfolder={subfolder!r})
result = [[list(pair) for pair in pairs] for pairs in retriever.retrieve(["the dog ran"], k=2)]
"""


def test_the_retriever_travels_with_the_checkpoint(client, server, trained_run, tmp_path):
    folder = tmp_path / "tiny"
    shutil.copytree(trained_run, folder)
    retriever = retrieval.ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard")
    retriever.save_pretrained(folder / "retriever")
    answer = client("push", folder, "--repo-id", "you/tiny")
    assert answer.status == 0 and "data file" not in answer.errors
    files = server.repository("you/tiny").files()
    assert {path for path in files if path.startswith("retriever/")} == {
        f"retriever/{path.name}" for path in (folder / "retriever").iterdir()
    }
    assert "The folder `retriever/` holds the pairs" in files["README.md"].content.decode()
    assert "  retriever: yes\n" in client("info", "you/tiny").output
    expected = [[list(pair) for pair in pairs] for pairs in retriever.retrieve(["the dog ran"], k=2)]
    assert client.python(RETRIEVE.format(where="you/tiny", subfolder="retriever")) == expected


def test_a_retriever_s_own_repository(client, server, tmp_path):
    retrieval.ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard").save_pretrained(tmp_path / "memory")
    push = f"""
from hf_paraphrase.retrieval import ParaphraseRetriever
result = str(ParaphraseRetriever.from_pretrained({str(tmp_path / "memory")!r}).push_to_hub("you/memory").oid)
"""
    oid = client.python(push, token="hf_you")
    assert oid == server.repository("you/memory").sha("main")
    found = client.python(RETRIEVE.format(where="you/memory", subfolder=""))
    assert found[0][0][:2] == ["a dog ran", "the dog was running"]
