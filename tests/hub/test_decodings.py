"""Decodings on the Hub, and what they give where this package is not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from huggingface_hub import ModelCard

from hf_paraphrase import Paraphraser  # noqa: F401  registers the architectures
from hf_paraphrase.generation import dips, diverse_beam_search
from hf_paraphrase.hub.card import is_edited
from hf_paraphrase.hub.files import REQUIREMENTS
from tests.generation.paraphrasers import MAKERS
from tests.models.tiny import save

from . import decoder

FUNCTIONS = {"diverse_beam": diverse_beam_search, "dips": dips}
# Transformers' own classes, and one of ours with a recurrent state.
MODELS = ("t5", "bart", "residual_lstm")
LENGTH = {"num_beams": 4, "num_return_sequences": 4, "max_new_tokens": 7}
OPTIONS = {
    "diverse_beam": [LENGTH, LENGTH | {"num_beam_groups": 2, "diversity_penalty": 1.5, "exclude_source": True}],
    "dips": [LENGTH, LENGTH | {"fidelity": 0.2, "candidates_per_beam": 2, "exclude_source": False}],
}
CASES = [(name, model, number) for name in FUNCTIONS for model in MODELS for number in range(2)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, str]:
    return {name: save(MAKERS[name](), tmp_path_factory.mktemp(name)) for name in MODELS}


@pytest.fixture(scope="module")
def by_a_stranger(client, running_server, folders, tmp_path_factory) -> dict[tuple, tuple[list, str]]:
    """Tokens, and the refusal of who does not trust the code, in a process without the package."""
    running_server.clear()
    for name in FUNCTIONS:
        answer = client("push", name, "--repo-id", f"you/{name}")
        assert answer.status == 0, answer
    home = tmp_path_factory.mktemp("stranger")
    orders = [[[folders[model], f"you/{name}"], OPTIONS[name][number]] for name, model, number in CASES]
    result = subprocess.run(
        [sys.executable, "-P", decoder.__file__, json.dumps(orders)],
        cwd=home,
        env=os.environ
        | {"HF_ENDPOINT": running_server.endpoint, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return dict(zip(CASES, json.loads(result.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_repository_gives_the_tokens_of_the_function(case, folders, by_a_stranger):
    name, model, number = case
    options: dict[str, Any] = OPTIONS[name][number]
    expected = decoder.decode(folders[model], FUNCTIONS[name], trust_remote_code=False, **options)
    plain = decoder.decode(folders[model], None, trust_remote_code=False, **LENGTH)
    tokens, refusal = by_a_stranger[case]
    assert tokens == expected != plain
    assert "trust_remote_code" in refusal


def test_a_model_beside_the_code_uses_it(tmp_path):
    """`from_pretrained` puts the code of a model's own repository in the place of its `generate`."""
    from transformers import AutoModelForSeq2SeqLM

    from hf_paraphrase.hub.push import make_decoding

    folder = save(MAKERS["bart"](), tmp_path / "model")
    for path, content in make_decoding("diverse_beam").items():
        (tmp_path / "model" / path).parent.mkdir(exist_ok=True)
        (tmp_path / "model" / path).write_bytes(content)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=True)
    inputs = decoder.AutoTokenizer.from_pretrained(folder)(decoder.TEXTS, padding=True, return_tensors="pt")
    tokens = model.generate(**inputs, **LENGTH).tolist()
    assert tokens == decoder.decode(folder, diverse_beam_search, trust_remote_code=False, **LENGTH)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_pushed(name, client, server):
    assert client("push", name, "--repo-id", f"you/{name}", "--private").status == 0
    repository = server.repository(f"you/{name}")
    files = {path: blob.content.decode() for path, blob in repository.files().items()}
    assert repository.private
    assert files["custom_generate/requirements.txt"] == REQUIREMENTS
    code = {path: text for path, text in files.items() if path.endswith(".py")}
    assert {"generate.py", "search.py"} <= {path.removeprefix("custom_generate/") for path in code}
    assert len(code) <= 3 and not any("hf_paraphrase.models" in text for text in code.values())
    card = ModelCard(files["README.md"])
    assert card.data.library_name == "transformers" and "custom_generate" in card.data.tags
    assert f'custom_generate="you/{name}", trust_remote_code=True' in card.text
    for option in OPTIONS[name][1].keys() - LENGTH.keys():
        assert f"| `{option}` | `" in card.text
    assert not is_edited(files["README.md"])


def test_a_second_push_replaces_code_and_keeps_what_a_person_wrote(client, server):
    client("push", "dips", "--repo-id", "you/mine")
    repository = server.repository("you/mine")
    first = repository.files()
    tree = dict(first)
    blob = type(tree["README.md"])
    tree["README.md"] = blob(tree["README.md"].content + b"\nMy notes.\n", False)
    tree["custom_generate/old.py"] = tree["mine.py"] = blob(b"", False)
    repository.record("main", tree, "by hand")
    answer = client("push", "diverse_beam", "--repo-id", "you/mine")
    files = repository.files()
    assert answer.status == 0 and "has a card that a person edited" in answer.errors
    assert files["README.md"] == tree["README.md"] and "mine.py" in files
    assert "custom_generate/old.py" not in files


def test_what_cannot_be_pushed_is_told(client, server, trained_run):
    answer = client("push", "beam", "--repo-id", "you/beam")
    assert answer.status == 2
    assert answer.errors == "error: a decoding to share is one of diverse_beam, dips, not beam\n"
    client("push", trained_run, "--repo-id", "you/tiny")
    before = server.repository("you/tiny").files()
    answer = client("push", "dips", "--repo-id", "you/tiny")
    assert answer.status == 2 and "you/tiny holds a model" in answer.errors
    assert server.repository("you/tiny").files() == before
    assert client("push", "dips", "--repo-id", "you/dips", token=None).status == 2
