"""Which candidates are chosen, whatever their texts and scores."""

from __future__ import annotations

import inspect
import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hf_paraphrase import Paraphraser
from hf_paraphrase.generation.paraphrase_choice import Choice, Paraphrase, normal_form, score_novelty
from hf_paraphrase.generation.protected_text import KEPT, find_change
from hf_paraphrase.generation.writers import Candidate

# Letters, digits and marks of many scripts, and what they are easily mistaken for.
ODD = st.text(alphabet=st.one_of(st.characters(), st.sampled_from("aA1²½Ⅷ٣ İıßﬁ’'\"“”«»`.,!?-−@:/\u00ad\u200b\u0301")))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(ODD)
@example("aİ")
@example("İA")
def test_no_text_loses_or_invents_anything_of_its_own(text: str) -> None:
    assert find_change(text, text, KEPT) is None
    assert find_change(text, text, KEPT, ignore_case=True) is None
    assert find_change(text, text.lower(), ["names"], ignore_case=True) is None
    assert normal_form(text) == normal_form(f" {text}! ")


@settings(max_examples=300, deadline=None, derandomize=True)
@given(ODD, st.lists(ODD, max_size=6))
def test_whatever_the_candidates(source: str, texts: list[str]) -> None:
    choice = Choice(n=2, keep=tuple(KEPT), return_rejected=True, diversity=0.5)
    sifted = choice.sift(source, map(Candidate, texts))
    assert [one.text for one in sifted] == list(dict.fromkeys(texts))
    scored = [one if one.reason else one._replace(adequacy=0.5, fluency=0.5, novelty=0.5) for one in sifted]
    found = choice.choose(source, scored)
    assert sorted(one.text for one in found) == sorted(one.text for one in sifted)
    kept = [one for one in found if one.reason is None]
    assert found[: len(kept)] == kept and len(kept) <= 2
    assert len({normal_form(one.text) for one in kept} - {normal_form(source), ""}) == len(kept)
    assert all(find_change(source, one.text, KEPT) is None for one in kept)


def test_rules_say_why() -> None:
    texts = ["", "How do I learn!", "learn in oslo", "Learn in Oslo", "LEARN IN OSLO?", "learn in oslo", "?"]
    reasons = {one.text: one.reason for one in Choice(keep=()).sift("how do i learn", map(Candidate, texts))}
    assert reasons == {
        "": "has no words",
        "How do I learn!": "is the source",
        "learn in oslo": None,
        "Learn in Oslo": "is the same as 'learn in oslo'",
        "LEARN IN OSLO?": "is the same as 'learn in oslo'",
        "?": "has no words",
    }
    (one,) = Choice().sift("how do i learn", [Candidate("go to Oslo, in 3 days")])
    assert one == Paraphrase("go to Oslo, in 3 days", reason="invents 'Oslo' (names)")


@pytest.mark.parametrize("diversity", [0.0, 0.5])
def test_thresholds_and_order_of_a_thousand_rows(diversity: float) -> None:
    draw = random.Random(0)
    for _ in range(1000):
        texts = [f"w{number} {draw.choice('abc')} {draw.choice('abc')}" for number in range(draw.randint(0, 8))]
        candidates = [Paraphrase(text, None, *(round(draw.random(), 1) for _ in range(3))) for text in texts]
        least = [round(draw.random() / 2, 1) for _ in range(3)]
        names = ("min_adequacy", "min_fluency", "min_novelty")
        options = {**dict(zip(names, least, strict=True)), "n": draw.randint(1, 4), "diversity": diversity}
        found = Choice(return_rejected=True, **options).choose("a b c", candidates)
        chosen = [one for one in found if one.reason is None]
        passing = [one for one in candidates if all(v >= low for v, low in zip(one[2:5], least, strict=True))]
        assert len(chosen) == min(options["n"], len(passing)) and len(found) == len(candidates)
        assert {one.text for one in chosen} <= {one.text for one in passing}
        scores = [one.score for one in chosen]
        assert scores == sorted(scores, reverse=True)
        if not diversity:
            assert (
                scores
                == sorted((one.score for one in found if one.text in {p.text for p in passing}), reverse=True)[
                    : len(scores)
                ]
            )
        for one in found[len(chosen) :]:
            low = [value < least for value, least in zip(one[2:5], least, strict=True)]
            assert one.reason == "others were chosen" if not any(low) else "is below" in one.reason


def test_novelty_is_pinc_of_each() -> None:
    # A word of three is new, and with it both pairs and the triple, but for one pair.
    assert score_novelty(["A b c", "a b", "a b"], ["a b d", "a", "x y"]) == pytest.approx(
        [(1 / 3 + 1 / 2 + 1) / 3, 0.0, 1.0]
    )
    assert score_novelty([], []) == []


def test_the_floors_are_those_that_the_card_measures() -> None:
    card = (Path(__file__).parents[2] / "model_cards" / "PARAPHRASER.md").read_text(encoding="utf-8")
    assert f"--set min_adequacy={Choice().min_adequacy} --set min_novelty={Choice().min_novelty}" in card
    defaults = inspect.signature(Paraphraser.__call__).parameters
    assert defaults["min_adequacy"].default is None  # that of its judge
    for name in ("min_fluency", "min_novelty"):
        assert defaults[name].default == getattr(Choice(), name)


def test_what_is_known_to_be_too_low_is_not_scored_further() -> None:
    written = {"the cat sat on a mat": 0.9, "cats like to sit here": 0.9, "a dog is fun": 0.1}
    candidates = [Candidate(text, fluency=fluency) for text, fluency in written.items()]
    choice = Choice(min_fluency=0.2, min_novelty=0.5)
    sifted = choice.sift("the cat sat on the mat", candidates)
    assert [one.reason and one.reason.split()[0] for one in sifted] == ["novelty", None, "fluency"]
    assert all(one.adequacy is None and one.score is None for one in sifted)
