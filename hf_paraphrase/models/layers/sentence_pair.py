"""What all models share that read two sentences: how they enter, the layers above, and the losses."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.utils import can_return_tuple

from .layer_weights import draw_uniform
from .portable import PortableConfig, PortableModel
from .precision import at_least_single


@strict
class SentencePairConfig(PortableConfig):
    r"""Base configuration of models that label or score sentence pairs.

    Args:
        vocab_size: Number of words, special tokens included.
        embedding_size: Width of the word embeddings.
        hidden_size: Units of every recurrent layer, and of the fully connected layer before the output.
        dropout: Probability of dropping an element of what enters the fully connected layer and the output layer.
        initializer_range: Weights start uniform in `[-initializer_range, initializer_range]`.
        problem_type: `"single_label_classification"`, with cross-entropy over `num_labels` labels, or `"ranking"`,
            with one score and max-margin loss. By default the first, unless `num_labels` is 1.
    """

    abilities = frozenset({"labels_pairs"})

    vocab_size: int = 30000
    embedding_size: int = 100
    hidden_size: int = 50
    dropout: float | int = 0.0
    initializer_range: float = 0.1
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    problem_type: Literal["single_label_classification", "ranking"] | None = None

    def __post_init__(self, **kwargs):
        if self.problem_type == "ranking" and self.id2label is None:
            kwargs.setdefault("num_labels", 1)
        super().__post_init__(**kwargs)
        if self.problem_type is None:
            self.problem_type = "ranking" if self.num_labels == 1 else "single_label_classification"

    def validate_architecture(self):
        """Refuse sizes that no model of this family has; runs whenever a configuration is made."""
        self.check_sizes("vocab_size", "embedding_size", "hidden_size")
        self.check_dropout("dropout")
        if self.problem_type == "ranking" and self.num_labels != 1:
            raise ValueError(f"`problem_type='ranking'` gives one score, not `num_labels={self.num_labels}`")


class PairSide(NamedTuple):
    """One side of a batch of pairs, every row's words first and its padding behind them.

    Args:
        input_ids: `(batch, length)`.
        lengths: `(batch,)`, words of every row; may be 0.
    """

    input_ids: Tensor
    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        """`(batch, length)`, true at words."""
        return torch.arange(self.input_ids.shape[1], device=self.lengths.device) < self.lengths.unsqueeze(1)


def split_pair(
    input_ids: Tensor,
    attention_mask: Tensor | None = None,
    token_type_ids: Tensor | None = None,
    pair_input_ids: Tensor | None = None,
    pair_attention_mask: Tensor | None = None,
) -> tuple[PairSide, PairSide]:
    """Take X and Y out of a batch, given as two sequences or as one sequence with types.

    Padding may stand anywhere. Special tokens count as words: `<text> </s> <pair> </s>` gives two sentences that end
    in `</s>`. With two sequences nothing depends on the values, so that the split can be part of a CUDA graph; one
    sequence with types takes as many columns for each side as its longest sentence has words.

    Args:
        input_ids: Words of X, or of both, `(batch, length)`.
        attention_mask: `(batch, length)`, 0 at padding; all are words by default.
        token_type_ids: `(batch, length)`, 0 for X and 1 for Y, where `input_ids` holds both.
        pair_input_ids: Words of Y, `(batch, pair_length)`.
        pair_attention_mask: `(batch, pair_length)`, 0 at padding.

    Returns:
        X and Y.

    Raises:
        ValueError: Neither or both of `token_type_ids` and `pair_input_ids` are given, or `token_type_ids` put a row's
            words all on one side.
    """
    if (token_type_ids is None) == (pair_input_ids is None):
        raise ValueError(
            "a pair is either `input_ids` and `pair_input_ids`, or one sequence `input_ids` with `token_type_ids`, as "
            "`tokenizer(text, text_pair)` makes it"
        )
    if pair_input_ids is not None:
        return _compact(input_ids, attention_mask), _compact(pair_input_ids, pair_attention_mask)
    is_word = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
    sides = [_compact(input_ids, is_word & (token_type_ids == side)) for side in (0, 1)]
    shortest, widths = zip(*([count.item() for count in side.lengths.aminmax()] for side in sides), strict=True)
    if not all(shortest):
        raise ValueError(
            "`token_type_ids` leave a sentence without words: pass two texts, `text` and `text_pair` (tokenizers take "
            "an empty `text_pair` for none, but a blank, ' ', for a sentence without words)"
        )
    x, y = (PairSide(side.input_ids[:, :width], side.lengths) for side, width in zip(sides, widths, strict=True))
    return x, y


def _compact(ids: Tensor, is_word: Tensor | None) -> PairSide:
    """Move the words of every row to its front, in order."""
    if is_word is None:
        return PairSide(ids, ids.new_full(ids.shape[:1], ids.shape[1]))
    order = torch.argsort(is_word.bool(), dim=1, descending=True, stable=True)
    return PairSide(ids.gather(1, order), is_word.bool().sum(1))


class SentencePairPreTrainedModel(PortableModel, PreTrainedModel):
    """Base of the sentence-pair models: weights start as Liu et al. 2016 have them."""

    base_model_prefix = "model"

    def _init_weights(self, module: nn.Module) -> None:
        draw_uniform(module, self.config.initializer_range)


class MatchingHead(nn.Module):
    """A fully connected tanh layer and the output layer: one logit a label, or one score (Liu et al. 2016, section 4).

    Features are `input_size` wide.
    """

    def __init__(self, input_size: int, config: SentencePairConfig):
        super().__init__()
        self.dense = nn.Linear(input_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, cast(int, config.num_labels))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, features: Tensor) -> Tensor:
        """Map features `(batch, input_size)` to logits `(batch, num_labels)`."""
        return self.output(self.dropout(torch.tanh(self.dense(self.dropout(features)))))


class SentencePairClassifier(SentencePairPreTrainedModel):
    """Mixin, before a family's base class, for models with a `MatchingHead` in `head`: labels of pairs, or scores."""

    head: MatchingHead

    def read_pair(
        self, *inputs: Any, output_hidden_states: bool | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...] | None]:
        """Turn the inputs of `split_pair` into features `(batch, input_size)`; return hidden states too, if any."""
        raise NotImplementedError

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        pair_input_ids: Tensor | None = None,
        pair_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        group_ids: Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> SequenceClassifierOutput:
        """Classify or score pairs; arguments as in `split_pair`, and those of the loss.

        Args:
            labels: `(batch,)`, class indices, or for ranking 1.0 for right candidates and 0.0 for wrong ones.
            group_ids: `(batch,)`, for ranking: the query to which each row belongs; one query by default.
            output_hidden_states: Return what the model has of them.

        Returns:
            `loss` if `labels` are given (see `matching_loss`), `logits` `(batch, num_labels)`, and `hidden_states` if
            asked for.
        """
        inputs = input_ids, attention_mask, token_type_ids, pair_input_ids, pair_attention_mask
        features, hidden_states = self.read_pair(*inputs, output_hidden_states=output_hidden_states)
        logits = self.head(features)
        loss = None if labels is None else matching_loss(logits, labels, self.config.problem_type, group_ids)
        return SequenceClassifierOutput(loss=loss, logits=logits, hidden_states=hidden_states)


def matching_loss(logits: Tensor, labels: Tensor, problem_type: str | None, group_ids: Tensor | None = None) -> Tensor:
    """Compute the loss of a batch, a mean in nats over its rows or in margins over its pairs of candidates.

    Args:
        logits: `(batch, num_labels)`.
        labels: `(batch,)`, class indices; for ranking 1.0 for right candidates and 0.0 for wrong ones.
        problem_type: `"single_label_classification"` or `"ranking"`.
        group_ids: `(batch,)`, for ranking: the query to which each row belongs; one query by default.

    Raises:
        ValueError: A label is not a class (on the CPU, where looking costs no wait).
    """
    logits = at_least_single(logits)
    if problem_type == "ranking":
        return max_margin_loss(logits.squeeze(-1), labels, group_ids)
    if labels.device.type == "cpu" and labels.numel() and not 0 <= labels.min() <= labels.max() < logits.shape[-1]:
        raise ValueError(f"`labels` must be classes from 0 to {logits.shape[-1] - 1}, not {labels.tolist()}")
    return nn.functional.cross_entropy(logits, labels.long())


def ranked_pairs(labels: Tensor, group_ids: Tensor | None = None) -> Tensor:
    """Say which rows should beat which: true at (a, b) where both answer one query and a's label is the higher."""
    higher = labels.unsqueeze(1) > labels.unsqueeze(0)
    return higher if group_ids is None else higher & (group_ids.unsqueeze(1) == group_ids.unsqueeze(0))


def max_margin_loss(scores: Tensor, labels: Tensor, group_ids: Tensor | None = None) -> Tensor:
    """Average `max(0, 1 - s(X, Y) + s(X, Ŷ))` over all right Y and wrong Ŷ of each X (Liu et al. 2016, section 5).

    A batch without such pairs costs nothing. Arguments as in `matching_loss`, scores of shape `(batch,)`.
    """
    pairs = ranked_pairs(labels, group_ids)
    margins = torch.relu(1 - scores.unsqueeze(1) + scores.unsqueeze(0))
    return (margins * pairs).sum() / pairs.sum().clamp(min=1)
