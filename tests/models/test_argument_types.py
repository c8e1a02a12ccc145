from __future__ import annotations

import numpy as np
import pytest
from transformers import GenerationConfig

from hf_paraphrase.models.search.generation_request import GenerationRequest
from hf_paraphrase.models.search.pipeline_checks import check_arguments
from tests.generation.paraphrasers import make_paraphraser
from tests.models.test_pipeline_text2text import text2text
from tests.models.tiny import tiny_t5


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_beams": np.int64(3), "top_k": 0, "temperature": 0.5, "top_p": 1, "do_sample": True, "noise": "uniform"},
        {"eos_token_id": [1, 2], "pad_token_id": 0, "stop_sequence": ".", "generation_config": GenerationConfig()},
        {"num_beams": None, "temperature": "uniform", "not_known_here": object()},
    ],
)
def test_what_may_be(arguments):
    check_arguments(arguments)


def test_numbers_of_numpy():
    options = {"max_new_tokens": np.int64(4), "temperature": np.float32(0.5), "top_k": np.int32(3), "top_p": None}
    parameters = GenerationRequest.from_kwargs(**options, do_sample=True).parameters
    assert list(map(type, parameters.values())) == [int, float, int, type(None), bool]
    pipe, text = text2text(tiny_t5()), "the cat"
    assert pipe([text], **options, do_sample=True, batch_size=np.int64(1))
    assert make_paraphraser("bart")(text, np.int64(2), max_new_tokens=np.int64(4), num_candidates=np.int64(10))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num_beams", "4", "must be a whole number, not '4'"),
        ("num_beams", 1.5, "must be a whole number"),
        ("num_beams", True, "must be a whole number"),
        ("num_return_sequences", {}, "must be a whole number"),
        ("num_beam_groups", "x", "must be a whole number"),
        ("batch_size", 0, "must be at least 1, not 0"),
        ("top_k", -1, "must be at least 0, not -1"),
        ("temperature", [1], "must be a number"),
        ("temperature", float("nan"), "must be a number"),
        ("repetition_penalty", "x", "must be a float above 0"),
        ("repetition_penalty", 2, "must be a float above 0, not 2"),
        ("length_penalty", 10**6, "must be a number from -100 to 100"),
        ("length_penalty", "1", "must be a number from -100 to 100"),
        ("do_sample", "x", "must be True or False"),
        ("stop_sequence", [], "must be a text"),
        ("eos_token_id", float("inf"), "must be the number of a token"),
        ("generation_config", [], "must be a GenerationConfig"),
        ("decoding", {}, "must be one of beam"),
        ("truncation", float("inf"), "must be True, False or one of only_first"),
        ("truncation", "x", "must be True, False or one of only_first"),
    ],
)
def test_what_may_not_be_is_named_by_the_pipeline(name, value, message):
    with pytest.raises(ValueError, match=f"`{name}` {message}"):
        text2text(tiny_t5())("the cat", **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keep", None),
        ("keep", [[]]),
        ("weights", 1.5),
        ("weights", "abc"),
        ("batch_size", None),
        ("fluency", {}),
        ("temperature", ()),
    ],
)
def test_what_may_not_be_is_named_by_the_paraphraser(name, value):
    with pytest.raises(ValueError, match=f"`{name}` "):
        make_paraphraser("t5")("the cat", **{name: value})
