"""Inputs and arguments that nothing should get, and many threads at once: each call has a result or a clear error."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from hf_paraphrase import (
    CoupledLstmConfig,
    CoupledLstmForSequenceClassification,
    PairLstmConfig,
    PairLstmForSequenceClassification,
    Text2TextGenerationPipeline,
)
from hf_paraphrase.datasets.corpus_reader import is_text
from hf_paraphrase.generation.engine import match_pairs
from hf_paraphrase.tokenization import train_word_tokenizer
from tests.generation.paraphrasers import PARAPHRASERS, make_paraphraser, random_sentences
from tests.models.tiny import TEXT, WORDS, tiny_model

from .trials import Trials

THREADS = 8
SHORT = {"max_new_tokens": 4, "num_beams": 2}
# A call that goes well, before and after every hostile one.
SOUND = "how do i cook ?"
TEXTS = [
    "",
    " ",
    "\n\n",
    "\0",
    "the \0 cat",
    "\ud800",
    "a \udfff b",
    "\ufeff",
    "\u200b\u200d",
    "\u202ecat",
    "e" + "\u0301" * 500,
]
TEXTS += [
    "x" * 3000,
    "the " * 800,
    "🐈" * 200,
    "猫が座った",
    "<pad> <s> </s> <unk>",
    "%s %n {0} {}",
    "'; --",
    "$(ls)",
    "1e999",
]
OTHERS = [
    None,
    5,
    1.5,
    float("nan"),
    True,
    b"cat",
    {},
    {"text": "cat"},
    [None],
    ["a", 5],
    [["a"]],
    [b"a"],
    object(),
    {"a", "b"},
    (),
]
# Values for any argument, and arguments for any value.
VALUES = [
    None,
    0,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    b"x",
    [],
    [1],
    {},
    (),
    True,
    10**6,
    -(10**12),
    object(),
]
ARGUMENTS = [
    "num_beams",
    "num_return_sequences",
    "temperature",
    "top_k",
    "top_p",
    "repetition_penalty",
    "length_penalty",
]
ARGUMENTS += ["decoding", "num_candidates", "select", "num_neighbors", "retrieved", "batch_size", "stop_sequence"]
ARGUMENTS += ["truncation", "num_beam_groups", "diversity_penalty", "fidelity", "return_tensors", "replace_unknown"]
ARGUMENTS += ["no_repeat_ngram_size", "eos_token_id", "do_sample", "generation_config", "matcher", "unknown_argument"]
OF_PARAPHRASER = [
    "n",
    "min_adequacy",
    "min_fluency",
    "min_novelty",
    "diversity",
    "keep",
    "weights",
    "decoding",
    "seed",
]
OF_PARAPHRASER += ["num_candidates", "num_neighbors", "adequacy", "encoder", "matcher", "fluency", "batch_size"]
OF_PARAPHRASER += ["max_source_length", "return_rejected", "num_beams", "temperature", "unknown_argument"]
# These ask for as much as they say; a long wait is what was asked for.
HARMLESS = {
    ("max_new_tokens", 10**6),
    ("num_beams", 10**6),
    ("num_return_sequences", 10**6),
    ("num_candidates", 10**6),
    ("n", 10**6),
}


def call_hostile(count: int, seed: int = 0) -> Trials:
    """Call pipelines, paraphrasers and sentence-pair models of every architecture in turn, `count` times in all."""
    trials = Trials("hostile calls")
    names = [*PARAPHRASERS, *PAIR_MODELS]
    logging.disable(logging.WARNING)
    try:
        for number in range(count):
            name = names[number % len(names)]
            draw = random.Random(f"{seed} {number}")
            call_pair_model(trials, name, draw) if name in PAIR_MODELS else call_generator(trials, name, draw)
    finally:
        logging.disable(logging.NOTSET)
    return trials


def call_generator(trials: Trials, name: str, draw: random.Random) -> None:
    is_pipeline = draw.random() < 0.6
    call = make_pipeline(name) if is_pipeline else make_paraphraser(name)
    arguments = draw_arguments(draw, ARGUMENTS if is_pipeline else OF_PARAPHRASER)
    texts = draw_input(draw)
    label = f"{name}, {'pipeline' if is_pipeline else 'Paraphraser'}({texts!r:.60}, {arguments})"
    defaults = SHORT if is_pipeline else {"n": 1, "num_candidates": 2, "keep": (), "max_new_tokens": 3}
    with trials.trial(label):
        before = sound_result(name, is_pipeline)
        named = [*arguments, *([] if texts == SOUND else ["input", "text"])]
        expect_result_or_named_argument(lambda: list(call(texts, **(defaults | arguments))), named)
        assert call(SOUND, **defaults) == before, "the next call has another result"


def call_pair_model(trials: Trials, name: str, draw: random.Random) -> None:
    model = make_pair_model(name)
    # They come from files in UTF-8, which holds no half of a surrogate pair.
    texts = [draw.choices(list(filter(is_text, [*TEXTS, SOUND])), k=3) for _ in range(2)]
    with trials.trial(f"{name}, match_pairs{texts!r:.80}"):
        expect_result_or_named_argument(lambda: match_pairs(model, pair_tokenizer(), *texts, batch_size=2), [])
        assert torch.equal(match_pairs(model, pair_tokenizer(), [SOUND], [SOUND]), sound_result(name, False))


def expect_result_or_named_argument(call: Callable[[], Any], names: list[str]) -> None:
    """Let through a ValueError that says which of the hostile arguments it is about."""
    try:
        call()
    except ValueError as error:
        if not any(name in str(error) for name in names):
            raise AssertionError(f"no argument is named: {type(error).__name__}: {error}") from error


def draw_input(draw: random.Random) -> Any:
    one = draw.random()
    if one < 0.3:
        return draw.choice(TEXTS)
    if one < 0.5:
        return draw.choice(OTHERS)
    if one < 0.7:
        return [draw.choice([*TEXTS, SOUND]) for _ in range(draw.randint(0, 3))]
    return SOUND


def draw_arguments(draw: random.Random, names: list[str]) -> dict[str, Any]:
    drawn = {name: draw.choice(VALUES) for name in draw.sample(names, draw.choice([0, 1, 1, 2]))}
    return {name: value for name, value in drawn.items() if not (value == 10**6 and (name, value) in HARMLESS)}


@cache
def make_pipeline(name: str) -> Text2TextGenerationPipeline:
    paraphraser = make_paraphraser(name)
    pipe = Text2TextGenerationPipeline(model=paraphraser.model, tokenizer=paraphraser.tokenizer, device="cpu")
    pipe.retriever = paraphraser.retriever
    return pipe


PAIR_MODELS = {
    "coupled_lstm": (CoupledLstmConfig, CoupledLstmForSequenceClassification),
    "pair_lstm": (PairLstmConfig, PairLstmForSequenceClassification),
}


@cache
def make_pair_model(name: str) -> torch.nn.Module:
    return tiny_model(*PAIR_MODELS[name])


@cache
def pair_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = train_word_tokenizer([TEXT], len(WORDS))
    tokenizer.model_input_names = [*tokenizer.model_input_names, "token_type_ids"]
    return tokenizer


@cache
def sound_result(name: str, is_pipeline: bool) -> Any:
    if name in PAIR_MODELS:
        return match_pairs(make_pair_model(name), pair_tokenizer(), [SOUND], [SOUND])
    if is_pipeline:
        return make_pipeline(name)(SOUND, **SHORT)
    return make_paraphraser(name)(SOUND, n=1, num_candidates=2, keep=(), max_new_tokens=3)


def call_from_threads(count: int, seed: int = 0) -> Trials:
    """Call one pipeline of every architecture from eight threads; each result is the one that it has alone."""
    trials = Trials(f"calls from {THREADS} threads")
    with ThreadPoolExecutor(THREADS) as pool:
        for number, name in enumerate(PARAPHRASERS):
            pipe, share = make_pipeline(name), count // len(PARAPHRASERS) + (number < count % len(PARAPHRASERS))
            texts = random_sentences(share, seed)
            alone = {text: pipe(text, **SHORT) for text in texts}
            for text, found in zip(texts, pool.map(lambda text, pipe=pipe: pipe(text, **SHORT), texts), strict=True):
                with trials.trial(f"{name}, {text!r}"):
                    assert found == alone[text]
    return trials
