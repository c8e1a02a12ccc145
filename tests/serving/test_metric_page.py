from __future__ import annotations

import json

import pytest

from hf_paraphrase.metrics import list_metrics
from hf_paraphrase.metrics.ranking.scoring import ranking

gradio = pytest.importorskip("gradio")

from hf_paraphrase.serving.metric_page import make_metric_page, read_example  # noqa: E402


def test_the_example_is_read():
    docstring = '>>> metric = load_metric("a")\n>>> metric.compute(predictions=[["b"]], weight=2)["score"]\n1.0'
    assert read_example(docstring) == {"predictions": [["b"]], "weight": 2}


@pytest.mark.parametrize("name", list_metrics())
def test_every_metric_has_a_page(name):
    page = make_metric_page(name)
    columns = [component.value for component in page.input_components]
    if name == "embedding_greedy":
        with pytest.raises(gradio.Error, match=r"glove\.6B\.300d\.txt"):
            page.fn(*columns)
    else:
        assert page.fn(*columns)


def test_the_options_are_those_of_the_example():
    assert make_metric_page("meteor").fn('["a"]', '["a"]')["signature"].count("|stages:exact+stem|") == 1


def test_the_scores_are_those_of_the_function():
    page = make_metric_page("ranking")
    assert [component.label for component in page.input_components] == ["predictions", "references"]
    assert page.fn("[[0.2, 0.9]]", "[0]") == ranking([[0.2, 0.9]], [0])


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("pinc", ["[1]", '["a"]'], r"predictions\[0\] must be a text, got int"),
        ("pinc", ["[", '["a"]'], "Expecting value"),
    ],
)
def test_what_cannot_be_scored_is_told(name, columns, message):
    with pytest.raises(gradio.Error, match=message):
        make_metric_page(name).fn(*columns)


def test_examples_are_json():
    (column,) = (component.value for component in make_metric_page("self_bleu").input_components)
    assert json.loads(column) == [["a b c d", "a b c d"]]
