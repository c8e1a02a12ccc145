"""Which two sentences of one meaning make a good pair to learn from."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..common.fields import option, read_yaml
from .sentences import TITLES

WORD = re.compile(r"\w+(?:['’]\w+)*")
NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")
WORDS = read_yaml(Path(__file__).with_suffix(".yaml"))
NUMBER_WORDS, NEGATION = WORDS["numbers"], frozenset(WORDS["negation"].split())
PRONOUNS = {word: person for person, words in WORDS["pronouns"].items() for word in words.split()}
# A word behind one of these may have its capital from there.
STARTS = frozenset(".!?:;…\"“‘'(")


class ComparedSentence:
    """A sentence with the features that filters compare, computed on first use.

    Args:
        text: In English.
    """

    def __init__(self, text: str):
        self.text = text

    @cached_property
    def words(self) -> list[str]:
        """In lower case, without punctuation."""
        return WORD.findall(self.text.lower().replace("’", "'"))

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each word occurs."""
        return Counter(self.words)

    @cached_property
    def numbers(self) -> Counter[str]:
        """Figures and number words, as figures: `1,000` is `1000`, and `four` is `4`."""
        figures = NUMBER.findall(THOUSANDS.sub("", self.text))
        return Counter(figures + [NUMBER_WORDS[word] for word in self.words if word in NUMBER_WORDS])

    @cached_property
    def names(self) -> frozenset[str]:
        """Words with a capital that start no sentence and are not titles, in lower case, without a possessive 's."""
        found, previous = set(), ""
        for match in WORD.finditer(self.text):
            word, before = match[0], self.text[: match.start()].rstrip()[-1:]
            is_start = not before or before in STARTS and previous.lower() not in TITLES
            is_name = word[0].isupper() and not is_start and not re.match(r"I\b", word)
            if is_name and word.lower() not in TITLES:
                found.add(_bare(word.lower()))
            previous = word
        return frozenset(found)

    @cached_property
    def bare_words(self) -> frozenset[str]:
        """The different words, without a possessive 's."""
        return frozenset(map(_bare, self.words))

    @cached_property
    def persons(self) -> frozenset[str]:
        """The grammatical persons of the pronouns, in any case."""
        return frozenset(PRONOUNS[word] for word in (word.split("'")[0] for word in self.words) if word in PRONOUNS)

    @cached_property
    def polarity(self) -> tuple[bool, bool]:
        """Whether it negates, and whether it asks."""
        negates = any(word in NEGATION or word.endswith("n't") for word in self.words)
        return negates, self.text.rstrip("\"”’') ").endswith("?")


def word_overlap(first: ComparedSentence, second: ComparedSentence) -> float:
    """The F1 of the words of two sentences, as bags: 1 for the same words in any order, 0 for no word in common."""
    common = sum((first.counts & second.counts).values())
    return 2 * common / ((len(first.words) + len(second.words)) or 1)


@dataclass
class PairFilter:
    """The pairs to keep."""

    min_overlap: float = option(
        "Leave out pairs whose words have a smaller F1: 0 shares no word.", 0.0, least=0, most=1
    )
    max_overlap: float = option("Leave out pairs whose words have a larger F1: 1 are the same.", 1.0, least=0, most=1)
    max_length_ratio: float | None = option(
        "Leave out pairs whose longer sentence has more than so many times the words of the shorter.", None, least=1
    )
    min_words: int = option("Sentences of fewer words are left out.", 1, least=1)
    max_words: int | None = option("Sentences of more words are left out, not cut.", None, least=1)
    same_numbers: bool = option("Leave out pairs whose figures and number words differ.", False)
    same_names: bool = option(
        "Leave out pairs of which one has a name, a word with a capital inside a sentence, that the other lacks.",
        False,
    )
    same_pronouns: bool = option("Leave out pairs whose pronouns name different persons.", False)
    same_polarity: bool = option("Leave out pairs of which one alone negates, or one alone asks.", False)

    def takes(self, sentence: ComparedSentence) -> bool:
        """Whether a sentence may be in a pair at all."""
        count = len(sentence.words)
        return self.min_words <= count and (self.max_words is None or count <= self.max_words)

    def refusal(self, first: ComparedSentence, second: ComparedSentence) -> str | None:
        """The argument by which a pair is left out, None for one that is kept; the order of the two has no say."""
        short, long = sorted((len(first.words), len(second.words)))
        if self.max_length_ratio is not None and long > self.max_length_ratio * short:
            return "max_length_ratio"
        if self.same_numbers and first.numbers != second.numbers:
            return "same_numbers"
        # The other side may start with the name, or write it without the capital.
        if self.same_names and not (first.names <= second.bare_words and second.names <= first.bare_words):
            return "same_names"
        if self.same_pronouns and first.persons != second.persons:
            return "same_pronouns"
        if self.same_polarity and first.polarity != second.polarity:
            return "same_polarity"
        overlap = word_overlap(first, second)
        if overlap < self.min_overlap:
            return "min_overlap"
        return "max_overlap" if overlap > self.max_overlap else None


def _bare(word: str) -> str:
    return word.replace("’", "'").removesuffix("'s")
