from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from typing import Any

import datasets

from ..common.fields import option
from .builder import TEXT, CorpusBuilder, CorpusConfig

MAX_CHARACTERS, MAX_WORDS, FOLLOWING = 20, 30, 2

# A comma of the sentence, not one inside a number such as 1,000.
COMMA = re.compile(r",(?!\d)")


def words_of(text: str, max_characters: int = MAX_CHARACTERS) -> list[str]:
    """Split a text into words: runs of letters, and runs of anything else but white space, cut to `max_characters`
    (Traynor 2018, 3.1.1).

    So `don't` is three words and `."` is one. White space separates and is dropped.
    """
    runs = (groupby(chunk, str.isalpha) for chunk in text.split())
    return ["".join(islice(run, max_characters)) for chunk in runs for _, run in chunk]


def split_at_commas(words: list[str], max_words: int = MAX_WORDS) -> list[list[str]]:
    """Split a sentence from `words_of` that has more than `max_words` at commas, greedily from the left.

    Traynor 2018, section 3.1.1. A part keeps the comma it ends with. If the first comma comes too late, that part
    stays too long; the caller cuts it.
    """
    commas = [end for end, word in enumerate(words[:-1], 1) if COMMA.search(word)]
    cuts, last_comma = [0], 0
    for end in [*commas, len(words)]:
        if end - cuts[-1] > max_words and last_comma > cuts[-1]:
            cuts.append(last_comma)
        if end - cuts[-1] > max_words and end < len(words):
            cuts.append(end)
        last_comma = end
    return [words[start:end] for start, end in pairwise([*cuts, len(words)])]


def fit_sentences(sentences: Iterable[str], max_words: int = MAX_WORDS) -> Iterator[list[str]]:
    """Turn sentences into lists of words, splitting long ones at their commas; parts without a comma may stay too
    long."""
    for sentence in sentences:
        if words := words_of(sentence):
            yield from split_at_commas(words, max_words)


def sentence_pairs(
    sentences: Iterable[str], max_words: int = MAX_WORDS, following: int = FOLLOWING
) -> Iterator[tuple[list[str], list[str]]]:
    """Pair every sentence of a document with the next one, to train next-sentence prediction; yields the words of
    both.

    Traynor 2018, section 3.1.1: sentences over 30 words are split at commas; a target under 30 words is lengthened by
    up to two following sentences; sources and targets are cut to 30 words. Only a few sentences are held at a time.
    """
    window: list[list[str]] = []
    fitted = fit_sentences(sentences, max_words)
    while True:
        window += islice(fitted, 2 + following - len(window))
        if len(window) < 2:
            return
        source, *after = window
        target: list[str] = []
        for sentence in after:
            if len(target) < max_words:
                target += sentence
        yield source[:max_words], target[:max_words]
        window = after


@dataclass
class RunningTextConfig(CorpusConfig):
    """How books become rows."""

    seed: int = option("Decides what is in which split.", 42)
    pairs: bool = option("Rows are pairs of a sentence and what follows it, not documents.", False)


class RunningTextBuilder(CorpusBuilder):
    """Books: `title`, `author` and `sentences`, or `source` and `target` where the configuration asks for pairs."""

    tasks = ("text-generation",)
    may_be_blank = ("title", "author")

    def features(self) -> datasets.Features:
        if self.config.pairs:
            return datasets.Features({"source": TEXT, "target": TEXT})
        return datasets.Features({"title": TEXT, "author": TEXT, "sentences": datasets.List(TEXT)})

    def rows(self, title: str | None, author: str | None, sentences: Iterable[str]) -> Iterator[dict[str, Any]]:
        """The rows of one document."""
        if self.config.pairs:
            for source, target in sentence_pairs(sentences):
                yield {"source": " ".join(source), "target": " ".join(target)}
        else:
            yield {"title": title, "author": author, "sentences": list(sentences)}
