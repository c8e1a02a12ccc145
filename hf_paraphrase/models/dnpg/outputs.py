"""Output classes of DNPG."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)

from ..layers.copying import Copying
from ..layers.encoder_decoder import SET_BY_MODEL
from .levels import Control

__all__ = ["DnpgDecoderOutput", "DnpgEncoderOutput", "DnpgModelOutput", "DnpgSeq2SeqLMOutput"]


@dataclass
class DnpgEncoderOutput(BaseModelOutput):
    """Encoder outputs for the decoders; `generate()` repeats its tensors for every beam.

    Args:
        last_hidden_state: States of the phrase level, `(batch, source_length, hidden_size)`, zero at other words.
        sentence_states: The same of the sentence level.
        levels: What each word is, `(batch, source_length, 2)` of zeros and ones, zero at padding.
        level_logits: The separator's scores, of the same shape.
        source_ids: The words, `(batch, source_length)`.
        num_outside_words: Words outside the vocabulary that the batch can copy.
        hidden_states: On request, the embeddings of the phrase level's words and every layer's output.
        attentions: On request, every layer's weights there.
    """

    last_hidden_state: torch.Tensor = SET_BY_MODEL
    sentence_states: torch.Tensor = SET_BY_MODEL
    levels: torch.Tensor = SET_BY_MODEL
    level_logits: torch.Tensor = SET_BY_MODEL
    source_ids: torch.Tensor = SET_BY_MODEL
    num_outside_words: int = SET_BY_MODEL


@dataclass
class DnpgDecoderOutput(BaseModelOutputWithPastAndCrossAttentions):
    """Decoder outputs, with the aggregator's scores and, if any, copy weights."""

    level_logits: torch.Tensor = SET_BY_MODEL
    copying: Copying | None = None


@dataclass
class DnpgModelOutput(Seq2SeqModelOutput):
    """`Seq2SeqModelOutput`, in which `last_hidden_state` has the states of both levels, `(…, 2 * hidden_size)`.

    Args:
        aggregated_logits: Scores of the levels at every position, `(batch, target_length, 2)`.
        copying: Copy weights of the phrase level, with `copy`.
        control: The constraint, if one level is kept.
        source_levels: As `DnpgSeq2SeqLMOutput` has it; so too the three below.
    """

    last_hidden_state: torch.Tensor = SET_BY_MODEL
    aggregated_logits: torch.Tensor = SET_BY_MODEL
    copying: Copying | None = None
    control: Control | None = None
    source_levels: torch.Tensor | None = None
    target_levels: torch.Tensor | None = None
    source_level_logits: torch.Tensor | None = None
    target_level_logits: torch.Tensor | None = None


@dataclass
class DnpgSeq2SeqLMOutput(Seq2SeqLMOutput):
    """`Seq2SeqLMOutput` whose `logits` are log-probabilities, with the requested outputs of the levels.

    Args:
        source_levels: With `output_levels=True`, the level of each word of the source, `(batch, source_length)`: 0 for
            phrase, 1 for sentence; 0 at padding.
        target_levels: The likelier level of each word to write next, `(batch, target_length)`.
        source_level_logits: The separator's scores, `(batch, source_length, 2)`.
        target_level_logits: The aggregator's scores, `(batch, target_length, 2)`.
        copy_weights: Probability of copying each word of the source, if the phrase level writes, `(batch,
            target_length, source_length)`, with `copy`.
    """

    source_levels: torch.Tensor | None = None
    target_levels: torch.Tensor | None = None
    source_level_logits: torch.Tensor | None = None
    target_level_logits: torch.Tensor | None = None
    copy_weights: torch.Tensor | None = None
