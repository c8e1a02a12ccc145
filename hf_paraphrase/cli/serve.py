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

    It answers with paraphrases, labels of sentence pairs, or embeddings, as the model can: POST /paraphrase, /match
    and /v1/embeddings (OpenAI's shape); GET /health, /metrics (Prometheus), and /docs, which shows every field with
    examples. Concurrent requests are batched, and each gets what it would get alone. Told to stop, the server answers
    what it took. It needs the extra `serve`.
    """

    host: str = option("Address to listen on; 0.0.0.0 for all of the machine.", "127.0.0.1")
    port: int = option("Port; 0 for any that is free.", 8000, least=0, most=65535)
    max_batch: int = option("Texts that are computed at a time.", 32, least=1)
    max_wait_ms: float = option("Milliseconds that a text waits for others while its batch has room.", 5.0, least=0)
    max_queue: int = option("Texts that may wait; more are refused (429).", 1024, least=1)
    max_text_length: int = option("Characters of a text; longer ones are refused (413).", 1000, least=1)
    max_header_bytes: int = option("Bytes of a header; longer ones are refused (431).", 65536, least=1024)
    max_request_seconds: float = option(
        "Seconds that a request may take to arrive; slower ones are refused (408).", 60.0, least=0.1
    )
    max_connections: int = option(
        "Clients at a time; more are refused (503). `ulimit -n` must be higher.", 900, least=1
    )
    api_key_env: str | None = option("Variable of the environment with a key that requests must bring.", None)

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
        """The model, by what it can do."""
        from ..serving.served_model import load_served_model, serve_paraphraser

        if self.backend or self.prompt:
            return serve_paraphraser(self.model, self.load_paraphraser(), self.max_batch)
        return load_served_model(self.model, self.max_batch, self.trust_remote_code)
