from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from accelerate.commands.launch import launch_command_parser
from accelerate.utils import prepare_simple_launcher_cmd_env

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.training import loop
from hf_paraphrase.training.loop import WORLD_SIZES, train

from .tiny_runs import assert_equal, last_weights, make_pairs, make_recipe

ROOT = Path(__file__).resolve().parents[2]
# A launcher of two processes.
ONE_MACHINE = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")
# Seven rows a batch do not divide by two; 50 rows leave a last batch of one, which one process has no share of.
FIELDS = {"dropout": 0.0, "train_batch_size": 7, "gradient_accumulation_steps": 2, "max_grad_norm": 0.5}


def test_two_processes_train_as_one(tmp_path):
    pairs = make_pairs()
    one = train(make_recipe(**FIELDS), tmp_path / "one", dataset=pairs)

    pairs.save_to_disk(tmp_path / "pairs")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from datasets import load_from_disk\n"
        "from hf_paraphrase.training.loop import train\n"
        "from tests.training.test_distributed import FIELDS, make_recipe\n"
        "train(make_recipe(**FIELDS), sys.argv[2], dataset=load_from_disk(sys.argv[1]))\n"
    )
    finish([launch(ONE_MACHINE, script, tmp_path, "two")])
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


def test_two_machines_train_as_one_with_two_processes(tmp_path):
    """Each machine has a launcher of its own, and both see the same folder."""
    make_pairs().save_to_disk(tmp_path / "pairs")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from datasets import load_from_disk\n"
        "from hf_paraphrase.training.loop import train\n"
        "from tests.training.test_distributed import make_recipe\n"
        "train(make_recipe(max_steps=8), sys.argv[2], dataset=load_from_disk(sys.argv[1]))\n"
    )
    finish([launch(ONE_MACHINE, script, tmp_path, "one")])
    port = str(find_free_port())
    two = ("torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "127.0.0.1")
    machines = [(*two, "--master-port", port, "--node-rank", rank) for rank in ("0", "1")]
    finish([launch(machine, script, tmp_path, "two") for machine in machines])
    summaries = [json.loads((tmp_path / name / "training_summary.json").read_text()) for name in ("one", "two")]
    assert [summary["processes"] for summary in summaries] == [2, 2]
    assert_equal(last_weights(tmp_path / "two"), last_weights(tmp_path / "one"))


def launch(
    launcher: tuple[str, ...], script: Path, folder: Path, name: str, stdout: int = subprocess.PIPE
) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", *launcher, str(script), str(folder / "pairs"), str(folder / name)],
        env=os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        stdout=stdout,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(runs: list[subprocess.Popen]) -> None:
    try:
        outputs = [run.communicate()[0] for run in runs]
    finally:
        for run in runs:
            run.kill()
    for run, output in zip(runs, outputs, strict=True):
        assert run.returncode == 0, output


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def launched_by_accelerate(monkeypatch, number: int) -> None:
    """Set the variables that `accelerate launch --cpu --num_processes NUMBER` gives to its only process."""
    fields = (
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
        "--num_machines",
        "1",
        "--num_cpu_threads_per_process",
    )
    options = launch_command_parser().parse_args(["--cpu", "--num_processes", str(number), *fields, "1", "train.py"])
    for name in WORLD_SIZES | {"MASTER_PORT"}:
        monkeypatch.delenv(name, raising=False)
    _, variables = prepare_simple_launcher_cmd_env(options)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_a_process_that_the_launcher_left_alone_says_how_to_start_several(tmp_path, monkeypatch):
    launched_by_accelerate(monkeypatch, 2)
    with pytest.raises(InputError, match="torchrun --standalone --nproc-per-node N -m hf_paraphrase train"):
        train(make_recipe(), tmp_path / "run", dataset=make_pairs())
    assert not (tmp_path / "run").exists()


def test_one_process_is_what_was_asked_for(tmp_path, monkeypatch):
    launched_by_accelerate(monkeypatch, 1)
    assert train(make_recipe(max_steps=1), tmp_path, dataset=make_pairs())["processes"] == 1


@pytest.mark.parametrize("name", sorted(WORLD_SIZES))
def test_processes_that_mpi_or_torch_started_are_not_alone(name, monkeypatch):
    launched_by_accelerate(monkeypatch, 2)
    monkeypatch.setenv(name, "2")
    loop._check_launcher()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_workers_end_with_their_launcher(tmp_path):
    """A launcher that is killed outright tells nobody: two workers save, and leave the folder to the next run."""
    pairs = make_pairs()
    pairs.save_to_disk(tmp_path / "pairs")
    script = tmp_path / "script.py"
    script.write_text(
        "import os, pathlib, sys\n"
        "from datasets import load_from_disk\n"
        "from hf_paraphrase.training.loop import train\n"
        "from tests.training.test_distributed import FIELDS, make_recipe\n"
        "pathlib.Path(sys.argv[2] + '.' + os.environ['RANK']).write_text(str(os.getpid()))\n"
        "train(make_recipe(**FIELDS, max_steps=10**6), sys.argv[2], dataset=load_from_disk(sys.argv[1]))\n"
    )
    run = launch(ONE_MACHINE, script, tmp_path, "run", stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: any((tmp_path / "run").glob("checkpoints/last-*")))
    finally:
        run.kill()
        run.wait()
    workers = [int((tmp_path / f"run.{rank}").read_text()) for rank in range(2)]
    wait_until(lambda: not any(is_alive(worker) for worker in workers))
    assert not (tmp_path / "run" / ".run.lock").exists()


def wait_until(is_so, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.2)


def is_alive(process: int) -> bool:
    """Whether a process runs; one that ended and that nobody asked after is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
