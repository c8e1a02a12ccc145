"""The command that puts a model behind HTTP."""

from __future__ import annotations

import importlib.util
from typing import Annotated

import typer

from ..errors import InputError
from ..released import RELEASED
from .options import Model, TrustRemoteCode
from .terminal import echo

__all__ = ["serve"]

NEEDED = ("fastapi", "uvicorn", "prometheus_client")


def serve(
    model: Model = RELEASED,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all of the machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 8000,
    max_batch: Annotated[int, typer.Option(min=1, help="Texts that are computed at a time.")] = 32,
    max_wait_ms: Annotated[
        float, typer.Option(min=0, help="Milliseconds that a text waits for others while its batch has room.")
    ] = 5.0,
    max_queue: Annotated[int, typer.Option(min=1, help="Texts that may wait; more are refused (429).")] = 1024,
    max_text_length: Annotated[
        int, typer.Option(min=1, help="Characters of a text; longer ones are refused (413).")
    ] = 1000,
    api_key_env: Annotated[
        str | None, typer.Option(help="Variable of the environment with a key that requests must bring.")
    ] = None,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Serve a model over HTTP: paraphrases, labels of sentence pairs, or embeddings, as it can.

    \b
    hf-paraphrase serve
    hf-paraphrase serve runs/first --host 0.0.0.0 --port 8080 --max-batch 64 --api-key-env PARAPHRASE_KEY
    curl localhost:8000/paraphrase -H 'Content-Type: application/json' -d '{"texts": "How do I cook?", "n": 3}'

    POST /paraphrase, /match and /v1/embeddings (OpenAI's shape); GET /health, /metrics (Prometheus), and /docs, which
    shows every field with examples. What is asked at the same time is computed together, and each request gets what
    it would get alone. Told to stop, the server answers what it took. It needs `pip install 'hf-paraphrase[serve]'`.
    """
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        raise InputError(f"serving needs {missing[0]}; install it with: pip install 'hf-paraphrase[serve]'")
    from ..serving.app import Limits, make_app
    from ..serving.served_model import load_served_model
    from ..serving.server import listen, read_api_key, run_server

    api_key = None if api_key_env is None else read_api_key(api_key_env)
    limits = Limits(max_batch, max_wait_ms, max_queue, max_text_length)
    with listen(host, port) as listener:
        app = make_app(load_served_model(model, max_batch, trust_remote_code), limits, api_key)
        address, number, *_ = listener.getsockname()
        shown = f"[{address}]" if ":" in address else address
        echo(f"{model}: http://{shown}:{number}, documentation at /docs; Ctrl+C stops it")
        run_server(app, listener)
