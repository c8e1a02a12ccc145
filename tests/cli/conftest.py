from __future__ import annotations

import json
from pathlib import Path

import pytest

import hf_paraphrase.training.loop
from tests.models.tiny import save, tiny_bart

RECIPE_FILES = {
    "config.json": json.dumps({"model_type": "bart", "d_model": 16}),
    "generation_config.json": json.dumps({"num_beams": 5}),
    "training.yaml": "dataset: synthetic_questions\nlearning_rate: 0.5\n",
}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    for name, text in RECIPE_FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """Records what training is asked for, in place of training."""
    calls = []
    monkeypatch.setattr(hf_paraphrase.training.loop, "train", lambda *args, **kwargs: calls.append((args, kwargs)))
    return calls


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save(tiny_bart(), folder)
    return folder
