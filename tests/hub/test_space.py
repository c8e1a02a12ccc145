"""`hf-paraphrase space --push` with the real client of the Hub, over HTTP."""

from __future__ import annotations

import pytest

pytest.importorskip("gradio")


def test_a_space_is_pushed_and_replaced(client, server, trained_run) -> None:
    answer = client("space", trained_run, "--push", "you/space", "--private")
    assert answer.status == 0, answer
    assert answer.output == f"{server.endpoint}/spaces/you/space\n"
    repository = server.repository("you/space", "spaces")
    files = repository.files()
    assert repository.private
    assert {"app.py", "requirements.txt", "README.md", "model/model.safetensors"} <= files.keys()
    assert files["app.py"].content.decode().endswith("launch_demo('model')\n")
    # Then of the same model, as a repository of the Hub: what lay in the Space goes.
    assert client("push", trained_run, "--repo-id", "you/tiny").status == 0
    assert client("space", "you/tiny", "--push", "you/space").status == 0
    files = repository.files()
    assert files.keys() - {".gitattributes"} == {"app.py", "requirements.txt", "README.md"}
    assert files["app.py"].content.decode().endswith("launch_demo('you/tiny')\n")
    assert "models:\n- you/tiny\n" in files["README.md"].content.decode()


def test_without_a_token_nothing_is_asked(client, trained_run) -> None:
    answer = client("space", trained_run, "--push", "you/space", token=None)
    assert answer.status == 2 and "hf auth login" in answer.errors
