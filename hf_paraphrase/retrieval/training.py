from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from datasets import Dataset
from transformers import BertConfig, BertModel

from ..common.files import write_directory
from ..common.installation import require
from ..tokenization import train_word_tokenizer
from .encoders import AutoModelEncoder

# Cosines are multiplied by it before the softmax: the default of sentence-transformers.
SCALE = 20.0


def train_encoder(
    pairs: Dataset,
    output_dir: str | os.PathLike,
    *,
    vocab_size: int = 8000,
    max_length: int = 24,
    hidden_size: int = 128,
    num_layers: int = 1,
    num_train_epochs: float = 3,
    train_batch_size: int = 256,
    learning_rate: float = 2e-3,
    seed: int = 42,
) -> None:
    """Train a sentence encoder from nothing on paraphrase pairs, to be the retriever's `encoder`.

    What RaE retrieves by has to be like for the task: two sources are, where their targets are (Hashimoto et al.
    2018). They learn vectors of sources from which a decoder writes the targets; here, which is the same bound on
    what source and target share without a decoder, the vectors of a source and its target are to be nearer than those
    of the source and all other targets of the batch, and the other way round (sentence-transformers'
    `MultipleNegativesRankingLoss`). One encoder serves both sides, a small BERT whose states are averaged.

    Args:
        pairs: Columns `source` and `target`.
        output_dir: Gets the model and its tokenizer of words, as `AutoModel` and `AutoTokenizer` load them.
        vocab_size: Maximum number of words, special tokens included.
        max_length: Tokens of a sentence; longer ones are cut.
        hidden_size: Width of the vectors; a head attends for each 32 of it.
        num_layers: Transformer layers.
        num_train_epochs: Passes over the pairs.
        train_batch_size: Batch size, in pairs.
        learning_rate: The highest; it rises over the first tenth of the steps and falls to 0.
        seed: Seed of weights and batches.

    Raises:
        InputError: sentence-transformers is not installed.
    """
    require("sentence_transformers", "retrieval", "training an encoder", package="sentence-transformers")
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer import losses, modules

    tokenizer = train_word_tokenizer((text for side in ("source", "target") for text in pairs[side]), vocab_size)
    tokenizer.model_max_length = max_length
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=max(1, hidden_size // 32),
        intermediate_size=4 * hidden_size,
        max_position_embeddings=max_length,
        pad_token_id=tokenizer.pad_token_id,
    )
    with TemporaryDirectory() as folder:
        BertModel(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        transformer = modules.Transformer(folder)
        model = SentenceTransformer(modules=[transformer, modules.Pooling(hidden_size, pooling_mode="mean")])
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            num_train_epochs=num_train_epochs,
            per_device_train_batch_size=train_batch_size,
            learning_rate=learning_rate,
            warmup_steps=0.1,
            # A duplicate sentence would be a negative of itself.
            batch_sampler="no_duplicates",
            seed=seed,
            report_to="none",
            save_strategy="no",
        )
        directions = ("query_to_doc", "doc_to_query")
        loss = losses.MultipleNegativesRankingLoss(
            model, scale=SCALE, directions=directions, partition_mode="per_direction"
        )
        columns = pairs.select_columns(["source", "target"])
        SentenceTransformerTrainer(model, arguments, train_dataset=columns, loss=loss).train()

    def write(path: Path) -> None:
        transformer.auto_model.save_pretrained(path)
        tokenizer.save_pretrained(path)

    write_directory(Path(output_dir), write)


def measure_recall(encoder: AutoModelEncoder, pairs: Dataset) -> float:
    """The part of the sources that are nearer to their own target than to any other target of the pairs."""
    sources, targets = (torch.from_numpy(encoder(list(pairs[side]))) for side in ("source", "target"))
    nearest = (sources @ targets.T).argmax(dim=1)
    return (nearest == torch.arange(len(nearest))).float().mean().item()
