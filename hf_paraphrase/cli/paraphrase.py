"""The command that writes paraphrases. What is heavy is imported inside it."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..common.fields import default_of, option
from ..common.files import check_unicode
from ..common.spreadsheet_cells import PARAPHRASE_COLUMNS
from ..errors import InputError
from ..released import RELEASED
from .options import (
    BACKEND_HELP,
    DTYPE_HELP,
    PROMPT_HELP,
    PassingOptions,
    ReadingOptions,
    SearchOptions,
    max_source_length_option,
    split_model,
    trust_option,
)
from .terminal import echo
from .text_tables import Lines, check_table, open_table, read_texts
from .verbs import Verb, verb

if TYPE_CHECKING:
    from ..generation.paraphrase_choice import Paraphrase
    from ..generation.paraphrase_table import Paraphrases

__all__ = ["ParaphraseTexts"]

# The options that are not arguments of a `Paraphraser`'s call, or given to it otherwise.
OWN = {"texts", "model", "n", "input", "column", "output", "errors", "as_json", "safe_cells", "dtype"}
OWN |= {"prompt", "backend", "keep_file"}
OWN |= {"trust_remote_code"}
COLUMNS = dict.fromkeys(PARAPHRASE_COLUMNS, "double")
COLUMNS |= {"row": "int64", "source": "string", "rank": "int64", "text": "string"}


def read_draw(label: str, value: str) -> float | Literal["uniform"]:
    """Read a number, or that it is drawn."""
    try:
        return "uniform" if value == "uniform" else float(value)
    except ValueError as error:
        raise InputError(f"{label} takes a number or uniform, got {value!r}") from error


@dataclass(kw_only=True)
class WantedOptions(Verb):
    """Which texts are paraphrased, and which paraphrases are wanted."""

    texts: list[str] = option(
        "Texts. A folder or owner/name in front of them is the model.  [default: lines of standard input]",
        factory=list,
        positional=True,
    )
    model: str | None = option(f"Checkpoint folder or Hub repository.  [default: {RELEASED}]", None)
    n: int = option("Maximum number of paraphrases per text.", 1, least=1, flag="-n")
    input: str | None = option("File of texts: .csv, .tsv, .jsonl, .parquet, or lines; - for standard input.", None)
    column: str | None = option("Column with the texts.  [default: text or source]", None)
    output: Path | None = option("Output file, .parquet, .csv, .tsv or .jsonl, with one paraphrase per row.", None)
    language: str = option("Language code of the texts; in de, capitals do not mark names.", "en")
    adequacy: str | None = option("Judge: round_trip, open, embedding or matcher.  [default: round_trip]", None)
    encoder: str | None = option("Sentence encoder for `--adequacy embedding`.", None)
    fluency: str | None = option("Causal language model that judges fluency.  [default: the model itself]", None)
    seed: int | None = option("Random seed.  [default: 0]", None)
    return_rejected: bool = option("Also return rejected candidates, with the reason.", False)
    num_beams: int | None = option("Beam width.  [default: the model's, or more if -n needs it]", None, least=1)
    temperature: float | str | None = option(
        "Temperature of sample and noise; noise also takes uniform, for U(0, 1).", None, read=read_draw
    )
    noise: float | str | None = option("Weight of the noise: a number or uniform.", None, read=read_draw)


@verb("paraphrase")
class ParaphraseTexts(ReadingOptions, SearchOptions, PassingOptions, WantedOptions):
    """Paraphrase sentences, a table or standard input.

    \b
    hf-paraphrase paraphrase "The meeting was moved to Thursday because the room was taken." -n 3
    hf-paraphrase paraphrase --model runs/first "How do I learn to cook?" -n 3
    hf-paraphrase paraphrase runs/first "How do I learn to cook?" -n 3 --diversity 0.3
    hf-paraphrase paraphrase runs/first --json < questions.txt > paraphrases.jsonl
    hf-paraphrase paraphrase runs/first -n 3 --input questions.csv --column question --output paraphrases.parquet
    hf-paraphrase paraphrase runs/sarah-lm -n 8 --num-candidates 40 --select embedding --input sentences.txt

    Each text is printed with its paraphrases below, each after its score, adequacy, fluency and novelty (0 to 1).
    Paraphrases keep names and numbers.
    """

    num_neighbors: int | None = option("Retrieved pairs to edit by, one paraphrase each (FSET).", None, least=1)
    num_candidates: int | None = option("Candidates per text.", None, least=1)
    select: str | None = option(
        "Rank by one rule instead of the three scores: score, jaccard, mbr, embedding or matcher.", None
    )
    decoding: Literal["beam", "diverse_beam", "dips", "sample", "noise"] | None = option(
        "Decoding method.  [default: beam for one paraphrase, diverse_beam for more; noise if the model embeds "
        "sentences]",
        None,
    )
    batch_size: int = option("Batch size; halved when memory runs out.", 16, least=1)
    max_source_length: int | None = max_source_length_option()
    as_json: bool = option("Print JSON, one object per text: row, source, paraphrases, scores.", False, flag="--json")
    safe_cells: bool | None = option(
        "With --output: put an apostrophe before texts that a spreadsheet would run as a formula.  "
        "[default: in .csv files]",
        None,
        flag="--safe-cells/--raw-cells",
    )
    prompt: str | None = option(PROMPT_HELP, None)
    backend: str | None = option(BACKEND_HELP, None)
    dtype: str | None = option(DTYPE_HELP, None)
    trust_remote_code: bool = trust_option()

    def run(self) -> None:
        """Write the paraphrases of each text as they arrive."""
        model, texts = split_model(self.model, self.texts)
        texts = [check_unicode(text, f"text {number}", self.errors) for number, text in enumerate(texts, start=1)]
        lines = Lines(self.errors)
        if texts and self.input is not None:
            raise InputError("--input: texts are given already")
        if self.output is not None:
            check_table(self.output)
        decoding = self.decoding or ("beam" if self.n == 1 else "diverse_beam")
        self.search_options(decoding, [] if self.num_beams is None else [self.num_beams])  # refuses those of others
        from ..generation.paraphraser import Paraphraser

        table = None if texts or self.input == "-" else self.input
        sources = iter(texts or lines) if table is None else read_texts(table, self.column, self.errors)
        loading: dict[str, Any] = {"dtype": self.dtype, "prompt": self.prompt, "backend": self.backend}
        paraphraser = Paraphraser.from_pretrained(model, trust_remote_code=self.trust_remote_code, **loading)
        read: deque[str] = deque()

        def remembered() -> Iterator[str]:
            for source in sources:
                read.append(source)
                yield source

        given = {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != default_of(one)}
        if self.keep_file:
            from ..generation.protected_text import DEFAULT_KEEP

            given["keep"] = [*given.get("keep", DEFAULT_KEEP), self.keep_file]
        groups = paraphraser(remembered(), self.n, **{name: given[name] for name in given.keys() - OWN})
        numbered = ((number, read.popleft(), group) for number, group in enumerate(groups, start=1))
        if self.output is not None:
            _write_table(self.output, numbered, self.return_rejected, self.safe_cells)
        else:
            for number, source, group in numbered:
                _print_group(number, source, group, self.as_json)
        lines.check()


def _write_table(
    path: Path,
    numbered: Iterable[tuple[int, str, list[Paraphrase]]],
    return_rejected: bool,
    safe_cells: bool | None,
) -> None:
    """Write a row for each paraphrase as it arrives, and report the count."""
    counts: Counter[str] = Counter()
    columns = COLUMNS | ({"reason": "string"} if return_rejected else {})
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
    """A row for each paraphrase of text number `number`; rejected ones have no rank."""
    rows = []
    for rank, one in enumerate(group, start=1):
        values = {"row": number, "source": source, "rank": None if one.reason else rank, **one._asdict()}
        rows.append({name: values[name] for name in columns})
    return rows


def _print_group(number: int, source: str, group: Paraphrases, as_json: bool) -> None:
    """Print the paraphrases of a text, or why there are none."""
    if as_json:
        scores = [dict(zip(one._fields[1:], one[1:], strict=True)) for one in group]
        row = {"row": number, "source": source, "paraphrases": [one.text for one in group], "scores": scores}
        row |= {"refusal": group.refusal} if group.refusal else {}
        echo(json.dumps(row, ensure_ascii=False), is_data=True)
    elif source.strip():
        echo(source)
        if not group:
            echo(group.refusal or "no candidate passed; --return-rejected shows why")
        for one in group:
            numbers = " ".join("  -  " if value is None else f"{value:.3f}" for value in one[1:5])
            echo(f"{numbers}  {one.text}" + (f"  ({one.reason})" if one.reason else ""))
        echo("")
