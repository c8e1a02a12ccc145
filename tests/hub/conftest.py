from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .runs import write_run
from .server import HubServer

ROOT = Path(__file__).resolve().parents[2]


class Answer(NamedTuple):
    """What a command of the client gave."""

    status: int
    output: str
    errors: str
    result: Any
    waits: list[float]


class Client:
    """A process that has the real client of the Hub, told to talk to the test's server."""

    def __init__(self, endpoint: str, home: Path):
        variables = {
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_OFFLINE": "0",
            "HF_DATASETS_OFFLINE": "0",
            "PYTHONPATH": str(ROOT),
        }
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("client.py"))],
            env={name: value for name, value in os.environ.items() if name != "HF_TOKEN"} | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __call__(self, *args: Any, token: str | None = "hf_you") -> Answer:
        """Run the command line."""
        return self._order({"args": [str(arg) for arg in args]}, token)

    def python(self, code: str, token: str | None = None) -> Any:
        """Run Python and hand back its `result`."""
        answer = self._order({"code": code}, token)
        assert answer.status == 0, answer
        return answer.result

    def _order(self, order: dict[str, Any], token: str | None) -> Answer:
        order["env"] = {} if token is None else {"HF_TOKEN": token}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return Answer(**json.loads(self.process.stdout.readline()))


@pytest.fixture(scope="session")
def running_server() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server


@pytest.fixture(scope="session")
def client(running_server, tmp_path_factory) -> Iterator[Client]:
    client = Client(running_server.endpoint, tmp_path_factory.mktemp("home"))
    yield client
    client.process.stdin.close()
    client.process.wait()


@pytest.fixture
def server(running_server) -> HubServer:
    """The server, without repositories or faults."""
    running_server.clear()
    return running_server


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "tiny")
