from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import datasets

from ..common.fields import option
from .builder import TEXT, CorpusBuilder, CorpusConfig
from .corpus_reader import CorpusReader
from .sampling import cut

FILES = {"train": "WikiQA-train.tsv", "validation": "WikiQA-dev.tsv", "test": "WikiQA-test.tsv"}
COLUMNS = ("QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label")
# A question, its candidate sentences, and which of them answer it (1) or do not (0).
Question = tuple[str, list[str], list[int]]


@dataclass
class WikiqaConfig(CorpusConfig):
    """Which questions are kept."""

    unanswered: bool = option("Keep questions that no candidate answers; their `label` is -1.", False)


class WikiqaBuilder(CorpusBuilder):
    """Questions with sentences of a Wikipedia article, some of them answers: WikiQA, for ranking."""

    corpus_name = "wikiqa"
    BUILDER_CONFIGS = [WikiqaConfig(name="default", description="Questions with at least one answer.")]
    files = tuple(FILES.values())
    origin = "they are in WikiQACorpus.zip, microsoft.com/en-us/download/details.aspx?id=52419"
    tasks = ("text-ranking",)

    def features(self) -> datasets.Features:
        number = datasets.Value("int32")
        return datasets.Features(
            {"query": TEXT, "candidates": datasets.List(TEXT), "label": number, "relevance": datasets.List(number)}
        )

    def parts(self) -> dict[str, dict[str, Any]]:
        with self.reader() as reader:
            found = {split: self._read(reader, name) for split, name in FILES.items()}
        tested = {query.casefold() for query, _, _ in found["test"]}
        return {
            split: {"questions": tuple(questions), "tested": tested if split != "test" else set()}
            for split, questions in found.items()
        }

    def generate_rows(self, questions: tuple[Question, ...], tested: set[str]) -> Iterator[dict[str, Any]]:
        for query, candidates, relevance in questions:
            label = relevance.index(1) if 1 in relevance else -1
            if query.casefold() not in tested and (label >= 0 or self.config.unanswered):
                yield {"query": query, "candidates": candidates, "label": label, "relevance": relevance}

    def _read(self, reader: CorpusReader, name: str) -> list[Question]:
        path = self.find(name)
        questions: dict[str, Question] = {}
        for number, (identity, *row) in reader.rows(path, COLUMNS, header=True):
            query, sentence, label = cut(row[0], None), cut(row[4], None), row[5]
            if label not in ("0", "1") or not query or not sentence:
                reader.reject(path, number, f"has the label {label[:20]!r}, not 0 or 1, or lacks a text")
                continue
            _, candidates, relevance = questions.setdefault(identity, (query, [], []))
            candidates.append(sentence)
            relevance.append(int(label))
        return list(questions.values())
