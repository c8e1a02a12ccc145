"""A page to try a metric out, as the Space of `hf-paraphrase push` shows it."""

from __future__ import annotations

import ast
import inspect
import json
from doctest import DocTestParser
from typing import Any

import gradio

from ..metrics import load_metric


def launch_metric(name: str) -> None:
    """Show the page of a metric, one of `list_metrics()`, until it is stopped."""
    make_metric_page(name).launch()


def make_metric_page(name: str) -> gradio.Interface:
    """A page with a field of JSON for each input, filled with the example of the metric's docstring.

    `evaluate.utils.launch_gradio_widget` needs a Gradio older than 4. The options are fixed to the example's: some are
    paths, which strangers must not choose.
    """
    metric = load_metric(name, keep_in_memory=True)
    example = read_example(inspect.getdoc(metric.function) or "")
    options = {option: value for option, value in example.items() if option not in metric.features}

    def score(*columns: str) -> dict[str, Any]:
        try:
            return metric.function(*map(json.loads, columns), **options)
        except (OSError, ValueError) as error:
            raise gradio.Error(str(error)) from error

    return gradio.Interface(
        score,
        [gradio.Code(json.dumps(example[feature]), "json", label=feature) for feature in metric.features],
        gradio.JSON(label="scores"),
        title=metric.description.partition(":")[0],
        description=metric.description,
        article=f"```\n{metric.inputs_description}\n```",
        flagging_mode="never",
    )


def read_example(docstring: str) -> dict[str, Any]:
    """The arguments of `compute` in the example of a metric's docstring."""
    source = "".join(example.source for example in DocTestParser().get_examples(docstring))
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    call = next(call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "compute")
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
