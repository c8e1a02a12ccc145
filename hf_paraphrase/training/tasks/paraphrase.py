from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import compress, islice
from typing import Any, ClassVar, cast

import numpy as np
from accelerate.utils import gather_object
from datasets import Dataset
from tokenizers import AddedToken
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from ...metrics.pinc.scoring import pinc
from ...models.text.encoded_inputs import OpenTokenizer, keep_prefix
from ..arguments import ParaphraseConfig
from ..batching import Batch
from ..losses import Reward, SelfCritical, Sums, Validation, load_reward
from .base import Seq2SeqTask, TaskData, encode_rows

# Column of encoded pairs that holds the id of each pair's control token.
CONTROL = "control"
# A model that learnt to differ should not copy unless it is asked to.
DEFAULT_STRENGTH = 0.5


class ControlLevels:
    """The levels of a recipe's `control_tokens: novelty`, and the token of each.

    Args:
        edges: The PINC at which each level except the first begins, from 0 to 1.

    Source: Bandel et al. 2022, Quality Controlled Paraphrase Generation.
    """

    def __init__(self, edges: Sequence[float], tokenizer: PreTrainedTokenizerBase):
        self.edges = list(edges)
        self.ids = cast(list[int], tokenizer.convert_tokens_to_ids(self.names(edges)))

    @staticmethod
    def names(edges: Sequence[float]) -> list[str]:
        """The tokens, from the nearest level to the freest."""
        return [f"<novelty-{level}>" for level in range(len(edges) + 1)]

    def measure(self, sources: Sequence[str], targets: Sequence[str]) -> list[int]:
        """The ids of the control tokens of pairs, by the PINC of target against source, ignoring case."""
        scores = pinc(targets, sources, lowercase=True).statistics["pinc"].rows[:, 0]
        return [self.ids[bisect_right(self.edges, score)] for score in scores.tolist()]

    def write_into(self, config: PreTrainedConfig) -> None:
        """Write into a model's config what `find_control` reads there."""
        config.control_tokens, config.control_edges = self.names(self.edges), self.edges
        if getattr(config, "default_strength", None) is None:
            config.default_strength = DEFAULT_STRENGTH


def add_tokens(tokenizer: PreTrainedTokenizerBase, names: Sequence[str]) -> PreTrainedTokenizerBase:
    """Add control tokens to a tokenizer, which reads their names in a text as text from now on."""
    tokenizer.add_tokens([AddedToken(name, special=True, normalized=False) for name in names], special_tokens=True)
    tokenizer.split_special_tokens = tokenizer.init_kwargs["split_special_tokens"] = True
    return tokenizer


@lru_cache(maxsize=1)
def draw_plain(count: int, share: float, seed: int, epoch: int) -> frozenset[int]:
    """The numbers of the rows that have no control token in an epoch; seed and epoch alone decide."""
    # The third number sets these draws apart from those that order the batches, and from other draws of an epoch.
    return frozenset(np.flatnonzero(np.random.default_rng((seed, epoch, 4)).random(count) < share).tolist())


class ParaphraseTask(Seq2SeqTask):
    """Write a target from its source, for any sequence-to-sequence model: by token cross-entropy, or by a reward.

    With `objective: rbm` (Li et al. 2018) validation measures the mean reward of greedy outputs too, and the best
    checkpoint is the one with the highest.
    """

    config_class = ParaphraseConfig
    columns: ClassVar[tuple[str, ...]] = ("source", "target")
    can_stream = True
    # Further columns to encode: of which column of lists of texts each is made, and whose limit it has, 0 for sources.
    nested: ClassVar[Mapping[str, tuple[str, int]]] = {}
    training: ParaphraseConfig

    def __init__(self, training: ParaphraseConfig, trust_remote_code: bool = False):
        super().__init__(training, trust_remote_code)
        # Loaded now: a wrong name should not show after the data are encoded.
        self.reward = load_reward(str(training.reward), trust_remote_code) if training.objective == "rbm" else None

    def texts(self, rows: Dataset) -> Iterable[str]:
        texts = (text for column in self.columns for text in rows[column])
        # In a group each sentence stands beside all others, which says nothing of how frequent its words are.
        return dict.fromkeys(texts) if self.training.drawn_by else texts

    def make_tokenizer(self, rows: Dataset, vocab_size: int) -> PreTrainedTokenizerBase:
        if not self.training.control_tokens:
            return super().make_tokenizer(rows, vocab_size)
        names = ControlLevels.names(self.training.control_edges)
        return add_tokens(super().make_tokenizer(rows, vocab_size - len(names)), names)

    def control_levels(self, tokenizer: PreTrainedTokenizerBase) -> ControlLevels | None:
        """What gives pairs their control tokens; None where the recipe asks for none."""
        return ControlLevels(self.training.control_edges, tokenizer) if self.training.control_tokens else None

    def make_model(self, config: PreTrainedConfig, data: TaskData) -> PreTrainedModel:
        model = super().make_model(config, data)
        table = cast(nn.Embedding, model.get_input_embeddings()).weight
        if self.training.control_tokens and len(table) < len(data.tokenizer):
            model.resize_token_embeddings(len(data.tokenizer))  # a pretrained model keeps its own vocabulary
        return model

    def prepare_model(self, model: PreTrainedModel, data: TaskData) -> None:
        super().prepare_model(model, data)
        keep_prefix(model.config, self.training.source_prefix)
        if levels := self.control_levels(data.tokenizer):
            levels.write_into(model.config)

    def encode_split(self, rows: Dataset, tokenizer: PreTrainedTokenizerBase) -> Dataset:
        """Tokenise pairs; those with an empty side are dropped.

        Returns:
            Columns `input_ids` and `labels`, lists of token ids, and those of `nested`, lists of such lists; with
            control tokens `control`, the id of the row's; `group` and `corpus` as they were, where there are such.
        """
        training, levels = self.training, self.control_levels(tokenizer)
        lengths = (training.max_source_length, training.max_target_length)
        # A field of those tasks whose models may copy.
        reads_all = getattr(training, "copy_unknown_words", False)
        return encode_rows(
            rows,
            _encode,
            "pairs",
            "one side has no words",
            tokenizer=OpenTokenizer(tokenizer, len(tokenizer)) if reads_all else tokenizer,
            limits=(lengths[0] - (levels is not None), lengths[1]),
            nested={name: (column, lengths[side]) for name, (column, side) in self.nested.items()},
            source_prefix=training.source_prefix,
            levels=levels,
            kept=[name for name in ("group", "corpus") if name in rows.column_names],
        )

    def features(self, encoded: Dataset, rows: Sequence[int], epoch: int | None) -> list[dict[str, Any]]:
        """The rows, each behind its control token, but for those that the epoch's draw leaves plain."""
        training, examples = self.training, self.examples(encoded, rows, epoch)
        if not training.control_tokens:
            return examples
        plain = () if epoch is None else draw_plain(len(encoded), training.plain_share, training.seed, epoch)
        return [
            example if row in plain else example | {"input_ids": [example[CONTROL], *example["input_ids"]]}
            for row, example in zip(rows, examples, strict=True)
        ]

    def examples(self, encoded: Dataset, rows: Sequence[int], epoch: int | None) -> list[dict[str, Any]]:
        """The same without control tokens."""
        return super().features(encoded, rows, epoch)

    def lengths(self, encoded: Dataset) -> tuple[np.ndarray, np.ndarray]:
        sources, targets = super().lengths(encoded)
        return sources + (CONTROL in encoded.column_names), targets

    def loss_sums(self, model: nn.Module, batch: Batch, data: TaskData) -> Sums:
        if self.reward is not None and model.training:
            return self._policy_gradient(data).loss_sums(model, batch, self.training.label_smoothing_factor)
        return super().loss_sums(model, batch, data)

    def _policy_gradient(self, data: TaskData) -> SelfCritical:
        training, tokenizer, judge = self.training, data.tokenizer, cast(Reward, self.reward)
        ids = tokenizer(training.source_prefix)["input_ids"]
        prefix = cast(str, tokenizer.decode(ids, skip_special_tokens=True)).strip()

        def reward(sources: Sequence[str], targets: Sequence[str], outputs: Sequence[str]) -> list[float]:
            return judge([source.removeprefix(prefix).strip() for source in sources], targets, outputs)

        return SelfCritical(reward, tokenizer, training.max_target_length, training.cross_entropy_weight)

    def validate(self, data: TaskData, validation: Validation) -> dict[str, float] | None:
        if self.reward is None:
            return super().validate(data, validation)
        policy_gradient, rewards = self._policy_gradient(data), []

        def loss_sums(model: nn.Module, batch: Batch) -> Sums:
            rewards.extend(policy_gradient.greedy_rewards(cast(PreTrainedModel, model), batch).tolist())
            return self.loss_sums(model, batch, data)

        loss = validation.mean_loss(loss_sums)
        return None if loss is None else {"loss": loss, "reward": float(np.mean(gather_object(rewards)))}

    def cost(self, scores: dict[str, float]) -> float:
        return scores["loss"] if self.reward is None else -scores["reward"]


def _encode(
    columns: dict[str, list],
    tokenizer: PreTrainedTokenizerBase | OpenTokenizer,
    limits: tuple[int, int],
    nested: dict[str, tuple[str, int]],
    source_prefix: str,
    levels: ControlLevels | None,
    kept: list[str],
) -> dict[str, Any]:
    texts = [source_prefix + source for source in columns["source"]]
    sources = tokenizer(texts, truncation=True, max_length=limits[0])["input_ids"]
    # Some tokenizers, such as Marian's, read targets by another vocabulary than sources.
    side = "texts" if isinstance(tokenizer, OpenTokenizer) else "text_target"
    targets = tokenizer(**{side: columns["target"]}, truncation=True, max_length=limits[1])["input_ids"]
    encoded = {"input_ids": sources, "labels": targets, **{name: columns[name] for name in kept}}
    if levels is not None:
        encoded[CONTROL] = levels.measure(columns["source"], columns["target"])
    for name, (column, limit) in nested.items():
        texts = [text for row in columns[column] for text in row]
        ids = iter(tokenizer(texts, truncation=True, max_length=limit)["input_ids"] if texts else [])
        encoded[name] = [list(islice(ids, len(row))) for row in columns[column]]
    specials = tokenizer.num_special_tokens_to_add()
    full = [
        bool(text.strip()) and min(len(source), len(target)) > specials
        for text, source, target in zip(columns["source"], sources, targets, strict=True)
    ]
    return {name: list(compress(rows, full)) for name, rows in encoded.items()}
