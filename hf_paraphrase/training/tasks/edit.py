from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from datasets import Dataset, DatasetDict
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from ...common.errors import InputError
from ...common.fields import option
from ...models.layers.portable import can
from ...retrieval import ParaphraseRetriever
from ..arguments import ParaphraseConfig
from ..batching import Batch, CopyCollator, LengthBatches, PairCollator
from ..losses import Validation
from ..mixture import first_rows
from .base import TaskData
from .paraphrase import ParaphraseTask

logger = logging.getLogger(__name__)

# Pairs looked at for each neighbour that is wanted, where those with a sentence of the example do not count.
CANDIDATES_A_NEIGHBOR = 8
# Rows of the validation split that tell whether the pair is used; they are scored three times.
COMPARED_ROWS = 1000


@dataclass(frozen=True)
class EditData(TaskData):
    """As `TaskData`, with the memory of the train split's pairs."""

    retriever: ParaphraseRetriever


@dataclass(frozen=True, kw_only=True)
class EditConfig(ParaphraseConfig):
    """As `ParaphraseConfig`, with the retriever and the pairs that an example is trained with."""

    task: str = option("What is learnt: `edit`, to write as a like pair was edited.", "edit")
    retriever_encoder: str = option(
        "What compares sources: a folder or Hub repository of sentence vectors, or `jaccard`.", "jaccard"
    )
    retriever_index: str = option(
        "How vectors are searched: `auto`, `ivf_pq` or `ivf_pq_refine` for tens of millions, or as faiss names it.",
        "auto",
    )
    retriever_compare: Literal["source", "pair"] = option(
        "What of a pair is to be like a source: its own `source`, or the whole `pair`.", "source"
    )
    num_neighbors: int = option("K: nearest pairs of an example, one of which is drawn at each step.", 1, least=1)
    self_pair_share: float = option(
        "K' / (K + K'): the share of the draws that give the example itself; below 1.", 0.0, least=0, below=1
    )
    self_pair_annealing_epochs: int | None = option(
        "Epochs in which that share falls to 0, by equal steps; null: it stays.", None, least=1
    )
    exclude_shared_sentences: bool = option(
        "Leave out neighbours that have a sentence of the example, as where a test split has none.", False
    )
    copy_unknown_words: bool = option("Let the model copy words outside the vocabulary from the pair.", False)

    def __post_init__(self):
        super().__post_init__()
        if self.retriever_encoder == "jaccard" and self.retriever_index != "auto":
            raise InputError("`retriever_index` indexes vectors: name their encoder in `retriever_encoder`")
        if self.copy_unknown_words and self.objective == "rbm":
            raise InputError(
                "`copy_unknown_words` must be false with `objective: rbm`: a reward reads known words only"
            )


class EditTask(ParaphraseTask):
    """Write y from x and a pair (p, q) whose p is like x (Kazemnejad et al. 2020, sections 3.1 and 3.3).

    Each epoch draws one pair for each example from N'(x), its K nearest pairs and K' times (x, y) itself
    (appendix A.1); an example of which no neighbour is left has (x, y) alone. The neighbours are of the train split.
    K' is given by its share of the draws, `self_pair_share`: the paper's K' < K would leave none where K is 1, as in
    its main results, and a model that never sees (x, y) learns to ignore the pair. `self_pair_annealing_epochs`, which
    is ours, lets it fall to 0: the last epochs are then of pairs as there are where none has the answer.

    Validation takes the nearest. On its first rows it also compares the loss with the nearest pair, a random training
    pair and the row itself, which shows how much the pair is used.
    """

    config_class = EditConfig
    can_stream = False  # neighbours are those of the whole split
    nested = {"retrieved_source_ids": ("retrieved_sources", 0), "retrieved_target_ids": ("retrieved_targets", 1)}
    training: EditConfig

    def make_model(self, config: PreTrainedConfig, data: TaskData) -> PreTrainedModel:
        model = super().make_model(config, data)
        if not can(config, "reads_pairs"):
            raise InputError(f"`model_type: {config.model_type}` reads no retrieved pairs; set `task: paraphrase`")
        if self.training.copy_unknown_words and not can(config, "copies_words"):
            raise InputError("`copy_unknown_words` is for a model that copies: set `copy` in its configuration")
        if self.training.label_smoothing_factor and can(config, "copies_words"):
            raise InputError(
                "`label_smoothing_factor` must be 0 for a model that copies: it leaves most words at nearly 0"
            )
        return model

    def encode(self, rows: DatasetDict, tokenizer: PreTrainedTokenizerBase) -> EditData:
        rows = DatasetDict({split: _with_text(pairs) for split, pairs in rows.items()})
        retriever = ParaphraseRetriever.from_pairs(
            rows["train"],
            encoder=self.training.retriever_encoder,
            index=self.training.retriever_index,
            compare=self.training.retriever_compare,
            trust_remote_code=self.trust_remote_code,
        )
        splits = {
            split: self.encode_split(self._add_neighbors(pairs, retriever), tokenizer) for split, pairs in rows.items()
        }
        return EditData(DatasetDict(splits), tokenizer, retriever)

    def _add_neighbors(self, pairs: Dataset, retriever: ParaphraseRetriever) -> Dataset:
        k = self.training.num_neighbors
        if not self.training.exclude_shared_sentences:
            return retriever.neighbors(pairs, k)
        candidates = retriever.neighbors(pairs, k * CANDIDATES_A_NEIGHBOR)
        return candidates.map(_drop_shared, fn_kwargs={"k": k}, desc="Leaving out shared sentences")

    def save_assets(self, data: EditData, output_dir: Path) -> None:
        data.retriever.save_pretrained(output_dir / "retriever")

    def examples(self, encoded: Dataset, rows: Sequence[int], epoch: int | None) -> list[dict[str, Any]]:
        # Where in its N'(x) each example's pair stands, as a part of 1; the same for all parts of a run.
        places = np.zeros(len(encoded))
        if epoch is not None:
            # The third number sets these draws apart from those that order the batches.
            places = np.random.default_rng((self.training.seed, epoch, 1)).random(len(encoded))
        last, share = self.training.self_pair_annealing_epochs, self.training.self_pair_share
        share *= 0.0 if epoch is None else max(0.0, 1 - epoch / last) if last else 1.0
        examples = zip(super().examples(encoded, rows, epoch), places[list(rows)], strict=True)
        return [_with_pair(example, place, share) for example, place in examples]

    def make_collator(self, tokenizer: PreTrainedTokenizerBase) -> PairCollator:
        # Words of x are read, and not copied.
        pair = ("retrieved_source_ids", "retrieved_target_ids")
        return CopyCollator(tokenizer, pair) if self.training.copy_unknown_words else super().make_collator(tokenizer)

    def validate(self, data: TaskData, validation: Validation) -> dict[str, float] | None:
        scores = super().validate(data, validation)
        if scores is None:
            return None
        rows = data.splits["validation"]
        rows = rows.select(first_rows(rows, COMPARED_ROWS))
        limits = self.training.train_batch_size, self.training.max_tokens_per_batch
        batches, collate = LengthBatches(*self.lengths(rows), *limits).in_order(), self.make_collator(data.tokenizer)
        for name, examples in self._pairs_compared(rows, data.splits["train"]).items():

            def make_batch(rows: Sequence[int], examples: Sequence[dict[str, Any]] = examples) -> Batch:
                return collate([examples[row] for row in rows])

            loss = validation.of(batches, make_batch, validation.counts).mean_loss(partial(self.loss_sums, data=data))
            if loss is None:
                return None
            scores[f"loss_{name}_pair"] = loss
        return scores

    def _pairs_compared(self, rows: Dataset, train: Dataset) -> dict[str, list[dict[str, Any]]]:
        """Rows of the validation split, each with its nearest pair, a random one of the train split and itself."""
        examples = self.features(rows, range(len(rows)), None)
        others = np.random.default_rng((self.training.seed, 0, 2)).integers(len(train), size=len(rows)).tolist()
        return {
            "nearest": examples,
            "random": [_given(row, pair) for row, pair in zip(examples, train.__getitems__(others), strict=True)],
            "own": [_given(*both) for both in zip(examples, rows.to_list(), strict=True)],
        }


def _with_text(pairs: Dataset) -> Dataset:
    """Drop rows that a memory of pairs does not accept."""
    kept = pairs.filter(lambda row: bool(row["source"].strip() and row["target"].strip()))
    if not len(kept):
        raise InputError(f"none of the {len(pairs)} pairs has text on both sides")
    if len(kept) < len(pairs):
        logger.warning("left out %d of %d pairs: one side is blank", len(pairs) - len(kept), len(pairs))
    return kept


def _with_pair(example: dict[str, Any], place: float, share_of_self: float) -> dict[str, Any]:
    """An example with the pair at a place of its N'(x)."""
    sources, targets = example["retrieved_source_ids"], example["retrieved_target_ids"]
    # The neighbours share what the example itself leaves of the draws, which is the last part.
    number = int(place / (1 - share_of_self) * len(sources))
    if number < len(sources):
        return example | {"retrieved_source_ids": sources[number], "retrieved_target_ids": targets[number]}
    return _given(example, example)


def _given(example: dict[str, Any], pair: dict[str, Any]) -> dict[str, Any]:
    """An example with another, or itself, as its retrieved pair."""
    return example | {"retrieved_source_ids": pair["input_ids"], "retrieved_target_ids": pair["labels"]}


def _drop_shared(row: dict[str, Any], k: int) -> dict[str, list]:
    own = {row["source"].casefold(), row["target"].casefold()}
    pairs = zip(row["retrieved_sources"], row["retrieved_targets"], strict=True)
    kept = [pair for pair in pairs if own.isdisjoint(map(str.casefold, pair))][:k]
    return {"retrieved_sources": [p for p, _ in kept], "retrieved_targets": [q for _, q in kept]}
