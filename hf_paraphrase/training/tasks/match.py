from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from accelerate.utils import gather_object
from datasets import ClassLabel, Dataset, DatasetDict
from torch import nn
from transformers import AutoModelForSequenceClassification, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from ...common.errors import InputError
from ...common.fields import option
from ...metrics.classification.scoring import classification
from ...metrics.ranking.scoring import ranking
from ...models.coupled_lstm.configuration_coupled_lstm import CoupledLstmConfig
from ...models.layers.precision import at_least_single
from ...models.layers.sentence_pair import SentencePairConfig, max_margin_loss
from ...tokenization import train_tokenizer
from ...tokenization.word_vectors import load_word_vectors
from ..arguments import TrainingConfig
from ..batching import Batch, Collator, PairCollator, token_counts
from ..losses import Sums, Validation
from .base import Task, TaskData, encode_rows

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MatchConfig(TrainingConfig):
    """`TrainingConfig` with pretrained vectors, negative sampling and the criterion for the best checkpoint.

    Raises:
        InputError: As `TrainingConfig` does, or for fields that exclude each other.
    """

    task: str = option("What is learnt: `match`, to label or to rank pairs.", "match")
    embeddings: str | None = option(
        "Word vectors from which the model's embeddings start: text such as GloVe's, or word2vec's `.bin`.", None
    )
    freeze_embeddings: bool = option("Leave the embeddings of `embeddings` or `pretrained` as they are.", False)
    num_negatives: int | None = option("Wrong candidates of a query, drawn every epoch; null: all.", None, least=1)
    metric_for_best_model: Literal["loss", "accuracy", "max_f1", "precision_at_1", "mrr", "map"] = option(
        "What the best checkpoint has the most of in validation, or least of: loss.", "loss"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.embeddings is not None and self.pretrained is not None:
            raise InputError(
                "`embeddings` and `pretrained` exclude each other: a checkpoint has embeddings of its own"
            )


class MatchTask(Task):
    """Label pairs of sentences, by cross-entropy, or rank the candidates of a query, by max-margin loss.

    Which of the two, the corpus says: it has the columns `sentence1`, `sentence2` and `label`, or `query`,
    `candidates` and `label` (the place of the right one), and perhaps `relevance` (1 for all that are right). The loss
    is a mean over pairs, or over queries and for each query over its right and wrong candidates (Liu et al. 2016,
    section 5).
    """

    config_class = MatchConfig
    training: MatchConfig
    auto_class = AutoModelForSequenceClassification
    train_tokenizer = staticmethod(partial(train_tokenizer, sentence_pairs=True))

    def columns_of(self, rows: Dataset) -> tuple[str, ...]:
        if "candidates" in rows.column_names:
            return ("query", "candidates", "relevance" if "relevance" in rows.column_names else "label")
        return ("sentence1", "sentence2", "label")

    def _select(self, dataset: DatasetDict, split: str, limit: int | None) -> Dataset:
        rows = super()._select(dataset, split, limit)
        if "query" in rows.column_names:
            return rows
        label = rows.features["label"]
        if not isinstance(label, ClassLabel):
            raise InputError(f"split {split} of dataset {self.training.dataset}: label must be a ClassLabel")
        found = [label.names[number] for number in rows.unique("label")]
        if split == "train" and len(found) == 1:
            raise InputError(f"every pair that {self.training.dataset} has to train on is labelled {found[0]}")
        return rows

    def texts(self, rows: Dataset) -> Iterable[str]:
        if "query" in rows.column_names:
            yield from rows["query"]
            yield from (text for candidates in rows["candidates"] for text in candidates)
        else:
            yield from rows["sentence1"]
            yield from rows["sentence2"]

    def make_tokenizer(self, rows: Dataset, vocab_size: int) -> PreTrainedTokenizerBase:
        # They are read once there is a vocabulary, but a wrong name is reported at once. Resumed runs need none.
        if self.training.embeddings is not None and not Path(self.training.embeddings).is_file():
            raise FileNotFoundError(f"`embeddings`: there is no file {self.training.embeddings}")
        tokenizer = super().make_tokenizer(rows, vocab_size)
        if "token_type_ids" not in tokenizer.model_input_names:
            raise InputError(f"`tokenizer`: {self.training.tokenizer} gives no `token_type_ids`, which pairs need")
        tokenizer.model_max_length = self.training.max_source_length + self.training.max_target_length
        return tokenizer

    def encode_split(self, rows: Dataset, tokenizer: PreTrainedTokenizerBase) -> Dataset:
        unit, kept = "queries", []
        if "query" not in rows.column_names:
            # The labels are taken as they are, and with them their names.
            rows, unit, kept = rows.rename_column("label", "labels"), "pairs", ["labels"]
        limits = (self.training.max_source_length, self.training.max_target_length)
        return encode_rows(rows, _encode, unit, "they have no words", kept, tokenizer=tokenizer, limits=limits)

    def make_model(self, config: PreTrainedConfig, data: TaskData) -> PreTrainedModel:
        if names := _label_names(data.splits["train"]):
            config.id2label = dict(enumerate(names))
            config.label2id = {name: index for index, name in config.id2label.items()}
            config.problem_type = "single_label_classification"
        else:
            config.num_labels, cast(SentencePairConfig, config).problem_type = 1, "ranking"
        config.pad_token_id = data.tokenizer.pad_token_id
        if isinstance(config, CoupledLstmConfig):
            config.unk_token_id = data.tokenizer.unk_token_id
        model = super().make_model(config, data)
        if self.training.embeddings is not None:
            start_from_word_vectors(model, data.tokenizer.get_vocab(), self.training.embeddings)
        elif self.training.freeze_embeddings and self.training.pretrained is None:
            logger.warning("`freeze_embeddings` without `embeddings`: the words stay as they were drawn at random")
        return model

    def prepare_model(self, model: PreTrainedModel, data: TaskData) -> None:
        if self.training.freeze_embeddings:
            model.get_input_embeddings().requires_grad_(False)

    def lengths(self, encoded: Dataset) -> tuple[np.ndarray, np.ndarray]:
        if _label_names(encoded):
            return token_counts(encoded, "input_ids"), token_counts(encoded, "pair_input_ids")
        longest = [max(map(len, candidates)) for candidates in encoded["pair_input_ids"]]
        return token_counts(encoded, "input_ids"), np.array(longest)

    def counts(self, encoded: Dataset) -> np.ndarray:
        return np.ones(len(encoded), dtype=np.int64)

    def features(self, encoded: Dataset, rows: Sequence[int], epoch: int | None) -> list[dict[str, Any]]:
        """The rows; of queries one right candidate, and some wrong ones where the recipe says how many."""
        features = super().features(encoded, rows, epoch)
        if _label_names(encoded) or self.training.num_negatives is None or epoch is None:
            return features
        drawn = []
        for feature, row in zip(features, rows, strict=True):
            random, labels = np.random.default_rng((self.training.seed, epoch, row)), np.array(feature["labels"])
            right, wrong = (random.permutation(np.flatnonzero(labels == label)) for label in (1, 0))
            chosen = [*right[:1], *wrong[: self.training.num_negatives]]
            candidates = [feature["pair_input_ids"][place] for place in chosen]
            drawn.append(feature | {"pair_input_ids": candidates, "labels": labels[chosen].tolist()})
        return drawn

    def make_collator(self, tokenizer: PreTrainedTokenizerBase) -> Collator:
        return partial(collate, PairCollator(tokenizer.pad_token_id))

    def loss_sums(self, model: nn.Module, batch: Batch, data: TaskData) -> Sums:
        loss, _ = _run(model, batch)
        return loss, loss.detach()

    def validate(self, data: TaskData, validation: Validation) -> dict[str, float] | None:
        outputs: list[tuple[list, list]] = []
        has_names = _label_names(data.splits["train"]) is not None

        def loss_sums(model: nn.Module, batch: Batch) -> Sums:
            loss, logits = _run(model, batch)
            if has_names:
                outputs.extend(zip(logits.float().tolist(), batch["labels"].tolist(), strict=True))
            else:
                sizes = batch["group_ids"].bincount().tolist()
                parts = (logits.float().squeeze(-1).split(sizes), batch["labels"].int().split(sizes))
                outputs.extend((scores.tolist(), labels.tolist()) for scores, labels in zip(*parts, strict=True))
            return loss, loss

        loss = validation.mean_loss(loss_sums)
        if loss is None:
            return None
        logits, labels = zip(*gather_object(outputs), strict=True)
        if not has_names:
            measured = ranking(logits, labels)
            return {"loss": loss, **{name: measured[name] for name in ("precision_at_1", "mrr", "map")}}
        probabilities = torch.tensor(logits).softmax(-1)
        if probabilities.shape[1] > 2:
            return {"loss": loss, **classification(probabilities.argmax(-1).tolist(), labels)}
        return {"loss": loss, **classification(probabilities[:, 1].tolist(), labels, threshold=0.5)}

    def cost(self, scores: dict[str, float]) -> float:
        name = self.training.metric_for_best_model
        if name not in scores:
            raise InputError(f"`metric_for_best_model: {name}` is not measured here; there are: {', '.join(scores)}")
        return scores["loss"] if name == "loss" else -scores[name]


def _label_names(encoded: Dataset) -> list[str] | None:
    """The column of the labels of encoded pairs; None of queries, whose candidates are right or wrong."""
    labels = encoded.features["labels"]
    return labels.names if isinstance(labels, ClassLabel) else None


def _run(model: nn.Module, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of a batch, summed over its pairs or queries, and the logits."""
    if "group_ids" not in batch:
        outputs = model(**batch)
        return outputs.loss * len(batch["labels"]), outputs.logits
    inputs = {name: tensor for name, tensor in batch.items() if name not in ("labels", "group_ids")}
    logits = model(**inputs).logits
    sizes = batch["group_ids"].bincount().tolist()
    queries = zip(at_least_single(logits).squeeze(-1).split(sizes), batch["labels"].split(sizes), strict=True)
    return torch.stack([max_margin_loss(scores, labels) for scores, labels in queries]).sum(), logits


def collate(collator: PairCollator, features: Sequence[dict[str, Any]]) -> Batch:
    """Make tensors of pairs, or of queries and their candidates, which take consecutive rows.

    The latter, of which a row has several `pair_input_ids`, get `group_ids` too, the number of the query of each.
    """
    labels, extra = [feature["labels"] for feature in features], {}
    pairs = [(feature["input_ids"], feature["pair_input_ids"]) for feature in features]
    if isinstance(labels[0], list):
        sizes = torch.tensor([len(candidates) for _, candidates in pairs])
        extra = {"group_ids": torch.arange(len(features)).repeat_interleave(sizes)}
        pairs = [(query, candidate) for query, candidates in pairs for candidate in candidates]
        labels = [float(label) for group in labels for label in group]
    batch = collator([{"input_ids": first, "pair_input_ids": second} for first, second in pairs])
    return {**batch, "labels": torch.tensor(labels), **extra}


def encode_texts(
    tokenizer: PreTrainedTokenizerBase, first: Sequence[str], second: Sequence[str], limits: tuple[int, int]
) -> tuple[list[list[int]], list[list[int]]]:
    """Tokenise pairs as the tokenizer makes one sequence of two texts, and take that apart again.

    It must give `token_type_ids`. A text of more tokens than its limit is cut before its end token.
    """
    encoded = tokenizer(list(first), list(second), truncation=False, verbose=False)
    sides = []
    for side, limit in enumerate(limits):
        rows = (
            [token for token, kind in zip(ids, kinds, strict=True) if kind == side]
            for ids, kinds in zip(encoded["input_ids"], encoded["token_type_ids"], strict=True)
        )
        sides.append([ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]] for ids in rows])
    return sides[0], sides[1]


def _encode(columns: dict[str, list], tokenizer: PreTrainedTokenizerBase, limits: tuple[int, int]) -> dict[str, list]:
    if "query" not in columns:
        first, second = encode_texts(tokenizer, columns["sentence1"], columns["sentence2"], limits)
        return {"input_ids": first, "pair_input_ids": second}
    candidates = columns["candidates"]
    repeated = [query for query, texts in zip(columns["query"], candidates, strict=True) for _ in texts]
    sides = encode_texts(tokenizer, repeated, [text for texts in candidates for text in texts], limits)
    queries, answers = ([list(islice(ids, len(texts))) for texts in candidates] for ids in map(iter, sides))
    if "relevance" in columns:
        labels = columns["relevance"]
    else:
        right = zip(candidates, columns["label"], strict=True)
        labels = [[int(place == label) for place in range(len(texts))] for texts, label in right]
    return {"input_ids": [query for query, *_ in queries], "pair_input_ids": answers, "labels": labels}


def start_from_word_vectors(model: PreTrainedModel, words: Mapping[str, int], path: str | os.PathLike) -> float:
    """Put word vectors into a new model's embeddings; return, and say in the log, the share of words that had one.

    A word that the file lacks, or a special token, is redrawn, from a normal distribution with the standard
    deviation of the numbers that were read: those that a model draws are a fraction of GloVe's, beside which a word
    without a vector would be next to nothing. Padding stays zero.

    Args:
        words: The row of each word in its embeddings.
        path: A file as `load_word_vectors` takes it.

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
