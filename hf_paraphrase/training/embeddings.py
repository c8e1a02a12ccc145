from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import cast

import torch
from torch import nn
from transformers import PreTrainedModel

from ..errors import InputError
from ..tokenization.word_vectors import load_word_vectors

__all__ = ["start_from_word_vectors"]

logger = logging.getLogger(__name__)


def start_from_word_vectors(model: PreTrainedModel, words: Mapping[str, int], path: str | os.PathLike) -> float:
    """Put word vectors into a new model's embeddings, and say in the log how many words had one.

    A word that the file lacks, or a special token, is redrawn, from a normal distribution with the standard
    deviation of the numbers that were read: those that a model draws are a fraction of GloVe's, beside which a word
    without a vector would be next to nothing. Padding stays zero.

    Args:
        model: Newly made.
        words: The row of each word in its embeddings.
        path: A file as `load_word_vectors` takes it.

    Returns:
        The share of the words that the file has.

    Raises:
        InputError: The vectors and the embeddings differ in width, or the file has none of the words.
    """
    vectors = load_word_vectors(path, words)
    if not vectors.key_to_index:
        raise InputError(f"`embeddings`: {path} has none of the {len(words)} words of the vocabulary")
    embeddings = cast(nn.Embedding, model.get_input_embeddings())
    table = embeddings.weight
    if vectors.vectors.shape[1] != table.shape[1]:
        raise InputError(
            f"`embeddings`: the vectors in {path} have {vectors.vectors.shape[1]} numbers; set `embedding_size` to "
            f"that, not to {table.shape[1]}"
        )
    rows = torch.tensor([words[word] for word in vectors.key_to_index], device=table.device)
    with torch.no_grad():
        table.normal_(std=float(vectors.vectors.std()))
        if embeddings.padding_idx is not None:
            table[embeddings.padding_idx] = 0
        table[rows] = torch.from_numpy(vectors.vectors).to(table)
    coverage = len(rows) / len(words)
    logger.warning("%s has vectors for %d of %d words (%.1f%%)", path, len(rows), len(words), 100 * coverage)
    return coverage
