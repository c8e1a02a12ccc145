"""A server of OpenAI's shape that answers at once, and fails in the ways that servers do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Barrier, Lock, Thread
from typing import Any


class ChatServer:
    """What is asked and answered.

    Args:
        answer: From the body of a request and its number to the answer, or to a status of HTTP.
        logprob: Of the one token of each answer; None where the server tells none.
        at_once: Requests that have to be there before any is answered.
    """

    def __init__(self, answer: Callable[[dict, int], str | int], logprob: float | None = None, at_once: int = 1):
        self.answer, self.logprob = answer, logprob
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.lock, self.barrier = Lock(), Barrier(at_once)

    def respond(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self.lock:
            number = len(self.requests)
            self.requests.append(body)
        self.barrier.wait(timeout=60)
        answer = self.answer(body, number)
        if isinstance(answer, int):
            return answer, {"error": {"message": "no"}}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
        if self.logprob is not None:
            choice["logprobs"] = {"content": [{"token": "x", "logprob": self.logprob, "top_logprobs": []}]}
        usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
        return 200, {"id": "1", "created": 0, "model": body["model"], "choices": [choice], "usage": usage}


@contextmanager
def serving(server: ChatServer) -> Iterator[str]:
    """Answer requests at the address that this gives."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            server.keys.add(self.headers.get("Authorization"))
            status, content = server.respond(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            data = json.dumps(content).encode()
            self.send_response(status if self.path == "/v1/chat/completions" else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}/v1"
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
