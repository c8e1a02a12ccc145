"""The commands that share a model, show one, and show the machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .demo import check_gradio
from .terminal import echo

__all__ = ["app", "push_trained"]

app = typer.Typer()

Folder = Annotated[Path, typer.Argument(help="Checkpoint folder, such as the output folder of `train`.")]
DatasetId = Annotated[str | None, typer.Option(help="The corpus on the Hub, for the card.  [default: its name here]")]
License = Annotated[
    str | None, typer.Option(help="Of the weights, as the Hub spells it.  [default: that of the training data]")
]

Language = Annotated[
    str | None, typer.Option(help="Code of the text's language.  [default: en for a published corpus]")
]


@app.command()
def push(
    folder: Folder,
    repo_id: Annotated[str, typer.Option(help="Repository on the Hub, made if need be: you/your-model.")],
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    revision: Annotated[str | None, typer.Option(help="Branch to push to, made if need be.")] = None,
    create_pr: Annotated[
        bool, typer.Option("--create-pr", help="Open a pull request, or push to the one an earlier push opened.")
    ] = False,
    replace_card: Annotated[
        bool, typer.Option("--replace-card", help="Replace the card even if a person has edited it.")
    ] = False,
    with_handler: Annotated[
        bool, typer.Option("--with-handler", help="Add handler.py, by which Inference Endpoints serve the model.")
    ] = False,
    dataset_id: DatasetId = None,
    license: License = None,
    language: Language = None,
) -> None:
    """Share a checkpoint on the Hub: weights, tokenizer, code, recipe, results and card, in one commit.

    \b
    hf-paraphrase push runs/first --repo-id you/first
    hf-paraphrase push runs/first --repo-id you/first --create-pr
    hf-paraphrase push runs/first --repo-id you/first --with-handler

    The token is that of `hf auth login` or of HF_TOKEN. What fails is tried again; the same command finishes a push
    that failed for good, and sends nothing twice. A README.md in the folder is the card; without one, one is written
    from the checkpoint's files, which `card` shows. With --with-handler, handler.py and its requirements.txt come
    along; to have pairs retrieved and candidates scored on an endpoint, add hf-paraphrase to the latter.
    """
    from ..hub.push import push_to_hub

    address = push_to_hub(
        folder,
        repo_id,
        private=private,
        revision=revision,
        create_pr=create_pr,
        replace_card=replace_card,
        dataset_id=dataset_id,
        license=license,
        language=language,
        with_handler=with_handler,
    )
    echo(address)


@app.command()
def push_decoding(
    decoding: Annotated[str, typer.Argument(help="diverse_beam or dips.")],
    repo_id: Annotated[str, typer.Option(help="Repository on the Hub, made if need be: you/diverse-beam.")],
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
) -> None:
    """Share a decoding on the Hub, for everybody's models: code, requirements and card, in one commit.

    \b
    hf-paraphrase push-decoding diverse_beam --repo-id you/diverse-beam
    hf-paraphrase push-decoding dips --repo-id you/dips

    From then on `model.generate(**inputs, custom_generate="you/diverse-beam", trust_remote_code=True, num_beams=6,
    num_return_sequences=3)` decodes so with T5, BART, our own and any other model that transformers decodes by beams,
    where hf_paraphrase is not installed too.
    """
    from ..hub.push import push_decoding

    echo(push_decoding(decoding, repo_id, private=private))


@app.command()
def push_metric(
    metric: Annotated[str, typer.Argument(help="bleu, pinc or any other that `hf_paraphrase.list_metrics()` names.")],
    repo_id: Annotated[str, typer.Option(help="Space on the Hub, made if need be: you/pinc.")],
    private: Annotated[bool, typer.Option("--private", help="Make a new Space private.")] = False,
) -> None:
    """Share a metric on the Hub: its module, a card and a page to try it out, in one commit.

    \b
    hf-paraphrase push-metric pinc --repo-id you/pinc

    From then on `evaluate.load("you/pinc")` loads it where hf_paraphrase is installed.
    """
    check_gradio("push-metric")
    from ..hub.push import push_metric

    echo(push_metric(metric, repo_id, private=private))


def push_trained(folder: Path, repo_id: str, private: bool) -> None:
    """Push what a training wrote, once; a failure is said and does no harm."""
    from accelerate import PartialState

    from ..hub.push import PushError, push_to_hub

    if not PartialState().is_main_process:
        return
    try:
        echo(push_to_hub(folder, repo_id, private=private))
    except (PushError, InputError) as error:
        command = ["hf-paraphrase", "push", str(folder), "--repo-id", repo_id, *(["--private"] if private else [])]
        echo(f"warning: {folder} is trained but not pushed: {error}\nto push it: {shlex.join(command)}", err=True)


@app.command()
def card(
    folder: Folder,
    repo_id: Annotated[str | None, typer.Option(help="Repository that the card is for.")] = None,
    output: Annotated[Path | None, typer.Option(help="A file to write it to; else it is printed.")] = None,
    dataset_id: DatasetId = None,
    license: License = None,
    language: Language = None,
) -> None:
    """Write the card that `push` would, to read it first or to edit it.

    \b
    hf-paraphrase card runs/first --repo-id you/first --output runs/first/README.md
    """
    from ..files import write_text
    from ..hub.card import make_card
    from ..hub.checkpoint import read_checkpoint

    text = str(make_card(read_checkpoint(folder), repo_id, dataset_id, license, language))
    if output is None:
        echo(text, nl=False)
    else:
        write_text(output, text)


@app.command()
def info(
    model: Annotated[str, typer.Argument(help="Checkpoint folder or Hub repository.")],
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a repository.")] = None,
) -> None:
    """Show a checkpoint's architecture, sizes, training and results without loading its weights.

    \b
    hf-paraphrase info runs/first
    hf-paraphrase info you/first
    """
    from ..hub.checkpoint import read_checkpoint
    from ..hub.describe import describe_checkpoint

    echo(describe_checkpoint(read_checkpoint(model, revision)))


@app.command()
def env() -> None:
    """Print versions and devices, for a bug report.

    \b
    hf-paraphrase env
    """
    from ..training.environment import report_environment

    for name, value in report_environment().items():
        echo(f"- {name}: {value}")
