from __future__ import annotations

import json

import pytest
from datasets import Dataset

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.evaluation.language_models import (
    CHANCE,
    _find_frequent,
    evaluate_rewriting,
    read_rewriting_statistics,
)
from hf_paraphrase.evaluation.results import Results
from hf_paraphrase.metrics.pinc.scoring import pinc
from hf_paraphrase.models.search.embedding_paraphraser import ParaphraseCandidate
from tests.evaluation.test_language_models import make_model

COMMON = [chr(97 + one) + chr(97 + other) for one in range(10) for other in range(10)]
# A hundred words that come twice are nobody's content.
DOCUMENTS = Dataset.from_dict({"sentences": [["Rain aa wind.", "Snow aa ice!", "Aa ab."], [" ".join(COMMON * 2)]]})


def candidate(text: str, distance: float, is_copy: bool = False) -> ParaphraseCandidate:
    return ParaphraseCandidate(text, distance, is_copy, 0.5, 0.5)


def test_content_that_is_kept_and_sentences_that_are_copied(monkeypatch, tmp_path):
    model, tokenizer = make_model()
    asked = {}

    def paraphrase(texts, tokenizer, **options):
        asked.update(options, texts=texts)
        return [
            [candidate("Rain aa wind.", 0.0, True), candidate("wind ac", 1.0), candidate("rain wind", 2.0)],
            [candidate("snow ICE snow", 1.0)],
            [candidate("ab", 1.0)],
            [],
        ][: len(texts)]

    monkeypatch.setattr(model, "paraphrase", paraphrase)
    results = evaluate_rewriting(
        model, tokenizer, DOCUMENTS, num_candidates=3, noise=0.0, seed=1, n_samples=20, output_dir=tmp_path
    )
    assert asked["texts"][:3] == ["Rain aa wind.", "Snow aa ice!", "Aa ab."]
    assert (asked["num_candidates"], asked["noise"], asked["temperature"], asked["seed"]) == (3, 0.0, "uniform", 1)
    model_entry, baseline = results.entries
    scores = {score.metric: score.score for score in model_entry.scores}
    predictions = ["wind ac", "snow ICE snow", "ab", ""]
    # Of rain, wind, snow and ice the first sentence keeps one and the second both; the others have no content.
    assert scores["content_words_kept"] == pytest.approx(75)
    assert scores["copied"] == pytest.approx(25)
    assert scores["pinc"] == pytest.approx(pinc(predictions, asked["texts"], lowercase=True)["score"])
    rows = [json.loads(line) for line in (tmp_path / model_entry.outputs).read_text().splitlines()]
    assert [row["prediction"] for row in rows] == predictions
    assert [(row["content_words"], row["kept"]) for row in rows] == [(2, 1), (2, 2), (0, 0), (0, 0)]
    assert {name: one.score for name, one in read_rewriting_statistics(tmp_path / model_entry.outputs).items()} == (
        pytest.approx(scores)
    )
    assert baseline.system == CHANCE and {score.metric for score in baseline.scores} == set(scores)
    assert Results.load(tmp_path / "results-test.json") == results


def test_a_model_rewrites(tmp_path):
    model, tokenizer = make_model()
    results = evaluate_rewriting(model, tokenizer, DOCUMENTS, max_samples=2, num_candidates=2, n_samples=5)
    assert results.data.rows == 2 and results.environment["num_candidates"] == 2
    assert all(0 <= score.score <= 100 for entry in results.entries for score in entry.scores)
    with pytest.raises(InputError, match="none of the 0 documents"):
        evaluate_rewriting(model, tokenizer, DOCUMENTS.select([]))


def test_the_most_frequent_words_are_no_content():
    assert _find_frequent(sentence for document in DOCUMENTS["sentences"] for sentence in document) == set(COMMON)
