from __future__ import annotations

import logging
import os
from collections.abc import Mapping

import torch
from transformers import PreTrainedModel

from ..errors import InputError
from ..word_vectors import load_word_vectors

__all__ = ["start_from_word_vectors"]

logger = logging.getLogger(__name__)


def start_from_word_vectors(model: PreTrainedModel, words: Mapping[str, int], path: str | os.PathLike) -> float:
    """Put word vectors into a new model's embeddings, and say in the log how many words had one.

    A word that the file lacks keeps what the model drew for it, uniform in `±initializer_range`; so do the special
    tokens. The embeddings go on learning.

    Args:
        model: Newly made.
        words: The row of each word in its embeddings.
        path: Text file as GloVe has it.

    Returns:
        The share of the words that the file has.

    Raises:
        InputError: The vectors are not as wide as the embeddings, or the file has none of the words.
    """
    vectors = load_word_vectors(path, words)
    if not vectors.key_to_index:
        raise InputError(f"`embeddings`: {path} has none of the {len(words)} words of the vocabulary")
    table = model.get_input_embeddings().weight
    if vectors.vectors.shape[1] != table.shape[1]:
        raise InputError(
            f"`embeddings`: the vectors in {path} have {vectors.vectors.shape[1]} numbers; set `embedding_size` to "
            f"that, not to {table.shape[1]}"
        )
    rows = torch.tensor([words[word] for word in vectors.key_to_index], device=table.device)
    with torch.no_grad():
        table[rows] = torch.from_numpy(vectors.vectors).to(table)
    coverage = len(rows) / len(words)
    logger.warning("%s has vectors for %d of %d words (%.1f%%)", path, len(rows), len(words), 100 * coverage)
    return coverage
