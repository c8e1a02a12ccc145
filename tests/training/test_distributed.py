from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch

from hf_paraphrase.training.launch import start_processes
from hf_paraphrase.training.loop import train

from .tiny_runs import last_weights, make_pairs, make_recipe

ROOT = Path(__file__).resolve().parents[2]
# Seven rows a batch do not divide by two; 50 rows leave a last batch of one, which one process has no share of.
FIELDS = {"dropout": 0.0, "train_batch_size": 7, "gradient_accumulation_steps": 2, "max_grad_norm": 0.5}


def test_two_processes_train_as_one(tmp_path):
    pairs = make_pairs()
    one = train(make_recipe(**FIELDS), tmp_path / "one", dataset=pairs)

    pairs.save_to_disk(tmp_path / "pairs")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from hf_paraphrase.training.launch import start_processes\n"
        "start_processes()\n"
        "from datasets import load_from_disk\n"
        "from hf_paraphrase.training.loop import train\n"
        "from tests.training.test_distributed import FIELDS, make_recipe\n"
        "train(make_recipe(**FIELDS), sys.argv[2], dataset=load_from_disk(sys.argv[1]))\n"
    )
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2"]
    run = subprocess.run(
        [*launch, str(script), str(tmp_path / "pairs"), str(tmp_path / "two")],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    two = json.loads((tmp_path / "two" / "training_summary.json").read_text())
    assert (two["processes"], two["steps"]) == (2, one["steps"])
    for name in ("train_loss", "eval_loss"):
        torch.testing.assert_close(
            [entry[name] for entry in two["evaluations"]],
            [entry[name] for entry in one["evaluations"]],
            rtol=1e-5,
            atol=1e-5,
        )
    weights = last_weights(tmp_path / "two")
    for name, tensor in last_weights(tmp_path / "one").items():
        torch.testing.assert_close(weights[name], tensor, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "command",
    [
        ["/bin/python3", "/bin/accelerate", "launch", "--cpu", "--num_processes", "3", "train.py", "--seed", "4"],
        ["python", "/bin/accelerate-launch", "--num-processes=3", "--cpu", "train.py"],
        ["python", "-m", "accelerate.commands.launch", "--num_processes", "3", "-m", "package.train"],
    ],
)
def test_number_of_processes_is_read_from_the_launcher(command, monkeypatch):
    started = []
    for name in ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MASTER_PORT", "29500")
    monkeypatch.setattr(psutil.Process, "cmdline", lambda self: command)
    monkeypatch.setattr(os, "execv", lambda path, arguments: started.append(arguments))
    monkeypatch.setattr(sys, "argv", ["train.py", "--seed", "4"])
    start_processes()
    (arguments,) = started
    assert arguments[-4:] == ["3", "train.py", "--seed", "4"]
    monkeypatch.setenv("WORLD_SIZE", "3")
    start_processes()
    assert len(started) == 1


def test_an_unknown_launcher_is_told_what_to_do(monkeypatch, caplog):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setenv("MASTER_PORT", "29500")
    monkeypatch.setattr(psutil.Process, "cmdline", lambda self: ["bash"])
    start_processes()
    assert "torchrun --nproc-per-node N" in caplog.text
