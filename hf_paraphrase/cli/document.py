"""The command `hf-paraphrase paraphrase-document`. What is heavy is imported inside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..released import RELEASED
from .options import Errors, NamedModel, TrustRemoteCode
from .terminal import echo

__all__ = ["app"]

app = typer.Typer()


@app.command()
def paraphrase_document(
    words: Annotated[
        list[str], typer.Argument(metavar="FILE", help="The document, in UTF-8. The model may stand before it.")
    ],
    output: Annotated[Path, typer.Option(help="Where the new document goes; it may be the same file.")],
    model: NamedModel = None,
    format: Annotated[
        str,
        typer.Option(help="What is read as markup: markdown, plain, subtitles, or auto to tell by the file's ending."),
    ] = "auto",
    changes: Annotated[
        Path | None,
        typer.Option(help="JSON Lines file of what became of each sentence, and why those left were left."),
    ] = None,
    min_adequacy: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Leave a sentence rather than take less.  [default: 0.1]"),
    ] = None,
    min_novelty: Annotated[
        float | None, typer.Option(min=0, max=1, help="The same of novelty.  [default: 0.1]")
    ] = None,
    language: Annotated[
        str, typer.Option(help="Code of the prose's language, by which abbreviations are known, such as de.")
    ] = "en",
    seed: Annotated[int, typer.Option(help="Of all that is drawn at random.")] = 0,
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences at once.")] = 16,
    errors: Errors = "strict",
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Paraphrase the sentences of a Markdown or plain document, or of subtitles; all else stays byte for byte.

    \b
    hf-paraphrase paraphrase-document README.md --output README.new.md --changes changes.jsonl

    Of each sentence the best candidate is taken that keeps its names, numbers, links, code and emphasis.
    """
    from ..files import check_errors, open_text, write_lines, write_text
    from ..generation.documents import format_of
    from ..generation.paraphraser import Paraphraser

    check_errors(errors)
    *before, file = words
    if len(before) + (model is not None) > 1:
        raise InputError(f"one document at a time, and one model: {' '.join(words)}")
    model = model or (before[0] if before else RELEASED)
    format = format_of(file, format)
    with open_text(file, newline="", errors=errors) as opened:
        text = opened.read()
    floors = {"min_adequacy": min_adequacy, "min_novelty": min_novelty}
    document, records = Paraphraser.from_pretrained(model, trust_remote_code=trust_remote_code).document(
        text,
        format,
        return_changes=True,
        language=language,
        **{name: floor for name, floor in floors.items() if floor is not None},
        seed=seed,
        batch_size=batch_size,
    )
    write_text(output, document, newline="")
    if changes is not None:
        write_lines(changes, [record._asdict() for record in records])
    rewritten = sum(record.reason is None for record in records)
    echo(f"{rewritten} of {len(records)} sentences rewritten: {output}")
