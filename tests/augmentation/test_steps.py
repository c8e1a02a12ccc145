"""The steps in pipelines of datatrove's own executor."""

from __future__ import annotations

import pytest
import torch
from datatrove.data import Document

from hf_paraphrase.augmentation.steps import ParaphraseStep, find_device
from tests.generation.paraphrasers import make_paraphraser, random_sentences


def documents(texts: list[str]) -> list[Document]:
    return [Document(text=text, id=str(place)) for place, text in enumerate(texts)]


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
