from __future__ import annotations

from functools import wraps
from pathlib import Path

import pytest

import hf_paraphrase
import hf_paraphrase.hub.push
import hf_paraphrase.training.loop
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.common.hub_access import PushError
from tests.hub.runs import write_run

from .runner import run

RECIPE = Path(__file__).parents[2] / "hub_configs" / "residual-lstm-synthetic"


@pytest.fixture
def events(monkeypatch) -> list:
    """What is trained and pushed, in order; there is a token."""
    events = []
    monkeypatch.setenv("HF_TOKEN", "hf_you")
    monkeypatch.setattr(hf_paraphrase.hub.push.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hf_paraphrase.training.loop, "train", lambda *args, **kwargs: events.append("trained"))

    @wraps(hf_paraphrase.hub.push.push_to_hub)
    def push(folder, repo_id, **options):
        events.append((folder.name, repo_id, options))
        return "https://hub/address"

    monkeypatch.setattr(hf_paraphrase.hub.push, "push_to_hub", push)
    return events


def test_train_and_push(events, tmp_path, capsys):
    train = ("train", "--recipe", RECIPE, "--output-dir", tmp_path / "first")
    assert run(*train) == 0
    assert run(*train, "--push-to-hub") == 0
    assert run(*train, "--push_to_hub", "--hub_model_id", "you/other", "--hub-private-repo") == 0
    pushed = [event for event in events if event != "trained"]
    assert pushed == [("first", "first", {"private": False}), ("first", "you/other", {"private": True})]
    assert events.count("trained") == 3 and events[-1] != "trained"
    assert capsys.readouterr().out == "https://hub/address\n" * 2


@pytest.mark.parametrize("error", [PushError("the Hub answered 500"), InputError("no card for it")])
def test_a_push_that_fails_leaves_a_good_run(error, events, tmp_path, monkeypatch, capsys):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(hf_paraphrase.hub.push, "push_to_hub", fail)
    folder = tmp_path / "my run"
    options = ["--push-to-hub", "--hub-model-id", "you/first", "--hub-private-repo"]
    assert run("train", "--recipe", RECIPE, "--output-dir", folder, *options) == 0
    message = capsys.readouterr().err
    assert f"is trained but not pushed: {error}\n" in message
    assert f"hf-paraphrase push '{folder}' --repo-id you/first --private\n" in message


def test_what_cannot_be_pushed_is_not_trained(events, tmp_path, monkeypatch, capsys):
    train = ("train", "--recipe", RECIPE, "--output-dir", tmp_path / "first", "--push-to-hub")
    assert run(*train, "--hub-model-id", "a/b/c") == 2
    assert "is not a valid repository name" in capsys.readouterr().err
    monkeypatch.delenv("HF_TOKEN")
    assert run(*train) == 2
    assert "no Hub token found" in capsys.readouterr().err
    assert not events


def test_a_folder_that_is_not_there(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", "hf_you")
    monkeypatch.setattr(hf_paraphrase.hub.push.constants, "HF_HUB_OFFLINE", False)
    assert run("push", tmp_path / "none", "--repo-id", "you/none") == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and str(tmp_path / "none") in error


def test_only_one_process_pushes(events, tmp_path, monkeypatch):
    monkeypatch.setattr("accelerate.PartialState.is_main_process", False)
    assert run("train", "--recipe", RECIPE, "--output-dir", tmp_path / "first", "--push-to-hub") == 0
    assert events == ["trained"]


def test_env(capsys):
    assert run("env") == 0
    lines = dict(line.removeprefix("- ").split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["torch"] and lines["transformers"] and lines["huggingface-hub"]
    assert {"platform", "Python", "CPU cores", "threads", "CUDA", "GPUs"} <= lines.keys()


def test_the_language_can_be_told(events, tmp_path, capsys):
    folder = write_run(tmp_path / "first")
    assert run("push", folder, "--dry-run", "--language", "de") == 0
    assert "\nlanguage: de\n" in capsys.readouterr().out
    assert run("push", folder, "--repo-id", "you/first", "--language", "de") == 0
    (_, _, options) = events[-1]
    assert options["language"] == "de"
