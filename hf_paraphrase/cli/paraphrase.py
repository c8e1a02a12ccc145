"""The commands that paraphrase texts and documents. What is heavy is imported inside them."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from html import escape
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import typer

from ..common.errors import InputError
from ..common.fields import option
from ..common.files import check_unicode, open_text, whole_file, write_lines, write_text
from ..common.spreadsheet_cells import PARAPHRASE_COLUMNS
from ..released import RELEASED
from .options import (
    CandidateOptions,
    KeepOptions,
    LoadingOptions,
    PassingOptions,
    ReadingOptions,
    SearchOptions,
    WriterOptions,
    read_keep,
    split_model,
)
from .terminal import Lines, check_table, echo, make_printable, open_table, read_texts
from .verbs import verb

if TYPE_CHECKING:
    from ..generation.documents import SentenceChange
    from ..generation.paraphrase_choice import Paraphrase
    from ..generation.paraphrase_table import Paraphrases

COLUMNS = dict.fromkeys(PARAPHRASE_COLUMNS, "double")
COLUMNS |= {"row": "int64", "source": "string", "rank": "int64", "text": "string"}
WORD = re.compile(r"\s+|\w+|[^\w\s]")
STYLE = """
body { font: 1rem/1.6 sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem } li { margin: 0.5rem 0 }
del { background: #ffd7d5; color: #82071e } ins { background: #ccffd8; color: #055d20; text-decoration: none }
""".strip()


def read_draw(label: str, value: str) -> float | Literal["uniform"]:
    """Read a number, or that it is drawn."""
    try:
        return "uniform" if value == "uniform" else float(value)
    except ValueError as error:
        raise InputError(f"{label} takes a number or uniform, got {value!r}") from error


class CallOptions(CandidateOptions):
    """Further arguments of a `Paraphraser`'s call."""

    language: str = option("Language code of the texts; in de, capitals do not mark names.", "en")
    adequacy: str | None = option(
        "Judge: round_trip, open, embedding, matcher, jaccard or mbr.  [default: round_trip]", None
    )
    encoder: str | None = option("Sentence encoder for `--adequacy embedding`.", None)
    fluency: str | None = option(
        "Causal language model that judges fluency: slower, and a better choice.  [default: the model itself]", None
    )
    return_rejected: bool = option("Also return rejected candidates, with the reason.", False)
    num_beams: int | None = option("Beam width.  [default: the model's, or more if -n needs it]", None, least=1)
    temperature: float | str | None = option(
        "Temperature of sample and noise; noise also takes uniform, for U(0, 1).", None, read=read_draw
    )
    noise: float | str | None = option("Weight of the noise: a number or uniform.", None, read=read_draw)
    num_neighbors: int | None = option("Retrieved pairs to edit by (FSET).  [default: 5]", None, least=1)
    select: str | None = option(
        "Rank by one rule instead of the three scores: score, jaccard, mbr, embedding or matcher.", None
    )


@verb("paraphrase")
class ParaphraseTexts(ReadingOptions, LoadingOptions, SearchOptions, PassingOptions, CallOptions):
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
    as_json: bool = option("Print JSON, one object per text: row, source, paraphrases, scores.", False, flag="--json")
    safe_cells: bool | None = option(
        "With --output: put an apostrophe before texts that a spreadsheet would run as a formula.  "
        "[default: in .csv files]",
        None,
        flag="--safe-cells/--raw-cells",
    )

    def run(self) -> None:
        """Write the paraphrases of each text as they arrive."""
        model, texts = split_model(self.model, self.texts)
        texts = [check_unicode(text, f"text {number}", self.errors) for number, text in enumerate(texts, start=1)]
        lines = Lines(self.errors)
        if texts and self.input is not None:
            raise InputError("--input: texts are given already")
        table = None if texts or self.input == "-" else self.input
        self._check_table_options(table)
        decoding = self.decoding or ("beam" if self.n == 1 else "diverse_beam")
        self.search_options(decoding, [] if self.num_beams is None else [self.num_beams])  # refuses those of others
        sources, shown = tee((texts or lines) if table is None else read_texts(table, self.column, self.errors))
        options = self.call_options(CallOptions, SearchOptions, PassingOptions)
        groups = self.load_paraphraser(model)(sources, self.n, **options)
        # The groups come first: what they tell in the end, they tell when they are asked for one more.
        paired = enumerate(zip(groups, shown, strict=False), start=1)
        numbered = ((number, source, group) for number, (group, source) in paired)
        if self.output is not None:
            self._write_table(self.output, numbered)
        else:
            for number, source, group in numbered:
                _print_group(number, source, group, self.as_json)
        lines.check()

    def _check_table_options(self, table: str | None) -> None:
        """Refuse an output that is the input, which is read as the output is written, and options without a table."""
        if self.column is not None and table is None:
            raise InputError("--column is for --input FILE")
        if self.output is None:
            if self.safe_cells is not None:
                raise InputError("--safe-cells and --raw-cells are for --output FILE")
            return
        if self.as_json:
            raise InputError("--json is for what is printed; name an --output that ends in .jsonl")
        check_table(self.output)
        if table is not None and self.output.exists() and Path(table).exists() and self.output.samefile(table):
            raise InputError(f"--output: {self.output} is the input; name another file")

    def _write_table(self, path: Path, numbered: Iterable[tuple[int, str, list[Paraphrase]]]) -> None:
        """Write a row for each paraphrase as it arrives, and report the count."""
        counts: Counter[str] = Counter()
        columns = COLUMNS | ({"reason": "string"} if self.return_rejected else {})
        with open_table(path, columns, self.safe_cells) as write:
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


class DocumentCallOptions(KeepOptions):
    """Arguments of a `Paraphraser`'s `document`."""

    min_adequacy: float | None = option("Minimum adequacy.  [default: 0.1]", None, least=0, most=1)
    min_novelty: float | None = option("Minimum novelty.  [default: 0.1]", None, least=0, most=1)
    keep: list[str] | None = option("What must stay, as in `paraphrase`.  [default: all kinds]", None, read=read_keep)
    language: str = option("Language code of the document, such as de: it decides on abbreviations and names.", "en")
    seed: int = option("Random seed.", 0)
    batch_size: int = option("Batch size, in sentences.", 16, least=1)


@verb("paraphrase-document")
class ParaphraseDocument(ReadingOptions, WriterOptions, DocumentCallOptions):
    """Paraphrase a document and leave its markup alone.

    \b
    hf-paraphrase paraphrase-document README.md --output README.new.md --changes changes.jsonl

    It reads Markdown, plain text, HTML, Word (.docx) and subtitles; everything but the sentences stays byte for byte.
    A sentence becomes its best candidate that keeps names, numbers, links, code and emphasis.
    """

    file: Path = option("The document: UTF-8, or .docx.", positional=True)
    model: str = option("Checkpoint folder or Hub repository.", RELEASED)
    output: Path = option("Where to write the new document; may be the same file.")
    format: str = option("markdown, plain, subtitles, html, docx, or auto to go by the file's ending.", "auto")
    changes: Path | None = option(
        "JSON Lines file with the outcome of each sentence, and the reason where it stayed.", None
    )
    diff: bool = option("Print what changed in each sentence.", False)
    diff_html: Path | None = option("HTML page with the changes in each sentence.", None)

    def run(self) -> str:
        from ..generation.documents import format_of
        from ..generation.paraphraser import DOCUMENT_OPTIONS

        kind = format_of(str(self.file), self.format)
        text: str | bytes
        if kind == "docx":
            text = self.file.read_bytes()
        else:
            with open_text(self.file, newline="", errors=self.errors) as opened:
                text = opened.read()
        options = self.call_options(DocumentCallOptions, keep=DOCUMENT_OPTIONS["keep"])
        changed = self.load_paraphraser(self.model).document(text, kind, return_changes=True, **options)
        document, records = cast("tuple[str | bytes, list[SentenceChange]]", changed)
        _write_document(self.output, document.encode() if isinstance(document, str) else document)
        if self.changes is not None:
            write_lines(self.changes, [record._asdict() for record in records])
        if self.diff_html is not None:
            write_text(self.diff_html, make_diff_page(str(self.file), records))
        if self.diff:
            echo_diff(records)
        rewritten = sum(record.reason is None for record in records)
        return f"{rewritten} of {len(records)} sentences rewritten: {self.output}"


def _write_document(path: Path, content: bytes) -> None:
    """Write a file whole, where a link leads; and to what is no file, such as /dev/stdout, as it comes."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    with whole_file(path.resolve()) as temporary:
        temporary.write_bytes(content)


def _compare(before: str, after: str) -> Iterator[tuple[str, str]]:
    """What stayed, went (-) and came (+), in order."""
    old, new = WORD.findall(before), WORD.findall(after)
    # Without `autojunk` frequent words of a long sentence count too.
    for kind, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield " ", "".join(old[first:last])
            continue
        if last > first:
            yield "-", "".join(old[first:last])
        if end > start:
            yield "+", "".join(new[start:end])


def echo_diff(changes: Iterable[SentenceChange]) -> None:
    """Print each rewritten sentence with `[-what went-]` and `{+what came+}`, in colours on a terminal alone."""
    is_coloured = sys.stdout.isatty()
    for change in changes:
        if change.after is None:
            continue
        shown = []
        for sign, text in _compare(change.before, change.after):
            text = make_printable(text)
            if sign != " ":
                text = f"[-{text}-]" if sign == "-" else f"{{+{text}+}}"
                text = typer.style(text, fg="red" if sign == "-" else "green") if is_coloured else text
            shown.append(text)
        typer.echo(f"{change.line}: {''.join(shown)}")


def make_diff_page(title: str, changes: Iterable[SentenceChange]) -> str:
    """Write an HTML page of the rewritten sentences, in which what went is `del` and what came `ins`."""
    from ..analysis.edits import format_page

    forms = {" ": "{}", "-": "<del>{}</del>", "+": "<ins>{}</ins>"}
    items = "\n".join(
        f'<li value="{change.line}">'
        + "".join(forms[sign].format(escape(text)) for sign, text in _compare(change.before, change.after))
        + "</li>"
        for change in changes
        if change.after is not None
    )
    return format_page(escape(title), STYLE, f"<h1>{escape(title)}</h1>\n<ol>\n{items}\n</ol>")
