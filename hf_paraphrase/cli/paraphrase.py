"""The commands that write paraphrases. What is heavy is imported inside the commands."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from ..errors import InputError
from .options import (
    Decoding,
    DiversityPenalty,
    ExcludeSource,
    Fidelity,
    NumBeamGroups,
    parse_decoding,
)

__all__ = ["app"]

app = typer.Typer()


@app.command()
def paraphrase(
    model: Annotated[str, typer.Argument(help="Checkpoint folder or Hub repository.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines of standard input.")] = None,
    num_return_sequences: Annotated[int, typer.Option(min=1, help="Paraphrases of each text.")] = 1,
    num_beams: Annotated[
        int | None, typer.Option(min=1, help="Beam width; by default the model's, widened to what is asked for.")
    ] = None,
    do_sample: Annotated[bool, typer.Option("--do-sample", help="Sample in place of searching.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature.")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(min=1, help="The longest output, in tokens.")] = None,
    num_neighbors: Annotated[
        int | None, typer.Option(min=1, help="Retrieved pairs, each of which gives a paraphrase (FSET).")
    ] = None,
    num_candidates: Annotated[int | None, typer.Option(min=1, help="Outputs to choose one from.")] = None,
    select: Annotated[str | None, typer.Option(help="How: score, jaccard, embedding or matcher.")] = None,
    matcher: Annotated[str | None, typer.Option(help="Model of sentence pairs that `--select matcher` asks.")] = None,
    decoding: Decoding = "beam",
    num_beam_groups: NumBeamGroups = None,
    diversity_penalty: DiversityPenalty = None,
    fidelity: Fidelity = None,
    exclude_source: ExcludeSource = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts at once.")] = 16,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a text: source, paraphrases.")] = False,
) -> None:
    """Paraphrase texts, in their order, one output a line.

    \b
    hf-paraphrase paraphrase runs/first "How do I learn to cook?" --num-return-sequences 3
    hf-paraphrase paraphrase runs/first --do-sample --temperature 0.8 --json < questions.txt > paraphrases.jsonl
    hf-paraphrase paraphrase runs/first "How do I learn to cook?" --num-return-sequences 3 --decoding diverse_beam

    With several paraphrases of each text, the text itself comes before them and an empty line after them.
    """
    from transformers import pipeline

    from ..generation.engine import load_paraphraser

    loaded, tokenizer = load_paraphraser(model)
    pipe = pipeline("text2text-generation", model=loaded, tokenizer=tokenizer)
    if do_sample and decoding != "beam":
        raise InputError(f"--do-sample: {decoding} draws nothing at random")
    if do_sample:
        num_beams = num_beams or 1
    elif num_beams is not None and num_beams < num_return_sequences:
        raise InputError(f"--num-beams {num_beams} cannot return {num_return_sequences} paraphrases; widen it")
    generate_kwargs = {
        "num_return_sequences": num_return_sequences,
        "num_beams": num_beams,
        "do_sample": do_sample,
        "temperature": temperature,
        "max_new_tokens": max_new_tokens,
        "num_neighbors": num_neighbors,
        "num_candidates": num_candidates,
        "select": select,
        "matcher": matcher,
        **parse_decoding(
            decoding,
            [] if num_beams is None else [num_beams],
            num_beam_groups=num_beam_groups,
            diversity_penalty=diversity_penalty,
            fidelity=fidelity,
            exclude_source=exclude_source,
        ),
    }
    generate_kwargs = {name: value for name, value in generate_kwargs.items() if value is not None}
    is_single = num_return_sequences == 1 and num_neighbors in (None, 1)
    sources = texts or [line.rstrip("\n") for line in sys.stdin]
    outputs = pipe((source for source in sources), batch_size=batch_size, **generate_kwargs)
    for source, output in zip(sources, outputs, strict=True):
        paraphrases = [entry["generated_text"] for entry in output]
        if as_json:
            typer.echo(json.dumps({"source": source, "paraphrases": paraphrases}, ensure_ascii=False))
        else:
            typer.echo("\n".join(paraphrases if is_single else [source, *paraphrases, ""]))
