from __future__ import annotations

import errno
import os
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.tokenization import train_word_tokenizer
from hf_paraphrase.training import checkpoints as module
from hf_paraphrase.training.checkpoints import (
    Checkpoints,
    TrainingState,
    get_random_state,
    load_checkpoint,
    load_trained,
    save_tokenizer,
    set_random_state,
)

from .tiny_runs import WORDS, assert_equal, make_recipe


class Killed(BaseException):
    """What a process killed at this instant does not survive."""


@pytest.fixture(scope="module")
def tokenizer():
    return train_word_tokenizer(WORDS, 100)


@pytest.fixture
def model():
    return AutoModelForSeq2SeqLM.from_config(make_recipe().make_config())


def state_at(step: int, best_step: int) -> TrainingState:
    return TrainingState("data", step=step, best_step=best_step, history=[{"step": step, "eval_loss": 0.1 + 0.2}])


def save(checkpoints, model, tokenizer, step, best_step):
    state = state_at(step, best_step)
    if step == best_step:
        checkpoints.save_best(model, tokenizer, state)
    checkpoints.save_last(model, tokenizer, state, {"optimizer": torch.tensor([step])})


def names(checkpoints) -> list[str]:
    return sorted(path.name for path in checkpoints.directory.iterdir())


def test_last_and_best_replace_those_before(tmp_path, model, tokenizer):
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.newest() is None
    for step, best in ((5, 5), (10, 10), (15, 10)):
        save(checkpoints, model, tokenizer, step, best)
    assert names(checkpoints) == ["best-00000010", "last-00000015"]
    assert checkpoints.newest().name == "last-00000015"


def test_checkpoint_is_read_back(tmp_path, model, tokenizer):
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, model, tokenizer, 5, 5)
    loaded = load_trained(checkpoints.newest(), AutoModelForSeq2SeqLM)
    state, tensors = load_checkpoint(checkpoints.newest())
    assert_equal(loaded.state_dict(), model.state_dict())
    assert asdict(state) == asdict(state_at(5, 5))
    assert tensors == {"optimizer": torch.tensor([5])}


def test_export_copies_the_best(tmp_path, model, tokenizer):
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, model, tokenizer, 5, 5)
    checkpoints.export_best(state_at(5, 5))
    assert_equal(AutoModelForSeq2SeqLM.from_pretrained(tmp_path).state_dict(), model.state_dict())
    assert not list(tmp_path.glob(".*"))


def test_kill_at_any_instant_leaves_a_whole_checkpoint(tmp_path, monkeypatch, model, tokenizer):
    """Every call that changes the disk is the last one in turn; whatever comes after it does not happen."""
    calls, limit = [], None

    def dying(function):
        def call(*args, **kwargs):
            calls.append(function)
            if limit is not None and len(calls) > limit:
                raise Killed
            return function(*args, **kwargs)

        return call

    def run(number):
        nonlocal limit
        directory = tmp_path / str(number)
        checkpoints = Checkpoints(directory)
        limit = None
        save(checkpoints, model, tokenizer, 5, 5)
        calls.clear()
        limit = number
        try:
            save(checkpoints, model, tokenizer, 10, 10)
        except Killed:
            return checkpoints, True
        return checkpoints, False

    for owner, name in ((os, "replace"), (shutil, "rmtree"), (torch, "save"), (Path, "write_text")):
        monkeypatch.setattr(owner, name, dying(getattr(owner, name)))
    monkeypatch.setattr(module, "save_pretrained", dying(module.save_pretrained))

    killed, number, resumed_from = True, 0, set()
    while killed:
        checkpoints, killed = run(number)
        state, tensors = load_checkpoint(checkpoints.newest())
        load_trained(checkpoints.newest(), AutoModelForSeq2SeqLM)
        resumed_from.add(state.step)
        assert tensors == {"optimizer": torch.tensor([state.step])}
        assert AutoModelForSeq2SeqLM.from_pretrained(checkpoints.best(state)).num_parameters() > 0
        number += 1
    assert resumed_from == {5, 10}
    assert number > 8

    limit = None
    leftover = Checkpoints(tmp_path / "3")
    assert any(name.endswith(".part") for name in names(leftover))
    save(leftover, model, tokenizer, 20, 20)
    assert names(leftover) == ["best-00000020", "last-00000020"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("unexpected pos")])
def test_full_disk_is_said_and_loses_nothing(tmp_path, monkeypatch, model, tokenizer, error):
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, model, tokenizer, 5, 5)

    def write_half(tensors, path):
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr(torch, "save", write_half)
    with pytest.raises(OSError, match=r"could not write .*last-00000010: is its disk full.*last-00000005 is whole"):
        save(checkpoints, model, tokenizer, 10, 5)
    assert names(checkpoints) == ["best-00000005", "last-00000005"]


def test_a_disk_that_is_full_at_the_tokenizer(tmp_path, monkeypatch, model, tokenizer):
    def fail(directory):
        raise Exception("No space left on device (os error 28)")  # as tokenizers does

    monkeypatch.setattr(tokenizer, "save_pretrained", fail)
    with pytest.raises(OSError, match=r"could not write .*: No space left on device"):
        save_tokenizer(tokenizer, tmp_path)
    with pytest.raises(OSError, match=r"is its disk full"):
        save(Checkpoints(tmp_path), model, tokenizer, 5, 5)


@pytest.mark.parametrize("name", ["training_state.json", "training_state.pt", "model.safetensors"])
def test_damaged_checkpoint_is_named(tmp_path, model, tokenizer, name):
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, model, tokenizer, 5, 5)
    file = checkpoints.newest() / name
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(InputError, match="last-00000005 is damaged"):
        load_checkpoint(checkpoints.newest())
        load_trained(checkpoints.newest(), AutoModelForSeq2SeqLM)


def test_random_generators_are_put_back(tmp_path):
    import random

    import numpy as np

    def draw():
        return random.random(), np.random.rand(), torch.rand(3).tolist(), random.gauss(0, 1), np.random.randn()

    draw()
    torch.save(get_random_state(), tmp_path / "state.pt")
    expected = draw()
    set_random_state(torch.load(tmp_path / "state.pt", weights_only=True))
    assert draw() == expected
