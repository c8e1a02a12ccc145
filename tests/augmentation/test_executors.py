"""Slurm and Ray: what datatrove would submit, checked without a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import dill
import pytest

from hf_paraphrase import distill
from hf_paraphrase.augmentation import executors
from hf_paraphrase.augmentation.executors import make_executor
from hf_paraphrase.augmentation.run import run_augmentation
from hf_paraphrase.augmentation.steps import ParaphraseStep
from hf_paraphrase.common.errors import InputError
from tests.generation.language_models import byte_tokenizer, tiny_llama
from tests.generation.paraphrasers import random_sentences
from tests.models.tiny import save, tiny_bart
from tests.training.tiny_runs import make_recipe

from .runs import ask, read_output, run, write_questions

SLURM = {"partition": "gpu", "time": "20:00:00", "gpus_per_task": 1, "tasks_per_job": 2}
# What a cluster has: a queue that only notes what is submitted, and a launcher that drops its own options.
COMMANDS = {
    "sbatch": 'for script; do :; done; cp "$script" "{folder}/$(ls {folder} | wc -l).sh"; echo Submitted batch job 7',
    "srun": 'while [ "${{1#-}}" != "$1" ]; do [ "$1" = -n ] && shift; shift; done; exec "$@"',
    "scontrol": "echo node1",
}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where submitted scripts turn up; the commands of Slurm are on the path."""
    binaries, submitted = tmp_path / "bin", tmp_path / "submitted"
    binaries.mkdir()
    submitted.mkdir()
    for name, script in COMMANDS.items():
        (binaries / name).write_text("#!/bin/bash\n" + script.format(folder=submitted) + "\n")
        (binaries / name).chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(binaries), str(Path(sys.executable).parent), os.environ["PATH"]]))
    return submitted


def test_slurm(cluster: Path, tmp_path: Path) -> None:
    """The script asks for what was asked for, and a node that runs it does the tasks."""
    save(tiny_bart(), tmp_path / "model")
    asked = ask(write_questions(tmp_path / "in.csv", 20), tmp_path / "model", tasks=3)
    output = tmp_path / "out"
    options = {"executor": "slurm", "executor_options": SLURM}
    assert run_augmentation(asked, str(output), workers=8, **options) is None
    script = (cluster / "0.sh").read_text()
    wanted = ["partition=gpu", "time=20:00:00", "gpus=1", "array=0-1%8", "job-name=augment", "requeue"]
    assert {f"#SBATCH --{option}" for option in wanted} <= set(script.splitlines())
    assert f"launch_pickled_pipeline {output}/.augment/executor.pik" in script
    assert json.loads((output / ".augment" / "ranks_to_run.json").read_text()) == [0, 1, 2]
    node = {"SLURM_ARRAY_TASK_ID": "0", "SLURM_NODELIST": "node1"}
    done = subprocess.run(["bash", cluster / "0.sh"], env={**os.environ, **node}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {file.name for file in (output / "data").iterdir()} == {
        f"train-0000{rank}-of-00003.parquet" for rank in (0, 1)
    }
    # The second node is lost: what it had to do is submitted again, and nothing else.
    assert run_augmentation(asked, str(output), workers=8, **options) is None
    assert json.loads((output / ".augment" / "ranks_to_run.json").read_text()) == [2]
    assert not (output / "README.md").exists()
    run(asked, tmp_path / "quiet")
    assert run(asked, output)["rows"] == 20
    assert read_output(output) == read_output(tmp_path / "quiet") and (output / "README.md").exists()


def test_a_distillation_waits_for_its_jobs(cluster: Path, tmp_path: Path) -> None:
    """The jobs write the teacher's candidates; the same call then goes on here."""
    texts = tmp_path / "texts.csv"
    texts.write_text("\n".join(["text", *dict.fromkeys(random_sentences(24))]))
    teacher = save(tiny_llama(), tmp_path / "teacher", byte_tokenizer())
    options = {"keep": [], "num_candidates": 3, "max_new_tokens": 50, "min_adequacy": 0.0, "adequacy": "jaccard"}
    recipe = make_recipe(num_train_epochs=1, vocab_size=40)

    def call() -> list[dict] | None:
        asked = {"held_out": 0.2, "most_tested": 2}
        where = {"executor": "slurm", "executor_options": SLURM, "baseline": False}
        return distill(texts, teacher, recipe, tmp_path / "run", n=2, tasks=2, options=options, asked=asked, **where)

    assert call() is None and not (tmp_path / "run" / "corpus").exists()
    node = {"SLURM_ARRAY_TASK_ID": "0", "SLURM_NODELIST": "node1"}
    done = subprocess.run(["bash", cluster / "0.sh"], env={**os.environ, **node}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    submitted = sorted(cluster.iterdir())
    assert [row["model"] for row in call()] == ["teacher", "student"]
    assert sorted(cluster.iterdir()) == submitted


def test_a_ray_task_is_one_that_can_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray pickles the executor and calls it with a rank."""
    monkeypatch.setattr(executors, "find_spec", lambda name: True)
    from datatrove.io import get_datafolder

    steps = [ParaphraseStep("model", n=2)]
    options = {"gpus_per_task": 1, "mem_per_cpu_gb": 4}
    made = make_executor("ray", steps, 5, 2, get_datafolder(str(tmp_path)), options)
    sent = dill.loads(dill.dumps(made))
    assert (type(sent).__name__, sent.world_size, sent.workers) == ("RayPipelineExecutor", 5, 2)
    assert (sent.gpus_per_task, sent.mem_per_cpu_gb, sent.pipeline[0].options) == (1, 4, {"n": 2})


def test_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs Ray; install it with: pip install ray"):
        executors.check_executor("ray", {})
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="submits jobs with sbatch, which is not here"):
        executors.check_executor("slurm", SLURM)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_ray_on_this_machine(tmp_path: Path) -> None:
    import ray

    save(tiny_bart(), tmp_path / "model")
    asked = ask(write_questions(tmp_path / "in.csv", 40), tmp_path / "model")
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        options = {"mem_per_cpu_gb": 0.5}
        counts = run_augmentation(asked, str(tmp_path / "out"), workers=2, executor="ray", executor_options=options)
    finally:
        ray.shutdown()
    assert counts["rows"] == 40
    run(asked, tmp_path / "quiet")
    assert read_output(tmp_path / "out") == read_output(tmp_path / "quiet")
