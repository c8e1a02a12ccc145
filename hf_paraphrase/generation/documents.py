"""Whole documents: prose sentences are rewritten, and everything else stays byte for byte."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..common.errors import InputError
from .markdown import MarkdownDocument
from .prose import Markup, Passage, Range, Sentence, check_language, find_lines, lay_out, replace_ranges, split_passage
from .styled_text import REMOVABLE, StyledSentence, find_docx_passages, find_html_passages, rewrite_parts, split_styled

# How a sentence may start, but for the way that the old one did: nothing else can be taken for a marker.
PLAIN_START = re.compile(r"[^\W\d_]|\d+(?![\d.)])|[\"'“”‘’«»(¿¡]")

FORMATS = ("auto", "markdown", "plain", "subtitles", "html", "docx")
# The formats of files by their endings; what else there is must be named.
ENDINGS = {".md": "markdown", ".markdown": "markdown", ".txt": "auto", ".text": "auto", "": "auto"}
ENDINGS |= {".srt": "subtitles", ".vtt": "subtitles", ".html": "html", ".htm": "html", ".xhtml": "html"}
ENDINGS |= {".docx": "docx"}
TIMING = re.compile(r"\s*(?:\d+:)?\d{1,2}:\d{2}[.,]\d{3}\s+-->\s+(?:\d+:)?\d{1,2}:\d{2}[.,]\d{3}")
# Tags of subtitles: styles, voices, places on the screen.
CUE_TAG = re.compile(r"<[^<>\n]*>|\{\\[^{}\n]*\}")
# A cue that begins or ends within a sentence is left alone: the rest is in another cue.
WHOLE_CUE = re.compile(r"""\W*[^\W\d_a-z].*[.!?…。！？।]["'”’»)\]]*\s*""", re.DOTALL)

Answer = str | Sequence[str] | None
Rewrite = Callable[[list[str]], Sequence[Answer]]


class SentenceChange(NamedTuple):
    """What became of a sentence of a document.

    Args:
        line: The line on which it starts, from 1.
        start: Where it starts in the document, in characters from 0; so too its end.
        before: The sentence on one line, with its markup, as passed to `rewrite`.
        after: The replacement, on one line; None where it was left.
        reason: Why it was left; None where it was not.
    """

    line: int
    start: int
    end: int
    before: str
    after: str | None
    reason: str | None


class PlainDocument:
    """A document without markup: its prose, the `passages`, are runs of lines between blank ones."""

    def __init__(self, text: str):
        self.passages = [Passage(text, run, number, self.read_markup) for number, run in _find_runs(text)]

    def read_markup(self, content: str) -> Markup:
        """There is none."""
        return Markup(content)

    def is_paragraph(self, content: str) -> bool:
        """Whether a text is read as a single paragraph."""
        return True


class SubtitleDocument:
    """SubRip or WebVTT: its prose, the `passages`, are the texts of cues that hold whole sentences."""

    def __init__(self, text: str):
        self.passages: list[Passage] = []
        for number, run in _find_runs(text):
            timed = [place for place, (start, end) in enumerate(run, 1) if TIMING.match(text[start:end])]
            cue = run[timed[-1] :] if timed else []
            if cue and WHOLE_CUE.fullmatch(CUE_TAG.sub("", text[cue[0][0] : cue[-1][1]])):
                self.passages.append(Passage(text, cue, number + timed[-1], self.read_markup))

    def read_markup(self, content: str) -> Markup:
        """Find the tags in a text."""
        spans = [found.span() for found in CUE_TAG.finditer(content)]
        return Markup(replace_ranges(content, [(*span, "Q" * (span[1] - span[0])) for span in spans]), spans)

    def is_paragraph(self, content: str) -> bool:
        """Whether a text is one cue's."""
        return not TIMING.search(content)


Document = MarkdownDocument | PlainDocument | SubtitleDocument


def _find_runs(text: str) -> Iterator[tuple[int, list[Range]]]:
    """Lines that no blank one parts, without their indents, after the number of the first, from 1."""
    run: list[Range] = []
    for number, (start, end) in enumerate([*find_lines(text), (0, 0)], 1):
        if line := text[start:end].lstrip():
            run.append((end - len(line), end))
        elif run:
            yield number - len(run), run
            run = []


def format_of(name: str, format: str = "auto") -> str:
    """The format of a file, by its ending where `format` is "auto"; InputError if it is not known to be prose."""
    ending = Path(name).suffix.lower()
    if format != "auto":
        return format
    if ending not in ENDINGS:
        known = ", ".join(filter(None, ENDINGS))
        raise InputError(
            f"{name} ends in {ending}, not in one of {known}; pass `format` plain or markdown to read it anyway"
        )
    return ENDINGS[ending]


def rewrite_document(
    text: str | bytes, rewrite: Rewrite, format: str = "auto", language: str = "en"
) -> tuple[str | bytes, list[SentenceChange]]:
    """Rewrite the sentences of a document's prose; everything but rewritten sentences stays byte for byte.

    Prose are the paragraphs, in lists, notes and quotes too. Headings, tables, code, HTML, front matter, math and link
    definitions are not prose. A sentence with markup inside, such as a link, emphasis, inline code or a bare address,
    is rewritten only if each such piece comes back once and unchanged; emphasis and links that hold several sentences
    are one piece. Sentences with a hard line break inside, and those of fewer than three words outside their markup,
    are not asked for. An answer that would make other markup of its paragraph is refused.

    A rewritten sentence stays on the lines of the old one: on one line if that stood on one, else wrapped at the
    width of the longest of its lines, with the old line ends, indents and quote markers between.

    Args:
        text: The document, with its own line ends, byte order mark and all; of `docx` the bytes of the file.
        rewrite: Takes all sentences of the document at once, each on one line and with its markup, and returns as
            many answers: the new sentence, or a list of candidates, of which the first that fits is taken, or None to
            leave the old one. It is not called if there are no sentences.
        format: `markdown` (CommonMark with tables and struck-out text, and the math, notes, task boxes and templates
            of its dialects), `plain` (paragraphs between blank lines), or `auto`: Markdown if there is any markup
            but indentation, else plain; or `subtitles`, SubRip or WebVTT, of which cues with whole sentences are
            rewritten; or `html`, whose sentences are handed over without tags, and whose links and styles come back
            around the same words, which must stand in the answer once; or `docx`, the same in Word's documents, of
            which `SentenceChange` counts lines and places in the XML.
        language: The code of the prose's language, such as "de", by which the sentence splitter knows abbreviations.

    Returns:
        The document, and a `SentenceChange` for each sentence in order.

    Raises:
        InputError: `text` is not a str, `format` or `language` is unknown, or `rewrite` returned something else than
            asked for.
    """
    check_language(language)
    if isinstance(text, bytes) and format == "docx":
        return _rewrite_docx(text, rewrite, language)
    if isinstance(text, str) and format == "html":
        return _rewrite_styled(text, list(split_styled(text, find_html_passages(text), language)), rewrite)
    return _rewrite_prose(text, rewrite, format, language)


def _rewrite_prose(text: Any, rewrite: Rewrite, format: str, language: str) -> tuple[str, list[SentenceChange]]:
    document = _read_document(text, format)
    found = [(passage, split_passage(passage, language)) for passage in document.passages]
    answers = _ask(rewrite, [sentence for _, sentences in found for sentence in sentences])
    edits, changes = [], []
    for passage, sentences in found:
        outcomes = [_choose(document, sentence, next(answers)) for sentence in sentences]
        if not _keeps_markup(document, passage, sentences, outcomes):
            changed = _left("the markup of its paragraph would change")
            outcomes = [outcome if outcome.reason else changed for outcome in outcomes]
        for sentence, outcome in zip(sentences, outcomes, strict=True):
            start, end = passage.offset(sentence.start), passage.offset(sentence.end)
            line = passage.line(sentence.start)
            changes.append(SentenceChange(line, start, end, sentence.text, outcome.text, outcome.reason))
            if not outcome.reason:
                edits.append((start, end, outcome.source))
    return replace_ranges(text, edits), changes


def _rewrite_docx(document: bytes, rewrite: Rewrite, language: str) -> tuple[bytes, list[SentenceChange]]:
    changes: list[SentenceChange] = []

    def rewrite_part(text: str, styles: str) -> str:
        sentences = list(split_styled(text, find_docx_passages(text, styles), language, REMOVABLE))
        new, found = _rewrite_styled(text, sentences, rewrite)
        changes.extend(found)
        return new

    return rewrite_parts(document, rewrite_part), changes


def _rewrite_styled(
    text: str, sentences: Sequence[StyledSentence], rewrite: Rewrite
) -> tuple[str, list[SentenceChange]]:
    """Rewrite sentences that are handed over without their tags."""
    edits, changes = [], []
    for sentence, candidates in zip(sentences, _ask(rewrite, sentences), strict=True):
        start, end, after = sentence.start, sentence.end, None
        reason: str | None = sentence.obstacle or "no rewriting was given"
        for candidate in candidates:
            words = " ".join(candidate.split())
            source = None if words in ("", sentence.text) else sentence.fit(words)
            if source is not None:
                edits.append((start, end, source))
                after, reason = words, None
                break
            reason = "its rewriting is the same" if words == sentence.text else "its markup would change"
        changes.append(SentenceChange(sentence.line, start, end, sentence.text, after, reason))
    return replace_ranges(text, edits), changes


class _Outcome(NamedTuple):
    """An answer on one line, in its passage and in the document; or the reason to leave the sentence."""

    text: str | None
    content: str
    source: str
    reason: str | None


def _left(reason: str) -> _Outcome:
    return _Outcome(None, "", "", reason)


def _read_document(text: str, format: str) -> Document:
    if not isinstance(text, str) or format == "docx":
        expected = "the bytes of a file" if format == "docx" else "a str"
        raise InputError(f"`text` must be {expected}, not {type(text).__name__}")
    if format not in FORMATS:
        raise InputError(f"`format` must be one of {', '.join(FORMATS)}, not {format!r}")
    if format == "subtitles":
        return SubtitleDocument(text)
    if format == "plain":
        return PlainDocument(text)
    document = MarkdownDocument(text)
    return document if format == "markdown" or document.has_markup else PlainDocument(text)


def _ask(rewrite: Rewrite, sentences: Sequence[Sentence] | Sequence[StyledSentence]) -> Iterator[list[str]]:
    """The candidates of each sentence; none for one that may not be rewritten."""
    asked = [sentence.text for sentence in sentences if sentence.obstacle is None]
    answers = list(rewrite(asked)) if asked else []
    if len(answers) != len(asked):
        raise InputError(f"`rewrite` returned {len(answers)} answers to {len(asked)} sentences")
    for text, answer in zip(asked, answers, strict=True):
        are_texts = isinstance(answer, Sequence) and all(isinstance(candidate, str) for candidate in answer)
        if answer is not None and not are_texts:
            raise InputError(f"`rewrite` must return str, lists of str or None, not {answer!r} for {text!r}")
    left = iter([answer] if isinstance(answer, str) else list(answer or ()) for answer in answers)
    return iter([[] if sentence.obstacle else next(left) for sentence in sentences])


def _choose(document: Document, sentence: Sentence, candidates: Sequence[str]) -> _Outcome:
    reason = sentence.obstacle
    for candidate in candidates:
        outcome = _fit(document, sentence, candidate)
        if not outcome.reason:
            return outcome
        reason = reason or outcome.reason
    return _left(reason or "no rewriting was given")


def _fit(document: Document, sentence: Sentence, candidate: str) -> _Outcome:
    text = candidate.replace("\r", " ").replace("\n", " ").strip()
    if text in ("", sentence.text):
        return _left("its rewriting is empty" if not text else "its rewriting is the same")
    markup = document.read_markup(text)
    if markup.count(text) != sentence.count_markup():
        return _left("its markup would change")
    if not PLAIN_START.match(text) and text.split()[0] != sentence.text.split()[0]:
        return _left("its rewriting starts like the marker of a block")
    if sentence.is_unevenly_broken:
        return _left("its markup goes over lines that are joined in different ways")
    content, source = lay_out(sentence, text, markup)
    return _Outcome(content.replace("\n", " "), content, source, None)


def _keeps_markup(
    document: Document, passage: Passage, sentences: Sequence[Sentence], outcomes: Sequence[_Outcome]
) -> bool:
    """Whether a passage with its new sentences is still one paragraph with the markup it had."""
    edits = [
        (sentence.start, sentence.end, outcome.content)
        for sentence, outcome in zip(sentences, outcomes, strict=True)
        if not outcome.reason
    ]
    if not edits:
        return True
    content = replace_ranges(passage.content, edits)
    markup = document.read_markup(content)
    return markup.count(content) == passage.markup.count(passage.content) and document.is_paragraph(content)
