from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from hf_paraphrase.common import files
from hf_paraphrase.common.errors import InputError, TrainingInterrupted
from hf_paraphrase.common.files import locked
from hf_paraphrase.training import loop
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.run import TrainingRun

from .tiny_runs import assert_equal, last_weights, make_pairs, make_recipe, send_after

FIELDS = {"train_batch_size": 5, "gradient_accumulation_steps": 2, "num_train_epochs": 2.5, "save_steps": 4}


@pytest.fixture(scope="module")
def pairs():
    return make_pairs()


@pytest.fixture(scope="module")
def uninterrupted(pairs, tmp_path_factory):
    """Five steps an epoch, thirteen in all; validated after steps 5, 10 and 13."""
    directory = tmp_path_factory.mktemp("uninterrupted")
    summary = train(make_recipe(**FIELDS), directory, dataset=pairs)
    return last_weights(directory), losses(summary)


def losses(summary):
    return [(entry["step"], entry["train_loss"], entry["eval_loss"]) for entry in summary["evaluations"]]


def interrupt(monkeypatch, step, recipe, directory, pairs, resume=False, number=signal.SIGTERM):
    with monkeypatch.context() as patch, pytest.raises(TrainingInterrupted) as stopped:
        send_after(patch, step, number)
        train(recipe, directory, dataset=pairs, resume=resume)
    return stopped.value


@pytest.mark.parametrize(
    "stops",
    [
        pytest.param([1], id="before anything was saved"),
        pytest.param([3], id="in the first epoch, to a step saved anyway"),
        pytest.param([4], id="into the validation after an epoch"),
        pytest.param([5], id="after the validation"),
        pytest.param([7], id="in the second epoch"),
        pytest.param([12], id="into the last validation"),
        pytest.param([2, 1, 3], id="several times"),
    ],
)
def test_resumed_run_ends_as_one_never_stopped(tmp_path, monkeypatch, pairs, uninterrupted, stops):
    recipe = make_recipe(**FIELDS)
    for number, step in enumerate(stops):
        interrupt(monkeypatch, step, recipe, tmp_path, pairs, resume=number > 0)
    summary = train(recipe, tmp_path, dataset=pairs, resume=True)
    assert_equal(last_weights(tmp_path), uninterrupted[0])
    assert losses(summary) == uninterrupted[1]
    log = [json.loads(line)["step"] for line in (tmp_path / "log_history.jsonl").read_text().splitlines()]
    assert log == [2, 4, 5, 6, 8, 10, 10, 12, 13]


def test_processor_time_is_counted_over_all_sessions(tmp_path, monkeypatch, pairs):
    spent = []
    for step in (3, 4):
        interrupt(monkeypatch, step, make_recipe(**FIELDS), tmp_path, pairs, resume=bool(spent))
        (state,) = tmp_path.glob("checkpoints/last-*/training_state.json")
        spent.append(json.loads(state.read_text())["cpu_seconds"])
    spent.append(train(make_recipe(**FIELDS), tmp_path, dataset=pairs, resume=True)["cpu_seconds"])
    assert 0 < spent[0] < spent[1] < spent[2]


@pytest.mark.parametrize("stops", [[13], [7, 20], [3, 11, 25, 9]], ids=str)
def test_long_run_resumes_exactly(tmp_path, monkeypatch, pairs, stops):
    """Differences of rounding show after some dozens of steps, on kernels that mind where a weight lies."""
    model = {"hidden_size": 48, "embedding_size": 48, "attention": "additive"}
    recipe = make_recipe(**model, num_train_epochs=10, save_steps=50)
    whole = train(recipe, tmp_path / "whole", dataset=pairs)
    assert whole["steps"] == 60
    for number, step in enumerate(stops):
        interrupt(monkeypatch, step, recipe, tmp_path / "parts", pairs, resume=number > 0)
    parts = train(recipe, tmp_path / "parts", dataset=pairs, resume=True)
    assert losses(parts) == losses(whole)
    assert_equal(last_weights(tmp_path / "parts"), last_weights(tmp_path / "whole"))


@pytest.mark.parametrize("kind", ["resumed", "pretrained"])
def test_loaded_weights_are_moved_to_where_new_ones_lie(tmp_path, monkeypatch, pairs, kind):
    """To multiples of 64 bytes, as torch's allocator places them; in a file's memory they lie anywhere."""
    recipe = make_recipe(max_steps=2)
    interrupt(monkeypatch, 1, recipe, tmp_path, pairs)
    load, seen = AutoModelForSeq2SeqLM.from_pretrained, []
    monkeypatch.setattr(
        AutoModelForSeq2SeqLM, "from_pretrained", lambda *args, **kwargs: misplaced(load(*args, **kwargs))
    )
    monkeypatch.setattr(TrainingRun, "fit", lambda run, signals: seen.append(addresses(run.model)) or sys.exit())
    with pytest.raises(SystemExit):
        if kind == "resumed":
            train(recipe, tmp_path, dataset=pairs, resume=True)
        else:
            (checkpoint,) = tmp_path.glob("checkpoints/last-*")
            train(recipe.override({"pretrained": str(checkpoint)}), tmp_path / "tuned", dataset=pairs)
    assert seen == [{0}]


def misplaced(loaded):
    model, info = loaded
    return misplace(model), info


def misplace(model):
    for weight in model.parameters():
        memory = torch.empty(weight.numel() + 10)
        weight.data = memory[10:].view_as(weight).copy_(weight.data)
    assert addresses(model) == {40}
    return model


def addresses(model):
    return {weight.data_ptr() % 64 for weight in model.parameters()}


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_resumes_exactly(tmp_path, monkeypatch, pairs, other_precision, precision):
    monkeypatch.setattr(loop, "runs_lstm", lambda dtype: True)  # however slow it is here
    recipe = make_recipe(**FIELDS, mixed_precision=precision)
    summary = train(recipe, tmp_path / "whole", dataset=pairs)
    assert summary["mixed_precision"] == precision
    interrupt(monkeypatch, 6, recipe, tmp_path / "parts", pairs)
    train(recipe, tmp_path / "parts", dataset=pairs, resume=True)
    assert_equal(last_weights(tmp_path / "parts"), last_weights(tmp_path / "whole"))
    assert {tensor.dtype for tensor in last_weights(tmp_path / "whole").values()} == {torch.float32}


@pytest.mark.parametrize(("number", "name"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")])
def test_signal_saves_and_says_how_to_go_on(tmp_path, monkeypatch, pairs, number, name):
    stopped = interrupt(monkeypatch, 2, make_recipe(), tmp_path, pairs, number=number)
    assert stopped.exit_code == 128 + number
    assert f"stopped by {name} after step 3 of 12" in str(stopped)
    assert "last-00000003, from which --resume goes on" in str(stopped)
    assert not (tmp_path / "model.safetensors").exists()


def test_killed_run_goes_on_from_its_last_checkpoint(tmp_path, monkeypatch, pairs, uninterrupted):
    """The log has steps beyond the checkpoint; they are taken and logged again."""
    recipe = make_recipe(**FIELDS)
    interrupt(monkeypatch, 6, recipe, tmp_path, pairs)
    with (tmp_path / "log_history.jsonl").open("a") as log:
        log.write('{"step": 8, "loss": 1.0}\n{"step": 9, "lo')
    summary = train(recipe, tmp_path, dataset=pairs, resume=True)
    assert_equal(last_weights(tmp_path), uninterrupted[0])
    assert len((tmp_path / "log_history.jsonl").read_text().splitlines()) == 9
    assert losses(summary) == uninterrupted[1]


def test_finished_run_stays_as_it_is(tmp_path, pairs):
    first = train(make_recipe(), tmp_path, dataset=pairs)
    (tmp_path / "model.safetensors").unlink()
    again = train(make_recipe(), tmp_path, dataset=pairs, resume=True)
    assert again["evaluations"] == first["evaluations"]
    assert (tmp_path / "model.safetensors").exists()


@pytest.mark.parametrize(("fields", "flag"), [({}, "overwrite"), ({"num_train_epochs": 3}, "resume")])
def test_what_was_measured_of_another_model_goes(fields, flag, tmp_path, pairs):
    def recipe(**fields):
        return make_recipe(lr_scheduler_type="constant", **fields)

    train(recipe(), tmp_path, dataset=pairs)
    (tmp_path / "evaluation").mkdir()
    results = tmp_path / "evaluation" / "results-test.json"
    results.write_text("{}")
    train(recipe(), tmp_path, dataset=pairs, resume=True)
    assert results.exists()
    train(recipe(**fields), tmp_path, dataset=pairs, **{flag: True})
    assert not results.exists()


def test_run_can_be_made_longer_where_the_schedule_allows(tmp_path, pairs):
    def recipe(epochs, schedule="step_halving"):
        return make_recipe(num_train_epochs=epochs, lr_scheduler_type=schedule, halving_start_epoch=1)

    train(recipe(1), tmp_path / "longer", dataset=pairs)
    train(recipe(2), tmp_path / "longer", dataset=pairs, resume=True)
    train(recipe(2), tmp_path / "whole", dataset=pairs)
    assert_equal(last_weights(tmp_path / "longer"), last_weights(tmp_path / "whole"))
    train(recipe(1, "linear"), tmp_path / "linear", dataset=pairs)
    with pytest.raises(InputError, match="began with `num_train_epochs: 1`, not 2"):
        train(recipe(2, "linear"), tmp_path / "linear", dataset=pairs, resume=True)


def test_resuming_with_another_recipe_or_other_data_is_an_error(tmp_path, monkeypatch, pairs):
    interrupt(monkeypatch, 2, make_recipe(), tmp_path, pairs)
    with pytest.raises(InputError, match="began with `learning_rate: 0.02`, not 0.5"):
        train(make_recipe(learning_rate=0.5), tmp_path, dataset=pairs, resume=True)
    with pytest.raises(InputError, match="began with `hidden_size: 8`, not 16"):
        train(make_recipe(hidden_size=16), tmp_path, dataset=pairs, resume=True)
    with pytest.raises(InputError, match="training pairs are not those"):
        train(make_recipe(), tmp_path, dataset=make_pairs(seed=1), resume=True)
    train(make_recipe(logging_steps=3, save_steps=5), tmp_path, dataset=pairs, resume=True)


@pytest.mark.parametrize("left", [(), ("tokenizer", "recipe"), (".tokenizer.part", "checkpoints", "trackers")])
def test_a_run_killed_before_its_first_checkpoint_starts_anew(left, tmp_path, pairs):
    recipe = make_recipe(max_steps=2)
    train(recipe, tmp_path / "whole", dataset=pairs)
    for name in left:
        (tmp_path / "run" / name).mkdir(parents=True)
    train(recipe, tmp_path / "run", dataset=pairs, resume=True)
    assert_equal(last_weights(tmp_path / "run"), last_weights(tmp_path / "whole"))


@pytest.mark.parametrize("name", ["notes.txt", "config.json", "model.safetensors", "training_summary.json"])
def test_nothing_that_is_no_run_just_begun_is_replaced(name, tmp_path, pairs):
    """A model that somebody downloaded has no checkpoints either."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=f"holds no checkpoint, but {name}"):
        train(make_recipe(), tmp_path, dataset=pairs, resume=True)
    assert (tmp_path / name).read_text() == "mine"


def test_resuming_and_starting_anew_exclude_each_other(tmp_path, pairs):
    with pytest.raises(InputError, match="exclude each other"):
        train(make_recipe(), tmp_path, dataset=pairs, resume=True, overwrite=True)


def test_folder_that_is_not_empty_needs_a_flag(tmp_path, pairs):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="is not empty.*--resume.*--overwrite"):
        train(make_recipe(), tmp_path, dataset=pairs)
    (tmp_path / "checkpoints" / "last-00000099").mkdir(parents=True)
    train(make_recipe(max_steps=1), tmp_path, dataset=pairs, overwrite=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "checkpoints" / "last-00000099").exists()
    with pytest.raises(FileExistsError, match="notes.txt is a file"):
        train(make_recipe(), tmp_path / "notes.txt", dataset=pairs, overwrite=True)


def test_a_model_with_tables_that_are_not_trained_resumes(tmp_path, monkeypatch, pairs):
    model = {"model_type": "marian", "vocab_size": 20, "d_model": 8, "max_position_embeddings": 16}
    model |= {f"{side}_{size}": 2 for side in ("encoder", "decoder") for size in ("layers", "attention_heads")}
    model |= {"encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    model |= {"decoder_start_token_id": 1, "forced_eos_token_id": None}
    recipe = replace(make_recipe(max_steps=6), model_config=model)
    train(recipe, tmp_path / "whole", dataset=pairs)
    interrupt(monkeypatch, 3, recipe, tmp_path / "stopped", pairs)
    train(recipe, tmp_path / "stopped", dataset=pairs, resume=True)
    assert_equal(last_weights(tmp_path / "stopped"), last_weights(tmp_path / "whole"))


@pytest.mark.parametrize("flags", [{}, {"resume": True}, {"overwrite": True}])
def test_two_runs_in_one_folder(flags, tmp_path, pairs):
    told = f"another run works in {tmp_path} .process {os.getpid()} on "
    with locked(tmp_path), pytest.raises(InputError, match=told):
        train(make_recipe(), tmp_path, dataset=pairs, **flags)
    train(make_recipe(max_steps=1), tmp_path, dataset=pairs, **flags)
    assert not (tmp_path / ".run.lock").exists()


def test_the_lock_of_a_process_that_was_killed_is_taken_over(tmp_path, pairs):
    program = (
        "import os, pathlib, signal, sys\n"
        "from hf_paraphrase.common.files import locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / ".run.lock").exists()
    train(make_recipe(max_steps=1), tmp_path, dataset=pairs, resume=True)
    assert not (tmp_path / ".run.lock").exists()


def test_a_lock_of_another_machine_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LOCK_SECONDS", 0.2)
    with locked(tmp_path):
        text = (tmp_path / ".run.lock").read_text()
    (tmp_path / ".run.lock").write_text(text.replace(platform.node(), "elsewhere"))
    with pytest.raises(InputError, match=f"process {os.getpid()} on elsewhere.*remove "), locked(tmp_path):
        pass


def test_checkpoints_left_by_a_kill_in_the_clean_up_go(tmp_path, monkeypatch, pairs):
    recipe = make_recipe(**FIELDS)
    interrupt(monkeypatch, 7, recipe, tmp_path, pairs)
    (last,) = tmp_path.glob("checkpoints/last-*")
    (best,) = tmp_path.glob("checkpoints/best-*")
    for stale in ("last-00000004", "best-00000001", ".last-00000008.part"):
        shutil.copytree(last, tmp_path / "checkpoints" / stale)
    monkeypatch.setattr(TrainingRun, "fit", lambda run, signals: sys.exit())
    with pytest.raises(SystemExit):
        train(recipe, tmp_path, dataset=pairs, resume=True)
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {last.name, best.name}


def test_trackio_gets_the_log_and_a_resumed_run_goes_on_with_its_own(tmp_path, monkeypatch, pairs):
    storage = pytest.importorskip("trackio.sqlite_storage").SQLiteStorage
    directory, recipe = tmp_path / "tracked", make_recipe(**FIELDS, report_to="[trackio]", logging_steps=1)
    interrupt(monkeypatch, 7, recipe, directory, pairs)
    train(recipe, directory, dataset=pairs, resume=True)
    assert storage.get_runs(recipe.name) == ["tracked"]
    tracked = [entry for entry in storage.get_logs(recipe.name, "tracked") if "loss" in entry]
    written = [json.loads(line) for line in (directory / "log_history.jsonl").read_text().splitlines()]
    expected = [(entry["step"], pytest.approx(entry["loss"])) for entry in written if "loss" in entry]
    assert [(entry["step"], entry["loss"]) for entry in tracked] == expected and len(expected) == 13
