"""The lean beam search against the one of transformers: same words, same scores, same order."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache, PreTrainedModel, StoppingCriteria, T5Config, T5ForConditionalGeneration
from transformers.cache_utils import DynamicLayer

from hf_paraphrase.models.dnpg.configuration_dnpg import DnpgConfig
from hf_paraphrase.models.dnpg.modeling_dnpg import DnpgForConditionalGeneration
from hf_paraphrase.models.hierarchical_autoencoder.configuration_hierarchical_autoencoder import (
    HierarchicalAutoencoderConfig,
)
from hf_paraphrase.models.hierarchical_autoencoder.modeling_hierarchical_autoencoder import (
    HierarchicalAutoencoderForConditionalGeneration,
)
from hf_paraphrase.models.residual_lstm.configuration_residual_lstm import ResidualLstmConfig
from hf_paraphrase.models.residual_lstm.modeling_residual_lstm import ResidualLstmForConditionalGeneration
from hf_paraphrase.models.search.batch_writing import generate_with_scores
from hf_paraphrase.models.search.beam_search import BeamLayer, beam_search
from hf_paraphrase.models.search.found_sentences import DEAD
from hf_paraphrase.models.ssru_transformer.configuration_ssru_transformer import SsruTransformerConfig
from hf_paraphrase.models.ssru_transformer.modeling_ssru_transformer import SsruTransformerForConditionalGeneration

from .small_batches import pad
from .test_diverse_decoding import tiny_marian
from .test_pipeline_pairs import tiny_fset
from .tiny import SPECIAL_IDS, WORDS, tiny_bart, tiny_gpt2, tiny_model

SOURCES = [[5, 6, 7, 8, 9], [9, 4, 7], [12], [6, 6, 10, 11]]
PAIRS = [([6, 6, 4], [8]), ([10, 5], [9, 4, 7, 5]), ([4], [5, 6]), ([7], [7, 8])]
VOCABULARY = len(WORDS)


def tiny_t5() -> T5ForConditionalGeneration:
    torch.manual_seed(3)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2}
    model = T5ForConditionalGeneration(
        T5Config(vocab_size=VOCABULARY, decoder_start_token_id=0, **sizes, **SPECIAL_IDS)
    )
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.8, 0.8)
    return model.eval()


def tiny_ssru() -> SsruTransformerForConditionalGeneration:
    """A model that ends some texts before others."""
    sizes = {"d_model": 16, "encoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = SsruTransformerConfig(vocab_size=VOCABULARY, **sizes, **heads, **SPECIAL_IDS)
    model = SsruTransformerForConditionalGeneration(config)
    torch.manual_seed(1)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.eval()


MODELS: dict[str, Callable[[], PreTrainedModel]] = {
    "BART": tiny_bart,
    "Marian": tiny_marian,
    "T5": tiny_t5,
    "residual LSTM": lambda: tiny_model(ResidualLstmConfig, ResidualLstmForConditionalGeneration),
    "autoencoder": lambda: tiny_model(HierarchicalAutoencoderConfig, HierarchicalAutoencoderForConditionalGeneration),
    "FSET": tiny_fset,
    "SSRU": tiny_ssru,
    "DNPG": lambda: tiny_model(DnpgConfig, DnpgForConditionalGeneration),
}


@cache
def model_of(name: str) -> PreTrainedModel:
    return MODELS[name]()


def inputs_of(model: PreTrainedModel, side: str = "right") -> dict[str, torch.Tensor]:
    columns = {"input_ids": SOURCES}
    if model.config.model_type == "fset":
        columns |= {"retrieved_source_ids": [pair[0] for pair in PAIRS]}
        columns |= {"retrieved_target_ids": [pair[1] for pair in PAIRS]}
    inputs = {}
    for name, texts in columns.items():
        inputs[name] = pad(texts, side, 0)
        mask = "attention_mask" if name == "input_ids" else name.replace("_ids", "_mask")
        inputs[mask] = pad([[1] * len(text) for text in texts], side, 0)
    return inputs


def compare(model: PreTrainedModel, inputs: dict[str, Any], **options: Any) -> None:
    """Both searches of the same."""
    kwargs = {"num_beams": 3, "do_sample": False, "return_dict_in_generate": True, "max_new_tokens": 7, **options}
    # `generate()` repeats the rows of encoder outputs in place.
    expected, beams = note_beams(model, deepcopy(inputs), **kwargs)
    found = model.generate(**inputs, **kwargs, custom_generate=beam_search)
    assert "cache" not in found, "transformers searched, which returns the cache"
    # Where processors leave fewer sentences than are wanted, the others are any of the impossible ones.
    is_possible = expected.sequences_scores > DEAD
    assert torch.equal(found.sequences_scores > DEAD, is_possible)
    for name, type_of_result in (("sequences", torch.long), ("beam_indices", torch.int32)):
        assert found[name].dtype == type_of_result
    assert torch.equal(found.sequences[is_possible], expected.sequences[is_possible])
    close = {"rtol": 1e-5, "atol": 1e-5}
    scores = expected.sequences_scores[is_possible]
    torch.testing.assert_close(found.sequences_scores[is_possible], scores, **close)
    indices = [each.beam_indices[is_possible] for each in (found, expected)]
    # Which of two beams with the same score stands first, rounding decides, and so the CPU does.
    torch.testing.assert_close(*(beams.gather(1, each.T.long() + 1) for each in indices), **close)


def note_beams(model: PreTrainedModel, inputs: dict[str, Any], **kwargs: Any) -> tuple[Any, torch.Tensor]:
    """What `generate()` finds, and the scores that its beams had before each step, after a column for none (-1)."""
    advance, noted = model._get_running_beams_for_next_iteration, []

    def note(*args: Any, **options: Any) -> Any:
        beams = advance(*args, **options)
        noted.append(beams[1].flatten())
        return beams

    with patch.object(model, "_get_running_beams_for_next_iteration", note):
        found = model.generate(**inputs, **kwargs, output_scores=True)
    # Before the first step a text's beams are one; their numbers tell the texts apart.
    beams = torch.stack([torch.arange(len(noted[0]), dtype=torch.float), *noted[:-1]])
    return found, torch.nn.functional.pad(beams, (1, 0), value=1.0)


words = st.integers(3, 12)
OPTIONS = st.fixed_dictionaries(
    {
        "num_beams": st.integers(2, 5),
        "length_penalty": st.sampled_from([-1.0, 0.0, 0.6, 1.0, 2.0]),
        "early_stopping": st.sampled_from([False, True, "never"]),
        "max_new_tokens": st.integers(1, 9),
    },
    optional={
        "num_return_sequences": st.integers(1, 2),
        "eos_token_id": st.sampled_from([2, [2, 5], [7, 2, 9]]),
        "pad_token_id": st.sampled_from([0, 1]),
        "min_new_tokens": st.integers(1, 4),
        "min_length": st.integers(1, 6),
        "suppress_tokens": st.lists(words, min_size=1, max_size=3, unique=True),
        "begin_suppress_tokens": st.lists(words, min_size=1, max_size=3, unique=True),
        "forced_bos_token_id": st.integers(13, VOCABULARY - 1),
        "forced_eos_token_id": st.just(2),
        "no_repeat_ngram_size": st.integers(1, 3),
        "bad_words_ids": st.lists(st.lists(words, min_size=1, max_size=2), min_size=1, max_size=2),
        "repetition_penalty": st.sampled_from([0.8, 1.5]),
        "renormalize_logits": st.just(True),
        "exponential_decay_length_penalty": st.just((2, 1.3)),
        "use_cache": st.booleans(),
    },
)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(options=OPTIONS, side=st.sampled_from(["left", "right"]))
def test_it_finds_what_generate_finds(name: str, options: dict[str, Any], side: str) -> None:
    model = model_of(name)
    compare(model, inputs_of(model, side), **options)


@pytest.mark.parametrize("levels", ["phrase", "sentence"])
def test_levels_that_are_kept_are_kept_by_both(levels: str) -> None:
    model = model_of("DNPG")
    by_hand = pad([[0, 1, 0, 0, 1], [1, 0, 1], [0], [0, 0, 1, 0]], "right", 1)
    for options in ({}, {"num_return_sequences": 3, "max_new_tokens": 12}, {"use_cache": False}):
        compare(model, {**inputs_of(model), "source_levels": by_hand, "levels": levels}, **options)


@pytest.mark.parametrize("name", MODELS)
def test_prompts_encoder_outputs_and_no_end(name: str) -> None:
    model = model_of(name)
    inputs = inputs_of(model)
    start = model.generation_config.decoder_start_token_id
    prompts = torch.tensor([[start, 5], [start, 6], [start, 9], [start, 4]])
    compare(model, {**inputs, "decoder_input_ids": prompts}, length_penalty=2.0)
    left = torch.tensor([[1, 1], [1, 1], [1, 1], [0, 1]])
    compare(model, {**inputs, "decoder_input_ids": prompts, "decoder_attention_mask": left}, num_beams=2)
    compare(model, {**inputs, "decoder_input_ids": prompts}, num_return_sequences=3, repetition_penalty=1.3)
    compare(model, inputs, eos_token_id=None, pad_token_id=0)
    if model.config.model_type != "fset":
        with torch.no_grad():
            encoder_outputs = model.get_encoder()(**inputs, return_dict=True)
        compare(model, {"encoder_outputs": encoder_outputs, "attention_mask": inputs["attention_mask"]})


class EndsIn(StoppingCriteria):
    def __init__(self, words: list[int]):
        self.words = words

    def __call__(self, input_ids, scores, **kwargs):
        return torch.isin(input_ids[:, -2:], torch.tensor(self.words)).all(dim=1)


@pytest.mark.parametrize("name", MODELS)
def test_processors_and_criteria_of_the_caller(name: str) -> None:
    """They may look at everything: what was written, and which text a row belongs to."""
    model = model_of(name)

    def allowed(text: int, ids: torch.Tensor) -> list[int]:
        return [2, 4, *SOURCES[text], 5 + len(ids) % 4, 10]

    for options in ({"early_stopping": True}, {"num_beams": 2, "num_return_sequences": 2}):
        compare(model, inputs_of(model), stopping_criteria=[EndsIn([5, 6, 7, 8, 9, 10, 11])], **options)
        compare(model, inputs_of(model), prefix_allowed_tokens_fn=allowed, **options)
        compare(model, inputs_of(model), encoder_no_repeat_ngram_size=1, **options)


class Spy:
    """Counts the rows that a model reads at every step, and how many it keeps."""

    def __init__(self, model: PreTrainedModel, monkeypatch: pytest.MonkeyPatch):
        self.rows: list[int] = []
        forward = model.forward

        def count(*args: Any, **kwargs: Any) -> Any:
            self.rows.append(len(kwargs["decoder_input_ids"]))
            return forward(*args, **kwargs)

        monkeypatch.setattr(model, "forward", count)


# Not the autoencoder, whose limit of words looks at the places of rows, nor FSET, whose texts end together.
@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"autoencoder", "FSET"}))
def test_beams_start_as_one_row_and_finished_texts_leave(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS[name]()
    options = {"max_new_tokens": 12, "early_stopping": True, "suppress_tokens": [4], "no_repeat_ngram_size": 1}
    options["eos_token_id"] = [2, 5, 6, 7]
    compare(model, inputs_of(model), **options)
    spy = Spy(model, monkeypatch)
    model.generate(**inputs_of(model), num_beams=3, custom_generate=beam_search, **options)
    first, second, *others = spy.rows
    assert (first, second) == (4, 12)
    assert others == sorted(others, reverse=True) and others[-1] < 12


def test_what_looks_at_the_place_of_a_row_keeps_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_bart()
    spy = Spy(model, monkeypatch)
    kwargs = {"num_beams": 3, "max_new_tokens": 9, "early_stopping": True, "custom_generate": beam_search}
    model.generate(**inputs_of(model), prefix_allowed_tokens_fn=lambda text, ids: [2, 5, 6, 7], **kwargs)
    assert set(spy.rows[1:]) == {12}


def test_the_source_s_part_of_a_cache_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = []
    reorder = DynamicCache.reorder_cache
    monkeypatch.setattr(DynamicCache, "reorder_cache", lambda *args: moved.append(args[0]) or reorder(*args))
    model = tiny_bart()
    model.generate(**inputs_of(model), num_beams=3, max_new_tokens=6, eos_token_id=None, custom_generate=beam_search)
    # Both parts once, when one row a text becomes as many as beams; then those of the beams alone.
    assert len(moved) > 3
    assert len({id(part) for part in moved[2:]}) == 1 and moved[2] is moved[0]
    assert all(type(layer) is BeamLayer for layer in moved[0].layers)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(steps=st.lists(st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=5), st.integers(1, 3)), max_size=5))
def test_a_layer_by_time_holds_what_a_usual_one_does(steps: list[tuple[list[int], int]]) -> None:
    generator = torch.Generator().manual_seed(0)
    usual, count = DynamicLayer(), 3
    usual.update(*torch.randn(2, count, 2, 4, 5, generator=generator))
    by_time = BeamLayer(usual)
    for rows, tokens in steps:
        for _ in range(2):  # twice, before a token joins them
            rows = torch.tensor(rows) % count
            usual.reorder_cache(rows)
            by_time.reorder_cache(rows)
            count = len(rows)
        states = torch.randn(2, count, 2, tokens, 5, generator=generator)
        for found, expected in zip(by_time.update(*states), usual.update(*states), strict=True):
            assert torch.equal(found, expected)
        assert by_time.get_seq_length() == usual.get_seq_length()


@pytest.mark.parametrize(
    "options",
    [
        {"num_beams": 1},
        {"num_beams": 1, "do_sample": True},
        {"do_sample": True},
        {"output_scores": True},
        {"output_logits": True},
        {"output_attentions": True, "output_hidden_states": True},
        {"cache_implementation": "static"},
    ],
    ids=str,
)
def test_what_it_does_not_cover_is_left_to_transformers(options: dict[str, Any]) -> None:
    model = model_of("BART")
    kwargs = {"num_beams": 3, "max_new_tokens": 5, "return_dict_in_generate": True, **options}
    found, expected = [], []
    for results, search in ((found, {"custom_generate": beam_search}), (expected, {})):
        torch.manual_seed(0)
        results.append(model.generate(**inputs_of(model), **kwargs, **search))
    assert torch.equal(found[0].sequences, expected[0].sequences)
    wanted = {name for name in expected[0] if expected[0][name] is not None}
    assert wanted <= set(found[0])
    # Scores of sentences are there however the search was done.
    assert ("sequences_scores" in found[0]) == (kwargs["num_beams"] > 1)


def test_a_model_with_a_search_of_its_own_keeps_it() -> None:
    class Own(type(model_of("BART"))):
        def _update_finished_beams(self, *args, **kwargs):
            self.was_asked = True
            return super()._update_finished_beams(*args, **kwargs)

    model = Own(model_of("BART").config).eval()
    model.generate(**inputs_of(model), num_beams=2, max_new_tokens=2, custom_generate=beam_search)
    assert model.was_asked


def test_decoder_only_models_are_left_to_transformers() -> None:
    model = tiny_gpt2().eval()
    kwargs = {"num_beams": 3, "max_new_tokens": 4, "pad_token_id": 0}
    inputs = {"input_ids": torch.tensor(SOURCES[:1])}
    expected = model.generate(**inputs, **kwargs)
    assert torch.equal(model.generate(**inputs, **kwargs, custom_generate=beam_search), expected)


def test_scores_of_sentences_without_those_of_steps() -> None:
    model = model_of("T5")
    kwargs = {"num_beams": 3, "max_new_tokens": 5, "num_return_sequences": 2, "output_scores": True}
    expected = generate_with_scores(model, inputs_of(model), kwargs)
    found = generate_with_scores(model, inputs_of(model), {**kwargs, "custom_generate": beam_search})
    assert torch.equal(found[0], expected[0])
    torch.testing.assert_close(found[1], expected[1], rtol=0, atol=1e-5)
    # A cache of one size is transformers' own to search with.
    static = {**kwargs, "custom_generate": beam_search, "cache_implementation": "static"}
    torch.testing.assert_close(generate_with_scores(model, inputs_of(model), static)[1], expected[1])
