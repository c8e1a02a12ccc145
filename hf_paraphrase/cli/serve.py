"""The command that puts a model behind HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.fields import option
from ..installation import require
from .options import WriterOptions
from .terminal import echo
from .verbs import verb

if TYPE_CHECKING:
    from ..serving.served_model import ServedModel

__all__ = ["Serve"]

NEEDED = ("fastapi", "uvicorn", "prometheus_client")


@verb("serve")
class Serve(WriterOptions):
    """Serve a model over HTTP.

    \b
    hf-paraphrase serve
    hf-paraphrase serve runs/first --host 0.0.0.0 --port 8080 --max-batch 64 --api-key-env PARAPHRASE_KEY
    curl localhost:8000/paraphrase -H 'Content-Type: application/json' -d '{"texts": "How do I cook?", "n": 3}'

    Depending on the model it serves paraphrases, labels of sentence pairs or embeddings: POST /paraphrase, /match and
    /v1/embeddings (OpenAI's format); GET /health, /metrics (Prometheus) and /docs, which shows every field with
    examples. Concurrent requests are batched; each gets the answer it would get alone. On a signal to stop, the
    server finishes accepted requests. It needs the extra `serve`.
    """

    host: str = option("Address to listen on; 0.0.0.0 for all interfaces.", "127.0.0.1")
    port: int = option("Port; 0 picks a free one.", 8000, least=0, most=65535)
    max_batch: int = option("Maximum batch size.", 32, least=1)
    max_wait_ms: float = option("Milliseconds to wait for more texts before a batch runs.", 5.0, least=0)
    max_queue: int = option("Maximum number of waiting texts; more get 429.", 1024, least=1)
    max_text_length: int = option("Maximum characters of a text; longer ones get 413.", 1000, least=1)
    max_header_bytes: int = option("Maximum bytes of a header; longer ones get 431.", 65536, least=1024)
    max_request_seconds: float = option(
        "Maximum seconds for a request to arrive; slower ones get 408.", 60.0, least=0.1
    )
    max_connections: int = option(
        "Maximum concurrent connections; more get 503. `ulimit -n` must be higher.", 900, least=1
    )
    api_key_env: str | None = option("Environment variable with the key that requests must send.", None)

    def run(self) -> None:
        """Serve until told to stop."""
        for name in NEEDED:
            require(name, "serve", "serving")
        from ..serving.app import Limits, make_app
        from ..serving.server import listen, read_api_key, run_server

        api_key = None if self.api_key_env is None else read_api_key(self.api_key_env)
        with listen(self.host, self.port) as listener:
            served = self.load()
            limits = self.call(Limits)
            app = make_app(served, limits, api_key)
            address, number, *_ = listener.getsockname()
            shown = f"[{address}]" if ":" in address else address
            echo(f"{self.model}: http://{shown}:{number}, documentation at /docs; Ctrl+C stops it")
            run_server(app, listener, limits)

    def load(self) -> ServedModel:
        """The model with the tasks that it can do."""
        from ..serving.served_model import load_served_model, serve_paraphraser

        if self.backend or self.prompt:
            return serve_paraphraser(self.model, self.load_paraphraser(), self.max_batch)
        return load_served_model(self.model, self.max_batch, self.trust_remote_code, self.dtype)
