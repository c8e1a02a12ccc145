from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from fastapi import HTTPException

from hf_paraphrase.serving.app import gather
from hf_paraphrase.serving.limits import Limits
from hf_paraphrase.serving.served_model import ServedModel

from .running import run_app


@contextmanager
def serving(served: ServedModel | None = None, **limits):
    """The address of a server."""
    with run_app(served or ServedModel("none"), Limits(**limits)) as server:
        host, port = server.address.removeprefix("http://").split(":")
        yield host, int(port)


def ask(address: tuple[str, int], *parts: bytes) -> bytes:
    """Send bytes as they are; return the answer until the server closes the connection."""
    with socket.create_connection(address, timeout=60) as connection:
        for part in parts:
            connection.sendall(part)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("longest", [2000, 65536, 100_000])
def test_a_long_header_is_refused(longest):
    start = b"GET /health HTTP/1.1\r\nHost: a\r\nX: "
    with serving(max_header_bytes=longest) as address:
        refusal = ask(address, start + b"x" * (longest + 1))
        assert refusal.startswith(b"HTTP/1.1 431 ") and refusal.endswith(f"`max_header_bytes` = {longest:,}".encode())
        end = b"x" * (longest - 200) + b"\r\nConnection: close\r\n\r\n"
        assert ask(address, start + end).startswith(b"HTTP/1.1 200 ")
        assert ask(address, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("part", [b"", b"GET /hea"])
def test_a_header_that_never_ends_is_refused(part):
    with serving(max_request_seconds=0.1) as address:
        refusal = ask(address, part)
    assert refusal.startswith(b"HTTP/1.1 408 ") and refusal.endswith(b"`max_request_seconds` = 0.1")


def test_too_many_connections_are_refused():
    with serving(max_connections=1) as address, socket.create_connection(address):
        refusal = ask(address)
    assert refusal.startswith(b"HTTP/1.1 503 ") and b"`max_connections` = 1" in refusal


def ask_for_match(address: tuple[str, int], text: str, *, leave_out: int = 0) -> socket.socket:
    """Send a request for a match, perhaps without its last bytes; return the connection."""
    body = json.dumps({"pairs": [{"text": text, "text_pair": "x"}]}).encode()
    lines = ("POST /match HTTP/1.1", "Host: a", "Content-Type: application/json", f"Content-Length: {len(body)}")
    header = "\r\n".join((*lines, "", ""))
    connection = socket.create_connection(address, timeout=60)
    connection.sendall((header.encode() + body)[: -leave_out or None])
    return connection


class HeldMatcher:
    """Labels pairs once it is let go, and remembers their first texts."""

    def __init__(self):
        self.seen: list[str] = []
        self.started, self.go_on = threading.Event(), threading.Event()

    def __call__(self, pairs, options=None):
        self.seen += [text for text, _ in pairs]
        self.started.set()
        assert self.go_on.wait(60)
        return [[{"label": "a", "score": 1.0}] for _ in pairs]


def test_who_hangs_up_leaves_the_queue_and_is_not_computed():
    matcher = HeldMatcher()
    with run_app(ServedModel("held", match=matcher), Limits(max_batch=1)) as server:
        address = ("127.0.0.1", int(server.address.rpartition(":")[2]))

        def wait_until_waiting(count: int) -> None:
            until = time.monotonic() + 60
            while server.client.get("/health").json()["waiting"] != count:
                assert time.monotonic() < until
                time.sleep(0.01)

        with ask_for_match(address, "stays") as connection:
            assert matcher.started.wait(60)
            gone = [ask_for_match(address, "gone") for _ in range(5)]
            wait_until_waiting(5)
            for one in gone:
                one.close()
            wait_until_waiting(0)
            matcher.go_on.set()
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
    assert matcher.seen == ["stays"]


def test_a_body_that_never_ends_is_refused():
    matcher = HeldMatcher()
    with (
        serving(ServedModel("held", match=matcher), max_request_seconds=0.1) as address,
        ask_for_match(address, "never whole", leave_out=3) as connection,
    ):
        assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
    assert matcher.seen == []


def test_who_hangs_up_leaves_nothing_in_the_log():
    complaints = []

    async def inner() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))

        async def receive():
            return {"type": "http.disconnect"}

        futures = [loop.create_future() for _ in range(2)]
        with pytest.raises(HTTPException) as refused:
            await asyncio.wait_for(gather(futures, SimpleNamespace(receive=receive)), 60)
        assert refused.value.status_code == 499
        assert all(future.cancelled() for future in futures)
        del refused
        await asyncio.sleep(0)
        gc.collect()

    asyncio.run(inner())
    assert complaints == []
