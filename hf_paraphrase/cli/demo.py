"""The commands that show a model to people. What is heavy is imported inside the commands."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from ..errors import InputError
from ..released import RELEASED
from .options import Model, TrustRemoteCode
from .terminal import echo

__all__ = ["app"]

app = typer.Typer()


@app.command()
def demo(
    model: Model = RELEASED,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 for all of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at.")] = 7860,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Try a model out in the browser: paraphrases with scores and what is new in them, or how two sentences match.

    \b
    hf-paraphrase demo
    hf-paraphrase demo runs/coupled-lstm-snli --port 8000

    A model that edits by retrieved pairs shows them and what each word attended to, a coupled LSTM the heat map of a
    unit. `space` puts the same page on the Hub. Ctrl-C ends it.
    """
    check_gradio("demo")
    from ..serving.demo import launch_demo

    launch_demo(model, trust_remote_code, server_name=host, server_port=port)


@app.command()
def space(
    model: Model = RELEASED,
    output: Annotated[Path | None, typer.Option(help="Folder to write the Space to.")] = None,
    push: Annotated[
        str | None, typer.Option(metavar="REPO_ID", help="Space on the Hub, made if need be: you/your-space.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new Space private.")] = False,
    package: Annotated[
        str | None,
        typer.Option(help="What pip installs there, such as a wheel's address.  [default: this version]"),
    ] = None,
) -> None:
    """Make a Space of the Hub, in which people try a model out, as `demo` does here.

    \b
    hf-paraphrase space you/your-model --push you/your-space
    hf-paraphrase space runs/first --output space

    A Hub repository is loaded when the Space starts; a folder goes into the Space.
    """
    if (output is None) == (push is None):
        raise InputError("give either --output, a folder to write to, or --push, a Space on the Hub")
    check_gradio("space")
    from ..serving.space import push_space, write_space

    if output is not None:
        write_space(model, output, package)
        echo(f"{output}: run it with `python app.py` there")
        return
    with TemporaryDirectory() as folder:
        write_space(model, Path(folder), package)
        echo(push_space(folder, push, private=private))


def check_gradio(command: str) -> None:
    """Refuse where there is nothing to show a page with.

    Args:
        command: That asks for it.

    Raises:
        InputError: gradio is not installed.
    """
    if find_spec("gradio") is None:
        raise InputError(f"{command} needs gradio; install it with: pip install 'hf-paraphrase[demo]'")
