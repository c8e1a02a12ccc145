from __future__ import annotations

import pytest
import torch
from datasets import Dataset, DatasetDict

from hf_paraphrase.common.errors import InputError, TrainingInterrupted
from hf_paraphrase.tokenization import train_word_tokenizer
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.tasks.decompose import AdaptConfig, AdaptTask
from tests.models.tiny import save

from ..tiny_runs import assert_equal, last_weights, send_after
from .test_decompose import make_recipe

TEXTS = [f"where is {thing} ?" for thing in ("paris", "rome", "tea", "oslo", "bread", "soup", "zulu", "jazz")]
KNOWN = train_word_tokenizer([text for text in TEXTS if "zulu" not in text], 40)


def texts_of(*splits) -> DatasetDict:
    # The column `target` would break what reads it.
    return DatasetDict(
        {
            split: Dataset.from_dict({"source": rows, "target": [None] * len(rows)})
            for split, rows in zip(("train", "validation"), splits, strict=True)
        }
    )


def adapting(folder, **fields) -> Recipe:
    """A recipe that goes on from a tiny model in the folder."""
    recipe = make_recipe()
    task = AdaptTask(AdaptConfig(dataset="none", pretrained="none"))
    torch.manual_seed(0)
    with_words = recipe.make_config(KNOWN)
    save(task.auto_class.from_config(with_words), folder, KNOWN)
    training = AdaptConfig(
        dataset="none",
        pretrained=str(folder),
        num_train_epochs=3,
        train_batch_size=4,
        learning_rate=0.02,
        max_phrase_frequency=0.2,
        copy_unknown_words=True,
        disable_tqdm=True,
    )
    return Recipe("adapted", recipe.model_config, recipe.generation_config, training).override(fields)


def test_only_words_of_phrases_count():
    task = AdaptTask(AdaptConfig(dataset="none", pretrained="x", max_phrase_frequency=0.2, copy_unknown_words=True))
    rows = texts_of([*TEXTS, "where is ?"], [*TEXTS[:7], "is ?"])
    data = task.encode(task.load(dataset=rows), KNOWN)
    assert {split: len(encoded) for split, encoded in data.splits.items()} == {"train": 8, "validation": 7}
    assert task.counts(data.splits["train"]).tolist() == [1] * 8
    batch = task.make_collator(KNOWN)(task.features(data.splits["train"], [0, 6], 0))
    model = task.auto_class.from_config(make_recipe(dropout=0.0).make_config(KNOWN)).eval()
    (loss, reported), n = task.loss_sums(model, batch, data), len(KNOWN)
    assert batch["input_ids"][1, 2] == n and loss == reported
    levels = torch.tensor([[1, 1, 0, 1, 1]] * 2)
    logits = model(batch["input_ids"], source_levels=levels, labels=batch["labels"]).logits
    expected = -(logits[0, 2, batch["labels"][0, 2]] + logits[1, 2, n])
    torch.testing.assert_close(loss, expected)


def test_the_sentence_level_is_kept(tmp_path):
    recipe, rows = adapting(tmp_path / "source"), texts_of(TEXTS, TEXTS)
    train(recipe, tmp_path / "adapted", dataset=rows)
    before, after = (
        AdaptTask(recipe.training).auto_class.from_pretrained(tmp_path / name).state_dict()
        for name in ("source", "adapted")
    )
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    kept = before.keys() - moved
    assert {name for name in before if "sentence_layers" in name or "embed_tokens" in name} <= kept
    for part in ("encoder.phrase_layers", "decoder.phrase_layers", "separator", "aggregator", "gate"):
        assert any(part in name for name in moved), part


def test_an_interrupted_run_goes_on_alike(tmp_path, monkeypatch):
    rows, recipe = texts_of(TEXTS, TEXTS), adapting(tmp_path / "source")
    train(recipe, tmp_path / "whole", dataset=rows)
    send_after(monkeypatch, 3)
    with pytest.raises(TrainingInterrupted):
        train(recipe, tmp_path / "parts", dataset=rows)
    train(recipe, tmp_path / "parts", dataset=rows, resume=True)
    assert_equal(last_weights(tmp_path / "parts"), last_weights(tmp_path / "whole"))


def test_the_adapted_model_writes_the_words_of_its_domain(tmp_path):
    """It has seen none of them where it comes from, and copies what its vocabulary has not."""
    rows = texts_of(TEXTS * 8, TEXTS)
    recipe = adapting(tmp_path / "source", num_train_epochs=15)
    summary = train(recipe, tmp_path / "adapted", dataset=rows)
    assert summary["best"]["eval_loss"] < 0.5 * summary["evaluations"][0]["eval_loss"]


@pytest.mark.parametrize(
    ("fields", "rows", "message"),
    [
        ({"pretrained": None}, TEXTS, "`task: adapt` goes on from a model of another domain"),
        ({}, ["where is ?"] * 9, "no text of the split train has a word that is rarer"),
    ],
)
def test_what_cannot_be_adapted_is_refused(fields, rows, message, tmp_path):
    with pytest.raises(InputError, match=message):
        task = AdaptTask(AdaptConfig(dataset="none", **{"pretrained": "x", **fields}))
        task.encode(task.load(dataset=texts_of(rows, rows)), KNOWN)
