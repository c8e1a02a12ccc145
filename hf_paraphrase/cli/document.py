"""The command `hf-paraphrase paraphrase-document`. What is heavy is imported inside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..common.fields import option
from .document_diff import echo_diff, make_diff_page
from .options import DEFAULT_MODEL, ReadingOptions, WriterOptions, keep_file_option, read_keep, strength_option
from .verbs import verb

if TYPE_CHECKING:
    from ..generation.documents import SentenceChange

__all__ = ["ParaphraseDocument"]


@verb("paraphrase-document")
class ParaphraseDocument(ReadingOptions, WriterOptions):
    """Paraphrase a document and leave its markup alone.

    \b
    hf-paraphrase paraphrase-document README.md --output README.new.md --changes changes.jsonl

    It reads Markdown, plain text, HTML, Word (.docx) and subtitles; everything but the sentences stays byte for byte.
    A sentence becomes its best candidate that keeps names, numbers, links, code and emphasis.
    """

    file: Path = option("The document: UTF-8, or .docx.", positional=True)
    model: str = option("Checkpoint folder or Hub repository.", DEFAULT_MODEL)
    output: Path = option("Where to write the new document; may be the same file.")
    format: str = option("markdown, plain, subtitles, html, docx, or auto to go by the file's ending.", "auto")
    changes: Path | None = option(
        "JSON Lines file with the outcome of each sentence, and the reason where it stayed.", None
    )
    diff: bool = option("Print what changed in each sentence.", False)
    diff_html: Path | None = option("HTML page with the changes in each sentence.", None)
    strength: float | None = strength_option()
    min_adequacy: float | None = option("Minimum adequacy.  [default: 0.1]", None, least=0, most=1)
    min_novelty: float | None = option("Minimum novelty.  [default: 0.1]", None, least=0, most=1)
    keep: list[str] | None = option("What must stay, as in `paraphrase`.  [default: all kinds]", None, read=read_keep)
    keep_file: Path | None = keep_file_option()
    language: str = option("Language code of the document, such as de: it decides on abbreviations and names.", "en")
    seed: int = option("Random seed.", 0)
    batch_size: int = option("Batch size, in sentences.", 16, least=1)

    def run(self) -> str:
        """Write the new document, and say how many sentences changed."""
        from ..common.files import open_text, whole_file, write_lines, write_text
        from ..generation.documents import format_of
        from ..generation.paraphraser import DOCUMENT_OPTIONS

        kind = format_of(str(self.file), self.format)
        text: str | bytes
        if kind == "docx":
            text = self.file.read_bytes()
        else:
            with open_text(self.file, newline="", errors=self.errors) as opened:
                text = opened.read()
        keep = list(DOCUMENT_OPTIONS["keep"] if self.keep is None else self.keep)
        floors = {"min_adequacy": self.min_adequacy, "min_novelty": self.min_novelty}
        paraphraser = self.load_paraphraser()
        changed = paraphraser.document(
            text,
            kind,
            return_changes=True,
            language=self.language,
            **{name: floor for name, floor in floors.items() if floor is not None},
            strength=self.strength,
            keep=[*keep, self.keep_file] if self.keep_file else keep,
            seed=self.seed,
            batch_size=self.batch_size,
        )
        document, records = cast("tuple[str | bytes, list[SentenceChange]]", changed)
        if isinstance(document, bytes):
            with whole_file(self.output) as temporary:
                temporary.write_bytes(document)
        else:
            write_text(self.output, document, newline="")
        if self.changes is not None:
            write_lines(self.changes, [record._asdict() for record in records])
        if self.diff_html is not None:
            write_text(self.diff_html, make_diff_page(str(self.file), records))
        if self.diff:
            echo_diff(records)
        rewritten = sum(record.reason is None for record in records)
        return f"{rewritten} of {len(records)} sentences rewritten: {self.output}"
