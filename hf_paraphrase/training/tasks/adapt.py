from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from accelerate.utils import extract_model_from_parallel
from datasets import Dataset, DatasetDict, concatenate_datasets
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ...common.fields import option
from ...errors import InputError
from ...models.dnpg.levels import PHRASE, SENTENCE
from .base import NoRowsLeft, TaskData
from .decompose import LEVEL_LABELS, DecomposeConfig, DecomposeTask

__all__ = ["AdaptConfig", "AdaptTask"]


@dataclass(frozen=True, kw_only=True)
class AdaptConfig(DecomposeConfig):
    """`DecomposeConfig` for a model trained on pairs of another domain."""

    task: str = option("What is learnt: `adapt`, to write the phrases of a domain that has no pairs.", "adapt")

    def __post_init__(self):
        super().__post_init__()
        if self.pretrained is None:
            raise InputError("`task: adapt` goes on from a model of another domain: name it in `pretrained`")


class AdaptTask(DecomposeTask):
    """Tune the phrase level on the texts of a domain, and keep the sentence level (Li et al. 2019).

    A summary of the paper gives so much: that templates serve every domain, so that the sentence level is kept, and
    that the phrase level learns from the target domain's text alone, without pairs. Our reading is the rest. Each text
    is written from itself, and the phrase level learns by its words of phrases alone: those that are infrequent, by
    the rule of the weak labels, for there is no other side to align with. The same labels set the words' levels in
    training, and go on teaching separator and aggregator with a weight that falls. Embeddings are kept with the
    sentence level, which reads and writes by them, and so is the vocabulary: words outside it are copied.

    The column `target` is not read.
    """

    config_class = AdaptConfig
    columns = ("source",)
    training: AdaptConfig

    def encode(self, rows: DatasetDict, tokenizer: PreTrainedTokenizerBase) -> TaskData:
        pairs = {split: texts.add_column("target", texts["source"]) for split, texts in rows.items()}
        splits = self._encode_splits(DatasetDict(pairs), tokenizer)
        # Counted together: a small split alone has no rare words.
        labelled = self._add_labels(concatenate_datasets([splits["train"], splits["validation"]]), tokenizer)
        has_phrase, first = self.counts(labelled) > 0, len(splits["train"])
        of_splits = {"train": has_phrase[:first].nonzero()[0], "validation": first + has_phrase[first:].nonzero()[0]}
        for split, numbers in of_splits.items():
            if not len(numbers):
                raise NoRowsLeft(f"no text of the split {split} has a word that is rarer than `max_phrase_frequency`")
        return TaskData(DatasetDict({split: labelled.select(rows) for split, rows in of_splits.items()}), tokenizer)

    def counts(self, encoded: Dataset) -> np.ndarray:
        return np.array([labels.count(PHRASE) for labels in encoded[LEVEL_LABELS[1]]])

    def prepare_model(self, model: PreTrainedModel, data: TaskData) -> None:
        super().prepare_model(model, data)
        encoder, decoder = model.get_encoder(), model.get_decoder()
        kept = (encoder.sentence_layers, decoder.sentence_layers, encoder.embed_tokens, model.lm_head)
        for module in kept:
            module.requires_grad_(False)

    def loss_sums(self, model: nn.Module, batch: dict[str, Any], data: TaskData) -> tuple[torch.Tensor, torch.Tensor]:
        of_sources, of_targets = (batch[name] for name in LEVEL_LABELS)
        # The decoder reads all words, also those whose cost does not count.
        bare = extract_model_from_parallel(model, keep_torch_compile=False)
        inputs, mask = bare.read_labels(batch["labels"], None)
        batch = batch | {
            "source_levels": of_sources.where(of_sources >= 0, SENTENCE),
            "decoder_input_ids": inputs,
            "decoder_attention_mask": mask,
            "labels": batch["labels"].masked_fill(of_targets == SENTENCE, -100),
        }
        return super().loss_sums(model, batch, data)
