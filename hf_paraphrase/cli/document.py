"""The command `hf-paraphrase paraphrase-document`. What is heavy is imported inside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .options import Model

__all__ = ["app"]

app = typer.Typer()


@app.command()
def paraphrase_document(
    model: Model,
    file: Annotated[Path, typer.Argument(help="The document, in UTF-8.")],
    output: Annotated[Path, typer.Option(help="Where the new document goes; it may be the same file.")],
    format: Annotated[
        str, typer.Option(help="What is read as markup: markdown, plain, or auto to find out.")
    ] = "auto",
    changes: Annotated[
        Path | None,
        typer.Option(help="JSON Lines file of what became of each sentence, and why those left were left."),
    ] = None,
    num_candidates: Annotated[int, typer.Option(min=1, help="Outputs of each sentence, to take one that fits.")] = 4,
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences at once.")] = 16,
) -> None:
    """Paraphrase the sentences of a Markdown or plain document; all else stays byte for byte.

    \b
    hf-paraphrase paraphrase-document runs/first README.md --output README.new.md --changes changes.jsonl

    Of each sentence the likeliest output is taken that is another text and keeps its links, code and emphasis.
    """
    from ..files import open_text, write_text
    from ..generation.documents import rewrite_document
    from ..generation.engine import generate_several, load_paraphraser

    with open_text(file, newline="") as opened:
        text = opened.read()
    loaded, tokenizer = load_paraphraser(model)

    def rewrite(sentences: list[str]) -> list[list[str]]:
        return generate_several(loaded, tokenizer, sentences, num_candidates, batch_size=batch_size)

    document, records = rewrite_document(text, rewrite, format, return_changes=True)
    write_text(output, document, newline="")
    if changes is not None:
        rows = (json.dumps(record._asdict(), ensure_ascii=False) + "\n" for record in records)
        write_text(changes, "".join(rows))
    rewritten = sum(record.reason is None for record in records)
    typer.echo(f"{rewritten} of {len(records)} sentences rewritten: {output}")
