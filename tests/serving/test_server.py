from __future__ import annotations

import importlib.util
import socket
from dataclasses import asdict, fields

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.serving.limits import Limits
from hf_paraphrase.serving.served_model import ServedModel
from hf_paraphrase.serving.server import listen, read_api_key
from tests.cli.runner import run


def test_a_taken_port_is_told(capsys: pytest.CaptureFixture):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run("serve", "none", "--port", port) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: --host 127.0.0.1 --port {port} cannot listen there") and error.count("\n") == 1


def test_every_limit_is_an_option(monkeypatch: pytest.MonkeyPatch):
    names = [field.name for field in fields(Limits)]
    served = []
    load = "hf_paraphrase.serving.served_model.load_served_model"
    monkeypatch.setattr(load, lambda model, max_batch, trust_remote_code: ServedModel(model))
    monkeypatch.setattr(
        "hf_paraphrase.serving.server.run_server",
        lambda app, listener, limits: served.append({name: getattr(limits, name) for name in names}),
    )
    wanted = {name: 1025 + number for number, name in enumerate(names)}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in wanted.items()]
    assert run("serve", "none", "--port", 0, *options) == run("serve", "none", "--port", 0) == 0
    assert served == [wanted, asdict(Limits())]


def test_an_address_of_another_machine_is_told():
    with pytest.raises(InputError, match="--host 192.0.2.1 --port 0 cannot listen there"):
        listen("192.0.2.1", 0)


def test_a_key_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("KEY", "sesame")
    for name in ("NO_SUCH_KEY", "EMPTY"):
        with pytest.raises(InputError, match=f"--api-key-env: there is no {name}"):
            read_api_key(name)
    assert read_api_key("KEY") == "sesame"


def test_what_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "hf_paraphrase.common.installation.find_spec", lambda name: None if name == "uvicorn" else find(name)
    )
    assert run("serve", "none") == 2
    assert capsys.readouterr().err == (
        "error: serving needs uvicorn; install it with: pip install 'hf-paraphrase[serve]'\n"
    )
