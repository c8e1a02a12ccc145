"""Strength of models without control tokens: a preference for what is new enough."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from hf_paraphrase.generation.paraphrase_choice import Choice, Paraphrase, score_novelty

from .paraphrasers import make_paraphraser, random_sentences


def test_what_is_not_new_enough_costs_score_and_is_not_refused() -> None:
    source, near, far = "a b c d e f", "a b c d e x", "z b y d x f"
    choice = Choice(n=2, weights=(1, 0, 0), keep=())
    candidates = [Paraphrase(text, adequacy=score) for text, score in ((near, 0.9), (far, 0.5))]
    candidates = [one._replace(novelty=score_novelty([source], [one.text])[0]) for one in candidates]
    assert [one.text for one in choice.choose(source, candidates)] == [near, far]
    found = replace(choice, wanted_novelty=0.6).choose(source, candidates)
    assert [one.text for one in found] == [far, near]
    assert found[0].score == pytest.approx(0.5)
    assert found[1].score == pytest.approx(0.9 * math.exp(-10 * (0.6 - found[1].novelty)))


@pytest.mark.parametrize("name", ["t5", "residual_lstm"])
def test_a_stronger_paraphrase_is_newer(name: str) -> None:
    """Strength 0 is the call without any; at each step up, the first paraphrases are as new or newer, and as many."""
    paraphraser, texts = make_paraphraser(name), random_sentences(8)
    options = {"n": 1, "keep": (), "num_candidates": 6}
    assert paraphraser(texts, strength=0, **options) == paraphraser(texts, **options)
    found = [paraphraser(texts, strength=strength, **options) for strength in (0, 0.5, 1)]
    assert len({tuple(map(len, paraphrases)) for paraphrases in found}) == 1
    means = [sum(one.novelty for (one,) in filter(None, paraphrases)) for paraphrases in found]
    assert means == sorted(means)


def test_a_paraphraser_keeps_the_strength_of_its_constructor(monkeypatch: pytest.MonkeyPatch) -> None:
    paraphraser, (text,) = make_paraphraser("t5"), random_sentences(1)
    strong, asked = type(paraphraser)(paraphraser.model, paraphraser.tokenizer, strength=1.0), []
    monkeypatch.setattr(
        "hf_paraphrase.generation.paraphraser.Choice",
        lambda **criteria: asked.append(criteria["wanted_novelty"]) or Choice(**criteria),
    )
    strong(text)
    strong(text, strength=0.25)
    paraphraser(text)
    assert asked == pytest.approx([0.6, 0.15, 0.0])
