"""`hf-paraphrase augment`: the command around `augmentation.run`."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import datasets
import pytest

from hf_paraphrase.generation.protected_text import DEFAULT_KEEP
from tests.augmentation.runs import read_output, write_questions

from .runner import run

OPTIONS = ["--column", "question", "-n", "2", "--keep", "none", "--max-new-tokens", "4", "--tasks", "3"]


def test_the_command_in_processes_of_its_own(checkpoint: Path, tmp_path: Path) -> None:
    """As people start it: two workers, which import and load what they need."""
    write_questions(tmp_path / "in.csv", 40)
    command = [sys.executable, "-m", "hf_paraphrase", "augment", "in.csv", "--model", str(checkpoint), *OPTIONS]
    command += ["--keep-columns", "label", "--workers", "2", "--output", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = datasets.load_dataset(str(tmp_path / "out"), split="train")
    written = sum(text is not None for text in rows["paraphrase"])
    assert done.stdout.startswith(f"40 rows: {written:,} paraphrases; of ")
    assert rows.column_names[:4] == ["question", "label", "source_id", "paraphrase"]
    assert {f"in.csv:{line}" for line in range(2, 42)} == set(rows["source_id"])
    assert "Traceback" not in done.stderr and "INFO" not in done.stderr


def test_options_reach_the_paraphraser(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    write_questions(tmp_path / "in.csv", 4)
    args = ["augment", tmp_path / "in.csv", "--model", checkpoint, *OPTIONS, "--output", tmp_path / "out"]
    args += ["--strength", "0.4", "--dtype", "bfloat16"]
    args += ["--min-novelty", "0.1", "--decoding", "beam", "--paraphraser-option", "num_beams=6", "--seed", "3"]
    assert run(*args) == 0
    settings = json.loads((tmp_path / "out" / ".augment" / "settings.json").read_text())
    expected = {"min_novelty": 0.1, "keep": [], "decoding": "beam", "max_new_tokens": 4, "seed": 3, "batch_size": 16}
    assert settings["options"] == {**expected, "strength": 0.4, "num_beams": 6}
    assert settings["dtype"] == "bfloat16"
    assert run(*args, "--diversity", "0.5") == 2
    assert "was begun with other settings" in capsys.readouterr().err


@pytest.mark.parametrize(("keep", "kinds"), [([], list(DEFAULT_KEEP)), (["--keep", "numbers"], ["numbers"])])
def test_terms_of_a_file_are_kept(keep: list[str], kinds: list[str], checkpoint: Path, tmp_path: Path) -> None:
    """Random weights write none of them. Workers on other machines get the terms, not the file."""
    (tmp_path / "in.csv").write_text("question\nhow do i bake bread ?\n")
    terms = tmp_path / "terms.txt"
    terms.write_text("bake bread\nnames\n")
    args = ["augment", tmp_path / "in.csv", "--model", checkpoint, "--column", "question", "--max-new-tokens", "4"]
    assert run(*args, *keep, "--keep-file", terms, "--output", tmp_path / "out") == 0
    settings = json.loads((tmp_path / "out" / ".augment" / "settings.json").read_text())
    assert settings["options"]["keep"] == [*kinds, '"bake bread"', '"names"']
    (row,) = read_output(tmp_path / "out")
    assert row["paraphrase"] is None and "loses 'bake bread'" in row["error"]


def test_distill_keeps_the_terms_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict = {}
    monkeypatch.setattr("hf_paraphrase.distillation.run_distillation", lambda **arguments: given.update(arguments))
    (tmp_path / "in.csv").write_text("text\nhow do i bake bread ?\n")
    (tmp_path / "terms.txt").write_text("bake bread\n")
    args = ["distill", tmp_path / "in.csv", "--column", "text", "--teacher", "none", "--output-dir", tmp_path / "out"]
    args += ["--recipe", "residual-lstm-synthetic", "--keep", "none", "--keep-file", tmp_path / "terms.txt"]
    assert run(*args) == 0
    assert given["asked"].texts.options["keep"] == ['"bake bread"']


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--column", "text"], "in.csv: no column `text`; there are: question, label"),
        (["--executor", "cloud"], "`executor` must be one of local, slurm, ray, not cloud"),
        (["--executor", "slurm"], "the executor slurm needs time and partition, as in time="),
        (["--executor-option", "partition=gpu"], "the executor local has no option `partition`"),
        (["--executor-option", "partition"], "--executor-option takes KEY=VALUE, got 'partition'"),
        (["--paraphraser-option", "adequacy=magic"], "`adequacy` must be one of"),
        (["--decoding", "noise"], "is for a model that embeds sentences"),
        (["--split", "test"], "--split is for corpora and the Hub"),
        (["--push-to-hub"], "no Hub token found"),
        (["--push-to-hub", "--output", "hf://datasets/you/yours"], "is on the Hub already"),
    ],
)
def test_what_a_user_can_mend(
    args: list[str], message: str, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    write_questions(tmp_path / "in.csv", 4)
    fixed = ["augment", tmp_path / "in.csv", "--model", checkpoint, *OPTIONS, "--output", tmp_path / "out"]
    assert run(*fixed, *args) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("error: ") and message in last


def test_without_datatrove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "hf_paraphrase.common.installation.find_spec", lambda name: None if name == "datatrove" else find_spec(name)
    )
    assert run("augment", "in.csv", "--model", "m", "--column", "text", "--output", tmp_path) == 2
    assert "pip install 'hf-paraphrase[augmentation]'" in capsys.readouterr().err


def test_an_interruption_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("hf_paraphrase.augmentation.run.run_augmentation", stop)
    assert run("augment", "in.csv", "--model", "m", "--column", "text", "--output", tmp_path) == 130
    assert capsys.readouterr().err == "interrupted; the same command does what is missing\n"
