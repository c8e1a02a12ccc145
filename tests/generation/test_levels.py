from __future__ import annotations

import pytest
import torch
from transformers import pipeline

from hf_paraphrase import Paraphraser
from hf_paraphrase.models.dnpg.configuration_dnpg import DnpgConfig
from hf_paraphrase.models.dnpg.modeling_dnpg import DnpgForConditionalGeneration
from tests.models.tiny import tiny_bart, tiny_model, word_tokenizer

TEXT = "the cat sat on"
KEPT = ["sentence", "phrase", "sentence", "sentence"]


@pytest.fixture(scope="module")
def model():
    return tiny_model(DnpgConfig, DnpgForConditionalGeneration)


def test_the_pipeline_keeps_what_it_is_told_to(model):
    pipe = pipeline("text2text-generation", model=model, tokenizer=word_tokenizer())
    free = pipe(TEXT, max_new_tokens=9)
    (kept,) = pipe(TEXT, max_new_tokens=9, levels="phrase", source_levels=KEPT)
    first, second, *_ = kept["generated_text"].split()
    assert first == "the" and second not in ("sat", "</s>")
    assert free == pipe(TEXT, max_new_tokens=9, levels="both") != [kept]
    for options in ({}, {"num_beams": 1}, {"decoding": "diverse_beam", "num_return_sequences": 3}):
        texts = pipe(TEXT, max_new_tokens=9, levels="phrase", source_levels=KEPT, **options)
        assert all(record["generated_text"].split()[0] == "the" for record in texts)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_beams": 1},
        {"num_beams": 1, "do_sample": True},
        {"decoding": "diverse_beam", "num_return_sequences": 3},
        {"decoding": "dips", "num_return_sequences": 3},
    ],
    ids=str,
)
def test_phrases_survive_every_decoding(model, options):
    torch.manual_seed(0)
    pipe = pipeline("text2text-generation", model=model, tokenizer=word_tokenizer())
    kept = ["sentence", "phrase", "sentence", "phrase"]
    records = pipe("the cat sat Zulu", max_new_tokens=40, levels="sentence", source_levels=kept, **options)
    assert records and all({"cat", "Zulu"} <= set(record["generated_text"].split()) for record in records)


def test_the_paraphraser_keeps_what_it_is_told_to(model):
    options = {"n": 2, "max_new_tokens": 9, "return_rejected": True}
    paraphrase = Paraphraser(model, word_tokenizer())
    kept = paraphrase(TEXT, levels="phrase", source_levels=KEPT, **options)
    assert kept and all(one.text.lower().split()[0] == "the" for one in kept)


def test_words_outside_the_vocabulary_come_back_as_they_stand(model):
    pipe = pipeline("text2text-generation", model=model, tokenizer=word_tokenizer())
    outside = len(word_tokenizer())
    (record,) = pipe("the Zulu sat", max_new_tokens=3, prefix_allowed_tokens_fn=lambda row, ids: [outside])
    assert record["generated_text"].split() == ["Zulu"] * 3


def test_other_models_refuse(model):
    pipe = pipeline("text2text-generation", model=tiny_bart(), tokenizer=word_tokenizer())
    with pytest.raises(ValueError, match="levels"):
        pipe(TEXT, levels="phrase")
    pipe = pipeline("text2text-generation", model=model, tokenizer=word_tokenizer())
    with pytest.raises(ValueError, match="must be phrase, sentence or both"):
        pipe(TEXT, levels="words")
