"""A passage of running text in a document: its sentences, and how to replace them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

from sentencex import get_sentence_boundaries

from ..common.errors import InputError
from ..datasets.sentences import is_abbreviated

Range = tuple[int, int]

LANGUAGE = re.compile(r"[a-z]{2,3}(?:-\w+)*", re.IGNORECASE)
BLANK_LINE = re.compile(r"\n[^\S\n]*(?=\n)")
# sentencex searches all that follows for the end of an open quote: whole documents would take quadratic time.
WINDOW = 4000
# The notes behind the mark that ends a sentence: `It rained.[1][2] She left.`
NOTES = re.compile(r"""(?P<mark>[.!?…。！？।]["'”’»)]{0,3})(?P<notes>(?:\[[^\[\]\n]{1,200}\]|[¹²³⁰⁴-⁹]+)++)(?=\s|$)""")
LAST_WORD = re.compile(r"[^\s\"“”‘’'(\[{«]+$")
NEXT_WORD = re.compile(r"""\s*["'“‘«(\[]*(?P<word>[^\W_]*)""")
# Before a number, beside those that `is_abbreviated` knows.
NUMBERED_WORDS = "abb app approx ca ed eds eq eqs ex n° № para ref refs sect tab tabs"
NUMBERED = frozenset(NUMBERED_WORDS.split())
# What sentencex takes for the middle of a sentence: an ellipsis of one character, the end of a sentence in brackets,
# a plain "no", and a letter that is a name, no initial: `vitamin C. Doctors`.
MORE_ENDS = re.compile(
    r"""(?: …["”’»)]{0,3} | [.!?]\) | \b[Nn]o\. | \b(?i:appendix|case|class|column|grade|group|hepatitis|level|option
    |part|plan|point|scenario|section|step|team|type|vitamin)[ ][A-Z]\. ) \s+ (?=["“(]?(?![^\W\d_]\.)[^\Wa-z\d_])""",
    re.VERBOSE,
)
# A particle that follows a quotation: `「行く。」と言った。`
HIRAGANA = re.compile(r"[ぁ-ん]")
QUOTES = ("“”", "«»", "„“", "「」", "『』", "()", "（）", "《》")


def check_language(language: str) -> None:
    """Raise InputError for an unknown language code."""
    if not isinstance(language, str) or not LANGUAGE.fullmatch(language):
        raise InputError(f'`language` must be the code of a language, such as "en" or "de", not {language!r}')


def find_sentence_ranges(text: str, language: str = "en") -> list[Range]:
    """Find where each sentence of a text starts and ends, without the white space around it.

    [sentencex](https://github.com/wikimedia/sentencex) finds the ends, and rules correct what it gets wrong in
    English. A blank line ends a sentence too. Together the sentences cover all visible text.

    Args:
        language: Its code, such as "de", by which abbreviations are known. Sentence-final punctuation of all languages
            counts.
    """
    blanks = [found.end() for found in BLANK_LINE.finditer(text)]
    # The notes replaced by letters, then the mark, at the same length.
    shown = NOTES.sub(lambda found: "x" * len(found["notes"]) + found["mark"], text)
    sentences = []
    for first, stop in pairwise([0, *blanks, len(text)]):
        for start, end in pairwise(_find_bounds(shown, first, stop, language)):
            piece = text[start:end]
            if words := piece.strip():
                start += len(piece) - len(piece.lstrip())
                sentences.append((start, start + len(words)))
    return sentences


def _find_bounds(text: str, first: int, stop: int, language: str) -> list[int]:
    """Where the sentences of a paragraph start; its own start and end too."""
    bounds, window = [first], first
    while window < stop:
        part = text[window : min(window + WINDOW, stop)]
        cuts = [window + found["start_index"] for found in get_sentence_boundaries(language, part)][1:]
        begun = window
        # The last sentence may go on beyond the window.
        window = stop if window + WINDOW >= stop else cuts[-1] if cuts else window + WINDOW
        more = {found.end() for found in MORE_ENDS.finditer(text, begun, window)}
        for cut in sorted({*cuts, *more}):
            before = text[max(bounds[-1], cut - WINDOW) : cut]
            if _is_closed(before) if cut in more else _ends(before, text[cut : cut + 40]):
                bounds.append(cut)
    return [*bounds, stop]


def _ends(begun: str, rest: str) -> bool:
    """Whether a sentence ends where sentencex ends it."""
    begun = begun.rstrip()
    following = NEXT_WORD.match(rest)
    next_word = following["word"] if following else ""
    word = LAST_WORD.search(begun[-40:])
    if begun.endswith(("」", "』")):
        return not HIRAGANA.match(rest)
    if begun.endswith("!"):
        # `Panic! at the Disco`
        return not (next_word[:1].islower() and word and word[0][0].isupper())
    if not begun.endswith(".") or word is None or word[0].endswith(".."):
        return True
    last = word[0][:-1]
    if word[0] == begun and last.isdigit() or last.lower() in NUMBERED and next_word[:1].isdigit():
        return False
    # sentencex knows more initials and abbreviations (`U.S.`, `p.m.`), and distinguishes streets from saints.
    is_word = len(last) > 1 and "." not in last and last.lower() != "st"
    return not (is_word and next_word and is_abbreviated(last, next_word))


def _is_closed(begun: str) -> bool:
    return all(begun.count(pair[0]) == begun.count(pair[1]) for pair in QUOTES) and begun.count('"') % 2 == 0


LINE_END = re.compile(r"\r\n|\r|\n")
WORD = re.compile(r"\S+")
# Fewer are a label or an item of a list, no sentence.
MIN_WORDS = 3
# White space to the sentence splitter; in a mask it represents a line break that must stay.
HARD_BREAK = "\v"
# A paragraph that is wrapped has lines of this width at least: shorter ones were ended on purpose.
LEAST_WIDTH = 50
MOST_WORDS_OF_ITEM = 3
VERSE_START = re.compile(r"""["'“‘«(]*[^\Wa-z_]""")
SENTENCE_END = re.compile(r"[.!?](\s|$)")
# Chinese, Japanese, Thai, Lao, Burmese and Khmer.
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]+")


@dataclass(frozen=True)
class Markup:
    """The parts of a passage that are not free text.

    Attributes:
        mask: The passage, as long as it is, whose markup is letters where it belongs to a sentence, `HARD_BREAK` or
            newlines where it does not: what the sentence splitter and the search for words read.
        spans: Ranges of the markup inside sentences, such as links, in order.
        others: The rest of it, as it is written.
    """

    mask: str
    spans: Sequence[Range] = ()
    others: Sequence[str] = ()

    def count(self, content: str) -> Counter[str]:
        """The count of each piece of markup in the passage, ignoring line breaks."""
        return Counter([*(_join_lines(content[start:end]) for start, end in self.spans), *self.others])


class Passage:
    """Lines of a document, without what precedes and follows the text of each.

    Args:
        lines: Where the text of each line starts and ends in it; lines that follow each other.
        number: Of the first of them, from 1.
        read_markup: Finds the markup in the text.

    Attributes:
        content: The text of the lines, joined by newlines.
        markup: The parts that are not free text.
    """

    def __init__(self, document: str, lines: Sequence[Range], number: int, read_markup: Callable[[str], Markup]):
        self._document, self._lines, self._number = document, lines, number
        self.content = "\n".join(document[start:end] for start, end in lines)
        self.markup = _keep_line_ends(read_markup(self.content), self.content)
        self._starts = list(accumulate((end - start + 1 for start, end in lines[:-1]), initial=0))

    def offset(self, position: int) -> int:
        """The position in the document of a position in the content."""
        row = self._row(position)
        return self._lines[row][0] + position - self._starts[row]

    def line(self, position: int) -> int:
        """The line number in the document, from 1, of a position in the content."""
        return self._number + self._row(position)

    def column(self, position: int) -> int:
        """The number of characters between the start of its line's text and a position in the content."""
        return position - self._starts[self._row(position)]

    def width(self, start: int, end: int) -> int:
        """The characters of the longest line of those that a part of the content touches."""
        first, last = self._row(start), self._row(end)
        return max(end - start for start, end in self._lines[first : last + 1])

    def joints(self, start: int, end: int) -> list[str]:
        """The separators between the lines of a part of the content: line ends, markers and indents."""
        first, last = self._row(start), self._row(end)
        return [self._document[self._lines[row][1] : self._lines[row + 1][0]] for row in range(first, last)]

    def _row(self, position: int) -> int:
        return bisect_right(self._starts, position) - 1


@dataclass(frozen=True)
class Sentence:
    """A sentence of a passage.

    Attributes:
        passage: The passage.
        start: Where it starts in the passage's content.
        end: Where it ends.
        spans: Ranges of its markup in the content.
        text: The sentence on one line, its markup as it is written.
    """

    passage: Passage
    start: int
    end: int
    spans: tuple[Range, ...]
    text: str

    def count_markup(self) -> Counter[str]:
        """The count of each piece of its markup, on one line."""
        return Counter(_join_lines(self.passage.content[start:end]) for start, end in self.spans)

    @property
    def is_unevenly_broken(self) -> bool:
        """Whether markup goes over its lines and these are not all joined alike, so that it cannot be broken anew."""
        is_broken = any("\n" in self.passage.content[start:end] for start, end in self.spans)
        return is_broken and len(set(self.passage.joints(self.start, self.end))) > 1

    @cached_property
    def obstacle(self) -> str | None:
        """Why it is not a sentence to rewrite; None where it is one."""
        mask = self.passage.markup.mask
        if HARD_BREAK in mask[self.start : self.end]:
            return "a hard line break stands in it"
        bounds = [self.start, *(bound for span in self.spans for bound in span), self.end]
        words = " ".join(mask[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True)).split()
        if count_words(words) < MIN_WORDS:
            return f"it has fewer than {MIN_WORDS} words outside its markup"
        return None


def split_passage(passage: Passage, language: str = "en") -> list[Sentence]:
    """The sentences of a passage, in order: see `find_sentence_ranges`.

    Together they cover all visible text, except markup outside sentences.
    """
    content, mask = passage.content, passage.markup.mask
    spans = iter([*passage.markup.spans, (len(content) + 1, len(content) + 1)])
    span = next(spans)
    sentences = []
    for start, end in find_sentence_ranges(mask, language):
        own = []
        while span[0] < end:
            own.append(span)
            span = next(spans)
        shown = _join_lines(" ".join(_find_words(content, mask, start, end)))
        sentences.append(Sentence(passage, start, end, tuple(own), shown))
    return sentences


def lay_out(sentence: Sentence, text: str, markup: Markup) -> tuple[str, str]:
    """Write a new sentence, on one line and with the same spans of markup, in an old one's place.

    What stood on one line stays on one line. What stood on several is broken where its line would grow longer than the
    longest of those it stood on, before a word that starts with a letter: nothing else can be taken for the marker of
    a list, a heading or another block. The lines are joined as the old ones were, in order, the last joint
    serving all further ones; the lines before and after the sentence's own stay as they are.

    Returns its form in the content of the passage, and its form in the document.
    """
    passage = sentence.passage
    # Spans over several lines are on one line in `text`; a newline is as long as a space.
    originals: dict[str, list[str]] = {}
    for start, end in reversed(sentence.spans):
        original = passage.content[start:end]
        originals.setdefault(_join_lines(original), []).append(original)
    restored = replace_ranges(text, [(start, end, originals[text[start:end]].pop()) for start, end in markup.spans])
    words = _find_words(restored, markup.mask, 0, len(text))
    joints = passage.joints(sentence.start, sentence.end)
    if not joints:
        written = " ".join(words)
        return written, written
    written = _wrap(words, passage.column(sentence.start), passage.width(sentence.start, sentence.end))
    first, *rest = written.split("\n")
    joints += joints[-1:] * (len(rest) - len(joints))
    return written, "".join([first, *(joint + line for joint, line in zip(joints, rest, strict=False))])


def replace_ranges(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    """Put other texts in the place of parts of a text, given by their starts and ends in order."""
    pieces, done = [], 0
    for start, end, replacement in replacements:
        pieces += [text[done:start], replacement]
        done = end
    return "".join([*pieces, text[done:]])


def find_lines(text: str) -> list[Range]:
    """Where each line starts and ends, without its line end (LF, CR LF or CR) and the byte order mark."""
    ends = [found.span() for found in LINE_END.finditer(text)]
    starts = [int(text.startswith("\ufeff")), *(stop for _, stop in ends)]
    return list(zip(starts, [*(start for start, _ in ends), len(text)], strict=True))


def _wrap(words: Iterable[str], column: int, width: int) -> str:
    pieces: list[str] = []
    for word in words:
        head, *tail = word.split("\n")
        if pieces and column + 1 + len(head) > width and word[0].isalpha():
            pieces.append("\n")
            column = 0
        elif pieces:
            pieces.append(" ")
            column += 1
        pieces.append(word)
        column = len(tail[-1]) if tail else column + len(head)
    return "".join(pieces)


def _keep_line_ends(markup: Markup, content: str) -> Markup:
    """Make hard breaks of the line ends of a poem, or of a list with an item a line."""
    lines = content.split("\n")
    is_joined = any("\n" in content[start:end] for start, end in markup.spans)
    if len(lines) < 2 or is_joined or not _are_verses(lines):
        return markup
    breaks = [found.start() for found in re.finditer("\n", content)]
    return replace(markup, mask=replace_ranges(markup.mask, [(place, place + 1, HARD_BREAK) for place in breaks]))


def _are_verses(lines: Sequence[str]) -> bool:
    """Whether lines were ended on purpose.

    In wrapped text the first word of a line did not fit on the previous line, and most lines start in lower case.
    """
    width = max(LEAST_WIDTH, *map(len, lines))
    words = [line.split() for line in lines]
    had_place = all(
        len(line.rstrip()) + 1 + len(following[0]) <= width if following else True
        for line, following in zip(lines, words[1:], strict=False)
    )
    are_capital = all(VERSE_START.match(line) for line in lines)
    are_items = len(lines) > 2 and not any(
        len(found) > MOST_WORDS_OF_ITEM or SENTENCE_END.search(line) for found, line in zip(words, lines, strict=True)
    )
    return had_place and (are_capital or are_items)


def _find_words(content: str, mask: str, start: int, end: int) -> list[str]:
    """The words of a part of the content, markup in one piece with what it touches."""
    return [content[word.start() : word.end()] for word in WORD.finditer(mask, start, end)]


def count_words(words: Iterable[str]) -> int:
    """The number of words, at two characters each in scripts without spaces."""
    unspaced = sum(len(found) for word in words for found in UNSPACED.findall(word)) // 2
    return unspaced + sum(any(letter.isalpha() for letter in UNSPACED.sub("", word)) for word in words)


def _join_lines(text: str) -> str:
    return text.replace("\n", " ")
