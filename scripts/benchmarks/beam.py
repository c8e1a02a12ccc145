"""Beam search: ours against transformers', for models of transformers and one of ours."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

from hf_paraphrase import ResidualLstmConfig, ResidualLstmForConditionalGeneration
from hf_paraphrase.models.search.beam_search import beam_search

from .timing import Row, in_turn

GOALS = {10_000: "≥ 1.15", 50_000: "≥ 1.3"}
ROWS, LENGTH, BEAMS, MAX_NEW_TOKENS = 32, 12, 5, 20
SIZE = {"layers": 4, "width": 256, "heads": 4, "inner": 1024}
FRAME = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}


def make_bart(vocab_size: int, config_class: type = BartConfig, model_class: type = BartForConditionalGeneration):
    sizes = {"d_model": SIZE["width"], "max_position_embeddings": 64, "forced_eos_token_id": None}
    for part in ("encoder", "decoder"):
        sizes |= {f"{part}_layers": SIZE["layers"], f"{part}_attention_heads": SIZE["heads"]}
        sizes |= {f"{part}_ffn_dim": SIZE["inner"]}
    return model_class(config_class(vocab_size=vocab_size, **sizes, **FRAME))


def make_marian(vocab_size: int) -> PreTrainedModel:
    return make_bart(vocab_size, MarianConfig, MarianMTModel)


def make_t5(vocab_size: int) -> PreTrainedModel:
    sizes = {"d_model": SIZE["width"], "d_kv": SIZE["width"] // SIZE["heads"], "d_ff": SIZE["inner"]}
    sizes |= {"num_layers": SIZE["layers"], "num_heads": SIZE["heads"]}
    return T5ForConditionalGeneration(T5Config(vocab_size=vocab_size, **sizes, **FRAME))


def make_lstm(vocab_size: int) -> PreTrainedModel:
    sizes = {"embedding_size": SIZE["width"], "hidden_size": SIZE["width"], "num_layers": SIZE["layers"]}
    return ResidualLstmForConditionalGeneration(
        ResidualLstmConfig(vocab_size=vocab_size, attention="additive", **sizes)
    )


MODELS = {"BART": make_bart, "Marian": make_marian, "T5": make_t5, "our LSTM": make_lstm}


def benchmark_beam(device: str, repeats: int) -> list[Row]:
    """Beam 5 of models of 4 + 4 layers of 256 by our search against `generate()`, in sentences/s.

    Both write the same words with the same scores, which is checked. On a CPU it is processor time that counts. The
    random models end no sentence early, so that nothing is gained by texts that leave the batch.
    """
    return [
        row(name, make(vocab_size).eval().to(device), vocab_size, device, repeats)
        for name, make in MODELS.items()
        for vocab_size in GOALS
    ]


def row(name: str, model: PreTrainedModel, vocab_size: int, device: str, repeats: int) -> Row:
    """Measure one model."""
    model.generation_config.eos_token_id = None
    ids = torch.randint(4, vocab_size, (ROWS, LENGTH), device=device)
    kwargs = {"num_beams": BEAMS, "max_new_tokens": MAX_NEW_TOKENS, "do_sample": False, "pad_token_id": 0}
    check_equal(model, ids, kwargs)
    ours, theirs = (partial(model.generate, ids, **kwargs, custom_generate=search) for search in (beam_search, None))
    clock = time.process_time if device == "cpu" else time.perf_counter
    *times, ratio = in_turn(ours, theirs, repeats, device, clock)
    ours, theirs = (ROWS / taken for taken in times)
    name = f"beam 5, {name}, {vocab_size:,}"
    return Row(name, "generate()", f"{ours:.1f}", f"{theirs:.1f}", f"{ratio:.2f}", GOALS[vocab_size])


def check_equal(model: PreTrainedModel, ids: torch.LongTensor, kwargs: dict[str, Any]) -> None:
    """Raise ValueError where the searches do not find the same words with the same scores."""
    kwargs = {**kwargs, "return_dict_in_generate": True}
    found = model.generate(ids, **kwargs, custom_generate=beam_search)
    expected = model.generate(ids, **kwargs, output_scores=True)
    is_same = torch.equal(found.sequences, expected.sequences)
    if not is_same or not torch.allclose(found.sequences_scores, expected.sequences_scores, rtol=0, atol=1e-4):
        raise ValueError("the searches differ")
