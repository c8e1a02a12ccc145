from __future__ import annotations

import pytest
import torch
from transformers import AutoTokenizer, pipeline

from hf_paraphrase.datasets.running_text import words_of
from hf_paraphrase.models.hierarchical_lm.configuration_hierarchical_lm import HierarchicalLmConfig
from hf_paraphrase.models.hierarchical_lm.modeling_hierarchical_lm import HierarchicalLmForConditionalGeneration
from hf_paraphrase.models.hierarchical_lm.tokenization_hierarchical_lm import HierarchicalLmTokenizer
from tests.models.tiny import save
from tests.models.without_package import run_without_the_package

TEXTS = ["I am.", "", "Don't say </s>, <stop>!", "naïve  \n 1,000 中", "x" * 45, '"Yes," he said. "No."']


@pytest.fixture(scope="module")
def tokenizer() -> HierarchicalLmTokenizer:
    return HierarchicalLmTokenizer()


def test_one_stream_of_characters_and_marks(tokenizer):
    ids = tokenizer("I am.").input_ids
    assert tokenizer.convert_ids_to_tokens(ids) == ["I", "<stop>", "a", "m", "<stop>", ".", "<stop>", "</s>"]
    assert tokenizer("").input_ids == [tokenizer.eos_token_id]


def test_words_are_those_of_the_corpora(tokenizer):
    for text in TEXTS:
        assert tokenizer.split_words(text) == words_of(text)


def test_marks_have_the_configuration_s_ids(tokenizer):
    config = HierarchicalLmConfig()
    for name in ("pad_token_id", "bos_token_id", "eos_token_id", "stop_token_id", "vocab_size"):
        assert getattr(tokenizer, name) == getattr(config, name), name
    assert len(tokenizer) == 306 and len(set(tokenizer.vocab)) == 306


def test_marks_in_a_text_are_characters(tokenizer):
    ids = tokenizer("</s><pad><stop>", add_special_tokens=False).input_ids
    assert set(ids).isdisjoint({tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id})
    assert ids.count(tokenizer.stop_token_id) == len(words_of("</s><pad><stop>"))


def test_unknown_characters_have_their_symbol(tokenizer):
    assert tokenizer("中 a", add_special_tokens=False).input_ids[0] == tokenizer.unk_token_id


@pytest.mark.parametrize(
    "text",
    [
        "I am.",
        "Don't you (really) mean it?",
        'He said, "Yes," and left. "No," she said.',
        "A well-known, naïve idea: 1,000 of them!",
        "A week-long e-mail of 2-3 words: one–two, 1990–2000",
        "",
    ],
)
def test_decodes_to_readable_text(tokenizer, text):
    assert tokenizer.decode(tokenizer(text).input_ids, skip_special_tokens=True) == text


def test_long_words_are_cut():
    assert HierarchicalLmTokenizer(max_characters=3).tokenize("abcdef") == ["a", "b", "c", "<stop>"]


def test_an_alphabet_made_of_texts(tmp_path):
    trained = HierarchicalLmTokenizer.from_texts(["b a b", "b a c"], vocab_size=7, max_characters=4)
    assert trained.vocab_size == len(trained) == 7
    assert trained("a b c").input_ids == [6, 4, 5, 4, 3, 4, 2]
    trained.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert type(loaded) is HierarchicalLmTokenizer and loaded.max_characters == 4
    assert loaded.get_vocab() == trained.get_vocab() and loaded("a b c").input_ids == trained("a b c").input_ids
    with pytest.raises(ValueError, match="`vocab_size` must be over 5"):
        HierarchicalLmTokenizer.from_texts(["a"], vocab_size=5)


def test_without_the_package(tokenizer, tmp_path):
    folder = save(tiny_lm(), tmp_path / "checkpoint", tokenizer)
    options = {"num_candidates": 3, "select": "embedding", "seed": 0, "max_new_tokens": 20}
    refusal, first, second = run_without_the_package(folder, "text2text-generation", TEXTS, tmp_path, **options)
    assert "trust_remote_code=True" in refusal
    assert first == second == pipeline("text2text-generation", model=folder)(TEXTS, **options)
    assert any(record["generated_text"] for record in first)


def tiny_lm() -> HierarchicalLmForConditionalGeneration:
    torch.manual_seed(0)
    sizes = {"embedding_size": 4, "word_encoder_sizes": (8,), "value_size": 8, "key_size": 4}
    config = HierarchicalLmConfig(word_decoder_hidden_size=4, word_decoder_sizes=(8,), num_layers=1, **sizes)
    return HierarchicalLmForConditionalGeneration(config).eval()
