"""Runs the application until a signal stops it; limits connections, headers, and the time for a request to arrive."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import suppress
from functools import partial
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..common.errors import InputError
from .limits import Limits

BACKLOG = 2048
# A connection that is closed while its client sends the next request loses that: by uvicorn's 5 seconds, often.
SECONDS_BETWEEN_REQUESTS = 75


class LimitedProtocol(H11Protocol):
    """A connection that is closed, with 503, 431 or 408, where it exceeds a limit.

    uvicorn has options for none of these but the header's size, which it answers with 400.
    """

    timer: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, limits: Limits, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.limits = limits

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or refuse it with 503."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            self._refuse(503, f"more connections than `max_connections` = {self.limits.max_connections:,}; try later")
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        super().connection_lost(exc)
        self._stop_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse what h11 cannot read: with 431 where it is a header that is too long."""
        longest = self.limits.max_header_bytes
        if len(self.conn.trailing_data[0]) > longest:
            self._refuse(431, f"the header is longer than `max_header_bytes` = {longest:,}")
        else:
            super().send_400_response(msg)

    def _watch(self) -> None:
        """Run the timer while a request is incomplete; further bytes do not restart it."""
        if self.transport.is_closing() or self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_timer()
        elif self.timer is None:
            self.timer = self.loop.call_later(self.limits.max_request_seconds, self._time_out)

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _time_out(self) -> None:
        self.timer = None
        if self.transport.is_closing() or self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            return
        seconds = self.limits.max_request_seconds
        self._refuse(408, f"the request took longer to arrive than `max_request_seconds` = {seconds:g}")

    def _refuse(self, status: int, reason: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
            for event in (h11.Response(status_code=status, headers=headers), h11.Data(reason.encode())):
                self.transport.write(self.conn.send(event))
            self.transport.write(self.conn.send(h11.EndOfMessage()))
        self.transport.close()


def listen(host: str, port: int) -> socket.socket:
    """Take a port, 0 for any that is free; InputError where it cannot be taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise InputError(f"--host {host} --port {port} cannot listen there: {error.strerror}") from error


def read_api_key(variable: str) -> str:
    """The key that a variable of the environment holds; InputError if it holds none."""
    if not os.environ.get(variable):
        raise InputError(f"--api-key-env: there is no {variable} in the environment, or it is empty")
    return os.environ[variable]


def make_config(app: FastAPI, limits: Limits, **options: Any) -> uvicorn.Config:
    """How uvicorn is to serve; `options` are further ones, or others."""
    usual = {"access_log": False, "backlog": BACKLOG, "timeout_keep_alive": SECONDS_BETWEEN_REQUESTS}
    protocol = partial(LimitedProtocol, limits=limits)
    limited = {"http": protocol, "h11_max_incomplete_event_size": limits.max_header_bytes}
    return uvicorn.Config(app, **{**usual, **limited, **options})


def run_server(app: FastAPI, listener: socket.socket, limits: Limits) -> None:
    """Serve until SIGINT or SIGTERM; no request is taken after that, and those that were taken are answered.

    A second SIGINT ends it at once. The listener is closed in the end.
    """
    # Of every shape of input oneDNN keeps its kernels with their memory, 1,024 by default: hardly two batches are of
    # one shape, so that they came to 100 MB, and less of them are not slower.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    server = uvicorn.Server(make_config(app, limits))
    # After shutdown uvicorn raises the signal again, which would look like a failure.
    usual = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, usual)
