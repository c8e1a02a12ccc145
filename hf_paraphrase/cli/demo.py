"""The commands that show a model to people. Heavy imports are inside the commands."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from ..common.fields import option
from ..errors import InputError
from ..installation import require
from .options import DEFAULT_MODEL, WriterOptions
from .verbs import Verb, verb

__all__ = ["MakeSpace", "OpenDemo", "check_gradio"]


@verb("demo")
class OpenDemo(WriterOptions):
    """Try a model in the browser.

    \b
    hf-paraphrase demo
    hf-paraphrase demo runs/coupled-lstm-snli --port 8000

    It shows paraphrases with scores and what is new in them, or how two sentences match. A model that edits by
    retrieved pairs shows them and what each word attended to, a coupled LSTM the heat map of a unit. `space` puts the
    same page on the Hub. Ctrl-C ends it.
    """

    host: str = option("Address to listen on; 0.0.0.0 for all interfaces.", "127.0.0.1")
    port: int = option("Port to listen on.", 7860, least=0, most=65535)

    def run(self) -> None:
        """Show the page until it is stopped."""
        check_gradio("demo")
        from ..serving.demo import launch_demo

        launch_demo(
            self.model,
            self.trust_remote_code,
            prompt=self.prompt,
            backend=self.backend,
            dtype=self.dtype,
            server_name=self.host,
            server_port=self.port,
        )


@verb("space")
class MakeSpace(Verb):
    """Publish the demo of a model as a Space on the Hub.

    \b
    hf-paraphrase space you/your-model --push you/your-space
    hf-paraphrase space runs/first --output space

    A Hub repository is loaded when the Space starts; a folder goes into the Space.
    """

    model: str = option("Checkpoint folder or Hub repository.", DEFAULT_MODEL, positional=True)
    output: Path | None = option("Folder to write the Space to.", None)
    push: str | None = option("Space on the Hub, created if missing: you/your-space.", None, metavar="REPO_ID")
    private: bool = option("Create the Space as private.", False)
    package: str | None = option(
        "What pip installs there, such as a wheel's address.  [default: what is installed here]", None
    )

    def run(self) -> str:
        """Write or push it, and say where it is."""
        if (self.output is None) == (self.push is None):
            raise InputError("give either --output, a folder to write to, or --push, a Space on the Hub")
        check_gradio("space")
        from ..serving.space import push_space, write_space

        if self.output is not None:
            write_space(self.model, self.output, self.package)
            return f"{self.output}: run it with `python app.py` there"
        with TemporaryDirectory() as folder:
            write_space(self.model, Path(folder), self.package)
            return push_space(folder, cast(str, self.push), private=self.private)


def check_gradio(command: str) -> None:
    """Check that gradio is installed.

    Args:
        command: The command that needs it.

    Raises:
        InputError: gradio is not installed.
    """
    require("gradio", "demo", command)
