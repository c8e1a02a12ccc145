"""The commands that show a model to people and programs. Heavy imports are inside them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from ..common.errors import InputError
from ..common.fields import option
from ..common.installation import require
from ..released import RELEASED
from ..serving.limits import Limits
from .options import LoadingOptions, WriterOptions
from .terminal import echo
from .verbs import Verb, verb


@verb("demo")
class OpenDemo(WriterOptions):
    """Try a model in the browser.

    \b
    hf-paraphrase demo
    hf-paraphrase demo runs/coupled-lstm-snli --port 8000

    The page shows paraphrases with scores and highlights new words, or shows how two sentences match. For a model that
    edits by retrieved pairs, it also shows the pairs and what each word attended to; for a coupled LSTM, the heat map
    of a unit. `space` publishes the same page on the Hub. Ctrl-C stops the server.
    """

    host: str = option("Address to listen on; 0.0.0.0 for all interfaces.", "127.0.0.1")
    port: int = option("Port to listen on.", 7860, least=0, most=65535)

    def run(self) -> None:
        require("gradio", "demo", "demo")
        from ..serving.demo import launch_demo

        loading = self.given(LoadingOptions)
        launch_demo(self.model, loading, server_name=self.host, server_port=self.port)


@verb("space")
class MakeSpace(Verb):
    """Publish the demo of a model as a Space on the Hub.

    \b
    hf-paraphrase space you/your-model --push you/your-space
    hf-paraphrase space runs/first --output space

    A Hub repository is loaded when the Space starts; a folder goes into the Space.
    """

    model: str = option("Checkpoint folder or Hub repository.", RELEASED, positional=True)
    output: Path | None = option("Folder to write the Space to.", None)
    push: str | None = option("Space on the Hub, created if missing: you/your-space.", None, metavar="REPO_ID")
    private: bool = option("Create the Space as private.", False)
    package: str | None = option(
        "What pip installs there, such as a wheel's address.  [default: what is installed here]", None
    )

    def run(self) -> str:
        if (self.output is None) == (self.push is None):
            raise InputError("give either --output, a folder to write to, or --push, a Space on the Hub")
        require("gradio", "demo", "space")
        from ..hub.push import push_folder
        from ..serving.space import write_space

        with TemporaryDirectory() as temporary:
            folder = self.output or Path(temporary)
            write_space(self.model, folder, self.package)
            if self.push is not None:
                return push_folder(folder, self.push, "space", private=self.private)
        return f"{self.output}: run it with `python app.py` there"


@verb("serve")
class Serve(Limits, WriterOptions):
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
    api_key_env: str | None = option("Environment variable with the key that requests must send.", None)

    def run(self) -> None:
        for name in ("fastapi", "uvicorn", "prometheus_client"):
            require(name, "serve", "serving")
        from ..serving.app import make_app
        from ..serving.served_model import load_served_model
        from ..serving.server import listen, read_api_key, run_server

        api_key = None if self.api_key_env is None else read_api_key(self.api_key_env)
        with listen(self.host, self.port) as listener:
            served = load_served_model(self.model, self.max_batch, **self.given(LoadingOptions))
            app = make_app(served, self, api_key)
            address, number, *_ = listener.getsockname()
            shown = f"[{address}]" if ":" in address else address
            echo(f"{self.model}: http://{shown}:{number}, documentation at /docs; Ctrl+C stops it")
            run_server(app, listener, self)
