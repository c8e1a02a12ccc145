from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from datasets import Dataset, DatasetDict, Features, List, Value
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ...common.errors import InputError
from ...common.fields import option
from ...datasets.running_text import MAX_WORDS, fit_sentences, sentence_pairs
from ...models.hierarchical_lm.tokenization_hierarchical_lm import HierarchicalLmTokenizer
from ..arguments import TrainingConfig
from ..batching import LengthBatches, ShuffledDocuments
from ..losses import Validation
from .base import Seq2SeqTask, TaskData

# All ids of the tokenizer's few hundred symbols fit; a book takes a quarter of the space.
FEATURES = Features({"input_ids": List(Value("int16")), "labels": List(Value("int16")), "document": Value("int32")})


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(TrainingConfig):
    """`TrainingConfig` with the objective, the trainable parts, and the mixing of documents."""

    task: str = option("What is learnt: `language_model`, to go on with a text.", "language_model")
    objective: Literal["next_sentence", "autoencode"] = option(
        "The target of a sentence: what follows it in its document, or the sentence itself.", "next_sentence"
    )
    trained_parts: list[str] | None = option("Names of the modules that learn; null: all.", None)
    general_dataset_kwargs: dict[str, Any] | None = option(
        "Corpus builder's arguments for a second, general set to validate on at the same time.", None
    )
    shuffle_buffer: int = option("Examples that are shuffled together.", 4096, least=1)
    interleaved_documents: int = option("Documents that examples come from in turn.", 128, least=1)

    def __post_init__(self):
        super().__post_init__()
        bounds = (self.max_tokens_per_batch, self.max_padding)
        if self.train_batch_size is None or bounds != (None, None):
            raise InputError(
                "`task: language_model` mixes lengths: set `train_batch_size`, not `max_tokens_per_batch` or "
                "`max_padding`"
            )
        if self.tokenizer_model != "word":
            raise InputError(f"`tokenizer_model: {self.tokenizer_model}`: `task: language_model` spells whole words")
        if self.trained_parts is not None and self.pretrained is None:
            raise InputError("`trained_parts` leaves the other parts as they are in `pretrained`: name a checkpoint")


class LanguageModelTask(Seq2SeqTask):
    """Predict what follows a sentence in its document, or the sentence itself (Traynor 2018, chapters 3 and 4).

    Rows of the corpus are documents, lists of sentences. The loss is in nits per character; STOP and END count as
    characters. `max_train_samples` and `max_eval_samples` bound pairs, not documents, taken evenly from all of them.
    """

    config_class = LanguageModelConfig
    columns = ("sentences",)
    training: LanguageModelConfig

    def load(self, data_dir: str | Path | None = None, dataset: DatasetDict | None = None) -> DatasetDict:
        training = self.training
        rows = super().load(data_dir, dataset)
        if training.general_dataset_kwargs is not None:
            general = self.load_corpus(data_dir, training.general_dataset_kwargs)
            rows["general"] = self._select(general, "validation", None)
        return rows

    def _select(self, dataset: DatasetDict, split: str, limit: int | None) -> Dataset:
        return super()._select(dataset, split, None)

    def make_tokenizer(self, rows: Dataset, vocab_size: int) -> PreTrainedTokenizerBase:
        if self.training.tokenizer is not None or self.training.pretrained is not None:
            tokenizer = self.load_tokenizer(str(self.training.tokenizer or self.training.pretrained))
        else:
            tokenizer = HierarchicalLmTokenizer.from_texts(self.texts(rows), vocab_size)
        if not isinstance(tokenizer, HierarchicalLmTokenizer):
            raise InputError(f"`tokenizer`: a {type(tokenizer).__name__} does not spell words; train one: null")
        return tokenizer

    def texts(self, rows: Dataset) -> Iterable[str]:
        return chain.from_iterable(document["sentences"] for document in rows)

    def encode(self, rows: DatasetDict, tokenizer: PreTrainedTokenizerBase) -> TaskData:
        training, own = self.training, cast(HierarchicalLmTokenizer, tokenizer)
        limits = dict.fromkeys(rows, training.max_eval_samples) | {"train": training.max_train_samples}
        splits = {
            split: encode_documents(documents, own, training.objective, limits[split])
            for split, documents in rows.items()
        }
        return TaskData(DatasetDict(splits), tokenizer)

    def prepare_model(self, model: PreTrainedModel, data: TaskData) -> None:
        super().prepare_model(model, data)
        if self.training.trained_parts is None:
            return
        model.requires_grad_(False)
        for name in self.training.trained_parts:
            try:
                model.get_submodule(name).requires_grad_(True)
            except AttributeError as error:
                raise InputError(f"`trained_parts`: the model has no part {name}") from error

    def make_batches(self, encoded: Dataset) -> ShuffledDocuments:
        training = self.training
        return ShuffledDocuments(
            np.asarray(encoded.with_format("numpy")["document"][:]),
            cast(int, training.train_batch_size),
            training.gradient_accumulation_steps,
            training.shuffle_buffer,
            training.interleaved_documents,
            training.seed,
        )

    def validate(self, data: TaskData, validation: Validation) -> dict[str, float] | None:
        scores = super().validate(data, validation)
        general = data.splits.get("general")
        if scores is None or general is None:
            return scores
        batches = LengthBatches(*self.lengths(general), max_rows=self.training.train_batch_size).in_order()
        collate = self.make_collator(data.tokenizer)
        of_general = validation.of(batches, lambda rows: collate(general.__getitems__(rows)), self.counts(general))
        general_scores = super().validate(data, of_general)
        return None if general_scores is None else {**scores, "general_loss": general_scores["loss"]}


def encode_documents(
    documents: Dataset,
    tokenizer: HierarchicalLmTokenizer,
    objective: str = "next_sentence",
    max_samples: int | None = None,
) -> Dataset:
    """Tokenise documents once, for all epochs, a row for every sentence; one document is held at a time.

    Args:
        documents: Column `sentences`.
        objective: "next_sentence" pairs a sentence with what follows it, "autoencode" with itself; sentences of over
            30 words are split at commas, and cut, for both.
        max_samples: Maximum number of rows, evenly spaced over all documents.

    Returns:
        Columns `input_ids`, `labels` and `document`, the number of the document, ascending.

    Raises:
        InputError: If no document has a sentence, or a sentence and what follows it.
    """
    encoded = documents.map(
        _encode,
        batched=True,
        batch_size=1,
        with_indices=True,
        remove_columns=documents.column_names,
        features=FEATURES,
        fn_kwargs={
            "vocabulary": tokenizer.get_vocab(),
            "marks": (tokenizer.stop_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id),
            "max_characters": tokenizer.max_characters,
            "objective": objective,
        },
        desc="Spelling",
    )
    if not len(encoded):
        raise InputError(f"none of the {len(documents)} documents has enough sentences for `objective: {objective}`")
    if max_samples is None or max_samples >= len(encoded):
        return encoded
    return encoded.select(np.linspace(0, len(encoded) - 1, max_samples).astype(int)).flatten_indices()


def _encode(
    columns: dict[str, list],
    numbers: list[int],
    vocabulary: dict[str, int],
    marks: tuple[int, int, int],
    max_characters: int,
    objective: str,
) -> dict[str, list]:
    stop, end, unknown = marks
    spellings: dict[str, list[int]] = {}

    def spell(words: list[str]) -> list[int]:
        ids = []
        for word in words:
            if word not in spellings:
                spellings[word] = [*(vocabulary.get(symbol, unknown) for symbol in word[:max_characters]), stop]
            ids += spellings[word]
        return [*ids, end]

    rows: dict[str, list] = {"input_ids": [], "labels": [], "document": []}
    for number, sentences in zip(numbers, columns["sentences"], strict=True):
        examples: Iterable[tuple[list[str], list[str]]] = sentence_pairs(sentences)
        if objective == "autoencode":
            examples = ((words[:MAX_WORDS],) * 2 for words in fit_sentences(sentences))
        for source, target in examples:
            rows["input_ids"].append(spell(source))
            rows["labels"].append(spell(target))
            rows["document"].append(number)
    return rows
