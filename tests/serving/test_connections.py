from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace

import pytest
from fastapi import HTTPException

from hf_paraphrase.serving.app import gather
from hf_paraphrase.serving.connections import MAX_HEADER_BYTES, LimitedProtocol
from hf_paraphrase.serving.served_model import ServedModel

from .running import run_app


@pytest.fixture
def address():
    with run_app(ServedModel("none")) as server:
        host, port = server.address.removeprefix("http://").split(":")
        yield host, int(port)


def ask(address: tuple[str, int], *parts: bytes) -> bytes:
    """Send bytes as they are; return the answer until the server closes the connection."""
    with socket.create_connection(address, timeout=60) as connection:
        for part in parts:
            connection.sendall(part)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_long_header_is_refused(address):
    start = b"GET /health HTTP/1.1\r\nHost: a\r\nX: "
    assert ask(address, start + b"x" * (MAX_HEADER_BYTES + 1)).startswith(b"HTTP/1.1 431 ")
    assert ask(address, start + b"x\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    assert ask(address, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("part", [b"", b"GET /hea", b"POST /match HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"])
def test_a_request_that_never_ends_is_refused(part, address, monkeypatch):
    monkeypatch.setattr(LimitedProtocol, "seconds_for_request", 0.05)
    answer = ask(address, part)
    assert answer.startswith((b"HTTP/1.1 408 ", b"HTTP/1.1 404 ")), answer


def test_too_many_connections_are_refused(address, monkeypatch):
    monkeypatch.setattr(LimitedProtocol, "max_connections", 0)
    assert ask(address).startswith(b"HTTP/1.1 503 ")


def test_who_hangs_up_has_nothing_computed():
    async def inner() -> None:
        async def receive():
            return {"type": "http.disconnect"}

        futures = [asyncio.get_running_loop().create_future() for _ in range(2)]
        with pytest.raises(HTTPException) as refused:
            await asyncio.wait_for(gather(futures, SimpleNamespace(receive=receive)), 60)
        await asyncio.sleep(0)
        assert refused.value.status_code == 499
        assert all(future.cancelled() for future in futures)

    asyncio.run(inner())
