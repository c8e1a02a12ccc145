from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any, ClassVar

import numpy as np
import torch
from accelerate.utils import extract_model_from_parallel
from datasets import Dataset, DatasetDict, concatenate_datasets
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from ...common.errors import InputError
from ...common.fields import option
from ...models.dnpg.levels import PHRASE, SENTENCE
from ...models.layers.portable import can
from ...models.layers.precision import at_least_single
from ..arguments import ParaphraseConfig
from ..batching import CopyCollator, PairCollator
from .base import NoRowsLeft, TaskData
from .paraphrase import ParaphraseTask

LEVEL_LABELS = ("source_level_labels", "target_level_labels")
# Precedes every sentence, for unaligned words.
NULL = -1


@dataclass(frozen=True, kw_only=True)
class DecomposeConfig(ParaphraseConfig):
    """As `ParaphraseConfig`, with the weak labels of the words' levels."""

    loss_follows_duration: ClassVar[bool] = True

    task: str = option("What is learnt: `decompose`, to write by levels of phrase and sentence.", "decompose")
    weak_label_weight: float = option("Weight of the weak labels' loss at the start.", 1.0, least=0)
    weak_label_share: float = option("Part of all steps in which that falls linearly to 0.", 0.5, above=0, most=1)
    max_phrase_frequency: float = option(
        "A word that more sentences than this share have is labelled as the template's.", 0.02, above=0, most=1
    )
    min_link_strength: float = option("Least product of both directions' link probabilities.", 0.05, above=0, most=1)
    copy_unknown_words: bool = option("Let the model copy words outside the vocabulary from its source.", False)

    def __post_init__(self):
        super().__post_init__()
        if self.objective == "rbm":
            raise InputError("`objective: rbm` is for `task: paraphrase`, not `decompose`")
        if self.label_smoothing_factor:
            raise InputError("`label_smoothing_factor` must be 0 for a model that mixes levels and copies")


class DecomposeTask(ParaphraseTask):
    """Write a target from its source by two levels, phrases and sentence (Li et al. 2019, section 2.5).

    From nothing, separator and aggregator do not find levels. So both also learn weak labels by cross-entropy, with a
    weight that falls in a line to 0: a word is a phrase's where alignment links it, one to one, to a word of the other
    side, or where it stands there too. That much a summary of the paper gives. Our reading adds that a link must be
    sure, and the word one of phrases: templates are general and phrases diverse, as the paper has it, but alignment
    also links the "to" of one template to that of another. So it must be infrequent, and linked or copied in at least
    half of the places where it stands.
    """

    config_class = DecomposeConfig
    can_stream = False  # words are aligned over the whole split
    training: DecomposeConfig

    def make_model(self, config: PreTrainedConfig, data: TaskData) -> PreTrainedModel:
        if not can(config, "has_levels"):
            raise InputError(f"`model_type: {config.model_type}` knows no levels; set `task: paraphrase`")
        if self.training.copy_unknown_words and not can(config, "copies_words"):
            raise InputError("`copy_unknown_words` is for a model that copies: set `copy` in its configuration")
        return super().make_model(config, data)

    def encode(self, rows: DatasetDict, tokenizer: PreTrainedTokenizerBase) -> TaskData:
        data = super().encode(rows, tokenizer)
        data.splits["train"] = self._add_labels(data.splits["train"], tokenizer)
        return data

    def _add_labels(self, encoded: Dataset, tokenizer: PreTrainedTokenizerBase) -> Dataset:
        labels = label_levels(
            encoded["input_ids"],
            encoded["labels"],
            set(tokenizer.all_special_ids) - {tokenizer.unk_token_id},
            len(tokenizer),
            self.training.max_phrase_frequency,
            self.training.min_link_strength,
        )
        for name, column in zip(LEVEL_LABELS, labels, strict=True):
            encoded = encoded.add_column(name, column)
        return encoded

    def features(self, encoded: Dataset, rows: Sequence[int], epoch: int | None) -> list[dict[str, Any]]:
        """The rows; a control token, which is not a word, has no label."""
        name = LEVEL_LABELS[0]
        examples = super().features(encoded, rows, epoch)
        return [
            example | {name: [-100] * (len(example["input_ids"]) - len(example[name])) + example[name]}
            if name in example
            else example
            for example in examples
        ]

    def make_collator(self, tokenizer: PreTrainedTokenizerBase) -> PairCollator:
        return CopyCollator(tokenizer, ("input_ids",))

    def prepare_batch(self, batch: dict[str, Any], step: int, total_steps: int) -> dict[str, Any]:
        falls = 1 - step / (self.training.weak_label_share * total_steps)
        return batch | {"weak_label_weight": self.training.weak_label_weight * max(0.0, falls)}

    def loss_sums(self, model: nn.Module, batch: dict[str, Any], data: TaskData) -> tuple[torch.Tensor, torch.Tensor]:
        weight = batch.get("weak_label_weight")
        weak = [batch[name] for name in LEVEL_LABELS if name in batch]
        batch = {name: value for name, value in batch.items() if name not in (*LEVEL_LABELS, "weak_label_weight")}
        if not weight:
            return super().loss_sums(model, batch, data)
        outputs = model(**batch, output_levels=True)
        likelihood = outputs.loss * (batch["labels"] != -100).sum()
        logits = outputs.source_level_logits, outputs.target_level_logits
        cost = sum(
            nn.functional.cross_entropy(at_least_single(scores.flatten(0, 1)), labels.flatten(), reduction="sum")
            for scores, labels in zip(logits, weak, strict=True)
        )
        return likelihood + weight * cost, likelihood.detach()


def label_levels(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    special_ids: Collection[int],
    vocab_size: int,
    max_frequency: float,
    min_strength: float,
) -> tuple[list[list[int]], list[list[int]]]:
    """Label the words of pairs: phrase where they are linked surely, or copied, and are words of phrases.

    Those are infrequent, and so linked or copied in at least half of the places where they stand.

    Args:
        sources: Token ids.
        targets: Those of the other sides.
        special_ids: Tokens that are not words: sentence in targets, where the aggregator has to choose a level for
            them, and no label (-100) in sources.
        vocab_size: Words from there on are outside the vocabulary, and phrases' however frequent, since they can only
            be copied.
        max_frequency: Largest share of the sentences of both sides that have a word of a phrase.

    Returns:
        A level, or -100, for every token of each source and of each target.
    """
    rows, count = [*sources, *targets], len(sources)
    words = [[id for id in row if id not in special_ids] for row in rows]
    strengths_of_rows = chain.from_iterable(align_words(words[:count], words[count:]))

    def find_linked(row: Sequence[int], other: Sequence[int], strengths: np.ndarray) -> list[bool]:
        """Which tokens of a row are confidently aligned words, or occur in the other row too."""
        is_sure, copied = iter((strengths >= min_strength).tolist()), set(other)
        return [id not in special_ids and (next(is_sure) or id in copied) for id in row]

    linked = list(map(find_linked, rows, [*targets, *sources], strengths_of_rows))
    sentences = Counter(word for row in words for word in set(row))
    places = Counter(word for row in words for word in row)
    found = Counter(id for row in map(compress, rows, linked) for id in row)
    limit = max_frequency * len(rows)
    own = {id for id in found if id >= vocab_size or (sentences[id] <= limit and 2 * found[id] >= places[id])}
    labels = [
        [PHRASE if is_linked and id in own else SENTENCE for id, is_linked in zip(row, marks, strict=True)]
        for row, marks in zip(rows, linked, strict=True)
    ]
    of_sources = [
        [-100 if id in special_ids else level for id, level in zip(row, levels, strict=True)]
        for row, levels in zip(rows[:count], labels[:count], strict=True)
    ]
    return of_sources, labels[count:]


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
        splits = {
            split: self.encode_split(texts.add_column("target", texts["source"]), tokenizer)
            for split, texts in rows.items()
        }
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


def align_words(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], iterations: int = 5
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Align the words of each source and target one to one.

    `t(f | e)` is learnt by `iterations` of expectation and maximisation, once for targets given sources and once for
    sources given targets; each word then chooses the likeliest of the other side or no word, the first of those that
    are equally likely, and the choices that are mutual stay.

    Args:
        sources: Word ids, at least 0; a list for each pair.
        targets: Those of the other sides.
        iterations: Of each direction; at least 1.

    Returns:
        For each source and for each target, `(words,)`: how sure the link of each word is, the product of both
        directions' probabilities of it; 0 for a word without a link.

    Source: Brown et al. 1993, The Mathematics of Statistical Machine Translation, section 4.1 (model 1); Och and Ney
    2003, A Systematic Comparison of Various Statistical Alignment Models, section 2.4 (the intersection).
    """
    of_sources, of_targets = [], []
    forward, backward = choose_words(sources, targets, iterations), choose_words(targets, sources, iterations)
    for ahead, sure, back, sure_back in zip(*forward, *backward, strict=True):
        # `ahead` has a place in the source for each word of the target.
        is_mutual = (ahead >= 0) & (np.append(back, NULL)[ahead] == np.arange(len(ahead)))
        linked = ahead[is_mutual]
        of_sources.append(np.zeros(len(back)))
        of_targets.append(np.zeros(len(ahead)))
        of_sources[-1][linked] = of_targets[-1][is_mutual] = sure[is_mutual] * sure_back[linked]
    return of_sources, of_targets


def choose_words(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], iterations: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """For each word of each target, the place of the source's word that it answers to, or -1, and `t(f | e)` of it."""
    pairs = WordPairs(sources, targets)
    table = pairs.learn(iterations)
    likelihoods = table[pairs.entries]
    best = np.maximum.reduceat(likelihoods, pairs.starts)
    # The first of the likeliest words, and no word only where that is likelier than all of them.
    none = np.iinfo(np.int64).max
    is_best = (likelihoods == best[pairs.groups]) & (pairs.places != NULL)
    chosen = np.minimum.reduceat(np.where(is_best, pairs.places, none), pairs.starts)
    chosen[chosen == none] = NULL
    ends = np.cumsum([len(target) for target in targets])[:-1]
    return np.split(chosen, ends), np.split(np.where(chosen == NULL, 0.0, best), ends)


class WordPairs:
    """All pairs of a target word with a source word or none, as a flat list, for IBM model 1.

    nltk's model, which tests compare this one with, loops in Python: one direction of 20,000 pairs of Quora took it
    14.6 s where this takes 0.93 s.

    Attributes:
        groups: Which word of all targets it is, ascending; group i begins at `starts[i]`.
        places: The place of the source's word in its sentence; -1 for none.
        entries: The row of the table of `t` that it reads.
    """

    def __init__(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]):
        widths = np.array([len(source) + 1 for source in sources])
        heights = np.array([len(target) for target in targets])
        group_widths = np.repeat(widths, heights)
        self.starts = np.cumsum(group_widths) - group_widths
        self.groups = np.repeat(np.arange(len(group_widths)), group_widths)
        self.places = np.arange(group_widths.sum()) - self.starts[self.groups] - 1
        # Words are counted from 1 here, since 0 is not a word.
        words = np.concatenate([np.concatenate(([0], np.asarray(source, dtype=np.int64) + 1)) for source in sources])
        offsets = np.repeat(np.cumsum(widths) - widths, heights)
        given = words[offsets[self.groups] + self.places + 1]
        written = np.concatenate([np.asarray(target, dtype=np.int64) for target in targets])[self.groups]
        keys, self.entries = np.unique(given * (written.max() + 1) + written, return_inverse=True)
        self.given = keys // (written.max() + 1)

    def learn(self, iterations: int) -> np.ndarray:
        """Learn `t(f | e)` from a uniform start: for each entry of the table, a probability."""
        table = np.ones(len(self.given))
        for _ in range(iterations):
            likelihoods = table[self.entries]
            shares = likelihoods / np.add.reduceat(likelihoods, self.starts)[self.groups]
            counts = np.bincount(self.entries, shares, minlength=len(table))
            table = counts / np.bincount(self.given, counts)[self.given]
        return table
