"""Strength of models without control tokens: thresholds that only rise."""

from __future__ import annotations

import pytest

from hf_paraphrase.generation.paraphrase_choice import Choice
from hf_paraphrase.generation.strength import strengthen

from .paraphrasers import make_paraphraser, random_sentences


def test_thresholds_rise_with_the_strength() -> None:
    asked = Choice(min_novelty=0.1, diversity=0.3, min_adequacy=0.2)
    raised = [strengthen(asked, step / 10) for step in range(11)]
    assert raised[0] == asked
    for name, last in (("min_novelty", 0.5), ("diversity", 0.5)):
        values = [getattr(choice, name) for choice in raised]
        assert values == sorted(values) and values[-1] == last
    assert {choice.min_adequacy for choice in raised} == {0.2}


@pytest.mark.parametrize("name", ["t5", "residual_lstm"])
def test_a_stronger_paraphrase_is_newer(name: str) -> None:
    """Strength 0 is the call without any; at each step up, no text gets a paraphrase that is too near."""
    paraphraser, texts = make_paraphraser(name), random_sentences(8)
    options = {"n": 3, "keep": (), "num_candidates": 6}
    assert paraphraser(texts, strength=0, **options) == paraphraser(texts, **options)
    counts = []
    for strength in (0, 0.5, 1):
        found = sum(paraphraser(texts, strength=strength, **options), [])
        assert all(one.novelty >= strength / 2 for one in found)
        counts.append(len(found))
    assert counts == sorted(counts, reverse=True) and counts[-1] > 0


def test_a_paraphraser_keeps_the_strength_of_its_constructor() -> None:
    paraphraser, (text,) = make_paraphraser("t5"), random_sentences(1)
    strong = type(paraphraser)(paraphraser.model, paraphraser.tokenizer, strength=1.0)
    options = {"n": 3, "keep": (), "num_candidates": 6, "return_rejected": True}
    assert strong(text, **options) == paraphraser(text, strength=1.0, **options) != paraphraser(text, **options)
    assert strong(text, strength=0, **options) == paraphraser(text, **options)
