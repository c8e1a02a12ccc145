from __future__ import annotations

import pytest

from .runner import find_commands

CORPUS_OPTIONS = ["dataset_name", "data_dir", "data_files", "dataset_kwargs"]
# Of the commands that read a corpus these alone name it by an argument, as they are about nothing else.
NAMED = {"datasets preview"}
# A table of a paper says which corpus it is about; where its files lie, it cannot.
FIXED = {"reproduce"}
# Its corpus is what it writes; where the files of the recipe's own one lie, it cannot know.
FIXED |= {"distill"}
READERS = {
    name: command
    for name, command in find_commands().items()
    if "data_dir" in {p.name for p in command.params} and name not in FIXED
}


def test_these_commands_read_a_corpus() -> None:
    assert set(READERS) == {
        "train",
        "evaluate",
        "compare",
        "datasets preview",
        "retriever train",
        "explain match pairs",
        "explain map",
    }


@pytest.mark.parametrize("name", READERS)
def test_a_corpus_is_named_alike_everywhere(name: str) -> None:
    parameters = {parameter.name: parameter for parameter in READERS[name].params}
    found = {option: (*parameters[option].opts, parameters[option].metavar) for option in CORPUS_OPTIONS}
    assert found == {
        "dataset_name": ("--dataset-name", None),
        "data_dir": ("--data-dir", None),
        "data_files": ("--data-files", "[SPLIT=]FILE"),
        "dataset_kwargs": ("--dataset-kwargs", "KEY=VALUE"),
    }
    assert all(parameters[option].multiple for option in ("data_files", "dataset_kwargs"))
    assert name in NAMED or parameters["dataset"].opts == ["--dataset"]
