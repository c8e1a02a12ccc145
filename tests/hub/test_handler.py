"""`push --with-handler`, and the handler as Inference Endpoints run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, pipeline

from hf_paraphrase import Paraphraser
from hf_paraphrase.hub.files import REQUIREMENTS, find_handler
from tests.generation.paraphrasers import MAKERS, make_paraphraser
from tests.models.tiny import save, tiny_matcher, word_tokenizer

from . import endpoint

ROOT = Path(__file__).parents[2]
TEXTS = ["the cat sat on the mat", "a dog", "how do i learn faster ?"]
PAIRS = [{"text": "the cat sat", "text_pair": "a cat sat"}, {"text": "a dog", "text_pair": "the mat"}]
SEVERAL = {"num_return_sequences": 3, "num_beams": 4, "max_new_tokens": 6}
RETRIEVED = {"retrieved": [["the cat sat", "a cat sat"]]}
WRITERS = ["t5", "bart", "residual_lstm", "fset"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, str]:
    """Checkpoints as an endpoint has them: with the handler and what it needs."""
    folders = {}
    for name in [*WRITERS, "matcher"]:
        folder = tmp_path_factory.mktemp(name)
        if name == "matcher":
            save(tiny_matcher(2), folder, word_tokenizer(model_max_length=32))
        else:
            save(MAKERS[name](), folder)
        if name == "fset":
            make_paraphraser("fset").retriever.save_pretrained(folder / "retriever")
        files = {path.name for path in folder.iterdir()}
        for path, content in find_handler(files, writes=name != "matcher").items():
            (folder / path).write_bytes(content if isinstance(content, bytes) else content.read_bytes())
        folders[name] = str(folder)
    return folders


def requests_of(name: str) -> list[dict[str, Any]]:
    """What both sides can answer: with this package, and without."""
    if name == "matcher":
        return [{"inputs": PAIRS}, {"inputs": PAIRS[0], "parameters": {"top_k": None}}]
    more = RETRIEVED if name == "fset" else {}
    return [
        {"inputs": TEXTS[0], "parameters": {**SEVERAL, **more}},
        {"inputs": TEXTS, "parameters": {**SEVERAL, "batch_size": 2, **more}},
        {"inputs": TEXTS, "parameters": {"max_new_tokens": 5, "decoding": "diverse_beam", "num_beams": 4, **more}},
    ]


@pytest.fixture(scope="module")
def alone(folders, tmp_path_factory) -> dict[str, list[Any]]:
    """Answers of a process that has torch and transformers alone."""
    home = tmp_path_factory.mktemp("endpoint")
    refused = [{"inputs": TEXTS[0], "parameters": {"n": 2}}, {}]
    asked = [[folders[name], [*requests_of(name), *refused]] for name in folders]
    result = subprocess.run(
        [sys.executable, "-P", endpoint.__file__, json.dumps(asked)],
        cwd=home,
        env={**os.environ, "HF_HOME": str(home), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return dict(zip(folders, json.loads(result.stdout.splitlines()[-1]), strict=True))


def pipeline_of(name: str, folder: str):
    if name == "matcher":
        return pipeline("text-classification", model=folder, device="cpu")
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    return pipeline("text2text-generation", model=model, tokenizer=tokenizer, device="cpu")


def close_to(value: Any) -> Any:
    """Equal but for scores, which depend on the batch in their last digits."""
    if isinstance(value, dict):
        return {key: close_to(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [close_to(inner) for inner in value]
    return pytest.approx(value, abs=1e-4) if isinstance(value, float) else value


@pytest.mark.parametrize("name", [*WRITERS, "matcher"])
def test_with_and_without_the_package_the_answers_are_the_pipelines(name, folders, alone):
    pipe = pipeline_of(name, folders[name])
    asked = requests_of(name)
    expected = []
    for request in asked:
        parameters = dict(request.get("parameters", {}))
        if name != "matcher":
            parameters["output_scores"] = True
        inputs = request["inputs"]
        expected.append(pipe([inputs] if isinstance(inputs, dict) else inputs, **parameters))
    assert endpoint.ask(folders[name], asked) == close_to(expected)
    assert alone[name][: len(asked)] == close_to(expected)
    scores = [record["score"] for record in expected[0]] if name != "matcher" else []
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("name", [*WRITERS, "matcher"])
def test_what_cannot_be_answered_is_told(name, alone):
    scored, empty = alone[name][-2:]
    assert "`n` asks for scored paraphrases" in scored
    assert "it has no `inputs`" in empty


@pytest.mark.parametrize("name", ["bart", "fset"])
def test_with_the_package_paraphrases_are_scored(name, folders):
    parameters = {"n": 2, "num_candidates": 4, "max_new_tokens": 6, "return_rejected": True}
    one, several = endpoint.ask(
        folders[name],
        [{"inputs": TEXTS[0], "parameters": parameters}, {"inputs": TEXTS, "parameters": parameters}],
    )
    expected = [
        [row._asdict() for row in group] for group in Paraphraser.from_pretrained(folders[name])(TEXTS, **parameters)
    ]
    assert several == close_to(expected) and one == close_to(expected[0])
    assert any(expected)


def test_with_the_package_pairs_are_retrieved(folders):
    parameters = {"num_neighbors": 2, "return_retrieved": True, "max_new_tokens": 6}
    (found,) = endpoint.ask(folders["fset"], [{"inputs": TEXTS[0], "parameters": parameters}])
    pipe = pipeline_of("fset", folders["fset"])
    assert found == close_to(pipe(TEXTS[0], **parameters, output_scores=True))
    assert all(row["retrieved_source"] for row in found) and len(found) == 2


def test_push_with_a_handler(client, server, trained_run):
    assert client("push", trained_run, "--repo-id", "you/plain").status == 0
    plain = server.repository("you/plain").files()
    assert "handler.py" not in plain
    assert client("push", trained_run, "--repo-id", "you/served", "--with-handler").status == 0
    files = server.repository("you/served").files()
    assert files.keys() == plain.keys() | {"handler.py", "requirements.txt"}
    assert files["requirements.txt"].content.decode() == REQUIREMENTS


def test_requirements_are_those_of_the_package():
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert set(REQUIREMENTS.split()) <= set(needed)
