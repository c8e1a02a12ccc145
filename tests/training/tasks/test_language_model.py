from __future__ import annotations

import random

import pytest
import torch
from datasets import Dataset, DatasetDict
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_paraphrase import HierarchicalLmTokenizer
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets.running_text import sentence_pairs
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.tasks import base
from hf_paraphrase.training.tasks.language_model import LanguageModelConfig, LanguageModelTask, encode_documents
from tests.training.tiny_runs import assert_equal, last_weights, send_after

WORDS = ["sun", "rain", "wind", "snow"]
SIZES = {
    "model_type": "hierarchical_lm",
    "vocab_size": 40,
    "embedding_size": 6,
    "word_encoder_sizes": [16, 16],
    "value_size": 12,
    "key_size": 8,
    "num_layers": 1,
    "word_decoder_hidden_size": 12,
    "word_decoder_sizes": [16],
    "dropout": 0.0,
}


def make_documents(sizes: tuple[int, ...] = (9, 14, 5, 12), seed: int = 0) -> Dataset:
    """Documents whose sentences name the weather in its order: what follows a sentence can be told from it."""
    draw, documents = random.Random(seed), []
    for size in sizes:
        start = draw.randrange(4)
        documents.append([f"the {WORDS[(start + place) % 4]}." for place in range(size)])
    return Dataset.from_dict({"sentences": documents})


def make_splits() -> DatasetDict:
    return DatasetDict(train=make_documents(), validation=make_documents((6, 4), seed=1))


def make_recipe(model: dict | None = None, **fields) -> Recipe:
    settings = {
        "dataset": "weather",
        "num_train_epochs": 2,
        "train_batch_size": 8,
        "learning_rate": 0.01,
        "logging_steps": 2,
        "disable_tqdm": True,
    }
    return Recipe("tiny", SIZES | (model or {}), {}, LanguageModelConfig(**settings | fields))


def spell(tokenizer, words: list[str]) -> list[int]:
    return tokenizer(" ".join(words)).input_ids


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A model that has learnt what follows the sun."""
    folder = tmp_path_factory.mktemp("pretrained")
    summary = train(make_recipe(num_train_epochs=12), folder, dataset=make_splits())
    return folder, summary


def test_examples_are_sentences_and_what_follows():
    tokenizer, documents = HierarchicalLmTokenizer(), make_documents()
    encoded = encode_documents(documents, tokenizer)
    expected = [
        (spell(tokenizer, source), spell(tokenizer, target), number)
        for number, document in enumerate(documents)
        for source, target in sentence_pairs(document["sentences"])
    ]
    got = list(zip(encoded["input_ids"], encoded["labels"], encoded["document"], strict=True))
    assert got == expected


def test_autoencoding_has_the_source_as_target():
    tokenizer = HierarchicalLmTokenizer()
    documents = Dataset.from_dict({"sentences": [["One, two.", " "], [], ["a, " * 40 + "b."]]})
    encoded = encode_documents(documents, tokenizer, "autoencode")
    assert encoded["input_ids"] == encoded["labels"]
    assert encoded["input_ids"][0] == tokenizer("One, two.").input_ids
    assert encoded["document"][:2] == [0, 2] and len(encoded) > 2
    assert max(ids.count(tokenizer.stop_token_id) for ids in encoded["input_ids"]) == 30
    with pytest.raises(InputError, match="none of the 1 documents"):
        encode_documents(documents.select([1]), tokenizer)


def test_limits_are_of_pairs_from_all_documents():
    task = LanguageModelTask(make_recipe(max_train_samples=6, max_eval_samples=3).training)
    rows = task.load(dataset=make_splits())
    encoded = task.encode(rows, HierarchicalLmTokenizer()).splits
    assert (len(encoded["train"]), len(encoded["validation"])) == (6, 3)
    # Of 8, 13, 4 and 11 pairs.
    assert list(encoded["train"]["document"]) == [0, 0, 1, 2, 3, 3]


def test_it_learns_what_follows(pretrained):
    folder, summary = pretrained
    losses = [entry["eval_loss"] for entry in summary["evaluations"]]
    assert losses[-1] < 0.5 * losses[0]
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert type(tokenizer) is HierarchicalLmTokenizer and len(tokenizer) == model.config.vocab_size
    # The loss is one in nits per character: that of all symbols of all targets.
    encoded = encode_documents(make_splits()["validation"], tokenizer)
    total, count = 0.0, 0
    for row in encoded:
        with torch.no_grad():
            outputs = model(**{name: torch.tensor([row[name]]) for name in ("input_ids", "labels")})
        total, count = total + outputs.loss.item() * len(row["labels"]), count + len(row["labels"])
    assert total / count == pytest.approx(summary["best"]["eval_loss"], rel=1e-4)


def test_a_stopped_run_goes_on_as_if_nothing_had_been(tmp_path, monkeypatch):
    from hf_paraphrase.common.errors import TrainingInterrupted

    recipe = make_recipe({"dropout": 0.3}, shuffle_buffer=12, interleaved_documents=2)
    train(recipe, tmp_path / "whole", dataset=make_splits())
    with monkeypatch.context() as patch, pytest.raises(TrainingInterrupted):
        send_after(patch, 3)
        train(recipe, tmp_path / "parts", dataset=make_splits())
    train(recipe, tmp_path / "parts", dataset=make_splits(), resume=True)
    assert_equal(last_weights(tmp_path / "parts"), last_weights(tmp_path / "whole"))


def test_autoencoding_trains_the_sentence_decoder_alone(pretrained, tmp_path):
    folder, _ = pretrained
    recipe = make_recipe(
        objective="autoencode",
        pretrained=str(folder),
        trained_parts=["model.decoder.layers", "model.decoder.projection"],
    )
    train(recipe, tmp_path, dataset=make_splits())
    before = AutoModelForSeq2SeqLM.from_pretrained(folder).state_dict()
    after = AutoModelForSeq2SeqLM.from_pretrained(tmp_path).state_dict()
    changed = {name for name, weight in after.items() if not torch.equal(weight, before[name])}
    assert changed and all(name.startswith("model.decoder.layers") for name in changed)
    assert len(AutoTokenizer.from_pretrained(tmp_path)) == len(AutoTokenizer.from_pretrained(folder))


def test_fine_tuning_is_validated_on_a_general_set_too(pretrained, tmp_path, monkeypatch):
    general = DatasetDict(validation=make_documents((7,), seed=3))
    monkeypatch.setattr(base, "load_dataset", lambda *args, **kwargs: general)
    recipe = make_recipe(pretrained=str(pretrained[0]), general_dataset_kwargs={"validation_books": 1})
    summary = train(recipe, tmp_path, dataset=make_splits())
    assert all(0 < entry["eval_general_loss"] != entry["eval_loss"] for entry in summary["evaluations"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"shuffle_buffer": 0}, "`shuffle_buffer` must be at least 1"),
        ({"max_tokens_per_batch": 100}, "mixes lengths"),
        ({"trained_parts": ["lm_head"]}, "name a checkpoint"),
        ({"objective": "translate"}, "`objective`"),
    ],
)
def test_impossible_settings_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        make_recipe(**fields)


def test_mistakes_are_named(pretrained, tmp_path):
    folder = str(pretrained[0])
    with pytest.raises(InputError, match="`trained_parts`: the model has no part lm_tail"):
        train(make_recipe(pretrained=folder, trained_parts=["lm_tail"]), tmp_path / "a", dataset=make_splits())
    with pytest.raises(InputError, match="`tokenizer`: nowhere cannot be loaded"):
        train(make_recipe(tokenizer="nowhere"), tmp_path / "b", dataset=make_splits())
    with pytest.raises(InputError, match="`pretrained`: .* cannot be loaded as this recipe's model"):
        train(make_recipe({"value_size": 8}, pretrained=folder), tmp_path / "c", dataset=make_splits())


def test_characters_are_no_sub_words():
    with pytest.raises(InputError, match="`tokenizer_model: bpe`: `task: language_model` spells whole words"):
        LanguageModelConfig(dataset="d", tokenizer_model="bpe")
