"""The steps in pipelines of datatrove's own executor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

from hf_paraphrase import ParaphraseRetriever
from hf_paraphrase.augmentation import steps
from hf_paraphrase.augmentation.steps import MineStep, ParaphraseStep, find_device
from tests.generation.paraphrasers import make_paraphraser, random_sentences

TEXTS = ["the cat sat on the mat", "the cat sat on a mat", "can you make bread", "", "THE cat sat on the mat"]


def documents(texts: list[str]) -> list[Document]:
    return [Document(text=text, id=str(place)) for place, text in enumerate(texts)]


def test_neighbours_of_documents() -> None:
    """Not the text itself, whatever its case; the nearest first, from one bound to the other."""
    retriever = ParaphraseRetriever.from_pairs([(text, text) for text in TEXTS[:3]], encoder="jaccard")
    found = [document.metadata["neighbors"] for document in MineStep(retriever, k=3, min_score=0.5)(documents(TEXTS))]
    # They share the, cat, sat, on and mat, and differ in a.
    expected = {"source": TEXTS[1], "target": TEXTS[1], "score": pytest.approx(5 / 6)}
    assert found == [[expected], [{**expected, "source": TEXTS[0], "target": TEXTS[0]}], [], [], [expected]]
    near = MineStep(retriever, k=3, min_score=0.0, max_score=0.5)(documents(TEXTS[:1]))
    assert [[one["source"] for one in document.metadata["neighbors"]] for document in near] == [[TEXTS[2]]]


def test_in_a_pipeline_of_datatrove(tmp_path: Path) -> None:
    """Between its own reader and writer, in its own executor; a process loads the retriever once."""
    retriever = ParaphraseRetriever.from_pairs([(text, text) for text in TEXTS[:3]], encoder="jaccard")
    retriever.save_pretrained(tmp_path / "retriever")
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        lines = [json.dumps({"text": text, "id": f"{name}{place}"}) for place, text in enumerate(TEXTS[:3])]
        (tmp_path / "in" / f"{name}.jsonl").write_text("\n".join(lines))
    steps.load_retriever_once.cache_clear()
    pipeline = [
        JsonlReader(str(tmp_path / "in")),
        MineStep(tmp_path / "retriever", k=2, min_score=0.5),
        JsonlWriter(str(tmp_path / "out"), compression=None),
    ]
    LocalPipelineExecutor(pipeline, tasks=2, workers=1, logging_dir=str(tmp_path / "logs")).run()
    rows = [json.loads(line) for file in (tmp_path / "out").iterdir() for line in file.read_text().splitlines()]
    assert {row["id"]: len(row["metadata"]["neighbors"]) for row in rows} == {
        f"{name}{place}": count for name in "ab" for place, count in enumerate((1, 1, 0))
    }
    assert steps.load_retriever_once.cache_info().misses == 1


def test_outcomes_of_documents() -> None:
    """In the order of the documents, whatever their lengths."""
    texts = random_sentences(20)
    paraphraser = make_paraphraser("bart")
    options = {"keep": [], "decoding": "beam", "num_candidates": 3}
    found = ParaphraseStep(paraphraser, n=2, batch_size=4, **options)(documents(texts))
    expected = paraphraser(texts, 2, **options)
    for document, text, group in zip(found, texts, expected, strict=True):
        assert document.text == text
        assert [one.text for one in document.metadata["outcome"].paraphrases] == [one.text for one in group]


@pytest.mark.parametrize(("rank", "device"), [(None, "cuda:0"), ("1", "cuda:1"), ("5", "cuda:1")])
def test_the_device_follows_from_the_local_rank(
    rank: str | None, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert find_device() == "cpu" or torch.cuda.is_available()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    if rank is not None:
        monkeypatch.setenv("LOCAL_RANK", rank)
    assert find_device() == device
