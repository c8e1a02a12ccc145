from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from ...errors import InputError
from ...tokenization import join_sentences, train_document_tokenizer
from .base import Seq2SeqTask, encode_rows

logger = logging.getLogger(__name__)


class AutoencodeTask(Seq2SeqTask):
    """Write a document again from its vector: token cross-entropy, for any sequence-to-sequence model.

    Documents are lists of sentences. As one flat stream of words they are source and target both; longer ones than
    `max_source_length` are cut.
    """

    columns = ("sentences",)
    can_stream = True
    label_column = "input_ids"

    @staticmethod
    def train_tokenizer(
        documents: Iterable[Sequence[str]], vocab_size: int, model: str, lowercase: bool
    ) -> PreTrainedTokenizerBase:
        if model != "word":
            raise InputError(f"`tokenizer_model: {model}`: documents are read in whole words alone")
        return train_document_tokenizer(documents, vocab_size, lowercase)

    def texts(self, rows: Dataset) -> Iterable[Sequence[str]]:
        return rows["sentences"]

    def encode_split(self, rows: Dataset, tokenizer: PreTrainedTokenizerBase) -> Dataset:
        options: dict[str, Any] = {"tokenizer": tokenizer, "max_length": self.training.max_source_length}
        return encode_rows(rows, _encode, "documents", "they have no words", **options)

    def features(self, encoded: Dataset, rows: Sequence[int], epoch: int | None) -> list[dict[str, Any]]:
        return [{**row, "labels": row["input_ids"]} for row in super().features(encoded, rows, epoch)]


def _encode(columns: dict[str, list], tokenizer: PreTrainedTokenizerBase, max_length: int) -> dict[str, Any]:
    texts = [join_sentences(sentences) for sentences in columns["sentences"]]
    rows = tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]
    return {"input_ids": [row for row in rows if len(row) > tokenizer.num_special_tokens_to_add()]}
