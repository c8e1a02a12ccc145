"""The tasks whose target is their source: a document from its vector, a sentence without its noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from ...common.errors import InputError
from ...common.fields import option
from ...tokenization import join_sentences, train_document_tokenizer
from ..arguments import TrainingConfig
from .base import Seq2SeqTask, encode_rows

SPAN = 3.0  # the mean of the Poisson distribution of a masked span's words, as in BART


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
        return encode_rows(rows, _encode_documents, "documents", "they have no words", **options)

    def features(self, encoded: Dataset, rows: Sequence[int], epoch: int | None) -> list[dict[str, Any]]:
        return [{**row, "labels": row["input_ids"]} for row in super().features(encoded, rows, epoch)]


def _encode_documents(columns: dict[str, list], tokenizer: PreTrainedTokenizerBase, max_length: int) -> dict[str, Any]:
    texts = [join_sentences(sentences) for sentences in columns["sentences"]]
    rows = tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]
    return {"input_ids": [row for row in rows if len(row) > tokenizer.num_special_tokens_to_add()]}


@dataclass(frozen=True, kw_only=True)
class DenoiseConfig(TrainingConfig):
    """`TrainingConfig` with the kinds of noise."""

    task: str = option("What is learnt: `denoise`, to write a sentence again without its noise.", "denoise")
    mask_share: float = option(
        "Share of the words in masked spans. Each span is one mask token, or where the tokenizer has none the mark of "
        "unknown words.",
        0.15,
        least=0,
        below=1,
    )
    drop_share: float = option("Share of the other words that are left out.", 0.1, least=0, below=1)
    swap_distance: int = option("How many places a word may move from its own.", 3, least=0)

    def __post_init__(self):
        super().__post_init__()
        if not (self.mask_share or self.drop_share or self.swap_distance):
            raise InputError("`task: denoise` has no noise: set `mask_share`, `drop_share` or `swap_distance`")


class DenoiseTask(Seq2SeqTask):
    """Write sentences of running text again from noisy ones, before an encoder-decoder learns to paraphrase.

    Spans of words are masked (Lewis et al. 2020, BART), words are dropped, and words change places with their
    neighbours (Lample et al. 2018, section 2.3). The noise is drawn anew each epoch; in validation it is always the
    same. Rows are documents (column `sentences`) or pairs, of which only the column `source` is read.
    """

    config_class = DenoiseConfig
    columns = ("sentences",)
    label_column = "input_ids"
    training: DenoiseConfig

    def columns_of(self, rows: Dataset) -> tuple[str, ...]:
        return self.columns if self.columns[0] in rows.column_names else ("source",)

    def texts(self, rows: Dataset) -> Iterable[str]:
        return _sentences(rows[:])

    def make_tokenizer(self, rows: Dataset, vocab_size: int) -> PreTrainedTokenizerBase:
        tokenizer = super().make_tokenizer(rows, vocab_size)
        if not tokenizer.is_fast:
            raise InputError("`tokenizer`: `task: denoise` needs one that knows where words begin, a fast one")
        return tokenizer

    def encode_split(self, rows: Dataset, tokenizer: PreTrainedTokenizerBase) -> Dataset:
        options: dict[str, Any] = {"tokenizer": tokenizer, "max_length": self.training.max_source_length}
        return encode_rows(rows, _encode_sentences, "rows", "they have no words", **options)

    def features(self, encoded: Dataset, rows: Sequence[int], epoch: int | None) -> list[dict[str, Any]]:
        """The sentences with the noise of an epoch, which depends on seed, epoch and row alone."""
        seeds = (self.training.seed, 0 if epoch is None else epoch + 1)
        return [
            {"input_ids": self._disturb(row, np.random.default_rng((*seeds, number))), "labels": row["input_ids"]}
            for number, row in zip(rows, super().features(encoded, rows, epoch), strict=True)
        ]

    def _disturb(self, row: dict[str, list[int]], random: np.random.Generator) -> list[int]:
        training = self.training
        starts = np.flatnonzero(np.diff(row["words"], prepend=-2)).tolist()
        pieces = [row["input_ids"][start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
        first = [pieces.pop(0)] if row["words"][0] < 0 else []
        last = [pieces.pop()] if row["words"][-1] < 0 else []
        noisy = add_noise(
            pieces, [row["mask_token_id"]], random, training.mask_share, training.drop_share, training.swap_distance
        )
        return list(chain.from_iterable([*first, *noisy, *last]))


def add_noise(
    words: Sequence[Any],
    mask: Any,
    random: np.random.Generator,
    mask_share: float,
    drop_share: float,
    swap_distance: int,
) -> list[Any]:
    """Mask spans of words, drop others and let the rest change places.

    Args:
        words: The words, at least one.
        mask: What stands for a span.
        random: Draws the noise.
        mask_share: Share of the words that are masked, in the mean; the lengths of spans are Poisson, at least 1.
        drop_share: Share of the others that are dropped; one word or mask always stays.
        swap_distance: The farthest that a word moves.
    """
    length = SPAN + np.exp(-SPAN)  # the mean, where no span is empty
    start = mask_share / (length * (1 - mask_share) + mask_share)
    kept: list[Any] = []
    place = 0
    while place < len(words):
        if random.random() < start:
            kept.append(mask)
            place += max(1, random.poisson(SPAN))
            continue
        if random.random() >= drop_share:
            kept.append(words[place])
        place += 1
    kept = kept or [words[int(random.integers(len(words)))]]
    # Sorting by the place and up to so much more moves nothing farther.
    order = np.argsort(np.arange(len(kept)) + random.uniform(0, swap_distance + 1, len(kept)), kind="stable")
    return [kept[number] for number in order]


def _sentences(columns: dict[str, list]) -> Iterable[str]:
    return columns["source"] if "source" in columns else chain.from_iterable(columns["sentences"])


def _encode_sentences(
    columns: dict[str, list], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> dict[str, list]:
    texts = [text for text in _sentences(columns) if text.strip()]
    encoded = tokenizer(texts or [""], truncation=True, max_length=max_length)
    rows: dict[str, list] = {"input_ids": [], "words": [], "mask_token_id": []}
    mask = tokenizer.unk_token_id if tokenizer.mask_token_id is None else tokenizer.mask_token_id
    for number, ids in enumerate(encoded["input_ids"]):
        words = [-1 if word is None else word for word in encoded.word_ids(number)]
        if max(words, default=-1) >= 0:
            for column, value in zip(rows.values(), (ids, words, mask), strict=True):
                column.append(value)
    return rows
