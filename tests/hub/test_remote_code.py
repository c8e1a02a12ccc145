"""What is pushed runs where there is no package but transformers: every architecture, from the Hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import AutoModel, AutoModelForSequenceClassification

from hf_paraphrase.registration import ARCHITECTURES
from hf_paraphrase.tokenization import train_word_tokenizer
from tests.models.tiny import TEXT, WORDS, save, tiny_model

from . import stranger
from .conftest import Client
from .runs import write_run

# Every architecture with each of its heads.
HEADS = {
    f"{row.model_type}, {auto_class.__name__}": (row, auto_class)
    for row in ARCHITECTURES
    for auto_class in row.model_classes
    if auto_class is not AutoModel
}


def auto_classes(head: str) -> list[str]:
    """What loads a checkpoint: the Auto class of its head, and `AutoModel` for its body, where it has one."""
    row, auto_class = HEADS[head]
    return [auto_class.__name__, *(["AutoModel"] if "AutoModel" in row.models else [])]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, str]:
    """A checkpoint of each."""
    folders = {}
    for head, (row, auto_class) in HEADS.items():
        tokenizer = train_word_tokenizer([TEXT], vocab_size=len(WORDS))
        if auto_class is AutoModelForSequenceClassification:
            tokenizer.model_input_names = [*tokenizer.model_input_names, "token_type_ids"]
        model = tiny_model(row.config_class, row.model_classes[auto_class])
        folders[head] = save(model, tmp_path_factory.mktemp(row.model_type), tokenizer)
    return folders


@pytest.fixture(scope="module")
def seen_by_a_stranger(folders, client, running_server, tmp_path_factory) -> dict[str, tuple[str, dict]]:
    """What a process without this package makes of the repositories: a refusal, then results."""
    running_server.clear()
    checkpoints = []
    for number, (head, folder) in enumerate(folders.items()):
        answer = client("push", folder, "--repo-id", f"you/{number}")
        assert answer.status == 0, answer
        checkpoints.append([f"you/{number}", auto_classes(head)])
    home = tmp_path_factory.mktemp("stranger")
    result = subprocess.run(
        [sys.executable, "-P", str(Path(stranger.__file__)), json.dumps(checkpoints)],
        cwd=home,
        env=os.environ | {"HF_ENDPOINT": running_server.endpoint, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return dict(zip(folders, json.loads(result.stdout), strict=True))


@pytest.mark.parametrize("head", HEADS)
def test_a_stranger_gets_the_same(head, folders, seen_by_a_stranger):
    refusal, found = seen_by_a_stranger[head]
    # transformers' own error, for whoever does not trust the code.
    assert "trust_remote_code=True" in refusal
    expected = stranger.use(folders[head], auto_classes(head))
    assert {name: found[name] for name in expected if name != "logits"} == {
        name: value for name, value in expected.items() if name != "logits"
    }
    if "logits" in expected:
        assert found["logits"] == [pytest.approx(row, abs=1e-6) for row in expected["logits"]]


@pytest.mark.parametrize("head", HEADS)
def test_auto_map_names_every_auto_class(head, folders):
    row, _ = HEADS[head]
    auto_map = json.loads(Path(folders[head], "config.json").read_text())["auto_map"]
    assert auto_map.pop("AutoConfig").endswith(f".{row.config}")
    assert sorted(auto_map) == sorted(auto_classes(head))
    for known, model_class in row.models.items():
        if known in auto_map:
            assert auto_map[known].endswith(f".{model_class}")


def test_the_package_loads_from_the_hub(client, server, trained_run):
    client("push", trained_run, "--repo-id", "you/tiny", "--private")
    code = """
import hf_paraphrase
from tests.hub.stranger import use
result = use({!r}, ["AutoModelForSeq2SeqLM", "AutoModel"])
"""
    local = client.python(code.format(str(trained_run)))
    assert client.python(code.format("you/tiny"), token="hf_you") == local
    paraphrases = client("paraphrase", "you/tiny", "the cat", "--max-new-tokens", 4)
    assert (
        paraphrases.status == 0
        and paraphrases.output == client("paraphrase", trained_run, "the cat", "--max-new-tokens", 4).output
    )


def test_info_of_a_folder_and_of_a_repository(client, server, trained_run):
    client("push", trained_run, "--repo-id", "you/tiny")
    local = client("info", trained_run).output
    for line in (
        "architecture: residual_lstm, ResidualLstmForConditionalGeneration",
        "loaded by: AutoModelForSeq2SeqLM",
        "retriever: no",
        "data: synthetic_questions, configuration default; 1,000 rows",
        "steps: 20, 2 epochs, 2.00 hours",
        "this model, beam 5: bleu_4 20.12 (19.12 to 21.12), ter 60.46 (58.46 to 62.46)",
        "the source, copied: bleu_4 10.00 (9.00 to 11.00), ter 80.00 (78.00 to 82.00)",
    ):
        assert f"\n  {line}\n" in local, line
    server.requests.clear()
    remote = client("info", "you/tiny").output
    assert remote.splitlines()[0] == "you/tiny" and remote.splitlines()[1:] == local.splitlines()[1:]
    # Of the weights only the header is asked for.
    assert server.count("resolve/.*model.safetensors") and not server.count("^GET .*predictions")
    assert client("info", "you/nothing").errors == (
        "error: you/nothing is neither a checkpoint folder nor a Hub repository within reach; "
        "check its name; for a private or gated one run `hf auth login`\n"
    )


def test_info_of_a_downloaded_repository_needs_no_network(client, server, trained_run):
    client("push", trained_run, "--repo-id", "you/tiny")
    remote = client("info", "you/tiny").output
    client.python("import huggingface_hub; result = huggingface_hub.snapshot_download('you/tiny')")
    server.requests.clear()
    switch = "from huggingface_hub import constants; constants.HF_HUB_OFFLINE = {}"
    client.python(switch.format(True))
    try:
        assert client("info", "you/tiny").output.splitlines()[1:] == remote.splitlines()[1:]
    finally:
        client.python(switch.format(False))
    assert not server.requests


@pytest.mark.parametrize("command", [("info",), ("paraphrase", "a text"), ("space", "--output", "x")])
def test_a_hub_out_of_reach_is_said_in_one_line_without_retries(command, unreachable):
    name, *options = command
    answer = unreachable(name, "you/tiny", *options)
    assert answer.status == 2 and answer.waits == []
    start = "error: you/tiny is neither a checkpoint folder nor a Hub repository within reach; http://127.0.0.1:1"
    assert answer.errors.startswith(f"{start} cannot be reached (") and answer.errors.count("\n") == 1


@pytest.fixture(scope="module")
def unreachable(tmp_path_factory):
    client = Client("http://127.0.0.1:1", tmp_path_factory.mktemp("unreachable"))
    yield client
    client.process.stdin.close()
    client.process.wait()


def test_info_of_what_is_no_checkpoint(client, tmp_path):
    assert "holds no config.json" in client("info", tmp_path).errors
    write_run(tmp_path / "run")
    (tmp_path / "run" / "training_summary.json").write_text("{")
    assert "run: training_summary.json is not valid JSON" in client("info", tmp_path / "run").errors
