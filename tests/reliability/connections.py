"""Clients that would keep a server from others: long headers, slow requests, and answers that nobody waits for."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress

from hf_paraphrase.serving.limits import Limits
from hf_paraphrase.serving.served_model import ServedModel
from tests.serving.running import RunningServer, run_app

from .trials import Trials

HEADER_BYTES, SLOW, ABORTED = 20_000_000, 1300, 100
LIMITS = Limits(max_batch=1, max_queue=50, max_request_seconds=3.0)
KEY = "sesame"
ASKED = {"pairs": [{"text": "a", "text_pair": "b"}]}
# From a request to its answer, on a machine that does other things too.
PATIENCE = 20.0


def attack_connections(count: int, seed: int = 0) -> Trials:
    """Attack a server with a key `count` times, in each way in turn."""
    trials = Trials("hostile connections")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        for number in range(count):
            attack = ATTACKS[number % len(ATTACKS)]
            with trials.trial(f"{number}: {attack.__name__}"):
                attack()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return trials


@contextmanager
def serving(matcher: Callable[[list, object], list]):
    with run_app(ServedModel("letters", match=matcher), LIMITS, KEY) as server:
        server.client.headers["Authorization"] = f"Bearer {KEY}"
        yield server, ("127.0.0.1", int(server.address.rpartition(":")[2]))


def label(pairs: list, options: object = None) -> list:
    return [[{"label": "a", "score": 1.0}] for _ in pairs]


def check_served(server: RunningServer) -> None:
    start = time.monotonic()
    answer = server.post("/match", **ASKED)
    taken = time.monotonic() - start
    assert answer.status_code == 200, f"others are answered {answer.status_code}"
    assert taken < PATIENCE, f"others waited {taken:.1f} s"


def send_long_header() -> None:
    """Without a key, while others are served."""
    with serving(label) as (server, address), socket.create_connection(address, timeout=60) as connection:
        received = []

        def send() -> None:
            with suppress(OSError):  # the server has closed the connection
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nX: ")
                connection.sendall(b"x" * HEADER_BYTES)
            try:
                received.append(connection.recv(100))
            except ConnectionResetError:
                received.append(b"")

        sending = threading.Thread(target=send)
        sending.start()
        check_served(server)
        sending.join(60)
        # Where the server closes while the client still sends, the client may lose the answer.
        assert [answer[9:12] for answer in received] in ([b"431"], [b""]), received


def open_slow_connections() -> None:
    """None of them ever ends its header; all are closed, and others are served again."""
    with serving(label) as (server, address), ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(address, timeout=60)) for _ in range(SLOW)]
        for connection in slow:
            with suppress(OSError):  # refused already
                connection.sendall(b"GET /hea")
        answers = [read(connection)[9:12] for connection in slow]
        check_served(server)
        refused = {status: answers.count(status) for status in set(answers)}
        assert set(answers) <= {b"408", b"503", b""}, refused
        assert answers.count(b"408") <= LIMITS.max_connections, refused
        assert answers.count(b"503") + answers.count(b"") >= SLOW - LIMITS.max_connections, refused


def read(connection: socket.socket) -> bytes:
    try:
        return b"".join(iter(lambda: connection.recv(65536), b""))
    except ConnectionResetError:
        return b""


def abort_requests() -> None:
    """Their texts leave the queue, where there is room for half as many, and are not computed."""
    started, go_on, computed = threading.Event(), threading.Event(), []

    def hold(pairs: list, options: object = None) -> list:
        computed.extend(pairs)
        started.set()
        assert go_on.wait(60)
        return label(pairs)

    body = b'{"pairs": [{"text": "gone", "text_pair": "b"}]}'
    header = f"POST /match HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
    request = f"{header}Content-Length: {len(body)}\r\n\r\n".encode() + body
    with serving(hold) as (server, address):
        first = threading.Thread(target=check_served, args=(server,))
        first.start()
        try:
            assert started.wait(60)
            for _ in range(ABORTED):
                with socket.create_connection(address, timeout=60) as connection:
                    connection.sendall(request)
            wait_until(lambda: server.client.get("/health").json()["waiting"] == 0)
        finally:
            go_on.set()
            first.join(60)
        check_served(server)
    assert computed == [("a", "b")] * 2, f"computed {len(computed)}"


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "aborted requests still wait"
        time.sleep(0.01)


ATTACKS = (send_long_header, open_slow_connections, abort_requests)
