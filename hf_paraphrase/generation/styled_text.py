"""Sentences whose styles are tags, as in HTML and Word: the model reads text alone, and styles come back."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from .prose import HARD_BREAK, MIN_WORDS, count_words
from .sentence_ranges import find_sentence_ranges

__all__ = ["Character", "StyledSentence", "split_styled"]

WHITE_SPACE = re.compile(r"\s+")


class Character(NamedTuple):
    """One character as a reader sees it.

    Attributes:
        shown: The character; `HARD_BREAK` for a line that ends on purpose; "" for a picture or the like.
        start: Where it starts in the source.
        end: Where its source, such as `&amp;`, ends.
        style: The same for characters that differ in nothing but their place.
        is_fixed: Whether it must not be rewritten, such as code.
    """

    shown: str
    start: int
    end: int
    style: Any = None
    is_fixed: bool = False


class Stretch(NamedTuple):
    """The part between two runs of a sentence's main style: its text, and its source with surrounding tags."""

    shown: str
    source: str

    @property
    def text(self) -> str:
        return self.shown.strip()


@dataclass(frozen=True)
class StyledSentence:
    """A sentence mostly in one style, with spans in other styles.

    Attributes:
        source: The document.
        characters: Of the sentence.
        removable: A pattern of tags that may go where text on both sides has the same style, such as a mere split of
            it; None where none may.
        line: The line on which it starts.
    """

    source: str
    characters: Sequence[Character]
    line: int
    removable: re.Pattern[str] | None = None

    @cached_property
    def text(self) -> str:
        """The sentence on one line, without tags."""
        return WHITE_SPACE.sub(" ", "".join(one.shown for one in self.characters)).strip()

    @cached_property
    def _bounds(self) -> tuple[Any, int, int]:
        """The style of most characters, and the places of the first and of the last one in it."""
        styles = Counter(one.style for one in self.characters if one.shown.strip())
        style = styles.most_common(1)[0][0]
        places = [place for place, one in enumerate(self.characters) if one.style == style and one.shown.strip()]
        return style, places[0], places[-1]

    @property
    def start(self) -> int:
        """Start of the rewritten part in the source, after a beginning in another style."""
        return self.characters[self._bounds[1]].start

    @property
    def end(self) -> int:
        """End of the rewritten part."""
        return self.characters[self._bounds[2]].end

    @cached_property
    def stretches(self) -> list[Stretch]:
        """The stretches in other styles, but for those that begin or end the sentence."""
        style, first, last = self._bounds
        found, shown, end = [], "", self.start
        for one in self.characters[first : last + 1]:
            if one.style == style and one.shown:
                if one.start > end:
                    found.append(Stretch(shown, self.source[end : one.start]))
                shown, end = "", one.end
            else:
                shown += one.shown
        return [one for one in found if one.text or not (self.removable and self.removable.fullmatch(one.source))]

    @cached_property
    def obstacle(self) -> str | None:
        """Why it is not rewritten; None where it may be."""
        style, first, last = self._bounds
        free = "".join(one.shown if one.style == style else " " for one in self.characters)
        texts = [one.text for one in self.stretches]
        if any(HARD_BREAK in one.shown for one in self.characters):
            return "a hard line break stands in it"
        if self.characters[first].is_fixed or count_words(free.split()) < MIN_WORDS:
            return f"it has fewer than {MIN_WORDS} words outside its markup"
        if not all(texts) or len(set(texts)) < len(texts):
            return "markup without text stands in it, or twice the same text in another style"
        return None

    def fit(self, candidate: str) -> str | None:
        """Write a new sentence as the source between `start` and `end`.

        Args:
            candidate: The new sentence, on one line, without tags.

        Returns:
            The source; None where the text of a stretch does not come back exactly once.
        """
        _, first, last = self._bounds
        before, after = (
            WHITE_SPACE.sub(" ", "".join(one.shown for one in part))
            for part in (self.characters[:first], self.characters[last + 1 :])
        )
        before, after = before.lstrip(), after.rstrip()
        if len(candidate) <= len(before) + len(after) or not (
            candidate.startswith(before) and candidate.endswith(after)
        ):
            return None
        middle = candidate[len(before) : len(candidate) - len(after)]
        if middle != middle.strip():
            return None
        by_text = {one.text: one for one in self.stretches}
        if not by_text:
            return self._escape(middle)
        anyone = "|".join(map(re.escape, sorted(by_text, key=len, reverse=True)))
        pieces = re.split(rf"(?<!\w)({anyone})(?!\w)", middle)
        return self._join(pieces, by_text) if sorted(pieces[1::2]) == sorted(by_text) else None

    def _join(self, pieces: list[str], by_text: dict[str, Stretch]) -> str | None:
        """Put free text and stretches together; spaces that a stretch brings are not written twice."""
        for place in range(1, len(pieces), 2):
            shown = by_text[pieces[place]].shown
            if shown[0].isspace():
                if not pieces[place - 1][-1:].isspace():
                    return None
                pieces[place - 1] = pieces[place - 1].rstrip()
            if shown[-1].isspace():
                if not pieces[place + 1][:1].isspace():
                    return None
                pieces[place + 1] = pieces[place + 1].lstrip()
        return "".join(
            by_text[piece].source if place % 2 else self._escape(piece) for place, piece in enumerate(pieces)
        )

    def _escape(self, text: str) -> str:
        """Write signs as the old sentence wrote them, such as `&rsquo;`."""
        written = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
        for one in self.characters:
            if self.source.startswith("&", one.start) and one.end > one.start + 1:
                written[one.shown] = self.source[one.start : one.end]
        return "".join(written.get(sign, sign) for sign in text)


def split_styled(
    source: str, passages: Iterable[Sequence[Character]], language: str, removable: re.Pattern[str] | None = None
) -> Iterator[StyledSentence]:
    """The sentences of passages, in order.

    Args:
        removable: See `StyledSentence`.
    """
    line_starts = [0, *(found.end() for found in re.finditer("\n", source))]
    for passage in passages:
        # One character each, so that places agree; a picture or a note belongs to the sentence before it.
        shown = "".join(one.shown if len(one.shown) == 1 else "\u2060" for one in passage)
        for start, end in find_sentence_ranges(shown, language):
            characters = passage[start:end]
            if any(one.shown.strip() for one in characters):
                line = bisect_right(line_starts, characters[0].start)
                yield StyledSentence(source, characters, line, removable)
