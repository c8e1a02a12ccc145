"""The command `hf-paraphrase paraphrase-document`. What is heavy is imported inside it."""

from __future__ import annotations

from pathlib import Path

from ..common.fields import option
from .options import DEFAULT_MODEL, ReadingOptions, WriterOptions, strength_option
from .verbs import verb

__all__ = ["ParaphraseDocument"]


@verb("paraphrase-document")
class ParaphraseDocument(ReadingOptions, WriterOptions):
    """Paraphrase a document and leave its markup alone.

    \b
    hf-paraphrase paraphrase-document README.md --output README.new.md --changes changes.jsonl

    It reads Markdown, plain text, HTML, Word (.docx) and subtitles; all but the sentences stays byte for byte. Of
    each sentence the best candidate is taken that keeps its names, numbers, links, code and emphasis.
    """

    file: Path = option("The document, in UTF-8 unless it is a .docx.", positional=True)
    model: str = option("Checkpoint folder or Hub repository.", DEFAULT_MODEL)
    output: Path = option("Where the new document goes; it may be the same file.")
    format: str = option(
        "What is read as markup: markdown, plain, subtitles, html, docx, or auto to tell by the file's ending.", "auto"
    )
    changes: Path | None = option(
        "JSON Lines file of what became of each sentence, and why those left were left.", None
    )
    strength: float | None = strength_option()
    min_adequacy: float | None = option("Least adequacy.  [default: 0.1]", None, least=0, most=1)
    min_novelty: float | None = option("Least novelty.  [default: 0.1]", None, least=0, most=1)
    language: str = option("Code of the prose's language, by which abbreviations are known, such as de.", "en")
    seed: int = option("Of all that is drawn at random.", 0)
    batch_size: int = option("Sentences at once.", 16, least=1)

    def run(self) -> str:
        """Write the new document, and say how many sentences changed."""
        from ..common.files import open_text, whole_file, write_lines, write_text
        from ..generation.documents import format_of

        kind = format_of(str(self.file), self.format)
        if kind == "docx":
            text = self.file.read_bytes()
        else:
            with open_text(self.file, newline="", errors=self.errors) as opened:
                text = opened.read()
        floors = {"min_adequacy": self.min_adequacy, "min_novelty": self.min_novelty}
        paraphraser = self.load_paraphraser()
        document, records = paraphraser.document(
            text,
            kind,
            return_changes=True,
            language=self.language,
            **{name: floor for name, floor in floors.items() if floor is not None},
            strength=self.strength,
            seed=self.seed,
            batch_size=self.batch_size,
        )
        if isinstance(document, bytes):
            with whole_file(self.output) as temporary:
                temporary.write_bytes(document)
        else:
            write_text(self.output, document, newline="")
        if self.changes is not None:
            write_lines(self.changes, [record._asdict() for record in records])
        rewritten = sum(record.reason is None for record in records)
        return f"{rewritten} of {len(records)} sentences rewritten: {self.output}"
