"""What `generate()` is called with, for everything that a call and a checkpoint's generation config may ask for."""

from __future__ import annotations

from itertools import product

import pytest
from transformers import GenerationConfig

from hf_paraphrase.models.search.beam_search import beam_search
from hf_paraphrase.models.search.dips import dips
from hf_paraphrase.models.search.diverse_beam_search import diverse_beam_search
from hf_paraphrase.models.search.generation_request import GenerationRequest

from .tiny import tiny_bart, word_tokenizer

MODEL, TOKENIZER = tiny_bart(), word_tokenizer()
USUAL = {"max_new_tokens": 256, "num_beams": 4}


def decide(usual: dict | None = None, own: dict | None = None, **asked) -> dict:
    """Beams, sequences and search that a request has of a model whose generation config says `own`."""
    MODEL.generation_config = GenerationConfig(**(own or {}))
    request = GenerationRequest.from_kwargs(defaults=USUAL if usual is None else usual, **asked)
    decided = request.generate_kwargs(MODEL, TOKENIZER)
    config = asked.get("generation_config", MODEL.generation_config)
    assert request.count_outputs(MODEL) == decided.get("num_return_sequences", config.num_return_sequences or 1)
    return {name: decided.get(name) for name in ("num_beams", "num_return_sequences", "custom_generate")}


@pytest.mark.parametrize(
    ("own", "asked", "num_beams", "num_return_sequences"),
    [
        # Nobody says anything; the checkpoint does; the call does.
        ({}, {}, 4, None),
        ({"num_beams": 7}, {}, None, None),
        ({"num_beams": 7}, {"num_beams": 2}, 2, None),
        # As many beams as sequences, unless the call says how many.
        ({}, {"num_return_sequences": 3}, 4, 3),
        ({}, {"num_return_sequences": 6}, 6, 6),
        ({"num_beams": 2}, {"num_return_sequences": 6}, 6, 6),
        ({"num_beams": 7}, {"num_return_sequences": 6}, None, 6),
        ({"num_return_sequences": 5, "num_beams": 5}, {"num_beams": 6}, 6, None),
        ({}, {"num_return_sequences": 6, "num_beams": 2}, 2, 6),
        # As many as candidates, whatever the call says.
        ({}, {"num_candidates": 3}, 4, 3),
        ({}, {"num_candidates": 6}, 6, 6),
        ({}, {"num_candidates": 6, "num_beams": 2}, 6, 6),
        ({"num_beams": 7}, {"num_candidates": 6}, None, 6),
        ({"num_beams": 7}, {"num_candidates": 6, "num_beams": 8}, 8, 6),
        ({"num_beams": 3, "num_return_sequences": 3}, {"num_candidates": 1}, None, 1),
        # Groups share the beams out, where the request decides how many there are.
        ({}, {"num_beam_groups": 3}, 6, None),
        ({"num_beam_groups": 3}, {"num_return_sequences": 7}, 9, 7),
        ({}, {"num_beam_groups": 3, "num_candidates": 4}, 6, 4),
        ({}, {"num_beam_groups": 3, "num_beams": 4}, 4, None),
        ({}, {"num_beam_groups": 3, "num_beams": 4, "num_candidates": 3}, 4, 3),
        # Draws need no beams, unless they are made in a beam.
        ({}, {"do_sample": True, "num_beams": 1, "num_candidates": 6}, 1, 6),
        ({"do_sample": True, "num_beams": 1}, {"num_return_sequences": 6}, None, 6),
        ({"do_sample": True}, {"num_candidates": 6}, 6, 6),
        # A generation config in the call is used as it is, but for candidates.
        ({"num_beams": 7}, {"generation_config": GenerationConfig(num_beams=3, num_return_sequences=3)}, None, None),
        ({"num_beams": 7}, {"generation_config": GenerationConfig(num_beams=2), "num_candidates": 3}, 3, 3),
        ({"num_beams": 2}, {"generation_config": GenerationConfig(num_beams=7), "num_candidates": 3}, None, 3),
    ],
)
def test_beams_and_sequences(own, asked, num_beams, num_return_sequences):
    decided = decide(own=own, **asked)
    assert (decided["num_beams"], decided["num_return_sequences"]) == (num_beams, num_return_sequences)


def test_every_search_can_return_what_is_asked_for():
    """All combinations: enough beams, no more than needed, and what the call gives stays where it can."""
    sides = product([None, 2, 5], [None, 1, 3, 8], [None, 1, 6], [None, 3], [None, 2, 9], [{}, USUAL])
    for own_beams, beams, sequences, groups, candidates, usual in sides:
        if sequences is not None and candidates is not None:
            continue
        names = ("num_beams", "num_return_sequences", "num_beam_groups", "num_candidates")
        asked = dict(zip(names, (beams, sequences, groups, candidates), strict=True))
        asked = {name: value for name, value in asked.items() if value is not None}
        own = {} if own_beams is None else {"num_beams": own_beams}
        decided = decide(usual, own, **asked)
        found = decided["num_beams"] or own_beams or 1
        needed, start = candidates or sequences or 1, beams or own_beams or usual.get("num_beams", 1)
        if beams is not None and (candidates is None or beams >= candidates):
            assert found == beams
        else:
            assert max(needed, start) <= found < max(needed, start) + (groups or 1)
            assert found % (groups or 1) == 0
        assert decided["custom_generate"] is (diverse_beam_search if groups else beam_search if found > 1 else None)


@pytest.mark.parametrize(
    ("own", "asked", "search"),
    [
        ({}, {}, beam_search),
        ({}, {"decoding": "beam"}, beam_search),
        ({}, {"decoding": "beam", "num_beams": 1}, None),
        ({}, {"custom_generate": beam_search, "num_beams": 1}, None),
        # What it does not do, or is not told of, is left to `generate()`.
        ({}, {"do_sample": True}, None),
        ({}, {"tokenizer": TOKENIZER}, None),
        ({}, {"streamer": object()}, None),
        ({}, {"force_words_ids": [[5]]}, None),
        ({}, {"decoding": "dips"}, dips),
        ({}, {"decoding": dips}, dips),
        ({}, {"custom_generate": dips}, dips),
        ({}, {"custom_generate": dips, "decoding": "beam"}, beam_search),
        ({}, {"diversity_penalty": 1.0}, diverse_beam_search),
        ({"diversity_penalty": 1.0}, {"decoding": "beam"}, diverse_beam_search),
        ({"num_beam_groups": 2}, {"decoding": "dips"}, dips),
        ({}, {"generation_config": GenerationConfig(num_beam_groups=2)}, diverse_beam_search),
        ({"num_beam_groups": 2}, {"generation_config": GenerationConfig()}, None),
        ({"num_beam_groups": 2}, {"num_beam_groups": 1}, beam_search),
    ],
)
def test_searches(own, asked, search):
    assert decide(own=own, **asked)["custom_generate"] is search


def test_what_nobody_decides():
    MODEL.generation_config = GenerationConfig()

    def decided(**asked):
        return GenerationRequest.from_kwargs(defaults=USUAL, **asked).generate_kwargs(MODEL, TOKENIZER)

    assert decided() == {"pad_token_id": 0, "custom_generate": beam_search, **USUAL}
    assert decided(max_length=9, temperature=0.5) == {
        "pad_token_id": 0,
        "num_beams": 4,
        "max_length": 9,
        "temperature": 0.5,
        "custom_generate": beam_search,
    }
    assert decided(pad_token_id=3, max_new_tokens=2)["pad_token_id"] == 3
    config = GenerationConfig()
    assert decided(generation_config=config) == {"generation_config": config}
    MODEL.generation_config.update(max_length=5, pad_token_id=2)
    assert decided() == {"num_beams": 4, "custom_generate": beam_search}


def test_requests_that_cannot_be():
    for asked, message in (
        ({"decoding": "best"}, "must be one of beam, diverse_beam, dips, or a function, not 'best'"),
        ({"num_candidates": 0}, "`num_candidates` must be at least 1, not 0"),
        ({"select": "jaccard"}, "say how many"),
    ):
        with pytest.raises(ValueError, match=message):
            GenerationRequest.from_kwargs(**asked)
    with pytest.raises(ValueError, match="`streamer`: diverse_beam_search knows no word"):
        decide(num_beam_groups=2, streamer=object())
