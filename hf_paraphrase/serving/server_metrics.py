"""Prometheus metrics of the server, and the limit on request sizes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fastapi import HTTPException
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class ServerMetrics:
    """Counts of one application, which are not shared with another one in the process.

    `count_waiting` returns the queue length.
    """

    def __init__(self, count_waiting: Callable[[], int]):
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        own: dict[str, Any] = {"namespace": "paraphrase", "registry": self.registry}
        self.requests = Counter("requests", "Requests that were answered.", ["path", "status"], **own)
        self.seconds = Histogram("request_seconds", "From a request to its answer.", ["path"], buckets=SECONDS, **own)
        self.batches = Histogram("batch_size", "Texts computed together.", ["task"], buckets=SIZES, **own)
        Gauge("waiting", "Texts that wait for their turn.", **own).set_function(count_waiting)


class MeasuredApp:
    """Middleware that counts and times the answers of an application."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics):
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, start = 500, time.perf_counter()

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, note_status)
        finally:
            # Unknown paths are counted together: clients can invent any number.
            path = scope["route"].path if "route" in scope else "other"
            self.metrics.requests.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - start)


class BodyLimit:
    """Middleware that refuses requests whose body is longer than `max_bytes`."""

    def __init__(self, app: ASGIApp, max_bytes: int):
        self.app, self.max_bytes = app, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        count = 0

        async def receive_limited() -> Message:
            nonlocal count
            message = await receive()
            count += len(message.get("body", b""))
            if count > self.max_bytes:
                raise HTTPException(413, f"the request is longer than {self.max_bytes:,} bytes")
            return message

        await self.app(scope, receive_limited, send)
