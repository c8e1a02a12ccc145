"""The commands that write paraphrases. What is heavy is imported inside the commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from ..errors import InputError
from .options import (
    Decoding,
    DiversityPenalty,
    ExcludeSource,
    Fidelity,
    Matcher,
    Model,
    NumBeamGroups,
    check_ability,
    parse_decoding,
    read_lines,
)

__all__ = ["app"]

app = typer.Typer()


@app.command()
def paraphrase(
    model: Model,
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
    matcher: Matcher = None,
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


@app.command()
def rank(
    model: Model,
    sentences: Annotated[Path, typer.Argument(help="Text file with a sentence a line.")],
    num_candidates: Annotated[int, typer.Option(min=1, help="Candidates of each sentence.")] = 40,
    temperature: Annotated[str, typer.Option(help="A number, or uniform, for U(0, 1).")] = "uniform",
    noise: Annotated[str, typer.Option(help="Weight of the noise: a number, or uniform.")] = "uniform",
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 0,
    shown: Annotated[int, typer.Option(min=1, help="Candidates that are printed.")] = 8,
    output: Annotated[Path | None, typer.Option(help="JSON Lines file of all candidates.")] = None,
) -> None:
    """Write candidates of paraphrases without any example pair, the nearest first (Traynor 2018, table 4.3).

    \b
    hf-paraphrase rank runs/sarah-lm-paraphrase sentences.txt --output candidates.jsonl
    hf-paraphrase rank runs/sarah-lm-paraphrase sentences.txt --temperature 0.5 --noise 0

    The model is one that was trained with `objective: autoencode`. Candidates that are the sentence itself are marked.
    """
    from ..files import write_text
    from ..generation.engine import load_paraphraser

    texts, drawn = read_lines(sentences), (_parse_draw("temperature", temperature), _parse_draw("noise", noise))
    check_ability(model, "embeds_sentences")
    paraphraser, tokenizer = load_paraphraser(model)
    groups = paraphraser.paraphrase(texts, tokenizer, num_candidates, *drawn, seed=seed)
    for text, group in zip(texts, groups, strict=True):
        typer.echo(f"\n       {text}")
        for candidate in group[:shown]:
            typer.echo(f"{candidate.distance:6.3f} {candidate.text}{' (copy)' if candidate.is_copy else ''}")
    if output is not None:
        rows = (
            {"text": text, "candidates": [candidate._asdict() for candidate in group]}
            for text, group in zip(texts, groups, strict=True)
        )
        write_text(output, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _parse_draw(option: str, value: str) -> float | Literal["uniform"]:
    try:
        return value if value == "uniform" else float(value)
    except ValueError as error:
        raise InputError(f"--{option} takes a number or uniform, got {value!r}") from error
