from __future__ import annotations

import copy
import hashlib
import logging
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from ..datasets import load_dataset
from ..errors import InputError
from ..tokenization import train_word_tokenizer
from .arguments import TrainingConfig

__all__ = ["encode_pairs", "fingerprint", "load_pairs", "make_tokenizer", "token_lengths"]

logger = logging.getLogger(__name__)


def load_pairs(
    training: TrainingConfig, data_dir: str | Path | None = None, dataset: DatasetDict | None = None
) -> DatasetDict:
    """Load the pairs to train on and to validate with.

    Args:
        training: Names the corpus and how many of its pairs to use.
        data_dir: Folder with the corpus's files; else that of the recipe.
        dataset: Pairs already loaded, in place of the corpus.

    Returns:
        The splits `train` and `validation`, with the columns `source` and `target`.

    Raises:
        InputError: If a split or column is missing, or a split is empty.
    """
    if dataset is None:
        dataset = load_dataset(
            training.dataset,
            name=training.dataset_name,
            data_dir=data_dir or training.data_dir,
            **training.dataset_kwargs,
        )
    limits = {"train": training.max_train_samples, "validation": training.max_eval_samples}
    pairs = DatasetDict()
    for split, limit in limits.items():
        if split not in dataset:
            raise InputError(f"dataset {training.dataset} has no split {split}, only: {', '.join(dataset)}")
        missing = {"source", "target"} - set(dataset[split].column_names)
        if missing:
            raise InputError(f"split {split} of dataset {training.dataset} lacks the column {missing.pop()}")
        pairs[split] = dataset[split].select_columns(["source", "target"])
        if limit is not None and limit < len(pairs[split]):
            pairs[split] = pairs[split].select(range(limit))
        if not len(pairs[split]):
            raise InputError(f"split {split} of dataset {training.dataset} is empty")
    return pairs


def make_tokenizer(training: TrainingConfig, pairs: Dataset, vocab_size: int) -> PreTrainedTokenizerBase:
    """Load the recipe's tokenizer, or train one of words on both sides of the pairs.

    Args:
        training: Says which.
        pairs: The train split.
        vocab_size: Most words of a trained tokenizer, special tokens included.

    Raises:
        InputError: If there is no such pretrained tokenizer.
    """
    if training.tokenizer is None:
        texts = (text for column in ("source", "target") for text in pairs[column])
        tokenizer = train_word_tokenizer(texts, vocab_size, lowercase=training.lowercase)
    else:
        try:
            tokenizer = AutoTokenizer.from_pretrained(training.tokenizer)
        except (OSError, ValueError) as error:
            raise InputError(f"`tokenizer`: {training.tokenizer} cannot be loaded: {error}") from error
    tokenizer.model_max_length = training.max_source_length
    return tokenizer


def encode_pairs(
    pairs: Dataset, tokenizer: PreTrainedTokenizerBase, max_source_length: int, max_target_length: int
) -> Dataset:
    """Tokenise pairs once, for all epochs; pairs with an empty side are dropped, with a warning that counts them.

    Args:
        pairs: Columns `source` and `target`.
        tokenizer: Adds its end token by itself.
        max_source_length: Most tokens of a source, special tokens included.
        max_target_length: The same for targets.

    Returns:
        Columns `input_ids` and `labels`, lists of token ids.

    Raises:
        InputError: If no pair is left.
    """
    encoded = pairs.map(
        _encode,
        batched=True,
        remove_columns=pairs.column_names,
        # A tokenizer remembers its last truncation. Handed a fresh copy, map finds its cached result the next time.
        fn_kwargs={"tokenizer": copy.deepcopy(tokenizer), "limits": (max_source_length, max_target_length)},
        desc="Tokenising",
    )
    dropped = len(pairs) - len(encoded)
    if not len(encoded):
        raise InputError(f"none of the {dropped} pairs has words on both sides")
    if dropped:
        logger.warning("left out %d of %d pairs: one side has no words", dropped, len(pairs))
    return encoded


def _encode(columns: dict[str, list], tokenizer: PreTrainedTokenizerBase, limits: tuple[int, int]) -> dict[str, Any]:
    sources, targets = (
        tokenizer(columns[name], truncation=True, max_length=limit)["input_ids"]
        for name, limit in zip(("source", "target"), limits, strict=True)
    )
    specials = tokenizer.num_special_tokens_to_add()
    full = [min(len(source), len(target)) > specials for source, target in zip(sources, targets, strict=True)]
    return {
        "input_ids": [source for source, keep in zip(sources, full, strict=True) if keep],
        "labels": [target for target, keep in zip(targets, full, strict=True) if keep],
    }


def token_lengths(encoded: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The number of tokens of each row's source and of its target."""
    table = encoded.with_format("arrow")[:]
    sources, targets = (np.diff(table[name].combine_chunks().offsets) for name in ("input_ids", "labels"))
    return sources, targets


def fingerprint(encoded: Dataset) -> str:
    """A digest of all token ids and of where rows end."""
    table = encoded.with_format("arrow")[:]
    digest = hashlib.sha256()
    for name in ("input_ids", "labels"):
        rows = table[name].combine_chunks()
        digest.update(np.diff(rows.offsets))
        digest.update(rows.flatten().to_numpy())
    return digest.hexdigest()
