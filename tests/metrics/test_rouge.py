from __future__ import annotations

import random

import numpy as np
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.rouge.scoring import rouge, weighted_lcs

rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer")

PREDICTIONS = ["police killed the gunman", "the gunman kill police", "", "Running dogs"]
REFERENCES = [["police killed the gunman"], ["police kill the gunman", "x"], ["a b"], ["dogs ran", "a running dog"]]


def plain_weighted_lcs(x: list[str], y: list[str], weight: float) -> float:
    """Lin 2004, section 4, cell by cell."""
    scores = np.zeros((len(x) + 1, len(y) + 1))
    runs = np.zeros((len(x) + 1, len(y) + 1))
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            if x[i - 1] == y[j - 1]:
                run = runs[i - 1, j - 1]
                scores[i, j] = scores[i - 1, j - 1] + (run + 1) ** weight - run**weight
                runs[i, j] = run + 1
            else:
                scores[i, j] = max(scores[i - 1, j], scores[i, j - 1])
    return scores[-1, -1]


def test_weighted_lcs_of_the_paper() -> None:
    """Lin 2004, section 4: with f(k) = k² the consecutive match scores 0.571, the scattered one 0.286."""
    reference = ["a b c d e f g"] * 2
    result = rouge(["a b c d h i k", "a h b k c i d"], reference, weight=2).statistics["rougeW"]
    assert result.rows[:, 0] == pytest.approx([4 / 7, 2 / 7])
    assert rouge(["a b c d h i k", "a h b k c i d"], reference)["rougeL"] == pytest.approx(100 * 4 / 7)


@pytest.mark.parametrize(("weight", "value"), [(1, 4), (1.2, 2**1.2 + 2), (2, 6)])
def test_weighted_lcs_by_hand(weight: float, value: float) -> None:
    """`a b`, then `c` and `d`, each alone."""
    assert weighted_lcs([("abxcyd", "abzcwvd")], weight) == pytest.approx([value])


def test_weighted_lcs_of_a_batch() -> None:
    rng = random.Random(2)
    pairs = [tuple([rng.choice("abcd") for _ in range(rng.randint(0, 12))] for _ in range(2)) for _ in range(200)]
    assert weighted_lcs(pairs, 1.2) == pytest.approx([plain_weighted_lcs(*pair, 1.2) for pair in pairs])
    assert weighted_lcs([([], [])], 1.2).tolist() == [0]


@pytest.mark.parametrize("use_stemmer", [False, True])
def test_the_same_as_rouge_score(use_stemmer: bool) -> None:
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=use_stemmer)
    expected = [
        scorer.score_multi(texts, prediction) for prediction, texts in zip(PREDICTIONS, REFERENCES, strict=True)
    ]
    result = rouge(PREDICTIONS, REFERENCES, use_stemmer=use_stemmer)
    for kind in ("rouge1", "rouge2", "rougeL"):
        for name, part in ((kind, "fmeasure"), (f"{kind}_precision", "precision"), (f"{kind}_recall", "recall")):
            assert result[name] == pytest.approx(100 * np.mean([getattr(entry[kind], part) for entry in expected]))
    assert f"stem:{'porter' if use_stemmer else 'no'}" in result["signature"]


def test_weight_one_is_rouge_l() -> None:
    result = rouge(PREDICTIONS, REFERENCES, weight=1)
    assert result["rougeW"] == pytest.approx(result["rougeL"])
    assert result["rougeW_recall"] == pytest.approx(result["rougeL_recall"])


def test_perfect_disjoint_empty_and_repeated() -> None:
    perfect = rouge(["one two three"], ["one two three"])
    assert all(score == pytest.approx(100) for name, score in perfect.items() if name != "signature")
    for prediction in ("four", "", "?"):
        result = rouge([prediction], ["one two three"])
        assert not any(score for name, score in result.items() if name != "signature")
    assert rouge(["the the the"], ["the cat"])["rouge1_precision"] == pytest.approx(100 / 3)


def test_order_of_references_does_not_matter() -> None:
    turned = [texts[::-1] for texts in REFERENCES]
    assert rouge(PREDICTIONS, turned)["rougeW"] == pytest.approx(rouge(PREDICTIONS, REFERENCES)["rougeW"])


def test_bad_weight() -> None:
    with pytest.raises(InputError, match="weight must be at least 1, got 0.5"):
        rouge(["a"], ["a"], weight=0.5)


def test_rouge_score_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"rouge needs rouge-score; .*: pip install 'hf-paraphrase\[metrics\]'"):
        rouge(["a"], ["a"])


@pytest.mark.parametrize(
    "text", ["как дела сегодня", "हिन्दी भाषा", "ฉันรักคุณ", "今天天气很好", "où est né Élodie", "İstanbul güzel"]
)
def test_equal_texts_of_any_script(text: str) -> None:
    result = rouge([text], [text], tokenize="unicode")
    assert [result[kind] for kind in ("rouge1", "rouge2", "rougeL", "rougeW")] == pytest.approx([100] * 4)
    assert "tok:unicode" in result["signature"]


def test_letters_with_accents_make_other_words() -> None:
    assert rouge(["o est n lodie"], ["où est né Élodie"])["rougeL"] == pytest.approx(100)
    assert rouge(["o est n lodie"], ["où est né Élodie"], tokenize="unicode")["rougeL"] == pytest.approx(25)
    # Composed or not, an accent is the same; a stem may be English only.
    assert rouge(["e\u0301te\u0301"], ["été"], tokenize="unicode", use_stemmer=True)["rouge1"] == pytest.approx(100)


def test_scripts_without_spaces_match_by_character() -> None:
    assert rouge(["今天天气"], ["今天天气很好"], tokenize="unicode")["rouge1_recall"] == pytest.approx(100 * 4 / 6)
    assert rouge(["ฉันรักเธอ"], ["ฉันรักคุณ"], tokenize="unicode")["rouge1"] > 50


def test_lost_letters_are_told(caplog: pytest.LogCaptureFixture) -> None:
    rouge(["дела", "né", "a", "?"], ["a", "b", "c", "d"])
    assert "of 8 texts 2 have letters that its ascii tokenizer drops, 1 of them all" in caplog.text
    caplog.clear()
    rouge(["дела", "né", "a", "?"], ["a", "b", "c", "d"], tokenize="unicode")
    assert not caplog.text


def test_unknown_tokenize() -> None:
    with pytest.raises(InputError, match="unknown tokenize '13a' of rouge; available: ascii, unicode"):
        rouge(["a"], ["a"], tokenize="13a")
