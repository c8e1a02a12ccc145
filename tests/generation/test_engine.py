from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from hf_paraphrase.errors import InputError
from hf_paraphrase.generation.engine import (
    compute_perplexity,
    generate_paraphrases,
    generate_several,
    load_paraphraser,
)
from tests.models.tiny import tiny_bart, word_tokenizer

SOURCES = [
    "how do i cook",
    "",
    "what is best way to make bread ?",
    "  ",
    "bread",
    "can you cook the bread fast ?",
]
TARGETS = ["how to cook", "x", "way to make bread", "y", "what is bread ?", " "]


def test_batches_give_what_single_texts_give_in_order() -> None:
    model, tokenizer = tiny_bart(), word_tokenizer()
    expected = []
    for source in SOURCES:
        ids = model.generate(**tokenizer(source, return_tensors="pt"), num_beams=3, max_new_tokens=12)[0]
        expected.append(tokenizer.decode(ids, skip_special_tokens=True).strip() if source.strip() else "")
    assert len(set(expected)) > 2
    for batch_size in (1, 3, 10):
        options = {"batch_size": batch_size, "num_beams": 3, "max_new_tokens": 12}
        assert generate_paraphrases(model, tokenizer, SOURCES, **options) == expected


@pytest.mark.parametrize("decoding", ["beam", "diverse_beam", "dips"])
def test_several_outputs_are_candidates(decoding: str) -> None:
    model, tokenizer = tiny_bart(), word_tokenizer()
    options = {"decoding": decoding, "max_new_tokens": 8}
    several = generate_several(model, tokenizer, SOURCES, 3, batch_size=2, **options)
    assert [len(group) for group in several] == [3] * len(SOURCES) and several[1] == ["", "", ""]
    chosen = generate_paraphrases(model, tokenizer, SOURCES, num_candidates=3, select="jaccard", **options)
    assert all(text in group for text, group in zip(chosen, several, strict=True))
    first = generate_paraphrases(model, tokenizer, SOURCES, num_candidates=3, **options)
    assert first == [group[0] for group in several]


def test_only_empty_sources() -> None:
    assert generate_paraphrases(tiny_bart(), word_tokenizer(), ["", "\n"]) == ["", ""]


def test_training_mode_is_left_as_it_was() -> None:
    model = tiny_bart().train()
    generate_paraphrases(model, word_tokenizer(), ["cook"], max_new_tokens=2)
    assert model.training


def test_perplexity_weighs_every_token_alike() -> None:
    model, tokenizer = tiny_bart(), word_tokenizer()
    losses = []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        if source.strip() and target.strip():
            labels = tokenizer(target, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                log_probs = model(**tokenizer(source, return_tensors="pt"), labels=labels).logits.log_softmax(-1)
            losses += (-log_probs[0].gather(-1, labels[0][:, None])[:, 0]).tolist()
    for batch_size in (1, 2, 64):
        result = compute_perplexity(model, tokenizer, SOURCES, TARGETS, batch_size=batch_size)
        assert result["tokens"] == len(losses) == 14
        assert result["perplexity"] == pytest.approx(math.exp(sum(losses) / len(losses)), rel=1e-4)


def test_perplexity_of_nothing() -> None:
    with pytest.raises(InputError, match="no row has both"):
        compute_perplexity(tiny_bart(), word_tokenizer(), ["", "a"], ["a", " "])


def test_load_paraphraser_without_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere is neither a checkpoint folder nor a Hub repository"):
        load_paraphraser(tmp_path / "nowhere")
    with pytest.raises(InputError, match="holds no model that can be loaded: .*config.json"):
        load_paraphraser(tmp_path)


def test_load_paraphraser(tmp_path: Path) -> None:
    tiny_bart().save_pretrained(tmp_path)
    with pytest.raises(InputError, match="holds a model but no tokenizer"):
        load_paraphraser(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    model, tokenizer = load_paraphraser(tmp_path, device="cpu")
    loaded, fresh = (generate_paraphrases(one, tokenizer, SOURCES, max_new_tokens=12) for one in (model, tiny_bart()))
    assert loaded == fresh
