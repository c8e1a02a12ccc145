"""Runs the application until a signal stops it, then finishes accepted requests."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI

from ..errors import InputError
from .connections import LimitedProtocol
from .limits import Limits

__all__ = ["listen", "make_config", "read_api_key", "run_server"]

BACKLOG = 2048
# A connection that is closed while its client sends the next request loses that: by uvicorn's 5 seconds, often.
SECONDS_BETWEEN_REQUESTS = 75


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
