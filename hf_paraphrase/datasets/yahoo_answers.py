from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import datasets
import xxhash

from ..common.errors import InputError
from ..common.fields import option
from ..common.files import open_plain_or_gzipped
from ..common.installation import require
from .builder import TEXT, CorpusBuilder, CorpusConfig, check_order
from .corpus_reader import MAX_LINE_LENGTH, CorpusReader
from .sampling import cut, index_texts, search_index

if TYPE_CHECKING:
    import bm25s

CHUNK_SIZE = 16 << 10
COLUMNS = ("question", "best answer")
# The answers hold the line breaks of the site.
MARKUP = re.compile(r"<br ?/?>")
# A question and its best answer.
Question = tuple[str, str]


@dataclass
class YahooAnswersConfig(CorpusConfig):
    """Which questions are used, and how wrong answers are found."""

    seed: int = option("Decides which questions are in which split, and which wrong answers they get.", 42)
    num_candidates: int = option("Answers to choose from, the right one among them.", 5, least=2)
    pool_size: int = option("Number of most similar answers from which wrong ones are drawn.", 1000, least=1)
    min_words: int = option("Questions and answers with fewer words are left out.", 5, least=1)
    max_words: int = option("Questions and answers with more words are left out.", 50)
    max_questions: int = option("Questions to use at most.", 220_000, least=2)

    def check(self) -> None:
        super().check()
        check_order(self, "min_words", "max_words")
        if self.pool_size < self.num_candidates - 1:
            raise InputError(f"`pool_size` must be at least {self.num_candidates - 1}, not {self.pool_size}")


class YahooAnswersBuilder(CorpusBuilder):
    """Questions with their best answer among wrong ones that look like it: Yahoo! Answers, for ranking."""

    corpus_name = "yahoo_answers"
    BUILDER_CONFIGS = [
        YahooAnswersConfig(name="five", description="The best answer and 4 wrong ones."),
        YahooAnswersConfig(name="ten", description="The best answer and 9 wrong ones.", num_candidates=10),
    ]
    files = ("*.xml", "*.xml.gz", "*.tsv", "*.tsv.gz")
    expected = (
        "expected in it: .xml files with a <document> for each question, such as manner.xml or FullOct2007.xml, or "
        f".tsv files ({'⇥'.join(COLUMNS)}), plain or .gz"
    )
    origin = "the XML files are L5 and L6 of Yahoo! Webscope, webscope.sandbox.yahoo.com"
    tasks = ("text-ranking",)

    def features(self) -> datasets.Features:
        return datasets.Features({"query": TEXT, "candidates": datasets.List(TEXT), "label": datasets.Value("int32")})

    def parts(self) -> dict[str, dict[str, Any]]:
        require("bm25s", "ranking", "yahoo_answers")
        questions = self._choose(self._read())
        answers = [answer for _, answer in questions]
        if len(set(answers)) < self.config.num_candidates:
            words = f"{self.config.min_words} to {self.config.max_words} words"
            raise InputError(
                f"{self.data_dir} has {len(set(answers))} different answers of {words}, too few for "
                f"{self.config.num_candidates} candidates; {self.layout()}"
            )
        size = len(questions) // 22
        bounds = {"train": (2 * size, len(questions)), "validation": (size, 2 * size), "test": (0, size)}
        shared = {"answers": tuple(answers), "index": index_texts(answers)}
        queries = tuple(query for query, _ in questions)
        return {
            split: {"queries": queries[start:end], "start": start, **shared} for split, (start, end) in bounds.items()
        }

    def generate_rows(
        self, queries: tuple[str, ...], start: int, answers: tuple[str, ...], index: bm25s.BM25
    ) -> Iterator[dict[str, Any]]:
        for number, query in enumerate(queries, start):
            # `random` is all of a generator that promises the same numbers in every version of Python.
            uniform = random.Random(f"{self.config.seed}\0{query}").random
            # One more, as an answer finds itself.
            pool = search_index(index, answers[number], self.config.pool_size + 1)
            wrong = self._draw(pool.tolist(), answers, answers[number], uniform)
            if len(wrong) < self.config.num_candidates - 1:
                wrong = self._draw(list(range(len(answers))), answers, answers[number], uniform)
            label = int(uniform() * self.config.num_candidates)
            candidates = [*wrong[:label], answers[number], *wrong[label:]]
            yield {"query": query, "candidates": candidates, "label": label}

    def _draw(self, pool: list[int], answers: tuple[str, ...], right: str, uniform: Callable[[], float]) -> list[str]:
        """Draw distinct wrong answers, fewer if the pool runs out."""
        drawn: list[str] = []
        while pool and len(drawn) < self.config.num_candidates - 1:
            answer = answers[pool.pop(int(uniform() * len(pool)))]
            if answer != right and answer not in drawn:
                drawn.append(answer)
        return drawn

    def _choose(self, questions: Iterable[Question]) -> list[Question]:
        """Those with the smallest hashes, in the order of these; never many more than are wanted are in memory."""
        config = self.config
        chosen: dict[int, Question] = {}
        limit = 2**64
        for query, answer in questions:
            if not all(config.min_words <= len(text.split()) <= config.max_words for text in (query, answer)):
                continue
            key = xxhash.xxh3_64_intdigest(query.casefold().encode(), config.seed % 2**64)
            if key < limit:
                chosen[key] = min((query, answer), chosen.get(key, (query, answer)))
            if len(chosen) >= 2 * config.max_questions:
                chosen = dict(sorted(chosen.items())[: config.max_questions])
                limit = max(chosen) + 1
        return [question for _, question in sorted(chosen.items())[: config.max_questions]]

    def _read(self) -> Iterator[Question]:
        paths = self.paths(self.data_dir)
        documents = [path for path in paths if ".xml" in path.suffixes]
        with self.reader(unit="questions" if documents else "lines") as reader:
            for path in documents or paths:
                for number, texts in read_documents(reader, path) if documents else reader.rows(path, COLUMNS):
                    question, answer = (cut(MARKUP.sub(" ", text), None) for text in texts)
                    if question and answer:
                        yield question, answer
                    else:
                        reader.reject(path, number, f"has no {COLUMNS[1] if question else COLUMNS[0]}")


def read_documents(reader: CorpusReader, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read subject and best answer of every document of a Webscope file, one at a time; raises InputError for what is
    no XML, truncated, in an unsupported encoding, or has a question above the length limit of a line."""
    parser: Any = ElementTree.XMLPullParser(("start", "end"))
    root: Any = None
    number = length = 0
    with open_plain_or_gzipped(path) as file:
        try:
            for chunk in chain(iter(partial(file.read, CHUNK_SIZE), b""), [b""]):
                if chunk:
                    parser.feed(chunk)
                else:
                    parser.close()
                length += len(chunk)
                for event, element in parser.read_events():
                    root = element if root is None else root
                    if event == "end" and element.tag == "document":
                        number += 1
                        reader.lines_read += 1
                        length = 0
                        yield number, [element.findtext(name) or "" for name in ("subject", "bestanswer")]
                        root.clear()
                if length > MAX_LINE_LENGTH:
                    raise InputError(f"the next is longer than {MAX_LINE_LENGTH:,} bytes")
        # Of an encoding that the parser lacks, it says so in a ValueError or a LookupError.
        except (ElementTree.ParseError, ValueError, LookupError) as error:
            raise InputError(f"{path} is damaged after {number:,} questions ({error}); {reader.layout}") from error
    if not number:
        raise InputError(f"{path} holds no <document>; {reader.layout}")
