"""Causal models by CTranslate2: the greedy answers and the scores of `generate()`, and what it has not."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from hf_paraphrase import Paraphraser
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.backends import CTranslate2LanguageModelWriter

from .language_models import PROMPT, byte_tokenizer, tiny_llama
from .paraphrasers import random_sentences

TEXTS = ["how do i cook", "a", "a cat sat with Ann and 3 dogs", *random_sentences(6)]
OPTIONS = {"decoding": "beam", "min_adequacy": 0, "keep": (), "return_rejected": True}
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2}
SIZES = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
SHARED = {"num_key_value_heads": 1, "head_dim": 8}


def make(kind: str, **options) -> PreTrainedModel:
    marks = {"bos_token_id": None, "eos_token_id": 1, "pad_token_id": 0}
    config = AutoConfig.for_model(kind, **{"vocab_size": 68, **marks, **options})
    model = AutoModelForCausalLM.from_config(config).eval()
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -3, 3)
    return model


def make_pair(model: PreTrainedModel, chat: bool = True) -> tuple[Paraphraser, Paraphraser]:
    tokenizer = byte_tokenizer(chat)
    converted = Paraphraser(model, tokenizer, prompt=PROMPT, backend="ctranslate2", compute_type="float32")
    return converted, Paraphraser(model, tokenizer, prompt=PROMPT)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("falcon", {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}),
        ("gemma", {**SIZES, **SHARED}),
        ("gpt2", GPT2),
        ("llama", {**SIZES, "rope_parameters": {"rope_type": "default", "rope_theta": 1e5}}),
        ("mistral", {**SIZES, **SHARED}),
        ("qwen2", {**SIZES, "vocab_size": 80, "num_key_value_heads": 1, "tie_word_embeddings": True}),
        ("qwen3", {**SIZES, **SHARED}),
    ],
)
def test_greedy_answers_and_scores_are_those_of_generate(kind: str, options: dict) -> None:
    assert kind in CTranslate2LanguageModelWriter.model_types
    ours, theirs = make_pair(make(kind, **options))
    options = {**OPTIONS, "n": 1, "num_candidates": 1, "max_new_tokens": 8}
    found, expected = ours(TEXTS, batch_size=4, **options), theirs(TEXTS, batch_size=4, **options)
    assert [[(p.text, p.reason) for p in group] for group in found] == [
        [(p.text, p.reason) for p in group] for group in expected
    ]
    assert len({p.text for group in found for p in group}) > 1
    writers = ours.writer, theirs.writer
    scores = [writer.mean_log_probs(TEXTS, TEXTS[::-1], 4) for writer in writers]
    assert scores[0] == pytest.approx(scores[1], rel=1e-4)


@pytest.mark.parametrize("chat", [True, False], ids=["chat", "plain"])
def test_texts_get_alone_what_they_get_in_a_batch(chat: bool) -> None:
    """Also where they share no beginning, and each answer has its own longest length."""
    ours, theirs = make_pair(tiny_llama(), chat)
    options = {**OPTIONS, "n": 3, "num_candidates": 4}
    together = ours(TEXTS, batch_size=16, **options)
    alone = [ours(text, **options) for text in TEXTS]
    for one, other in zip(together, alone, strict=True):
        assert [(p.text, p.reason) for p in one] == [(p.text, p.reason) for p in other]
        assert [p.score for p in one] == pytest.approx([p.score for p in other], abs=1e-4)
    reasons = [one.reason or "" for group in together for one in group]
    assert not chat or any(reason.startswith("was cut off after 96") for reason in reasons)
    greedy = {**OPTIONS, "n": 1, "num_candidates": 1}
    assert [[p.text for p in group] for group in ours(TEXTS, **greedy)] == [
        [p.text for p in group] for group in theirs(TEXTS, **greedy)
    ]


@pytest.mark.parametrize("options", [{"num_beams": 1}, {"num_beams": 4}, {"num_beams": 3, "length_penalty": 2.0}])
def test_a_search_knows_how_probable_its_answers_are(options: dict) -> None:
    writer, _ = (one.writer for one in make_pair(tiny_llama()))
    prompts = [writer.encoder.encode(text) for text in TEXTS if len(text) == len(TEXTS[0])]
    options = {**options, "num_return_sequences": options["num_beams"], "max_new_tokens": 12}
    ends = list(range(1, 68, 3))
    answers = writer.generate(prompts, 3, ends, 4, **options)
    for prompt, group in zip(prompts, answers, strict=True):
        rows = writer.log_probs([prompt + ids for ids, _ in group])
        expected = [sum(row[-len(ids) :]) / len(ids) for row, (ids, _) in zip(rows, group, strict=True)]
        assert [mean for _, mean in group] == pytest.approx(expected, rel=1e-4)
    assert any(ids[-1] in ends for group in answers for ids, _ in group)


def test_int8_writes_too() -> None:
    paraphraser = Paraphraser(tiny_llama(), byte_tokenizer(), prompt=PROMPT, backend="ctranslate2")
    assert any(paraphraser(TEXTS, 2, min_adequacy=0, keep=(), return_rejected=True))


def test_what_it_has_not_is_refused() -> None:
    ours, _ = make_pair(tiny_llama())
    for options, message in (
        ({"decoding": "sample"}, "`decoding='sample'` is not available with `backend='ctranslate2'`"),
        ({"repetition_penalty": 1.2}, "`repetition_penalty=1.2` is not available with `backend='ctranslate2'`"),
    ):
        with pytest.raises(InputError, match=message):
            ours([], 2, **options)
    with pytest.raises(InputError, match=r"`backend='ctranslate2'` runs falcon, .* and no Bloom"):
        Paraphraser(make("bloom", hidden_size=16, n_head=2, n_layer=1), byte_tokenizer(), backend="ctranslate2")
    with pytest.raises(InputError, match="`backend` must be ctranslate2, or None"):
        Paraphraser(tiny_llama(), byte_tokenizer(), backend="onnx")
