"""The commands that write paraphrases. What is heavy is imported inside the commands."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import InputError
from ..files import check_errors, check_unicode
from ..spreadsheet_cells import PARAPHRASE_COLUMNS
from .options import (
    DiversityPenalty,
    Dtype,
    Errors,
    ExcludeSource,
    Fidelity,
    Matcher,
    MaxSourceLength,
    Model,
    NamedModel,
    NumBeamGroups,
    Strength,
    TrustRemoteCode,
    check_ability,
    parse_decoding,
    read_lines,
    split_model,
)
from .terminal import echo
from .text_tables import Lines, check_table, open_table, read_texts

if TYPE_CHECKING:
    from ..generation.paraphrase_choice import Paraphrase

__all__ = ["app"]

app = typer.Typer()


# Without -n, `paraphrase` writes what the model writes; with it, what a `Paraphraser` chooses. Options of one alone:
UNSCORED = ("num_return_sequences", "do_sample", "select")
SCORED = ("input", "column", "output", "min_adequacy", "min_fluency", "min_novelty", "diversity", "keep", "adequacy")
SCORED += ("encoder", "fluency", "seed", "return_rejected", "safe_cells")
SHARED = ("num_beams", "temperature", "max_new_tokens", "num_neighbors", "num_candidates", "matcher", "batch_size")
SHARED += ("max_source_length", "strength")
SCORED_DECODINGS = ("beam", "diverse_beam", "dips", "sample", "noise")
COLUMNS = dict.fromkeys(PARAPHRASE_COLUMNS, "double")
COLUMNS |= {"row": "int64", "source": "string", "rank": "int64", "text": "string"}


@app.command()
def paraphrase(
    ctx: typer.Context,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts; without any, lines of standard input. A folder or owner/name before them is the model."
        ),
    ] = None,
    model: NamedModel = None,
    n: Annotated[
        int | None, typer.Option("-n", min=1, help="Choose so many paraphrases of each text, with scores.")
    ] = None,
    input: Annotated[
        str | None,
        typer.Option(help="With -n: a file of texts, .csv, .tsv, .jsonl, .parquet or a text a line; - for lines."),
    ] = None,
    column: Annotated[str | None, typer.Option(help="With -n: its column; by default text or source.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="With -n: a .parquet, .csv, .tsv or .jsonl file, a paraphrase a row.")
    ] = None,
    strength: Strength = None,
    min_adequacy: Annotated[float | None, typer.Option(min=0, max=1, help="With -n: least adequacy.")] = None,
    min_fluency: Annotated[float | None, typer.Option(min=0, max=1, help="With -n: least fluency.")] = None,
    min_novelty: Annotated[float | None, typer.Option(min=0, max=1, help="With -n: least novelty (PINC).")] = None,
    diversity: Annotated[float | None, typer.Option(min=0, max=1, help="With -n: what likeness costs.")] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            help="With -n: what is kept, commas between: names, numbers, urls, addresses, placeholders, mentions, "
            "terms, code, quotes, and words of your own, in double quotes if need be; or none.  "
            "[default: all but code and quotes]"
        ),
    ] = None,
    adequacy: Annotated[
        str | None, typer.Option(help="With -n: round_trip, embedding or matcher.  [default: round_trip]")
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="Model that `--adequacy embedding` asks.")] = None,
    fluency: Annotated[
        str | None, typer.Option(help="With -n: a causal language model; by default the model itself.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="With -n: of all that is drawn.  [default: 0]")] = None,
    return_rejected: Annotated[
        bool, typer.Option("--return-rejected", help="With -n: the other candidates too, with the reason.")
    ] = False,
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
    num_candidates: Annotated[int | None, typer.Option(min=1, help="Outputs to choose from.")] = None,
    select: Annotated[str | None, typer.Option(help="How: score, jaccard, mbr, embedding or matcher.")] = None,
    matcher: Matcher = None,
    decoding: Annotated[
        str | None,
        typer.Option(
            help="How outputs are found: beam, diverse_beam or dips; with -n also sample or noise.  [default: beam; "
            "with -n 1 too; with more diverse_beam; noise where the model embeds sentences]"
        ),
    ] = None,
    num_beam_groups: NumBeamGroups = None,
    diversity_penalty: DiversityPenalty = None,
    fidelity: Fidelity = None,
    exclude_source: ExcludeSource = None,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Texts at once; half of them where these do not fit into memory.")
    ] = 16,
    max_source_length: MaxSourceLength = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a text: source, paraphrases; with -n one a paraphrase.")
    ] = False,
    safe_cells: Annotated[
        bool | None,
        typer.Option(
            "--safe-cells/--raw-cells",
            help="With --output: an apostrophe before texts that a spreadsheet would run as a formula.  "
            "[default: in .csv files]",
        ),
    ] = None,
    dtype: Dtype = None,
    errors: Errors = "strict",
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Paraphrase texts, in their order, one output a line.

    \b
    hf-paraphrase paraphrase "The meeting was moved to Thursday because the room was taken." -n 3
    hf-paraphrase paraphrase --model runs/first "How do I learn to cook?" --num-return-sequences 3
    hf-paraphrase paraphrase runs/first --do-sample --temperature 0.8 --json < questions.txt > paraphrases.jsonl
    hf-paraphrase paraphrase runs/first "How do I learn to cook?" --num-return-sequences 3 --decoding diverse_beam
    hf-paraphrase paraphrase runs/first "How do I learn to cook?" -n 3 --diversity 0.3
    hf-paraphrase paraphrase runs/first -n 3 --input questions.csv --column question --output paraphrases.parquet

    With several paraphrases of each text, the text itself comes before them and an empty line after them. With -n,
    each comes after its score, adequacy, fluency and novelty, all from 0 to 1; names and numbers of the text are kept.
    """
    check_errors(errors)
    model, texts = split_model(model, texts or [])
    texts = [check_unicode(text, f"text {number}", errors) for number, text in enumerate(texts, start=1)]
    lines = Lines(errors)
    given = {name: value for name, value in ctx.params.items() if _is_given(ctx, name)}
    for name in SCORED if n is None else UNSCORED:
        if name in given:
            raise InputError(f"--{name.replace('_', '-')} goes {'with' if n is None else 'without'} -n")
    found = parse_decoding(
        _name_search(decoding, n),
        [] if num_beams is None else [num_beams],
        num_beam_groups=num_beam_groups,
        diversity_penalty=diversity_penalty,
        fidelity=fidelity,
        exclude_source=exclude_source,
    )
    if n is not None:
        options = {name: given[name] for name in (*SCORED, *SHARED) if name in given}
        options |= {name: value for name, value in found.items() if name != "decoding"}
        options |= {"dtype": dtype, "errors": errors, "trust_remote_code": trust_remote_code}
        _paraphrase_scored(model, texts, lines, n, as_json, decoding=decoding, **options)
        return
    if do_sample and decoding not in (None, "beam"):
        raise InputError(f"--do-sample: {decoding} draws nothing at random")
    if do_sample:
        num_beams = num_beams or 1
    elif num_beams is not None and num_beams < num_return_sequences:
        raise InputError(f"--num-beams {num_beams} cannot return {num_return_sequences} paraphrases; widen it")
    from transformers import pipeline

    from ..generation.engine import load_paraphraser
    from ..generation.limits import SourceCutter
    from ..generation.selection import load_matching_pipeline
    from ..models.search.retrieved_pairs import load_retriever, reads_pairs

    loaded, tokenizer = load_paraphraser(model, trust_remote_code=trust_remote_code, dtype=dtype)
    pipe = pipeline("text2text-generation", model=loaded, tokenizer=tokenizer, trust_remote_code=trust_remote_code)
    generate_kwargs = {
        "num_return_sequences": num_return_sequences,
        "num_beams": num_beams,
        "do_sample": do_sample,
        "temperature": temperature,
        "max_new_tokens": max_new_tokens,
        "num_neighbors": num_neighbors,
        "num_candidates": num_candidates,
        "strength": strength,
        "select": select,
        "matcher": matcher and load_matching_pipeline(matcher, trust_remote_code),
        "retriever": load_retriever(loaded, trust_remote_code) if reads_pairs(loaded) else None,
        **found,
    }
    generate_kwargs = {name: value for name, value in generate_kwargs.items() if value is not None}
    is_single = num_return_sequences == 1 and num_neighbors in (None, 1)
    sources = texts or list(lines)
    cutter = SourceCutter(loaded, tokenizer, max_source_length, pipe.prefix)
    outputs = _run_in_batches(pipe, map(cutter, sources), batch_size, **generate_kwargs)
    for source, output in zip(sources, outputs, strict=True):
        paraphrases = [entry["generated_text"] for entry in output]
        if as_json:
            echo(json.dumps({"source": source, "paraphrases": paraphrases}, ensure_ascii=False))
        else:
            echo("\n".join(paraphrases if is_single else [source, *paraphrases, ""]), is_data=True)
    if cutter.cut:
        echo(cutter.describe(), err=True)
    lines.check()


def _run_in_batches(pipe: Callable, sources: Iterator[str], batch_size: int, **kwargs: Any) -> Iterator[list[dict]]:
    """Run a pipeline over as many texts at once as fit into memory."""
    from ..generation.limits import halve_once

    while batch := list(islice(sources, batch_size)):
        yield from halve_once(
            lambda size, batch=batch: list(pipe((text for text in batch), batch_size=size, **kwargs)), len(batch)
        )


def _is_given(ctx: typer.Context, name: str) -> bool:
    return ctx.get_parameter_source(name).name == "COMMANDLINE"


def _name_search(decoding: str | None, n: int | None) -> str:
    """The search whose options may be given; sampling and noise have none of a search."""
    if n is None:
        return decoding or "beam"
    if decoding not in (None, *SCORED_DECODINGS):
        raise InputError(f"--decoding must be one of {', '.join(SCORED_DECODINGS)}, not {decoding}")
    return "beam" if decoding in ("sample", "noise") else decoding or ("beam" if n == 1 else "diverse_beam")


def _paraphrase_scored(
    model: str,
    texts: list[str],
    lines: Lines,
    n: int,
    as_json: bool,
    *,
    input: str | None = None,
    column: str | None = None,
    output: Path | None = None,
    safe_cells: bool | None = None,
    keep: str | None = None,
    return_rejected: bool = False,
    dtype: str | None = None,
    errors: str = "strict",
    trust_remote_code: bool = False,
    **options: Any,
) -> None:
    """Write what a `Paraphraser` chooses to a file or standard output, as it comes."""
    if texts and input is not None:
        raise InputError("--input: texts are given already")
    if output is not None:
        check_table(output)
    is_stream = texts or input in (None, "-")
    sources = iter(texts or lines) if is_stream else read_texts(input, column, errors)
    from ..generation.keep import parse_keep
    from ..generation.paraphraser import Paraphraser

    if keep is not None:
        options["keep"] = parse_keep(keep)
    paraphraser = Paraphraser.from_pretrained(model, trust_remote_code=trust_remote_code, dtype=dtype)
    read: deque[str] = deque()

    def remembered() -> Iterator[str]:
        for source in sources:
            read.append(source)
            yield source

    groups = paraphraser(remembered(), n, return_rejected=return_rejected, **options)
    columns = COLUMNS | ({"reason": "string"} if return_rejected else {})
    numbered = ((number, read.popleft(), group) for number, group in enumerate(groups, start=1))
    if output is not None:
        counts = Counter()
        with open_table(output, columns, safe_cells) as write:
            for number, source, group in numbered:
                write(_make_rows(number, source, group, columns))
                chosen = sum(one.reason is None for one in group)
                counts.update(texts=1, paraphrases=chosen, unanswered=not chosen)
        echo(
            f"{output}: {counts['paraphrases']:,} paraphrases of {counts['texts']:,} texts, "
            f"{counts['unanswered']:,} of which have none",
            err=True,
        )
    else:
        for text in numbered:
            _print_rows(text[1], _make_rows(*text, columns), as_json)
    lines.check()


def _make_rows(number: int, source: str, group: list[Paraphrase], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row for each paraphrase of a text, by the number of that; what was rejected has no rank."""
    rows = []
    for rank, one in enumerate(group, start=1):
        values = {"row": number, "source": source, "rank": None if one.reason else rank, **one._asdict()}
        rows.append({name: values[name] for name in columns})
    return rows


def _print_rows(source: str, rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        for row in rows:
            echo(json.dumps(row, ensure_ascii=False))
    elif source.strip():
        echo(source)
        if not rows:
            echo("no candidate passed; --return-rejected shows why")
        for row in rows:
            scores = " ".join("  -  " if row[name] is None else f"{row[name]:.3f}" for name in list(COLUMNS)[4:])
            echo(f"{scores}  {row['text']}" + (f"  ({row['reason']})" if row.get("reason") else ""))
        echo("")


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
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Write candidates of paraphrases without any example pair, the nearest first (Traynor 2018, table 4.3).

    \b
    hf-paraphrase rank runs/sarah-lm-paraphrase sentences.txt --output candidates.jsonl
    hf-paraphrase rank runs/sarah-lm-paraphrase sentences.txt --temperature 0.5 --noise 0

    The model is one that was trained with `objective: autoencode`. Candidates that are the sentence itself are marked.
    """
    from ..files import write_text
    from ..generation.engine import load_paraphraser
    from ..generation.limits import SourceCutter

    texts, drawn = read_lines(sentences), (_parse_draw("temperature", temperature), _parse_draw("noise", noise))
    check_ability(model, "embeds_sentences", trust_remote_code=trust_remote_code)
    paraphraser, tokenizer = load_paraphraser(model, trust_remote_code=trust_remote_code)
    cutter = SourceCutter(paraphraser, tokenizer)
    groups = paraphraser.paraphrase(list(map(cutter, texts)), tokenizer, num_candidates, *drawn, seed=seed)
    for text, group in zip(texts, groups, strict=True):
        echo(f"\n       {text}")
        for candidate in group[:shown]:
            echo(f"{candidate.distance:6.3f} {candidate.text}{' (copy)' if candidate.is_copy else ''}")
    if output is not None:
        rows = (
            {"text": text, "candidates": [candidate._asdict() for candidate in group]}
            for text, group in zip(texts, groups, strict=True)
        )
        write_text(output, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    if cutter.cut:
        echo(cutter.describe(), err=True)


def _parse_draw(option: str, value: str) -> float | Literal["uniform"]:
    try:
        return value if value == "uniform" else float(value)
    except ValueError as error:
        raise InputError(f"--{option} takes a number or uniform, got {value!r}") from error
