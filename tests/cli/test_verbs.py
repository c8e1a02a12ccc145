"""What makes a command of a dataclass."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from hf_paraphrase.cli.datasets import Mine
from hf_paraphrase.cli.evaluate import Evaluate
from hf_paraphrase.cli.verbs import VERBS
from hf_paraphrase.common.errors import InputError
from tests.models.tiny import save, tiny_bart

from .runner import find_commands, run

COMMANDS = find_commands()


@pytest.mark.parametrize("words", VERBS)
def test_every_field_is_a_parameter_with_help(words: str) -> None:
    parameters = {parameter.name: parameter for parameter in COMMANDS[words].params}
    named = {one.name for one in fields(VERBS[words]) if "rest" not in one.metadata}
    assert named == parameters.keys() and all(one.metadata["help"] for one in fields(VERBS[words]))


def test_python_and_the_command_line_do_the_same(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    model = save(tiny_bart(), tmp_path / "bart")
    options = {"dataset": "synthetic_questions", "max_samples": 2, "num_beams": [1], "n_samples": 5}
    asked = Evaluate(
        model=model, dataset_kwargs={"train_size": 8}, max_new_tokens=3, metrics=["bleu", "pinc"], **options
    )
    asked.show(asked.run())
    shown = capsys.readouterr().out
    words = ["--dataset", "synthetic_questions", "--max-samples", 2, "--num_beams", 1, "--n-samples", 5]
    words += ["--dataset-kwargs", "train_size=8", "--max-new-tokens=3", "--metrics", "bleu, pinc"]
    assert run("evaluate", model, *words) == 0
    lines, others = (text.splitlines() for text in (shown, capsys.readouterr().out))
    assert [line for line in lines if "second" not in line] == [line for line in others if "second" not in line]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_score": 2}, "`min_score` must be at least -1 and at most 1, not 2"),
        ({"top_k": 0}, "`top_k` must be at least 1, not 0"),
        ({"encoder": 3}, "`encoder` must be str, not 3"),
    ],
)
def test_python_is_checked_as_the_command_line_is(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Mine(file="texts.txt", output="mined", **options)


def test_options_of_one_kind_of_model_stand_together(capsys: pytest.CaptureFixture) -> None:
    assert run("evaluate", "--help") == 0
    blocks = dict(block.split(":\n", 1) for block in capsys.readouterr().out.split("\n\n") if ":\n" in block)
    assert "--num-neighbors" in blocks["Only for a paraphraser"] and "--num-neighbors" not in blocks["Options"]
    assert "--objective" in blocks["Only for a language model"] and "--num-beams" in blocks["Options"]
