"""`augment`: a dataset in, a dataset out."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest

import hf_paraphrase
from hf_paraphrase import Paraphraser
from hf_paraphrase.common.errors import InputError
from tests.generation.paraphrasers import NO_FLOORS, make_paraphraser, random_sentences

OPTIONS = {"decoding": "sample", "num_candidates": 4, "keep": [], "batch_size": 4, **NO_FLOORS}


@pytest.fixture
def dataset() -> datasets.Dataset:
    texts = [*random_sentences(30), "", None]
    features = datasets.Features(question=datasets.Value("string"), label=datasets.ClassLabel(names=["no", "yes"]))
    return datasets.Dataset.from_dict({"question": texts, "label": [n % 2 for n in range(32)]}, features=features)


def test_rows_of_a_dataset(dataset: datasets.Dataset) -> None:
    paraphraser = make_paraphraser("bart")
    found = hf_paraphrase.augment(dataset, paraphraser, "question", 2, **OPTIONS)
    expected = [
        (str(place), rank, one.text, dataset[place]["question"], dataset[place]["label"])
        for place, group in enumerate(paraphraser([text or "" for text in dataset["question"]], 2, **OPTIONS))
        for rank, one in enumerate(group, start=1)
    ]
    rows = [row for row in found if row["error"] is None]
    columns = ("source_id", "rank", "paraphrase", "question", "label")
    assert [tuple(row[name] for name in columns) for row in rows] == expected
    assert found.features["label"] == dataset.features["label"] and found.features["rank"].dtype == "int32"
    assert all(0 <= row["score"] <= 1 for row in rows)
    assert [row["source_id"] for row in found if row["error"] == "the text is blank"] == ["30", "31"]
    assert {row["source_id"] for row in found} == {str(place) for place in range(32)}


def test_columns_are_chosen(dataset: datasets.Dataset) -> None:
    found = hf_paraphrase.augment(dataset, make_paraphraser("bart"), "question", 1, keep_columns=[], **OPTIONS)
    assert found.column_names[:2] == ["question", "source_id"]
    for options, message in (
        ({"column": "text"}, "`dataset` has no column `text`; it has: question, label"),
        ({"column": "question", "min_novelty": 3}, "`min_novelty` must be from 0 to 1"),
        ({"column": "label"}, "`dataset`, row 0: `label` is not text: 0"),
    ):
        with pytest.raises(InputError, match=message):
            hf_paraphrase.augment(dataset, make_paraphraser("bart"), **options)
    with pytest.raises(InputError, match="not a DatasetDict"):
        hf_paraphrase.augment(datasets.DatasetDict(train=dataset), make_paraphraser("bart"))


def test_a_batch_that_fails_is_tried_row_by_row(dataset: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails is not a row's fault."""
    whole = hf_paraphrase.augment(dataset, make_paraphraser("bart"), "question", 1, **OPTIONS)
    call, bad, error = Paraphraser.__call__, dataset["question"][3], MemoryError("too long")

    def stumble(self, texts, n, **options):
        if bad in texts:
            raise error
        return call(self, texts, n, **options)

    monkeypatch.setattr(Paraphraser, "__call__", stumble)
    found = hf_paraphrase.augment(dataset, make_paraphraser("bart"), "question", 1, **OPTIONS)
    failed = [row for row in found if row["question"] == bad]
    assert [(row["paraphrase"], row["error"]) for row in failed] == [(None, "MemoryError: too long")]
    found, whole = ([row for row in rows if row["question"] != bad] for rows in (found, whole))
    assert [row["paraphrase"] for row in found] == [row["paraphrase"] for row in whole]
    error = OSError(5, "Input/output error")
    with pytest.raises(OSError, match="Input/output error"):
        hf_paraphrase.augment(dataset, make_paraphraser("bart"), "question", 1, **OPTIONS)


def test_texts_of_like_length_share_a_batch(dataset: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    batches, call = [], Paraphraser.__call__

    def watch(self, texts, n, **options):
        batches.append([len(text) for text in texts])
        return call(self, texts, n, **options)

    monkeypatch.setattr(Paraphraser, "__call__", watch)
    hf_paraphrase.augment(dataset, make_paraphraser("bart"), "question", 1, **OPTIONS)
    lengths = [length for batch in batches for length in batch]
    assert lengths == sorted(lengths) and max(map(len, batches)) == OPTIONS["batch_size"]


def test_no_rows_have_the_columns_all_the_same(dataset: datasets.Dataset) -> None:
    empty = hf_paraphrase.augment(dataset.select([]), make_paraphraser("bart"), "question", 1, **OPTIONS)
    assert (
        empty.features == hf_paraphrase.augment(dataset, make_paraphraser("bart"), "question", 1, **OPTIONS).features
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"texts": ["a"]}, "`texts` is no further argument"),
        ({"return_rejected": False}, "`return_rejected` is no further argument"),
        ({"dtype": "int8"}, "`dtype` is for a model loaded here"),
        ({"backend": "ctranslate2"}, "`backend` is for a model loaded here"),
    ],
)
def test_arguments_that_would_go_unheard_are_refused(dataset: datasets.Dataset, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hf_paraphrase.augment(dataset, make_paraphraser("bart"), "question", 1, **OPTIONS | options)


def test_a_model_is_loaded_by_its_name(dataset: datasets.Dataset, tmp_path: Path) -> None:
    paraphraser = make_paraphraser("bart")
    paraphraser.model.save_pretrained(tmp_path)
    paraphraser.tokenizer.save_pretrained(tmp_path)
    named, loaded = (hf_paraphrase.augment(dataset, one, "question", 1, **OPTIONS) for one in (tmp_path, paraphraser))
    assert named["paraphrase"][:] == loaded["paraphrase"][:]
