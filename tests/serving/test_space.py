from __future__ import annotations

import ast
import importlib.metadata
from pathlib import Path

import pytest
import yaml

import hf_paraphrase
from hf_paraphrase.hub.files import find_files
from tests.cli.runner import run

pytest.importorskip("gradio")


def test_a_folder_goes_into_the_space(editor: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = tmp_path / "space"
    assert run("space", editor, "--output", folder) == 0
    assert "python app.py" in capsys.readouterr().out
    model = {path.relative_to(folder / "model").as_posix() for path in (folder / "model").rglob("*") if path.is_file()}
    assert model == find_files(Path(editor)).keys() and any(path.startswith("retriever/") for path in model)
    assert {path.name for path in folder.iterdir()} == {"app.py", "requirements.txt", "README.md", "model"}
    assert (folder / "requirements.txt").read_text() == f"hf-paraphrase[demo]=={hf_paraphrase.__version__}\n"
    _, front, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    card = yaml.safe_load(front)
    assert card["sdk"] == "gradio" and card["sdk_version"] == importlib.metadata.version("gradio")
    assert (folder / card["app_file"]).is_file() and "models" not in card and Path(editor).name in text


def test_the_app_launches_the_demo_of_its_model(editor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hf_paraphrase.serving import demo

    launched = []
    monkeypatch.setattr(demo, "launch_demo", launched.append)
    assert run("space", editor, "--output", tmp_path, "--package", "hf_paraphrase-9-py3-none-any.whl") == 0
    monkeypatch.chdir(tmp_path)
    exec(compile(ast.parse((tmp_path / "app.py").read_text()), "app.py", "exec"), {})
    assert launched == ["model"]
    assert (tmp_path / "requirements.txt").read_text() == "hf_paraphrase-9-py3-none-any.whl\n"


@pytest.mark.parametrize("args", [[], ["--output", "space", "--push", "you/space"]])
def test_one_of_both_ways_must_be_chosen(args: list[str], editor: str, capsys: pytest.CaptureFixture) -> None:
    assert run("space", editor, *args) == 2
    assert capsys.readouterr().err.startswith("error: give either --output")


@pytest.mark.parametrize("args", [["demo"], ["space", "--output", "out"]])
def test_without_gradio_it_is_said_how_to_get_it(
    args: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    assert run(*args, "none") == 2
    assert capsys.readouterr().err == (
        f"error: {args[0]} needs gradio; install it with: pip install 'hf-paraphrase[demo]'\n"
    )
