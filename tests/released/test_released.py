"""The model that comes with the package is found by its name, and by every door that no other is named at."""

from __future__ import annotations

import io
import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import pytest
import torch
from datasets import Dataset
from transformers import pipeline

from hf_paraphrase import Paraphraser, augment, released
from hf_paraphrase.checkpoints.pretrained import load_config
from hf_paraphrase.cli.options import split_model
from hf_paraphrase.common import files
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.released import RELEASED, find_checkpoint
from hf_paraphrase.serving.served_model import load_served_model
from hf_paraphrase.serving.space import write_space
from tests.cli.runner import run
from tests.models.tiny import tiny_bart

TEXT = "how do i learn faster ?"


def is_tiny_release(model: torch.nn.Module) -> bool:
    weights = tiny_bart().state_dict()
    return all(torch.allclose(tensor, weights[name], atol=0.02) for name, tensor in model.state_dict().items())


def test_every_door_of_python_opens_without_a_name(tiny_release: Path) -> None:
    for paraphraser in (Paraphraser(), Paraphraser.from_pretrained(), Paraphraser.from_pretrained(RELEASED)):
        assert is_tiny_release(paraphraser.model)
    pipe = pipeline("text2text-generation")
    assert is_tiny_release(pipe.model) and pipe(TEXT, max_new_tokens=3)[0].keys() == {"generated_text"}
    rows = augment(Dataset.from_dict({"text": [TEXT]}), n=1, max_new_tokens=3, keep=())
    assert rows["source_id"] == ["0"]
    assert load_served_model(RELEASED).name == RELEASED and load_config(RELEASED).model_type == "bart"
    with pytest.raises(InputError, match="`model` and `tokenizer` go together"):
        Paraphraser(paraphraser.model)


def test_every_command_that_writes_uses_it(tiny_release: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    assert run("paraphrase", TEXT, "the cat sat", "--max-new-tokens", 3) == 0
    out = capsys.readouterr().out
    assert TEXT in out and "the cat sat" in out
    assert run("paraphrase", TEXT, "-n", 1, "--json", "--return-rejected", "--max-new-tokens", 3) == 0
    assert {json.loads(line)["source"] for line in capsys.readouterr().out.splitlines()} == {TEXT}
    monkeypatch.setattr("sys.stdin", io.StringIO("the cat sat\n"))
    assert run("paraphrase", "--max-new-tokens", 3) == 0
    assert capsys.readouterr().out.startswith("the cat sat\n")
    document = tmp_path / "in.md"
    document.write_text("# The cat\n", encoding="utf-8")
    for words in ([document], [document, "--model", RELEASED]):
        assert run("paraphrase-document", *words, "--output", tmp_path / "out.md") == 0
    capsys.readouterr()
    assert run("info", RELEASED) == 0
    assert capsys.readouterr().out.startswith(RELEASED)


@pytest.mark.parametrize(
    ("model", "words", "expected"),
    [
        (None, [], (RELEASED, [])),
        (None, ["How are you?"], (RELEASED, ["How are you?"])),
        (None, ["He/she may go.", "Go."], (RELEASED, ["He/she may go.", "Go."])),
        (None, ["x " * 3000], (RELEASED, ["x " * 3000])),
        (None, ["you/your-model", "Go."], ("you/your-model", ["Go."])),
        (None, ["Hello!"], (RELEASED, ["Hello!"])),
        (None, ["Yes/no?"], (RELEASED, ["Yes/no?"])),
        (None, ["and/or."], (RELEASED, ["and/or."])),
        (None, ["no/such/folder"], ("no/such/folder", [])),
        (None, ["my model", "Go."], ("my model", ["Go."])),
        (None, [RELEASED, "Go."], (RELEASED, ["Go."])),
        ("t5-small", ["runs", "Go."], ("t5-small", ["runs", "Go."])),
    ],
)
def test_the_first_word_is_the_model_where_it_can_be_nothing_else(
    model, words, expected, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my model").mkdir()
    assert split_model(model, words) == expected


def test_a_word_that_may_be_either_is_asked_about(capsys) -> None:
    for words in (["t5-small", "How are you?"], ["Hello"]):
        assert run("paraphrase", *words) == 2
        assert f"'{words[0]}' may be a model or a text: name the model, --model" in capsys.readouterr().err


def test_it_is_unpacked_once_for_each_content(tiny_release: Path, tmp_path: Path, monkeypatch) -> None:
    folder = Path(find_checkpoint())
    assert folder.name == RELEASED and find_checkpoint(RELEASED) == str(folder)
    assert find_checkpoint("you/your-model") == "you/your-model"
    written = (folder / "model.safetensors").stat().st_mtime_ns
    for change in (lambda copy: None, lambda copy: (copy / "generation_config.json").write_text("{}")):
        copy = tmp_path / str(change)
        shutil.copytree(tiny_release, copy)
        change(copy)
        monkeypatch.setattr(released, "RELEASED_FOLDER", copy)
        last = Path(find_checkpoint())
        assert (folder / "model.safetensors").stat().st_mtime_ns == written
    assert last != folder and json.loads((last / "generation_config.json").read_text()) == {}


def test_a_cache_that_cannot_be_written_does_no_harm(tiny_release: Path, tmp_path: Path, monkeypatch, caplog) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HOME", str(tmp_path / "file"))
    released._unpack_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert is_tiny_release(Paraphraser().model)
    assert "set HF_HOME to keep it" in caplog.text
    files.writable_folder.cache_clear()
    released._unpack_once.cache_clear()


def test_a_space_holds_no_copy(tiny_release: Path, tmp_path: Path) -> None:
    write_space(RELEASED, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"app.py", "requirements.txt", "README.md"}
    assert f"launch_demo('{RELEASED}')" in (tmp_path / "app.py").read_text(encoding="utf-8")
    assert "models:" not in (tmp_path / "README.md").read_text(encoding="utf-8")


FIRST_ANSWER = """
import sys
from pathlib import Path
from hf_paraphrase import released
from hf_paraphrase.cli.app import main
released.RELEASED_FOLDER = Path(sys.argv[1])
try:
    main(["paraphrase", "how do i learn faster ?", *sys.argv[2:]])
finally:
    print(*{name.partition(".")[0] for name in sys.modules})
"""


@pytest.mark.parametrize("options", [[], ["-n", "1"]])
def test_the_first_answer_waits_for_nothing_that_it_does_not_need(packed: Path, options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_ANSWER, packed, *options], capture_output=True, text=True, check=True
    )
    assert not {"datasets", "pandas", "pyarrow", "faiss", "evaluate"} & set(done.stdout.splitlines()[-1].split())
    assert not done.stderr
