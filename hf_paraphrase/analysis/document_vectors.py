"""Document vectors of autoencoders: nearest neighbours and interpolation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import cast

import torch
from transformers import PreTrainedTokenizerBase

from ..common.errors import InputError
from ..generation.loading import load_paraphraser
from ..models.hierarchical_autoencoder.modeling_hierarchical_autoencoder import (
    HierarchicalAutoencoderForConditionalGeneration,
)
from ..models.layers.portable import can


def load_autoencoder(
    path: str | os.PathLike, trust_remote_code: bool = False
) -> tuple[HierarchicalAutoencoderForConditionalGeneration, PreTrainedTokenizerBase]:
    """Load a hierarchical autoencoder and its tokenizer from a folder or Hub repository; raises InputError for a model
    without vectors of documents, FileNotFoundError for none."""
    model, tokenizer = load_paraphraser(path, trust_remote_code=trust_remote_code)
    if not can(model.config, "rewrites_documents"):
        raise InputError(
            f"{path} is a {model.config.model_type}; only a hierarchical_autoencoder has vectors of documents"
        )
    return cast(HierarchicalAutoencoderForConditionalGeneration, model), tokenizer


@torch.inference_mode()
def embed_documents(
    model: HierarchicalAutoencoderForConditionalGeneration,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    batch_size: int = 32,
) -> torch.Tensor:
    """Compute e_D of documents, a sentence a line or ordinary text: h of the top layer behind the whole document,
    `(texts, hidden_size)`, on the CPU (Li et al. 2015, section 3.3)."""
    vectors = []
    for start in range(0, len(texts), batch_size):
        inputs = tokenizer(
            list(texts[start : start + batch_size]), padding=True, return_tensors="pt", verbose=False
        ).to(model.device)
        embeddings = model.model.document_embeddings(inputs["input_ids"], inputs["attention_mask"])
        vectors.append(embeddings[:, 0, -1].float().cpu())
    return torch.cat(vectors)


def nearest_documents(vectors: torch.Tensor, k: int) -> list[list[tuple[int, float]]]:
    """Find the k nearest others of each document: their rows and cosines, the nearest first."""
    directions = torch.nn.functional.normalize(vectors, dim=1)
    cosines = (directions @ directions.t()).fill_diagonal_(-torch.inf)
    best = cosines.topk(min(k, len(vectors) - 1))
    return [list(zip(*row, strict=True)) for row in zip(best.indices.tolist(), best.values.tolist(), strict=True)]


@torch.inference_mode()
def interpolate_documents(
    model: HierarchicalAutoencoderForConditionalGeneration,
    tokenizer: PreTrainedTokenizerBase,
    first: str,
    second: str,
    steps: int = 5,
) -> list[str]:
    """Write the documents of the vectors on a straight line from one document's e_D to another's, all layers of it.

    Args:
        model: The autoencoder, without attention: with attention, the decoder sees more than the vector.
        tokenizer: Its tokenizer.
        first: Where the way begins; a sentence a line, or ordinary text.
        second: Where it ends.
        steps: Number of texts to write, including both ends.

    Raises:
        InputError: The model attends to its source.
    """
    if model.config.attention:
        raise InputError("between two documents there are no sentences to attend to: use a model without attention")
    inputs = tokenizer([first, second], padding=True, return_tensors="pt", verbose=False).to(model.device)
    ends = model.model.encoder(**inputs)
    shares = torch.linspace(0, 1, steps, device=model.device)[:, None, None]
    for name in ("final_hidden", "final_cell"):
        ends[name] = torch.lerp(ends[name][:1], ends[name][1:], shares)
    # Nobody looks at them any more, but `generate()` counts rows by them.
    for name in ends.keys() - {"final_hidden", "final_cell"}:
        ends[name] = ends[name][:1].repeat_interleave(steps, dim=0)
    limit = int(1.5 * int(inputs["attention_mask"].sum(dim=1).max()))
    written = model.generate(encoder_outputs=ends, max_new_tokens=limit)
    return [text.strip() for text in tokenizer.batch_decode(written, skip_special_tokens=True)]
