from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.distinct_n.scoring import distinct_n
from hf_paraphrase.metrics.ibleu.scoring import ibleu
from hf_paraphrase.metrics.pinc.scoring import pinc
from hf_paraphrase.metrics.self_bleu.scoring import self_bleu

TEXTS = ["how can i cook fast ?", "what is the fastest way to cook ?", "cook it fast , how ?"]


@pytest.mark.parametrize(
    ("prediction", "source", "score"),
    [
        ("a b c d", "a b c d", 0),
        ("e f g h", "a b c d", 1),
        ("a b c e", "a b c d", (1 / 4 + 1 / 3 + 1 / 2 + 1) / 4),
        ("a b", "a c", (1 / 2 + 1) / 2),  # no n-grams longer than two
        ("a a a", "a b", (0 + 1 + 1) / 3),  # each n-gram counts once
        ("x", "a", 1),
        ("", "a b", 0),
        ("a b", "", 1),
    ],
)
def test_pinc_by_hand(prediction: str, source: str, score: float) -> None:
    assert pinc([prediction], [source])["score"] == pytest.approx(100 * score)


def test_pinc_is_the_mean_of_the_sentences() -> None:
    assert pinc(["a", "x"], ["a", "a"]).statistics["pinc"].rows.tolist() == [[0, 1], [1, 1]]
    assert pinc(["A b c", "x"], ["a b c", "y"], lowercase=True, max_order=2)["score"] == 50
    with pytest.raises(InputError, match="max_order must be at least 1"):
        pinc(["a"], ["a"], max_order=0)


def test_self_bleu_scores_each_candidate_against_each_other() -> None:
    ordered = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    expected = bleu([TEXTS[one] for one, _ in ordered], [TEXTS[other] for _, other in ordered])
    result = self_bleu([TEXTS])
    assert (result["self_bleu_2"], result["self_bleu_4"]) == (
        pytest.approx(expected["bleu_2"]),
        pytest.approx(expected["bleu_4"]),
    )
    assert self_bleu([TEXTS[::-1]]) == pytest.approx(result)
    assert result["signature"] == f"mean-over-pairs|{expected['signature']}"
    # A source counts once, however many candidates it has.
    once, again = (self_bleu([TEXTS, other])["self_bleu_2"] for other in (["a b", "a c"], ["a b", "a c"] * 2))
    assert once == pytest.approx(self_bleu([["a b", "a c"], TEXTS])["self_bleu_2"]) and again > once


def test_self_bleu_does_not_grow_with_the_number_of_exchangeable_candidates() -> None:
    draw = random.Random(0)

    def candidate() -> str:
        return " ".join(draw.choices(["how", "can", "i", "cook"], [4, 3, 2, 1], k=8))

    sources = [[candidate() for _ in range(5)] for _ in range(1500)]
    few, more, many = (self_bleu([texts[:count] for texts in sources])["self_bleu_2"] for count in (2, 3, 5))
    assert max(few, more, many) - min(few, more, many) < 1
    others = [[other for other in texts if other is not text] for texts in sources for text in texts]
    assert bleu([text for texts in sources for text in texts], others)["bleu_2"] > many + 10


def test_self_bleu_of_equal_and_of_disjoint_candidates() -> None:
    assert self_bleu([["a b c d"] * 3, ["e f g h"] * 2])["self_bleu_4"] == pytest.approx(100)
    assert self_bleu([["a b c d", "e f g h"]])["self_bleu_2"] == 0
    with pytest.raises(InputError, match=r"predictions\[1\] has 1 texts; give at least 2"):
        self_bleu([["a", "b"], ["c"]])


def test_distinct_n_by_hand() -> None:
    result = distinct_n(["a b a b", "a b c", ""], max_order=3)
    assert result["distinct_1"] == pytest.approx(3 / 7)
    assert result["distinct_2"] == pytest.approx(3 / 5)  # a b, b a, b c; nothing across texts
    assert result["distinct_3"] == 1
    assert distinct_n(["", ""])["distinct_1"] == 0
    assert distinct_n(["A a"], lowercase=True)["distinct_1"] == 0.5


def test_ibleu_is_the_weighted_difference() -> None:
    predictions, references, sources = TEXTS[:2], [TEXTS[1:], TEXTS[0]], [TEXTS[2], TEXTS[0]]
    expected = 0.7 * bleu(predictions, references)["score"] - 0.3 * bleu(predictions, sources)["score"]
    result = ibleu(predictions, references, sources, alpha=0.7)
    assert result["score"] == pytest.approx(expected)
    assert result["bleu"] == pytest.approx(bleu(predictions, references)["score"])
    assert result["source_bleu"] == pytest.approx(bleu(predictions, sources)["score"])
    assert result["signature"].startswith("alpha:0.7|nrefs:var|")


def test_ibleu_of_copies() -> None:
    assert ibleu(["a b c d"], ["e f g h"], ["a b c d"])["score"] == pytest.approx(-20)
    assert ibleu(["a b c d"], ["a b c d"], ["a b c d"])["score"] == pytest.approx(60)
    assert ibleu(["", "a b c d"], ["x", "a b c d"], ["y", "e"]).statistics["ibleu"].rows.shape == (2, 20)
    with pytest.raises(InputError, match="alpha must lie between 0 and 1, got 2"):
        ibleu(["a"], ["a"], ["a"], alpha=2)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda: pinc(["a"], ["b", "c"]), "1 predictions, 2 sources"),
        (lambda: pinc(["a"], [None]), r"sources\[0\] must be a text"),
        (lambda: distinct_n([]), "predictions is empty"),
        (lambda: distinct_n("a b"), "predictions must be a list, got str"),
        (lambda: ibleu(["a"], ["a"], []), "sources is empty"),
        (lambda: ibleu(["a"], ["a"], ["b", "c"]), "1 predictions, 2 sources"),
        (lambda: self_bleu(["a b"]), r"predictions\[0\] must be a list of texts"),
        (lambda: pinc(["a"], ["b"], tokenize="14a"), "unknown tokenize '14a'"),
    ],
)
def test_bad_input_is_named(score: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        score()
