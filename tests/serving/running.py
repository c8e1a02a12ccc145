"""Servers on loopback: the real application, by the real uvicorn, in a thread of the test's process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import uvicorn

from hf_paraphrase.generation.paraphraser import Paraphraser
from hf_paraphrase.serving.app import make_app
from hf_paraphrase.serving.limits import Limits
from hf_paraphrase.serving.served_model import ServedModel, serve_paraphraser
from hf_paraphrase.serving.server import listen, make_config


class RunningServer:
    """A server with a client of it.

    Args:
        address: Where it listens.
        server: Of uvicorn.
    """

    def __init__(self, address: str, server: uvicorn.Server):
        self.address, self.server = address, server
        self.client = httpx.Client(base_url=address, timeout=120)

    def post(self, path: str, **asked) -> httpx.Response:
        return self.client.post(path, json=asked)

    def stop(self) -> None:
        """Tell it to stop, as a signal would."""
        self.server.should_exit = True


@contextmanager
def run_app(
    served: ServedModel | Paraphraser, limits: Limits | None = None, api_key: str | None = None
) -> Iterator[RunningServer]:
    """Serve until the end of the block."""
    limits = limits or Limits()
    if isinstance(served, Paraphraser):
        served = serve_paraphraser("tiny", served, limits.max_batch)
    listener = listen("127.0.0.1", 0)
    app = make_app(served, limits, api_key)
    server = uvicorn.Server(make_config(app, limits, log_level="warning", timeout_keep_alive=600))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    running = RunningServer(f"http://127.0.0.1:{listener.getsockname()[1]}", server)
    try:
        yield running
    finally:
        running.client.close()
        running.stop()
        thread.join()
