"""Output folders as a training and an evaluation leave them, with a tiny model and invented figures."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from hf_paraphrase import ResidualLstmConfig, ResidualLstmForConditionalGeneration
from hf_paraphrase.evaluation.paraphrases import COPIED
from hf_paraphrase.evaluation.results import Data, Decoding, Entry, Model, Results, Score
from tests.models.tiny import WORDS, save
from tests.training.tiny_runs import make_recipe

ENVIRONMENT = {
    "device": "cpu",
    "device_name": "x86_64",
    "threads": 1,
    "python": "3.11.7",
    "versions": {"hf-paraphrase": "0.1.0", "torch": "2.13.0"},
    "commit": "0123456789abcdef",
    "date": "2026-01-02T03:04:05+00:00",
}
BEST = {"step": 20, "epoch": 2.0, "train_loss": 1.5, "eval_loss": 1.25, "eval_perplexity": 3.49, "seconds": 7100.0}
SUMMARY: dict[str, Any] = {
    "recipe": {
        "name": "tiny",
        "model_config": {"model_type": "residual_lstm", "vocab_size": 20, "num_layers": 2},
        "generation_config": {"num_beams": 2},
        "training": {
            "task": "paraphrase",
            "dataset": "synthetic_questions",
            "dataset_name": None,
            "dataset_kwargs": {"seed": 3},
            "data_dir": "/home/somebody/data",
            "optim": "adamw",
        },
    },
    "model_type": "residual_lstm",
    "train_pairs": 1000,
    "validation_pairs": 100,
    "steps": 20,
    "epochs": 2.0,
    "best": BEST,
    "evaluations": [BEST],
    "seconds": 7200.0,
    "processes": 1,
    "mixed_precision": "no",
    "environment": ENVIRONMENT,
}


def _scores(bleu: float, ter: float) -> tuple[Score, ...]:
    return (
        Score("bleu_4", bleu, bleu - 1, bleu + 1, "case:lc|tok:13a"),
        Score("ter", ter, ter - 2, ter + 2, "case:lc"),
    )


def _decoded(num_beams: int, *scores: float) -> Entry:
    return Entry(
        "runs/tiny",
        "model",
        _scores(*scores),
        Model("runs/tiny", "residual_lstm", 1234),
        Decoding(num_beams=num_beams),
        perplexity=3.5,
        counts={"reference_tokens": 12},
        outputs=f"predictions-test-beam{num_beams}.jsonl",
    )


RESULTS = Results(
    "paraphrases",
    Data("synthetic_questions", rows=3),
    (
        _decoded(5, 20.123, 60.456),
        _decoded(10, 21.5, 59.5),
        Entry(COPIED, "baseline", _scores(10.0, 80.0)),
        Entry("A paper of 2016", "paper", (Score("bleu_4", 36.7),), decoding=Decoding(num_beams=5)),
    ),
    ENVIRONMENT,
)
PREDICTIONS = [
    {"source": "how do i learn ?", "references": ["how can i learn ?", "x"], "prediction": "how | do <unk> learn"},
    {"source": "the cat sat", "references": ["a cat sat"], "prediction": "the cat sat"},
    {"source": "a dog", "references": ["the dog"], "prediction": "dog dog"},
]


def write_run(folder: Path) -> Path:
    """Write a finished run that was evaluated."""
    config = ResidualLstmConfig(
        vocab_size=len(WORDS), embedding_size=8, hidden_size=8, num_layers=2, attention="additive"
    )
    save(ResidualLstmForConditionalGeneration(config).eval(), folder)
    make_recipe().save(folder / "recipe")
    (folder / "training_summary.json").write_text(json.dumps(SUMMARY))
    (folder / "log_history.jsonl").write_text("{}\n")
    (folder / "checkpoints" / "last-00000020").mkdir(parents=True)
    (folder / "checkpoints" / "last-00000020" / "model.safetensors").write_bytes(b"not for others")
    RESULTS.save(folder / "evaluation" / "results-test.json")
    lines = "".join(json.dumps(row) + "\n" for row in PREDICTIONS)
    (folder / "evaluation" / "predictions-test-beam5.jsonl").write_text(lines)
    return folder


def digest(folder: Path) -> dict[str, str]:
    """What every file of a folder holds."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
