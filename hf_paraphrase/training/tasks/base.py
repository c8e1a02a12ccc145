from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from datasets import Dataset, DatasetDict, IterableDataset
from torch import nn
from transformers import AutoModelForSeq2SeqLM, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from ...checkpoints.pretrained import load_model, load_tokenizer, make_model
from ...common.errors import InputError
from ...datasets import load_dataset
from ...models.layers.language_model_head import LanguageModelHeadMixin
from ...retrieval.pairs import filter_by_cosine
from ...tokenization import train_tokenizer
from ..arguments import MixedCorpus, TrainingConfig
from ..batching import (
    Batch,
    Collator,
    DrawnBatches,
    LengthBatches,
    PairCollator,
    ShuffledDocuments,
    token_counts,
    value_counts,
)
from ..checkpoints import load_trained
from ..losses import FLAT_FROM, SampledCrossEntropy, Sums, Validation, cross_entropy_sums, flat_cross_entropy
from ..mixture import first_rows, load_mixture, make_draw

logger = logging.getLogger(__name__)


class NoRowsLeft(InputError):
    """None of the rows to encode can be used."""


def encode_rows(
    rows: Dataset,
    encode: Callable[..., dict[str, Any]],
    unit: str,
    lack: str,
    kept_as_is: Collection[str] = (),
    **options: Any,
) -> Dataset:
    """Tokenise rows once, for all epochs; those that `encode` leaves out are counted in a warning.

    Args:
        encode: Makes columns of columns.
        kept_as_is: The columns that stay, where no row is left out.
        options: Its further arguments. A tokenizer among them is copied: it remembers how it was last called, and
            handed a fresh one, `map` finds its cached result the next time.

    Raises:
        NoRowsLeft: If no row is left.
    """
    options = {name: deepcopy(one) if name == "tokenizer" else one for name, one in options.items()}
    columns = [name for name in rows.column_names if name not in kept_as_is]
    encoded = rows.map(encode, batched=True, remove_columns=columns, fn_kwargs=options, desc="Tokenising")
    if not len(encoded):
        raise NoRowsLeft(f"none of the {len(rows)} {unit} can be used: {lack}")
    if len(encoded) < len(rows):
        logger.warning("left out %d of %d %s: %s", len(rows) - len(encoded), len(rows), unit, lack)
    return encoded


@dataclass(frozen=True)
class TaskData:
    """What a task derives from a corpus, for everything that needs it.

    Args:
        splits: `train` and `validation`, and what else a task validates on, as columns of integers and of (nested)
            lists of integers.
        tokenizer: What encoded them.
    """

    splits: DatasetDict
    tokenizer: PreTrainedTokenizerBase


class Task(ABC):
    """A training task: from the rows of a corpus to the loss of a batch.

    The training loop knows tasks only through this interface. A task holds the recipe's fields, and nothing that it
    finds out on the way: that is returned, as `TaskData`, and handed to what needs it. Random examples must depend
    only on the recipe's seed, the epoch and the row number, so that resumed and distributed runs draw the same.
    Randomness inside a loss, such as dropout, comes from torch's generators, whose state is in checkpoints.

    Args:
        training: Of the recipe; an instance of `config_class`.
        trust_remote_code: Let the checkpoints that the recipe names run their own code; no recipe decides that.
    """

    config_class: ClassVar[type[TrainingConfig]] = TrainingConfig
    auto_class: ClassVar[type]
    columns: ClassVar[tuple[str, ...]]
    # The column of encoded rows whose tokens are written.
    label_column: ClassVar[str] = "labels"
    # Whether rows can be encoded in chunks, independently of the others.
    can_stream: ClassVar[bool] = False
    train_tokenizer: ClassVar[Callable[..., PreTrainedTokenizerBase]] = staticmethod(train_tokenizer)

    def __init__(self, training: TrainingConfig, trust_remote_code: bool = False):
        self.training, self.trust_remote_code = training, trust_remote_code

    def load(self, data_dir: str | Path | None = None, dataset: DatasetDict | None = None) -> DatasetDict:
        """Load the splits `train`, streamed or not, and `validation`, read completely, with the task's columns.

        Args:
            data_dir: Folder with the corpus's files; by default the recipe's.
            dataset: Loaded rows, instead of the corpus.

        Raises:
            InputError: A split or column is missing, a split is empty, or a streamed split would have to be counted.
        """
        training = self.training
        if training.dataset_kwargs.get("streaming"):
            self._check_streamable()
        if dataset is None and training.mixture:
            dataset = load_mixture(training.corpora, data_dir or training.data_dir, training.seed, self._filter)
        elif dataset is None:
            dataset = self.load_corpus(data_dir, training.dataset_kwargs)
        limits = {"train": training.max_train_samples, "validation": training.max_eval_samples}
        return DatasetDict({split: self._select(dataset, split, limit) for split, limit in limits.items()})

    def load_corpus(self, data_dir: str | Path | None, options: dict[str, Any]) -> DatasetDict:
        """Load all splits of the recipe's corpus, by arguments of its builder."""
        path, name, folder = self.training.dataset, self.training.dataset_name, data_dir or self.training.data_dir
        return load_dataset(cast(str, path), name=name, data_dir=folder, **options)

    def _select(self, dataset: DatasetDict, split: str, limit: int | None) -> Dataset:
        name = self.training.dataset
        if split not in dataset:
            streamed = any(isinstance(rows, IterableDataset) for rows in dataset.values())
            advice = "; what is streamed is not split: give it files, or leave `streaming` out" if streamed else ""
            raise InputError(f"dataset {name} has no split {split}, only: {', '.join(dataset)}{advice}")
        rows = dataset[split]
        is_stream = isinstance(rows, IterableDataset)
        if is_stream:
            self._check_streamable()
        there = rows.column_names or list(next(iter(rows), {}))
        columns = [*self.columns_of(rows), *self.training.drawn_by]
        for column in columns:
            if column not in there:
                raise InputError(
                    f"split {split} of dataset {name} lacks the column {column}; it has: {', '.join(there)}"
                )
        rows = rows.select_columns(columns)
        if is_stream:
            rows = rows if limit is None else rows.take(limit)
            if split == "train":
                return rows
            rows = Dataset.from_list(list(rows))
        elif not self.training.mixture:
            rows = self._filter(rows)
        if not len(rows):
            raise InputError(f"split {split} of dataset {name} is empty")
        return rows if limit is None else rows.select(first_rows(rows, limit))

    def _filter(self, rows: Dataset, corpus: MixedCorpus | None = None) -> Dataset:
        """Leave out the pairs that the recipe's encoder finds less alike than `min_cosine`, of a corpus its own."""
        training = self.training
        least = training.min_cosine if corpus is None or corpus.min_cosine is None else corpus.min_cosine
        if training.filter_encoder is None or least is None:
            return rows
        return filter_by_cosine(rows, training.filter_encoder, least, trust_remote_code=self.trust_remote_code)

    def _check_streamable(self) -> None:
        """Refuse what cannot be trained on a stream: nobody knows its length before its end."""
        training, unknown = self.training, "a streamed corpus has no length before its end"
        if not self.can_stream:
            raise InputError(
                f"`dataset_kwargs`: `task: {training.task}` needs all rows at hand; leave `streaming` out"
            )
        if training.max_steps < 1:
            raise InputError(f"`num_train_epochs`: {unknown}; say how long to train by `max_steps`")
        if training.eval_strategy == "epoch":
            raise InputError(f"`eval_strategy: epoch`: {unknown}; set `eval_strategy: steps` and `eval_steps`")
        if training.lr_scheduler_type == "step_halving":
            raise InputError(f"`lr_scheduler_type: step_halving`: {unknown}, which it needs to count epochs")

    def columns_of(self, rows: Dataset) -> tuple[str, ...]:
        """The columns of a split that the task reads."""
        return self.columns

    def make_tokenizer(self, rows: Dataset, vocab_size: int) -> PreTrainedTokenizerBase:
        """Load the recipe's tokenizer, or that of the checkpoint to start from, or train one of at most `vocab_size`.

        Raises:
            InputError: The pretrained tokenizer does not exist.
        """
        name = self.training.tokenizer or self.training.pretrained
        if name is None:
            kind = {"model": self.training.tokenizer_model, "lowercase": self.training.lowercase}
            tokenizer = self.train_tokenizer(self.texts(rows), vocab_size, **kind)
        else:
            tokenizer = self.load_tokenizer(name)
        tokenizer.model_max_length = self.training.max_source_length
        return tokenizer

    def load_tokenizer(self, name: str) -> PreTrainedTokenizerBase:
        """Load a pretrained tokenizer that the recipe names.

        Raises:
            InputError: If there is none.
        """
        try:
            return load_tokenizer(name, self.trust_remote_code)
        except (OSError, ValueError) as error:
            raise InputError(f"`tokenizer`: {name} cannot be loaded: {error}") from error

    def make_model(self, config: PreTrainedConfig, data: TaskData) -> PreTrainedModel:
        """Make the model to train, newly initialised or with the weights of `pretrained`.

        Raises:
            InputError: Models of this type do not support this task, or `pretrained` is of another type.
        """
        name = self.training.pretrained
        if name is None:
            try:
                return make_model(self.auto_class, config, self.trust_remote_code)
            except ValueError as error:
                raise InputError(f"`model_type: {config.model_type}` does not learn this task: {error}") from error
        options = {"config": config, "ignore_mismatched_sizes": self.training.ignore_mismatched_sizes}
        try:
            return load_model(self.auto_class, name, self.trust_remote_code, new_head=True, **options)
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(f"`pretrained`: {name} cannot be loaded as this recipe's model: {error}") from error

    def resume_model(self, checkpoint: Path, config: PreTrainedConfig, data: TaskData) -> PreTrainedModel:
        """Load the model of a checkpoint to resume from; other arguments as in `make_model`."""
        return load_trained(checkpoint, self.auto_class, self.trust_remote_code)

    def prepare_model(self, model: PreTrainedModel, data: TaskData) -> None:  # noqa: B027 (most train all of it)
        """Set state that checkpoints lack, such as trainable parameters; called for new and resumed models."""

    @abstractmethod
    def texts(self, rows: Dataset) -> Iterable[str]:
        """The texts of a split, for a tokenizer to learn its words from."""

    def encode(self, rows: DatasetDict, tokenizer: PreTrainedTokenizerBase) -> TaskData:
        """Tokenise all splits once, for all epochs; rows that cannot be used are dropped, with a warning.

        Raises:
            NoRowsLeft: If that are all of a split.
        """
        splits = {split: self.encode_split(some, tokenizer) for split, some in rows.items()}
        return TaskData(DatasetDict(splits), tokenizer)

    def encode_split(self, rows: Dataset, tokenizer: PreTrainedTokenizerBase) -> Dataset:
        """Tokenise a split, for `encode`; a task that needs all splits at once has an `encode` of its own."""
        raise NotImplementedError

    def prepare_batch(self, batch: dict[str, Any], step: int, total_steps: int) -> dict[str, Any]:
        """Add to a batch, for `loss_sums`, what changes in the course of a training, such as the weight of a loss."""
        return batch

    def save_assets(self, data: TaskData, output_dir: Path) -> None:  # noqa: B027 (most tasks add nothing)
        """Write the files that the model needs besides weights and tokenizer to the run's folder."""

    def lengths(self, encoded: Dataset) -> tuple[np.ndarray, np.ndarray]:
        """Two lengths of every row, in tokens; rows alike in both share a batch."""
        return token_counts(encoded, "input_ids"), token_counts(encoded, self.label_column)

    def make_batches(self, encoded: Dataset) -> LengthBatches | ShuffledDocuments:
        """What divides the train split into the batches of every epoch."""
        training, draw = self.training, make_draw(self.training, encoded)
        limits: dict[str, Any] = {
            "max_rows": training.train_batch_size,
            "max_tokens": training.max_tokens_per_batch,
            "max_padding": training.max_padding,
            "accumulation": training.gradient_accumulation_steps,
            "seed": training.seed,
        }
        if draw is None:
            return LengthBatches(*self.lengths(encoded), **limits)
        return DrawnBatches(draw, *self.lengths(encoded), **limits)

    def counts(self, encoded: Dataset) -> np.ndarray:
        """The weight of every row: the loss is a mean over units, here the target's tokens."""
        return token_counts(encoded, self.label_column)

    def features(self, encoded: Dataset, rows: Sequence[int], epoch: int | None) -> list[dict[str, Any]]:
        """The examples that some rows give in an epoch, counted from 0; None in validation."""
        return encoded.__getitems__(list(rows))

    @abstractmethod
    def make_collator(self, tokenizer: PreTrainedTokenizerBase) -> Collator:
        """What makes the tensors of a batch, as the model's forward takes them, of examples."""

    @abstractmethod
    def loss_sums(self, model: nn.Module, batch: Batch, data: TaskData) -> Sums:
        """The loss of a batch, summed over its units; returns the loss to minimise, and the one to report, detached.

        Sums, because a step may consist of several batches on several processes: only the count of the whole step
        makes a mean that does not depend on how the step was divided.
        """

    def validate(self, data: TaskData, validation: Validation) -> dict[str, float] | None:
        """Score a model on the validation split.

        Returns:
            `loss` and the task's own metrics; None if validation was aborted.
        """
        loss = validation.mean_loss(partial(self.loss_sums, data=data))
        return None if loss is None else {"loss": loss}

    def cost(self, scores: dict[str, float]) -> float:
        """The validation score that the best checkpoint minimises: the loss."""
        return scores["loss"]


class Seq2SeqTask(Task):
    """Write a target from its source, by token cross-entropy, for any sequence-to-sequence model."""

    auto_class = AutoModelForSeq2SeqLM

    def make_model(self, config: PreTrainedConfig, data: TaskData) -> PreTrainedModel:
        model, training = super().make_model(config, data), self.training
        is_sampled = training.sampled_softmax is not None and training.pretrained is None
        if is_sampled and isinstance(model, LanguageModelHeadMixin) and model.lm_head.bias is not None:
            # A full softmax learns first how often each word is written, and drawn words teach that slowly: AdamW
            # divides the rare large gradients of a word that is drawn with probability π by their root mean square,
            # and so makes √π of the step.
            counts = self._label_counts(model, data) + 1.0
            model.lm_head.bias.data.copy_(torch.from_numpy(np.log(counts / counts.sum())))
        return model

    def _label_counts(self, model: PreTrainedModel, data: TaskData) -> np.ndarray:
        return value_counts(data.splits["train"], self.label_column, model.config.vocab_size)

    def prepare_model(self, model: PreTrainedModel, data: TaskData) -> None:
        """Let the package's models compute the loss of many words without their logits, which smoothing needs.

        Raises:
            InputError: `sampled_softmax` does not fit the model.
        """
        is_ours, samples = isinstance(model, LanguageModelHeadMixin), self.training.sampled_softmax
        is_large = model.config.get_text_config(decoder=True).vocab_size >= FLAT_FROM
        own = cast(LanguageModelHeadMixin, model)
        if is_ours and is_large and not self.training.label_smoothing_factor:
            own.flat_loss = flat_cross_entropy
        if samples is None:
            return
        if not (is_ours and own.has_plain_loss):
            raise InputError(f"`sampled_softmax`: the loss of this {model.config.model_type} needs all words' scores")
        if samples >= model.config.vocab_size:
            raise InputError(f"`sampled_softmax` must be less than the {model.config.vocab_size} words, not {samples}")
        own.flat_loss = SampledCrossEntropy(self._label_counts(model, data), samples)

    def make_collator(self, tokenizer: PreTrainedTokenizerBase) -> PairCollator:
        return PairCollator(tokenizer.pad_token_id)

    def loss_sums(self, model: nn.Module, batch: Batch, data: TaskData) -> Sums:
        # Validation reports the likelihood alone.
        return cross_entropy_sums(model, batch, self.training.label_smoothing_factor if model.training else 0.0)
