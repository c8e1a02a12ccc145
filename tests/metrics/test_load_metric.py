from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pytest

import hf_paraphrase.metrics
from hf_paraphrase.common.docstrings import read_docstring
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics import list_metrics, load_metric
from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.checked_metric import read_features
from hf_paraphrase.tokenization.word_vectors import WordVectors

FOLDER = Path(hf_paraphrase.metrics.__file__).parent
PREDICTIONS = ["a b c d e", ""]
REFERENCES = [["a b c d f", "a b"], "x"]
VECTORS = WordVectors({"a": 0, "b": 1, "x": 2}, np.eye(3))

# For each metric: two rows of inputs, and options.
EXAMPLES: dict[str, tuple[dict[str, list], dict[str, Any]]] = {
    "bleu": ({"predictions": PREDICTIONS, "references": REFERENCES}, {"max_order": 2}),
    "classification": ({"predictions": [0.2, 0.9], "references": [0, 1]}, {"threshold": 0.5}),
    "coherence": (
        {"predictions": [["cats sleep", "dogs run"], []], "references": [["dogs run", "cats sleep"], ["a cat"]]},
        {"tagger": "content"},
    ),
    "distinct_n": ({"predictions": PREDICTIONS}, {"max_order": 3}),
    "embedding_greedy": ({"predictions": PREDICTIONS, "references": REFERENCES}, {"word_vectors": VECTORS}),
    "ibleu": ({"predictions": PREDICTIONS, "references": REFERENCES, "sources": ["a b", "c"]}, {"alpha": 0.9}),
    "meteor": ({"predictions": PREDICTIONS, "references": REFERENCES}, {"stages": ("exact", "stem")}),
    "nits_per_character": ({"losses": [1.5, 2.5], "characters": [3, 4]}, {}),
    "perplexity": ({"losses": [1.5, 2.5], "tokens": [3, 4]}, {}),
    "pinc": ({"predictions": PREDICTIONS, "sources": ["a b", "c"]}, {"max_order": 2}),
    "preference": ({"items": ["1", "1"], "raters": ["ann", "bob"], "choices": ["win", "tie"]}, {}),
    "ranking": ({"predictions": [[0.1, 0.7], [0.2, 0.1]], "references": [[0, 1], [0, 1]]}, {}),
    "rouge": ({"predictions": PREDICTIONS, "references": REFERENCES}, {"use_stemmer": True}),
    "self_bleu": ({"predictions": [["a b", "a c"], ["a", "b", "c"]]}, {"lowercase": True}),
    "ter": ({"predictions": PREDICTIONS, "references": REFERENCES}, {"normalized": True}),
}


@pytest.fixture(scope="module", params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> tuple[str, evaluate.EvaluationModule, dict[str, list], dict[str, Any]]:
    pytest.importorskip("nltk")
    pytest.importorskip("rouge_score")
    return request.param, load_metric(request.param, keep_in_memory=True), *EXAMPLES[request.param]


def test_every_metric_is_whole() -> None:
    assert list_metrics() == sorted(EXAMPLES)
    for name in list_metrics():
        metric = load_metric(name, keep_in_memory=True)
        docstring = read_docstring(metric.function)
        assert f'load_metric("{name}")' in docstring.sections["Examples"]
        assert docstring.arguments.keys() == inspect.signature(metric.function).parameters.keys()


def test_unknown_metric() -> None:
    with pytest.raises(InputError, match="unknown metric 'blue'; available: .*bleu"):
        load_metric("blue")


def test_compute_is_the_plain_function(example) -> None:
    name, metric, columns, options = example
    function = getattr(import_module(f"hf_paraphrase.metrics.{name}.scoring"), name)
    assert metric.compute(**columns, **options) == function(*columns.values(), **options)


def test_add_and_add_batch_accumulate(example) -> None:
    _, metric, columns, options = example
    expected = metric.compute(**columns, **options)
    singular = {"predictions": "prediction", "references": "reference"}
    metric.add(**{singular.get(feature, feature): column[0] for feature, column in columns.items()})
    metric.add_batch(**{feature: column[1:] for feature, column in columns.items()})
    assert metric.compute(**options) == expected


def test_bad_input_is_named(example) -> None:
    _, metric, columns, _ = example
    first = next(iter(columns))
    with pytest.raises(InputError, match=rf"{first}\[1\]"):
        metric.compute(**{**columns, first: [columns[first][0], None]})
    with pytest.raises(InputError, match="nothing to score"):
        metric.compute(**{feature: [] for feature in columns})


def test_the_module_describes_itself(example) -> None:
    _, metric, _, _ = example
    assert metric.description.strip()
    assert "load_metric(" in metric.inputs_description


def test_what_the_docstrings_leave_unsaid_is_named() -> None:
    def function(texts: list[str], *, option: int = 1) -> None: ...

    with pytest.raises(TypeError, match=r"function: annotate texts as one of Iterable\[str\], .*not list\[str\]"):
        read_features(function)


def test_its_example_holds(example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, metric, _, _ = example
    (tmp_path / "glove.6B.300d.txt").write_text("a 1 0\ndog 0 1\npuppy 1 1\n")
    monkeypatch.chdir(tmp_path)
    examples = doctest.DocTestParser().get_doctest(
        inspect.getdoc(metric.function), {"load_metric": load_metric}, name, None, None
    )
    report: list[str] = []
    failed, tried = doctest.DocTestRunner(verbose=False).run(examples, out=report.append)
    assert tried and not failed, "".join(report)


def test_evaluate_loads_it_by_its_path() -> None:
    metric = evaluate.load(str(FOLDER / "bleu" / "bleu.py"), keep_in_memory=True)
    assert metric.compute(predictions=PREDICTIONS, references=REFERENCES) == bleu(PREDICTIONS, REFERENCES)


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (["a", "b"], ["x"], "2 predictions but 1 references"),
        (["a"], [[]], r"references\[0\] is an empty list"),
    ],
)
def test_bad_references_are_named(predictions: list, references: list, message: str) -> None:
    metric = load_metric("bleu", keep_in_memory=True)
    with pytest.raises(ValueError, match=message):
        metric.compute(predictions=predictions, references=references)


def test_the_functions_need_neither_evaluate_nor_nltk() -> None:
    modules = [f"hf_paraphrase.metrics.{name}.scoring" for name in list_metrics()]
    modules += ["hf_paraphrase.metrics.significance", "hf_paraphrase.metrics.score_table"]
    code = f"import sys, {', '.join(modules)}; assert not {{'evaluate', 'nltk', 'rouge_score'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_metrics_with_different_inputs_combine() -> None:
    names = ("bleu", "pinc", "ibleu", "distinct_n")
    inputs = {"predictions": ["a b c d"], "references": [["a b c e"]], "sources": ["a b x"]}
    combined = evaluate.combine([load_metric(name, keep_in_memory=True) for name in names])
    expected = combined.compute(**inputs)
    assert expected["pinc_score"] == load_metric("pinc").compute(predictions=["a b c d"], sources=["a b x"])["score"]
    combined.add_batch(**inputs)
    assert combined.compute() == expected
    combined.add(prediction="a b c d", reference=["a b c e"], sources="a b x")
    assert combined.compute() == expected


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for name in ("HF_EVALUATE_CACHE", "HF_METRICS_CACHE", "HF_MODULES_CACHE"):
        monkeypatch.setattr(evaluate.config, name, tmp_path / "file" / name)
    assert load_metric("pinc").compute(predictions=["a"], sources=["b"])["score"] == 100
