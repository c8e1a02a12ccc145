from __future__ import annotations

from pathlib import Path

import pytest

import hf_paraphrase.metrics
from hf_paraphrase.errors import InputError
from hf_paraphrase.metrics import list_metrics, load_metric
from hf_paraphrase.metrics.bleu.scoring import bleu

PREDICTIONS = ["a b c d e", ""]
REFERENCES = [["a b c d f", "a b"], "x"]


@pytest.fixture(scope="module")
def metric():
    return load_metric("bleu", keep_in_memory=True)


def test_every_metric_has_a_card() -> None:
    assert "bleu" in list_metrics()
    folder = Path(hf_paraphrase.metrics.__file__).parent
    assert all((folder / name / "README.md").is_file() for name in list_metrics())


def test_unknown_metric() -> None:
    with pytest.raises(InputError, match="unknown metric 'blue'; available: .*bleu"):
        load_metric("blue")


def test_compute_is_the_plain_function(metric) -> None:
    expected = bleu(PREDICTIONS, REFERENCES, max_order=2, n_bootstrap=20)
    assert metric.compute(predictions=PREDICTIONS, references=REFERENCES, max_order=2, n_bootstrap=20) == expected


def test_add_and_add_batch_accumulate(metric) -> None:
    metric.add(prediction=PREDICTIONS[0], reference=REFERENCES[0])
    metric.add_batch(predictions=PREDICTIONS[1:], references=REFERENCES[1:])
    assert metric.compute() == bleu(PREDICTIONS, REFERENCES)


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ([], [], "nothing to score"),
        (["a", "b"], ["x"], "2 predictions but 1 references"),
        (["a", None], ["x", "y"], r"predictions\[1\]"),
        (["a"], [[]], r"references\[0\] is an empty list"),
    ],
)
def test_bad_input_is_named(metric, predictions: list, references: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metric.compute(predictions=predictions, references=references)
