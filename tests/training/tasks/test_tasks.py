"""What a task finds out is returned: it remembers nothing, and its methods may be called in any order."""

from __future__ import annotations

import ast
import inspect
import textwrap

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from hf_paraphrase.training.losses import Validation
from hf_paraphrase.training.tasks import TASKS, Task

from .. import tiny_runs
from . import test_edit, test_language_model, test_match


def stored_on_self(kind: type) -> list[str]:
    """Every `self.x = …` of a class's methods, but for those of `__init__`."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    return [
        f"{kind.__name__}.{method.name}: {ast.unparse(node)}"
        for method in tree.body
        if isinstance(method, ast.FunctionDef) and method.name != "__init__"
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    ]


@pytest.mark.parametrize("name", TASKS)
def test_no_method_leaves_anything_on_the_task(name):
    assert [one for kind in TASKS[name].__mro__ if issubclass(kind, Task) for one in stored_on_self(kind)] == []


def test_what_is_left_on_the_task_is_found():
    class Forgetful:
        def __init__(self):
            self.rows = 0

        def load(self):
            self.rows, other = 1, self.rows
            return other

    assert stored_on_self(Forgetful) == ["Forgetful.load: self.rows"]


# A recipe, and two corpora that leave different things to remember.
CASES = {
    "paraphrase": (tiny_runs.make_recipe, tiny_runs.make_pairs(), tiny_runs.make_pairs(20, 7)),
    "edit": (test_edit.make_recipe, tiny_runs.make_pairs(), tiny_runs.make_pairs(20, 7)),
    "labels and ranking": (test_match.make_recipe, test_match.make_pairs(), test_match.make_queries()),
    "language model": (
        test_language_model.make_recipe,
        test_language_model.make_splits(),
        test_language_model.make_splits().filter(lambda row: len(row["sentences"]) > 5),
    ),
}


def encode(task, dataset, vocab_size):
    rows = task.load(dataset=dataset)
    return task.encode(rows, task.make_tokenizer(rows["train"], vocab_size))


def validate(task, recipe, data) -> dict[str, float]:
    """Score a new model, as the run does."""
    torch.manual_seed(0)
    model = task.make_model(recipe.make_config(data.tokenizer), data)
    encoded = data.splits["validation"]
    rows = np.arange(len(encoded))
    batch = task.make_collator(data.tokenizer)(task.features(encoded, rows.tolist(), None))
    return task.validate(data, Validation(model, [(batch, rows)], task.counts(encoded), Accelerator(cpu=True), bool))


@pytest.mark.parametrize("case", CASES)
def test_one_task_serves_two_corpora_in_any_order(case):
    make_recipe, *corpora = CASES[case]
    recipe = make_recipe()
    kind, vocab_size = TASKS[recipe.training.task], recipe.make_config().get_text_config(decoder=True).vocab_size
    expected = []
    for dataset in corpora:
        alone = kind(recipe.training)
        expected.append(validate(alone, recipe, encode(alone, dataset, vocab_size)))
    task = kind(recipe.training)
    before = dict(vars(task))
    data = [encode(task, dataset, vocab_size) for dataset in corpora]
    assert [validate(task, recipe, one) for one in data] == expected
    assert [validate(task, recipe, one) for one in data[::-1]] == expected[::-1]
    assert vars(task) == before and expected[0] != expected[1]
