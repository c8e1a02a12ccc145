"""Where the sentences of running text start and end, in any language that sentencex knows."""

from __future__ import annotations

import re
from itertools import pairwise

from sentencex import get_sentence_boundaries

from ..datasets.sentences import is_abbreviated
from ..errors import InputError

__all__ = ["check_language", "find_sentence_ranges"]

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
    shown = NOTES.sub(_move_mark, text)
    sentences = []
    for first, stop in pairwise([0, *blanks, len(text)]):
        for start, end in pairwise(_find_bounds(shown, first, stop, language)):
            piece = text[start:end]
            if words := piece.strip():
                start += len(piece) - len(piece.lstrip())
                sentences.append((start, start + len(words)))
    return sentences


def _move_mark(found: re.Match[str]) -> str:
    """The notes replaced by letters, then the mark, at the same length."""
    return "x" * len(found["notes"]) + found["mark"]


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
