from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import torch

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
        "from datasets import load_from_disk\n"
        "from hf_paraphrase.training.loop import train\n"
        "from tests.training.test_distributed import FIELDS, make_recipe\n"
        "train(make_recipe(**FIELDS), sys.argv[2], dataset=load_from_disk(sys.argv[1]))\n"
    )
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    environment = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [*launch, "--main_process_port", "0", str(script), str(tmp_path / "pairs"), str(tmp_path / "two")],
        env=environment,
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
