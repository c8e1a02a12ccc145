"""The command that writes paraphrases. What is heavy is imported inside the commands."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
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
    NamedModel,
    NumBeamGroups,
    Strength,
    TrustRemoteCode,
    parse_decoding,
    split_model,
)
from .terminal import echo
from .text_tables import Lines, check_table, open_table, read_texts

if TYPE_CHECKING:
    from ..generation.paraphrase_choice import Paraphrase

__all__ = ["app"]

app = typer.Typer()


# Options that go to the `Paraphraser` as they are.
PASSED = (
    "min_adequacy",
    "min_fluency",
    "min_novelty",
    "diversity",
    "adequacy",
    "encoder",
    "fluency",
    "select",
    "seed",
)
PASSED += ("num_beams", "max_new_tokens", "num_neighbors", "num_candidates", "matcher", "batch_size", "decoding")
PASSED += ("max_source_length", "return_rejected", "strength")
DECODINGS = ("beam", "diverse_beam", "dips", "sample", "noise")
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
    n: Annotated[int, typer.Option("-n", min=1, help="Paraphrases of each text, at most.")] = 1,
    input: Annotated[
        str | None,
        typer.Option(help="A file of texts: .csv, .tsv, .jsonl, .parquet or a text a line; - for lines."),
    ] = None,
    column: Annotated[str | None, typer.Option(help="Its column; by default text or source.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="A .parquet, .csv, .tsv or .jsonl file, a paraphrase a row.")
    ] = None,
    strength: Strength = None,
    min_adequacy: Annotated[float | None, typer.Option(min=0, max=1, help="Least adequacy.")] = None,
    min_fluency: Annotated[float | None, typer.Option(min=0, max=1, help="Least fluency.")] = None,
    min_novelty: Annotated[float | None, typer.Option(min=0, max=1, help="Least novelty (PINC).")] = None,
    diversity: Annotated[float | None, typer.Option(min=0, max=1, help="What likeness costs.")] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            help="What is kept, commas between: names, numbers, urls, addresses, placeholders, mentions, "
            "terms, code, quotes, and words of your own, in double quotes if need be; or none.  "
            "[default: all but code and quotes]"
        ),
    ] = None,
    adequacy: Annotated[
        str | None, typer.Option(help="Round_trip, embedding or matcher.  [default: round_trip]")
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="Model that `--adequacy embedding` asks.")] = None,
    fluency: Annotated[str | None, typer.Option(help="A causal language model; by default the model itself.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of all that is drawn.  [default: 0]")] = None,
    return_rejected: Annotated[
        bool, typer.Option("--return-rejected", help="The other candidates too, with the reason.")
    ] = False,
    num_beams: Annotated[
        int | None, typer.Option(min=1, help="Beam width; by default the model's, widened to what is asked for.")
    ] = None,
    temperature: Annotated[
        str | None, typer.Option(help="Of sample and noise: a number; with noise also uniform, for U(0, 1).")
    ] = None,
    noise: Annotated[str | None, typer.Option(help="Weight of the noise: a number, or uniform.")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(min=1, help="The longest output, in tokens.")] = None,
    num_neighbors: Annotated[
        int | None, typer.Option(min=1, help="Retrieved pairs, each of which gives a paraphrase (FSET).")
    ] = None,
    num_candidates: Annotated[int | None, typer.Option(min=1, help="Candidates to choose from.")] = None,
    select: Annotated[
        str | None,
        typer.Option(
            help="Order by one rule in place of the three scores: score, jaccard, mbr, embedding or matcher."
        ),
    ] = None,
    matcher: Matcher = None,
    decoding: Annotated[
        str | None,
        typer.Option(
            help="How candidates are found: beam, diverse_beam, dips, sample or noise.  [default: beam for one "
            "paraphrase, diverse_beam for more; noise where the model embeds sentences]"
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
        bool, typer.Option("--json", help="One JSON object a text: row, source, paraphrases, and their scores.")
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
    """Paraphrase sentences, a table or standard input.

    \b
    hf-paraphrase paraphrase "The meeting was moved to Thursday because the room was taken." -n 3
    hf-paraphrase paraphrase --model runs/first "How do I learn to cook?" -n 3
    hf-paraphrase paraphrase runs/first "How do I learn to cook?" -n 3 --diversity 0.3
    hf-paraphrase paraphrase runs/first --json < questions.txt > paraphrases.jsonl
    hf-paraphrase paraphrase runs/first -n 3 --input questions.csv --column question --output paraphrases.parquet
    hf-paraphrase paraphrase runs/sarah-lm -n 8 --num-candidates 40 --select embedding --input sentences.txt

    Under each text stand its paraphrases, each after its score, adequacy, fluency and novelty, all from 0 to 1. Names
    and numbers of the text are kept.
    """
    check_errors(errors)
    model, texts = split_model(model, texts or [])
    texts = [check_unicode(text, f"text {number}", errors) for number, text in enumerate(texts, start=1)]
    lines = Lines(errors)
    if texts and input is not None:
        raise InputError("--input: texts are given already")
    if output is not None:
        check_table(output)
    given = {name: value for name, value in ctx.params.items() if _is_given(ctx, name)}
    options = {name: given[name] for name in PASSED if name in given}
    options |= _parse_search(given, n)
    from ..generation.keep import parse_keep
    from ..generation.paraphraser import Paraphraser

    if keep is not None:
        options["keep"] = parse_keep(keep)
    sources = iter(texts or lines) if texts or input in (None, "-") else read_texts(input, column, errors)
    paraphraser = Paraphraser.from_pretrained(model, trust_remote_code=trust_remote_code, dtype=dtype)
    read: deque[str] = deque()

    def remembered() -> Iterator[str]:
        for source in sources:
            read.append(source)
            yield source

    groups = paraphraser(remembered(), n, **options)
    numbered = ((number, read.popleft(), group) for number, group in enumerate(groups, start=1))
    if output is not None:
        _write_table(output, numbered, return_rejected, safe_cells)
    else:
        for number, source, group in numbered:
            _print_group(number, source, group, as_json)
    lines.check()


def _is_given(ctx: typer.Context, name: str) -> bool:
    return ctx.get_parameter_source(name).name == "COMMANDLINE"


def _parse_search(given: Mapping[str, Any], n: int) -> dict[str, Any]:
    """The options of a search, sampling and noise, out of those that were given."""
    decoding = given.get("decoding")
    if decoding not in (None, *DECODINGS):
        raise InputError(f"--decoding must be one of {', '.join(DECODINGS)}, not {decoding}")
    is_drawn = decoding in ("sample", "noise")
    found = parse_decoding(
        "beam" if is_drawn else decoding or ("beam" if n == 1 else "diverse_beam"),
        [given["num_beams"]] if "num_beams" in given else [],
        **{name: given.get(name) for name in ("num_beam_groups", "diversity_penalty", "fidelity", "exclude_source")},
    )
    found.pop("decoding", None)
    return found | {name: _parse_draw(name, given[name]) for name in ("temperature", "noise") if name in given}


def _write_table(
    path: Path,
    numbered: Iterable[tuple[int, str, list[Paraphrase]]],
    return_rejected: bool,
    safe_cells: bool | None,
) -> None:
    """Write a row for each paraphrase, as they come, and say how many there are."""
    columns, counts = COLUMNS | ({"reason": "string"} if return_rejected else {}), Counter()
    with open_table(path, columns, safe_cells) as write:
        for number, source, group in numbered:
            write(_make_rows(number, source, group, columns))
            chosen = sum(one.reason is None for one in group)
            counts.update(texts=1, paraphrases=chosen, unanswered=not chosen)
    echo(
        f"{path}: {counts['paraphrases']:,} paraphrases of {counts['texts']:,} texts, "
        f"{counts['unanswered']:,} of which have none",
        err=True,
    )


def _make_rows(number: int, source: str, group: list[Paraphrase], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row for each paraphrase of a text, by the number of that; what was rejected has no rank."""
    rows = []
    for rank, one in enumerate(group, start=1):
        values = {"row": number, "source": source, "rank": None if one.reason else rank, **one._asdict()}
        rows.append({name: values[name] for name in columns})
    return rows


def _print_group(number: int, source: str, group: list[Paraphrase], as_json: bool) -> None:
    """Print what became of a text."""
    if as_json:
        scores = [dict(zip(one._fields[1:], one[1:], strict=True)) for one in group]
        row = {"row": number, "source": source, "paraphrases": [one.text for one in group], "scores": scores}
        echo(json.dumps(row, ensure_ascii=False), is_data=True)
    elif source.strip():
        echo(source)
        if not group:
            echo("no candidate passed; --return-rejected shows why")
        for one in group:
            scores = " ".join("  -  " if value is None else f"{value:.3f}" for value in one[1:5])
            echo(f"{scores}  {one.text}" + (f"  ({one.reason})" if one.reason else ""))
        echo("")


def _parse_draw(option: str, value: str) -> float | Literal["uniform"]:
    try:
        return value if value == "uniform" else float(value)
    except ValueError as error:
        raise InputError(f"--{option} takes a number or uniform, got {value!r}") from error
