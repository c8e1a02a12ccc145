from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import torch
from torch import nn
from transformers.modeling_outputs import (
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs, can_return_tuple

from ..layers.copying import Copying, add_copied_words, copying_loss, count_outside_words
from ..layers.encoder_decoder import SET_BY_MODEL
from ..layers.language_model_head import scored
from ..layers.recurrent import RecurrentCache
from ..layers.token_ids import embed
from ..residual_lstm.modeling_residual_lstm import (
    ResidualLstmDecoder,
    ResidualLstmEncoder,
    ResidualLstmEncoderOutput,
    ResidualLstmForConditionalGeneration,
    ResidualLstmModel,
    ResidualLstmPreTrainedModel,
)
from .configuration_edit_lstm import EditLstmConfig
from .copy_mechanism import CopyMechanism, CopyMemory, EditVector, EmbeddedSentences

__all__ = ["EditLstmForConditionalGeneration", "EditLstmModel", "EditLstmPreTrainedModel"]


@dataclass
class EditLstmEncoderOutput(ResidualLstmEncoderOutput):
    """Encoder outputs of x and the retrieved pair; `generate()` repeats its tensors for every beam.

    Args:
        last_hidden_state: States of x, `(batch, source_length, memory_size)`, zero at padding.
        final_hidden: h of every layer and direction after the last word of x, `(batch, layers, hidden_size)`.
        final_cell: c of the same shape.
        edit_vector: `(batch, edit_vector_size)`, without `copy`.
        source_states: States of p, `(batch, retrieved_length, memory_size)`, with `copy`; so too all below.
        source_mask: `(batch, retrieved_length)`, 0 at the padding of p.
        target_states: States of q.
        target_mask: Mask of q.
        copy_ids: Words of p, then of q, `(batch, retrieved_length + retrieved_target_length)`.
        num_outside_words: Words outside the vocabulary that the batch can copy.
        hidden_states: On request, the embeddings of x and every layer's output.
    """

    edit_vector: torch.Tensor = SET_BY_MODEL
    source_states: torch.Tensor = SET_BY_MODEL
    source_mask: torch.Tensor = SET_BY_MODEL
    target_states: torch.Tensor = SET_BY_MODEL
    target_mask: torch.Tensor = SET_BY_MODEL
    copy_ids: torch.Tensor = SET_BY_MODEL
    num_outside_words: int = SET_BY_MODEL


@dataclass
class EditLstmDecoderOutput(BaseModelOutputWithPastAndCrossAttentions):
    """Decoder outputs, with the copy weights if the model copies."""

    copying: Copying | None = None


@dataclass
class EditLstmModelOutput(Seq2SeqModelOutput):
    """`Seq2SeqModelOutput` with the edit vector or copy weights.

    Args:
        edit_vector: `(batch, edit_vector_size)`, without `copy`.
        copying: Copy weights, with `copy`.
    """

    edit_vector: torch.Tensor | None = None
    copying: Copying | None = None


@dataclass
class EditLstmSeq2SeqLMOutput(Seq2SeqLMOutput):
    """`Seq2SeqLMOutput` with the contribution of the pair.

    Args:
        edit_vector: `(batch, edit_vector_size)`, without `copy`.
        copy_weights: Probability of copying each word of p, then of q, `(batch, target_length, lengths of both)`, with
            `copy`.
    """

    edit_vector: torch.Tensor | None = None
    copy_weights: torch.Tensor | None = None


class EditLstmPreTrainedModel(ResidualLstmPreTrainedModel):
    config_class = EditLstmConfig


class EditLstmEncoder(EditLstmPreTrainedModel, ResidualLstmEncoder):
    """Everything computed once per sequence: the states of x, and the edit vector of (p, q) or the states of both."""

    def __init__(self, config: EditLstmConfig):
        super().__init__(config)
        self.edit_vector = None if config.copy else EditVector(config)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        retrieved_source_ids: torch.Tensor | None = None,
        retrieved_source_mask: torch.Tensor | None = None,
        retrieved_target_ids: torch.Tensor | None = None,
        retrieved_target_mask: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> EditLstmEncoderOutput:
        x = self._look_up("input_ids", input_ids, attention_mask)
        p = self._look_up("retrieved_source_ids", retrieved_source_ids, retrieved_source_mask)
        q = self._look_up("retrieved_target_ids", retrieved_target_ids, retrieved_target_mask)
        if not x.ids.shape[0] == p.ids.shape[0] == q.ids.shape[0]:
            raise ValueError(
                f"{x.ids.shape[0]} sources have {p.ids.shape[0]} retrieved sources and {q.ids.shape[0]} targets"
            )
        sentences = (x, p, q) if self.config.copy else (x,)
        embeddings, mask = _join_rows([part.embeddings for part in sentences], [part.mask for part in sentences])
        outputs, state, layers = self.lstm(embeddings, mask, output_hidden_states=bool(output_hidden_states))
        rows, length = x.ids.shape
        h, c = (part[:, :rows].transpose(0, 1) for part in state)
        layers = None if layers is None else [states[:rows, :length] for states in layers]
        return EditLstmEncoderOutput(
            last_hidden_state=outputs[:rows, :length],
            final_hidden=h,
            final_cell=c,
            hidden_states=None if layers is None else (x.embeddings, *layers),
            **(self._remember(p, q, outputs) if self.edit_vector is None else {"edit_vector": self.edit_vector(p, q)}),
        )

    def _look_up(self, name: str, ids: torch.Tensor | None, mask: torch.Tensor | None) -> EmbeddedSentences:
        if ids is None:
            raise ValueError(
                f"`{name}` is missing: this model edits by a retrieved pair, so it needs `input_ids`, "
                "`retrieved_source_ids` and `retrieved_target_ids` (`ParaphraseRetriever` finds pairs)"
            )
        known = ids
        if self.config.copy and name != "input_ids":
            known = ids.where(ids < self.config.vocab_size, self.config.unk_token_id)
        return EmbeddedSentences(
            ids, torch.ones_like(ids) if mask is None else mask, embed(self.embed_tokens, known, name)
        )

    def _remember(self, p: EmbeddedSentences, q: EmbeddedSentences, outputs: torch.Tensor) -> dict[str, Any]:
        """Keep the pair for the copy mechanism; its states follow those of x, in separate rows."""
        rows = p.ids.shape[0]
        source_states, target_states = outputs[rows : 2 * rows], outputs[2 * rows : 3 * rows]
        ids = torch.cat((p.ids, q.ids), dim=1)
        return {
            "source_states": source_states[:, : p.ids.shape[1]],
            "source_mask": p.mask,
            "target_states": target_states[:, : q.ids.shape[1]],
            "target_mask": q.mask,
            "copy_ids": ids,
            "num_outside_words": count_outside_words(ids, self.config.vocab_size, "the retrieved pair"),
        }


class EditLstmDecoder(EditLstmPreTrainedModel, ResidualLstmDecoder):
    """The residual LSTM's decoder, with the edit vector joined to each input, or with a copy mechanism on top."""

    def __init__(self, config: EditLstmConfig):
        super().__init__(config)
        self.copy = CopyMechanism(config) if config.copy else None
        self.post_init()

    def init_cache(self, encoder_outputs: Any) -> RecurrentCache:
        """Start as the residual LSTM does, with the keys of p and q where words are copied from them."""
        cache = super().init_cache(encoder_outputs)
        if self.copy is not None:
            cache.pair_keys = self.copy.project_keys((encoder_outputs.source_states, encoder_outputs.target_states))
        return cache

    @can_return_tuple
    def forward(
        self,
        inputs_embeds: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        *,
        encoder_outputs: EditLstmEncoderOutput,
        encoder_attention_mask: torch.Tensor | None = None,
        cache: RecurrentCache | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> EditLstmDecoderOutput:
        if cache is None:
            cache = self.init_cache(encoder_outputs)
        if self.copy is None:
            vector = encoder_outputs.edit_vector.unsqueeze(1).expand(-1, inputs_embeds.shape[1], -1)
            inputs_embeds = torch.cat((inputs_embeds, vector), dim=-1)
        outputs = super().forward(
            inputs_embeds,
            attention_mask=attention_mask,
            encoder_outputs=encoder_outputs,
            encoder_attention_mask=encoder_attention_mask,
            cache=cache,
            return_dict=True,
            **kwargs,
        )
        outputs = EditLstmDecoderOutput(**outputs)
        if self.copy is not None:
            memory = CopyMemory(
                (encoder_outputs.source_states, encoder_outputs.target_states),
                (encoder_outputs.source_mask, encoder_outputs.target_mask),
                cast(tuple[torch.Tensor, torch.Tensor], cache.pair_keys),
                encoder_outputs.copy_ids,
                encoder_outputs.num_outside_words,
            )
            outputs.last_hidden_state, outputs.copying = self.copy(outputs.last_hidden_state, memory)
        return outputs


class EditLstmModel(EditLstmPreTrainedModel, ResidualLstmModel):
    """The two retrieval baselines of Kazemnejad et al. 2020, section 4.2, without the output layer.

    Without `copy` the decoder's input at every step is its word's embedding joined with the edit vector of (p, q);
    the first residual connection passes on as much of both as the layers are wide, so the embedding where their sizes
    are equal. With `copy` one encoder reads x, p and q, which have one language and one vocabulary; the decoder
    attends to x, then to p and q, and copies from these.

    A model that copies takes words outside its vocabulary too: in `retrieved_source_ids` and `retrieved_target_ids`
    (and so in `labels`) they are numbered from `vocab_size` on, the first such word of a row's pair `vocab_size`, the
    second `vocab_size + 1`. It reads all of them as `unk_token_id`, scores them behind the words of the vocabulary,
    and `generate()` returns them where it copied them. The pipeline does so by itself.
    """

    encoder_class, decoder_class = EditLstmEncoder, EditLstmDecoder
    encoder_output_class, encoder_output_reason = EditLstmEncoderOutput, "it carries the pair"
    output_class = EditLstmModelOutput

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        retrieved_source_ids: torch.Tensor | None = None,
        retrieved_source_mask: torch.Tensor | None = None,
        retrieved_target_ids: torch.Tensor | None = None,
        retrieved_target_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: EditLstmEncoderOutput | None = None,
        cache: RecurrentCache | None = None,
        use_cache: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> EditLstmModelOutput:
        """Encode x and the pair unless `encoder_outputs` are given, and run the decoder over its inputs.

        Other arguments and errors are those of `EncoderDecoder.forward`; the edit vector, or what is copied, is
        returned too.

        Args:
            retrieved_source_ids: Words of p, `(batch, retrieved_length)`.
            retrieved_source_mask: Its mask, as `attention_mask`.
            retrieved_target_ids: Words of q, `(batch, retrieved_target_length)`.
            retrieved_target_mask: Its mask.
        """
        encoder_outputs = self.encode(
            encoder_outputs,
            input_ids=input_ids,
            attention_mask=attention_mask,
            retrieved_source_ids=retrieved_source_ids,
            retrieved_source_mask=retrieved_source_mask,
            retrieved_target_ids=retrieved_target_ids,
            retrieved_target_mask=retrieved_target_mask,
            **kwargs,
        )
        outside = encoder_outputs.num_outside_words if self.config.copy else None
        states, masks = self.embed_targets(decoder_input_ids, None, outside), (attention_mask, decoder_attention_mask)
        outputs = self.decode(states, encoder_outputs, *masks, cache, use_cache, **kwargs)
        return self.join_outputs(
            encoder_outputs, outputs, edit_vector=encoder_outputs.edit_vector, copying=outputs.copying
        )


class EditLstmForConditionalGeneration(EditLstmPreTrainedModel, ResidualLstmForConditionalGeneration):
    """A retrieval baseline with its output layer, for training and `generate()`, which takes the retrieved pairs too.

    With `copy` its scores are log-probabilities, of the vocabulary's words and behind them of the words outside it
    that the batch's pairs have, thus `logits` as many wider; `compute_transition_scores` counts with `vocab_size`
    words, so it goes without those.
    """

    model_class, output_class = EditLstmModel, EditLstmSeq2SeqLMOutput
    forward = scored(EditLstmModel.forward)

    @property
    def has_plain_loss(self) -> bool:
        """Not where words are copied."""
        return not self.config.copy

    def score(self, outputs: EditLstmModelOutput, labels: torch.Tensor | None) -> dict[str, torch.Tensor | None]:
        """Compute what the base class does and, with `copy`, `copy_weights`.

        In training, a model that copies leaves the logits of labels out, which take as long as all the rest of its
        output layer.
        """
        if outputs.copying is None:
            return super().score(outputs, labels)
        logits = self.project(outputs)
        is_loss_enough = self.training and labels is not None
        return {
            "loss": None if labels is None else copying_loss(logits, outputs.copying, labels),
            "logits": None if is_loss_enough else add_copied_words(logits, outputs.copying).to(self.dtype),
            "copy_weights": outputs.copying.weights,
        }


def _join_rows(states: Sequence[torch.Tensor], masks: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Put batches of several lengths below each other, filled up on the right."""
    length = reduce(torch.sym_max, (mask.shape[1] for mask in masks))
    missing = [length - mask.shape[1] for mask in masks]
    states = [nn.functional.pad(part, (0, 0, 0, size)) for part, size in zip(states, missing, strict=True)]
    masks = [nn.functional.pad(part, (0, size)) for part, size in zip(masks, missing, strict=True)]
    return torch.cat(states), torch.cat(masks)
