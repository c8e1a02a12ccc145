from __future__ import annotations

import socket

import pytest

from tests.cli.runner import run

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
