"""The commands `hf-paraphrase retriever …`. What is heavy is imported inside the commands."""

from __future__ import annotations

import time
from pathlib import Path

from ..common.fields import option
from .corpus import ANY_CORPUS, CorpusOptions, pick_split
from .verbs import verb

__all__ = ["TrainRetriever"]


@verb("retriever train")
class TrainRetriever(CorpusOptions):
    """Train a sentence encoder for a retriever (RaE).

    \b
    hf-paraphrase retriever train --dataset quora --dataset-name clean --data-dir data/quora \\
        --output-dir runs/quora-encoder
    hf-paraphrase train --recipe rae-quora-small --data-dir data/quora --retriever-encoder runs/quora-encoder \\
        --output-dir runs/rae-quora-small

    The folder holds a model and a tokenizer, as `ParaphraseRetriever.from_pairs(pairs, encoder=…)` takes them. Printed
    is the part of the validation sources that are nearer to their own target than to any other. Needs
    sentence-transformers (the extra `retrieval`).
    """

    output_dir: Path = option("Where the encoder goes.")
    dataset: str = option(ANY_CORPUS, "quora")
    vocab_size: int = option("Vocabulary size, special tokens included.", 8000, least=5)
    max_length: int = option("Tokens of a sentence; longer ones are cut.", 24, least=2)
    hidden_size: int = option("Width of the vectors.", 128, least=1)
    num_layers: int = option("Transformer layers.", 1, least=0)
    num_train_epochs: float = option("Passes over the pairs.", 3.0)
    train_batch_size: int = option("Batch size, in pairs.", 256, least=2)
    learning_rate: float = option("Highest learning rate.", 2e-3)
    seed: int = option("Seed of weights and batches.", 42)

    def run(self) -> str:
        """Train, and say how well it does."""
        from ..retrieval.encoders import AutoModelEncoder
        from ..retrieval.training import measure_recall, train_encoder

        pairs = self.find_corpus().load()
        validation = pick_split(pairs, "validation")
        started = time.perf_counter()
        self.call(train_encoder, pairs=pick_split(pairs, "train"))
        seconds = time.perf_counter() - started
        recall = measure_recall(AutoModelEncoder(self.output_dir), validation)
        return f"{seconds:.0f} s; {100 * recall:.1f}% of {len(validation)} sources find their own target first"
