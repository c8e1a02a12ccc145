"""What `push` and `info` make of folders that nobody wrote in good faith."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import AutoModelForSeq2SeqLM

from hf_paraphrase.checkpoints.pretrained import load_config, load_model, load_tokenizer
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.hub.card import describe_checkpoint
from hf_paraphrase.hub.checkpoint import read_checkpoint
from hf_paraphrase.hub.files import find_files
from tests.checkpoints.hostile import change_json
from tests.hub.runs import write_run


@pytest.fixture
def folder(tmp_path) -> Path:
    write_run(tmp_path / "run")
    return tmp_path / "run"


def info(folder: Path) -> str:
    return describe_checkpoint(read_checkpoint(folder))


@pytest.mark.parametrize(
    "reference", ["/etc/passwd.Model", "../secret.Model", "a/b.Model", "..", "", 3, ["/etc/x.Model", None], {"a": "b"}]
)
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_code_that_lies_elsewhere(name, reference, folder):
    (folder.parent / "secret.py").write_text("TOKEN = 'mine'")
    change_json(folder / name, auto_map={"AutoModel": reference})
    with pytest.raises(InputError, match=name):
        find_files(folder)


def test_code_that_imports_what_lies_elsewhere(folder):
    (folder.parent / "secret.py").write_text("TOKEN = 'mine'")
    (folder / "model.py").write_text("from ..secret import TOKEN\nfrom .missing import x\n")
    change_json(folder / "config.json", auto_map={"AutoModel": "model.Model"})
    with pytest.raises(InputError, match="secret|missing|imports"):
        find_files(folder)


@pytest.mark.parametrize("content", ["[]", "3", "null", '"text"', "{", "\xff", "[" * 100_000])
def test_a_config_that_is_no_object(content, folder):
    (folder / "config.json").write_text(content, encoding="latin-1")
    for use in (info, find_files):
        with pytest.raises(InputError, match="config.json"):
            use(folder)


@pytest.mark.parametrize(
    "values",
    [
        {"model_type": None},
        {"model_type": 3},
        {"architectures": "Model"},
        {"architectures": [3]},
        {"auto_map": ["a.B"]},
        {"auto_map": "a.B"},
        {"vocab_size": "many"},
    ],
)
def test_a_config_with_other_things_in_it(values, folder):
    change_json(folder / "config.json", **values)
    with pytest.raises(InputError, match=f"config.json: `{next(iter(values))}"):
        info(folder)


def test_what_else_is_damaged(folder):
    (folder / "training_summary.json").write_text("{}")
    with pytest.raises(InputError, match="training_summary.json was not written by a training"):
        info(folder)
    (folder / "training_summary.json").unlink()
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(InputError, match="model.safetensors is damaged"):
        info(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt", "retriever/x", "deep/er/x"])
def test_links_that_lead_out_are_refused(name, folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("mine")
    link = folder / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(secret)
    for use in (find_files, info, load_config, load_tokenizer, lambda path: load_model(None, path)):
        with pytest.raises(InputError, match="is a link that leads out of"):
            use(folder)


@pytest.mark.parametrize("place", ["{}/secret.safetensors", "../secret.safetensors", "a/../../secret", "", "..", 3])
def test_weights_that_lie_elsewhere(place, folder):
    (folder / "model.safetensors").rename(folder.parent / "secret.safetensors")
    place = place.format(folder.parent) if isinstance(place, str) else place
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": {"a": place}}))
    with pytest.raises(InputError, match="which is not a file beside it"):
        load_model(AutoModelForSeq2SeqLM, folder)


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"weight_map": [1]}', '{"weight_map": {}}', "[" * 100_000])
def test_an_index_of_weights_that_is_none(content, folder):
    (folder / "model.safetensors.index.json").write_text(content)
    with pytest.raises(
        InputError, match="index.json (is not an index of weights|is not valid JSON|must hold one JSON object)"
    ):
        load_model(AutoModelForSeq2SeqLM, folder)


def test_links_within_and_those_of_the_hubs_cache_are_followed(folder, tmp_path):
    blobs, snapshot = tmp_path / "cache" / "blobs", tmp_path / "cache" / "snapshots" / "0123"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, file in enumerate(path for path in folder.iterdir() if path.is_file()):
        (blobs / str(number)).write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(f"../../blobs/{number}")
    assert json.loads(find_files(snapshot)["config.json"].read_text())["model_type"] == "residual_lstm"
    (folder / "again.json").symlink_to("config.json")
    (tmp_path / "by-another-name").symlink_to(folder)
    assert find_files(tmp_path / "by-another-name").keys() == find_files(folder).keys()
