from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from ..common.errors import InputError
from ..common.fields import check_type, read_yaml
from ..common.installation import require

Splitter = Literal["rules", "punkt"]

WORDS = read_yaml(Path(__file__).with_suffix(".yaml"))
TITLES, ABBREVIATIONS, NUMBERED, STARTERS = (
    frozenset(WORDS[kind].split()) for kind in ("titles", "abbreviations", "numbered", "starters")
)

# A full stop, an ellipsis (dots joined or spaced) or a cluster such as "?!", and the quotes and brackets it closes.
# Possessive, and tried at the first mark of a cluster only, so that a line of nothing but dots takes no longer.
END = re.compile(
    r"""(?<![.!?…])(?<!\.[ ])(?P<mark>\.(?:[ ]?\.)++|[.!?…]++)(?P<closers>["'”’»)\]}]*+)(?P<space>\s++|$)"""
)
# White space that somebody forgot: "was great.We will".
JOINED = re.compile(rf"(?<=[a-z]{{2}}[.!?])(?=(?:{'|'.join(sorted(STARTERS)).title()})[\s'’])")
# The word before the mark, with the full stops inside it (e.g, U.S, a.m).
LAST_WORD = re.compile(r"[^\s\"“”‘’'(\[{]+$")
NEXT_WORD = re.compile(r"""["'“‘«(\[{_*\-–—]*\s?(?P<word>[^\W_]+|$)?""")
INNER_STOPS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
ROMAN = re.compile(r"[ivxlc]+|[IVXLC]+")
ELLIPSIS = re.compile(r"…|\.(?: ?\.)+")


def sentence_splitter(name: Splitter) -> Callable[[str], list[str]]:
    """Return the function that splits a text into its sentences, white space made single spaces.

    `rules` is `split_by_rules`, without dependencies; `punkt` the English model of NLTK's Punkt (Kiss and Strunk
    2006), whose data somebody has to have downloaded once. An unknown name, or what is not installed, raises
    InputError.
    """
    check_type("splitter", name, Splitter)
    return split_by_rules if name == "rules" else _load_punkt()


def split_by_rules(text: str) -> list[str]:
    """Split English text into sentences by rules alone.

    A sentence ends at `.`, `!`, `?` or an ellipsis, the quotes and brackets closed behind it, and white space. It does
    not end after a title (Mr.); nor after an initial (W. W. Jacobs) or an abbreviation (etc., U.S., No. 5), unless the
    next word is one that starts sentences; nor before a lower-case word where a closing quote or an ellipsis stands
    between (`"What?" he said.`). Text whose punctuation stands apart (`went home . He`) is split as well.

    Args:
        text: Running text; a blank line in it ends a sentence too.

    Returns:
        The sentences in order. Joined, they hold every visible character of `text`.
    """
    sentences = []
    for paragraph in re.split(r"\n\s*\n", text):
        for part in JOINED.split(" ".join(paragraph.split())):
            sentences += [sentence for sentence in _split_paragraph(part) if sentence]
    return sentences


def _split_paragraph(text: str) -> Iterator[str]:
    start = counted = quotes = position = 0
    while found := END.search(text, position):
        position = found.end()
        quotes += text.count('"', counted, position)
        closed = bool(found["closers"])
        # A quote that stands apart closes when one is open: `went home . " He`.
        if quotes % 2 and text.startswith(" ", found.start() - 1) and text[position : position + 2] in ('" ', '"'):
            position, closed, quotes = position + 2, True, quotes + 1
        counted = position
        if _ends_sentence(text, start, found, position, closed):
            yield text[start:position].strip()
            start, quotes = position, 0
    yield text[start:].strip()


def _ends_sentence(text: str, start: int, found: re.Match[str], end: int, closed: bool) -> bool:
    following = NEXT_WORD.match(text, end)
    next_word = (following and following["word"]) or ""
    if next_word[:1].islower() and (closed or ELLIPSIS.fullmatch(found["mark"])):
        return False
    # No abbreviation is longer than that.
    before = LAST_WORD.search(text[max(start, found.start() - 30) : found.start()])
    if found["mark"] != "." or before is None or found["closers"].strip(")]}"):
        return True
    word = before[0]
    if word.lower().lstrip("-–—").isdigit() and text[start : found.start()].strip() == word:
        return False
    return not is_abbreviated(word, next_word)


def is_abbreviated(word: str, next_word: str) -> bool:
    """Whether the full stop behind an English word belongs to it and ends no sentence; `next_word` may be empty."""
    key = word.lower().lstrip("-–—")
    if key in TITLES:
        return True
    if key in NUMBERED:
        # `She said no. I agreed.`
        return next_word[:1].isdigit() or key != "no" and bool(ROMAN.fullmatch(next_word))
    is_initial = len(word) == 1 and word.isupper()
    if is_initial or key in ABBREVIATIONS or INNER_STOPS.fullmatch(word):
        return not (next_word[:1].isupper() and next_word.lower() in STARTERS)
    return False


def _load_punkt() -> Callable[[str], list[str]]:
    otherwise = 'or pass splitter="rules", which needs neither NLTK nor its data'
    require("nltk", "punkt", "splitter='punkt'", otherwise, "NLTK")
    from nltk.tokenize.punkt import PunktTokenizer

    try:
        tokenizer = PunktTokenizer("english")
    except LookupError as error:
        raise InputError(
            f"`splitter` is punkt, whose data is not installed: python -m nltk.downloader punkt_tab (once, online; "
            f"NLTK_DATA names the folder); {otherwise}"
        ) from error
    return lambda text: [" ".join(sentence.split()) for sentence in tokenizer.tokenize(text) if sentence.strip()]
