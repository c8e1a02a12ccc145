from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.runner import run
from tests.models.test_pipeline_pairs import PAIRS
from tests.models.tiny import save, tiny_bart

gradio = pytest.importorskip("gradio")


def test_the_command_listens_where_it_is_told(editor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}
    monkeypatch.setattr(gradio.Blocks, "launch", lambda self, **kwargs: asked.update(kwargs))
    assert run("demo", editor, "--port", 8001) == 0
    assert (asked["server_name"], asked["server_port"]) == ("127.0.0.1", 8001)
    assert asked["run_history"] is False and "share" not in asked


def test_a_port_that_is_taken_is_told(editor: str, capsys: pytest.CaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run("demo", editor, "--port", port) == 2
    assert f"Cannot find empty port in range: {port}-{port}" in capsys.readouterr().err.splitlines()[-1]


def test_nobody_else_is_asked_for_anything(editor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither names are looked up nor connections made, but to this machine."""
    from hf_paraphrase.serving.demo import launch_demo

    hosts, look_up = set(), socket.getaddrinfo

    def note(host, *args, **kwargs):
        hosts.add(host if isinstance(host, str) else (host or b"localhost").decode())
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", note)
    app = launch_demo(editor, prevent_thread_lock=True, quiet=True)
    app.close()
    assert not app.analytics_enabled and hosts and hosts <= {"127.0.0.1", "localhost", "::1", "0.0.0.0"}


def test_an_error_clears_the_old_answers_and_little_adequacy_is_hidden(editor: str) -> None:
    from hf_paraphrase.serving.demo import OWN_TEXT, make_demo

    demo = make_demo(editor)
    (ask,) = [function for function in demo.fns.values() if function.api_name == "paraphrase"]
    (clear,) = [function for function in demo.fns.values() if function.trigger_after == ask._id]
    assert clear.trigger_only_on_failure and clear.outputs == ask.outputs
    assert clear.fn() == dict.fromkeys(ask.outputs, "")
    values = {getattr(block, "label", None): getattr(block, "value", None) for block in demo.blocks.values()}
    assert values["Minimum adequacy"] == values["Minimum novelty"] == 0.1
    # Only a model that refuses texts says which.
    assert OWN_TEXT not in [getattr(block, "value", None) for block in demo.blocks.values()]


def test_the_released_model_says_what_it_paraphrases() -> None:
    from hf_paraphrase.released import RELEASED
    from hf_paraphrase.serving.demo import OWN_TEXT, make_demo

    assert OWN_TEXT in [getattr(block, "value", None) for block in make_demo(RELEASED).blocks.values()]


def test_the_strength_has_a_slider(editor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from hf_paraphrase import Paraphraser
    from hf_paraphrase.generation.paraphrase_table import Paraphrases
    from hf_paraphrase.serving.demo import make_demo

    asked = {}
    monkeypatch.setattr(Paraphraser, "__call__", lambda self, _, n, **given: asked.update(given) or Paraphrases())
    demo = make_demo(editor)
    (slider,) = [block for block in demo.blocks.values() if getattr(block, "label", None) == "Strength"]
    assert (slider.minimum, slider.maximum, slider.value) == (0, 1, 0)
    (ask,) = [function for function in demo.fns.values() if function.api_name == "paraphrase"]
    ask.fn("the cat sat", 3, 0.7, 0.2, 0, 0, 0.1, ["names"])
    expected = {"strength": 0.7, "diversity": 0.2, "min_novelty": 0.1, "keep": ["names"]}
    assert expected.items() <= asked.items()


def test_the_examples_fit_the_model(editor: str, tmp_path: Path) -> None:
    from hf_paraphrase.released import RELEASED
    from hf_paraphrase.serving.demo import SENTENCES, TEXTS, make_demo

    pairs = [[source] for source, _ in PAIRS]
    for model, expected in ((editor, pairs), (RELEASED, SENTENCES), (save(tiny_bart(), tmp_path), TEXTS)):
        blocks = make_demo(model).blocks.values()
        assert [block.samples for block in blocks if isinstance(block, gradio.Dataset)] == [expected]
        assert expected[0][0] in [getattr(block, "placeholder", None) for block in blocks]
