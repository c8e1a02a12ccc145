from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import Seq2SeqLMOutput, Seq2SeqModelOutput
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs, can_return_tuple

from ..layers.copying import Copying, add_copied_words, copying_loss, count_outside_words
from ..layers.encoder_decoder import SET_BY_MODEL, DecoderOutput
from ..layers.language_model_head import scored
from ..layers.precision import at_least_single
from ..layers.recurrent import AdditiveAttention, RecurrentCache
from ..layers.token_ids import check_pair, embed, join_rows
from ..residual_lstm.modeling_residual_lstm import (
    ResidualLstmDecoder,
    ResidualLstmEncoder,
    ResidualLstmEncoderOutput,
    ResidualLstmForConditionalGeneration,
    ResidualLstmModel,
    ResidualLstmPreTrainedModel,
)
from .configuration_edit_lstm import EditLstmConfig


class EmbeddedSentences(NamedTuple):
    """A batch of sentences: ids `(batch, length)`, their mask of 1 and 0, and their embeddings."""

    ids: Tensor
    mask: Tensor
    embeddings: Tensor


class EditVector(nn.Module):
    """What turns p into q, as one vector (Guu et al. 2018): inserted words in one half, deleted ones in the other.

    `z = Σ_{w ∈ q \\ p} Φ(w) ; Σ_{w ∈ p \\ q} Φ(w)`, where p and q are sets of words, without padding and the marks of
    beginning and end, and `Φ(w) = W e(w)` brings a word's embedding to half the edit vector's width.
    """

    def __init__(self, config: EditLstmConfig):
        super().__init__()
        self.word = nn.Linear(config.embedding_size, cast(int, config.edit_vector_size) // 2, bias=False)
        ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
        marks = {config.pad_token_id, config.bos_token_id, config.decoder_start_token_id, *ends}
        self.marks = sorted(marks - {None})

    def forward(self, p: EmbeddedSentences, q: EmbeddedSentences) -> Tensor:
        """Add up the words of a batch of pairs; returns `(batch, edit_vector_size)`."""
        words_of_p, words_of_q = self._find_words(p), self._find_words(q)
        inserted = find_words_missing_from(q.ids, words_of_q, p.ids, words_of_p)
        deleted = find_words_missing_from(p.ids, words_of_p, q.ids, words_of_q)
        sums = [
            (words.to(states.dtype).unsqueeze(1) @ states).squeeze(1)
            for words, states in ((inserted, q.embeddings), (deleted, p.embeddings))
        ]
        return self.word(torch.stack(sums, dim=1)).flatten(1)

    def _find_words(self, sentences: EmbeddedSentences) -> Tensor:
        ids, mask, _ = sentences
        return mask.bool() & ~torch.isin(ids, torch.tensor(self.marks, device=ids.device))


def find_words_missing_from(ids: Tensor, words: Tensor, other_ids: Tensor, other_words: Tensor) -> Tensor:
    """Mark the `words` of sentences `(batch, length)` that the other sentences lack, each at its first place."""
    in_other = _same(ids, other_ids, other_words).any(-1)
    is_repeated = _same(ids, ids, words).tril(-1).any(-1)
    return words & ~in_other & ~is_repeated


def _same(ids: Tensor, other_ids: Tensor, other_words: Tensor) -> Tensor:
    return (ids.unsqueeze(2) == other_ids.unsqueeze(1)) & other_words.unsqueeze(1)


class CopyMechanism(nn.Module):
    """Pointers into p and q, a gate between them and the vocabulary, and a state that knows where they point.

    At every step one additive attention looks at p and one at q, from the decoder's attentional state s, with weights
    a_p and a_q and contexts c_p and c_q. `g = softmax(W_g [s; c_p; c_q] + b)` shares the probability among generating
    a word, copying from p and copying from q; words are generated from `tanh(W [s; c_p; c_q])`. The form is the
    pointer-generator of See et al. 2017 with two sources; Hashimoto et al. 2018 name a copying LSTM alone.
    """

    def __init__(self, config: EditLstmConfig):
        super().__init__()
        sizes = config.hidden_size, config.memory_size, cast(int, config.attention_size)
        self.pointers = nn.ModuleList(AdditiveAttention(*sizes) for _ in range(2))
        joined_size = config.hidden_size + 2 * config.memory_size
        self.gate = nn.Linear(joined_size, 3)
        self.combine = nn.Linear(joined_size, config.hidden_size, bias=False)

    def project_keys(self, encoder: EditLstmEncoderOutput) -> tuple[Tensor, ...]:
        """Map the states of p and q to attention keys, once a pair."""
        states, pointers = (encoder.source_states, encoder.target_states), cast(Any, self.pointers)
        return tuple(pointer.project_keys(memory) for pointer, memory in zip(pointers, states, strict=True))

    def forward(
        self, outputs: Tensor, encoder: EditLstmEncoderOutput, keys: tuple[Tensor, ...]
    ) -> tuple[Tensor, Copying]:
        """Point from all attentional states `(batch, target_length, hidden_size)` at once, with `project_keys`' keys.

        Returns the states to generate words from, of the same shape, and the copy weights.
        """
        states, masks = (encoder.source_states, encoder.target_states), (encoder.source_mask, encoder.target_mask)
        pairs = zip(cast(Any, self.pointers), keys, states, masks, strict=True)
        contexts, weights = zip(*(pointer(pointer.query(outputs), *side) for pointer, *side in pairs), strict=True)
        joined = torch.cat((outputs, *contexts), dim=-1)
        log_gates = at_least_single(self.gate(joined)).log_softmax(dim=-1)
        shares = log_gates[..., 1:].exp().split(1, dim=-1)
        copied = torch.cat(
            [share * at_least_single(side) for share, side in zip(shares, weights, strict=True)], dim=-1
        )
        mask = torch.cat(masks, dim=1)
        copying = Copying(log_gates[..., :1], copied, encoder.copy_ids, mask, encoder.num_outside_words)
        return torch.tanh(self.combine(joined)), copying


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

    edit_vector: Tensor = SET_BY_MODEL
    source_states: Tensor = SET_BY_MODEL
    source_mask: Tensor = SET_BY_MODEL
    target_states: Tensor = SET_BY_MODEL
    target_mask: Tensor = SET_BY_MODEL
    copy_ids: Tensor = SET_BY_MODEL
    num_outside_words: int = SET_BY_MODEL


@dataclass
class EditLstmDecoderOutput(DecoderOutput):
    """Decoder outputs, with the copy weights if the model copies."""

    copying: Copying | None = None


@dataclass
class EditLstmModelOutput(Seq2SeqModelOutput):
    """`Seq2SeqModelOutput` with the edit vector or copy weights.

    Args:
        edit_vector: `(batch, edit_vector_size)`, without `copy`.
        copying: Copy weights, with `copy`.
    """

    edit_vector: Tensor | None = None
    copying: Copying | None = None


@dataclass
class EditLstmSeq2SeqLMOutput(Seq2SeqLMOutput):
    """`Seq2SeqLMOutput` with the contribution of the pair.

    Args:
        edit_vector: `(batch, edit_vector_size)`, without `copy`.
        copy_weights: Probability of copying each word of p, then of q, `(batch, target_length, lengths of both)`, with
            `copy`.
    """

    edit_vector: Tensor | None = None
    copy_weights: Tensor | None = None


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
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        retrieved_source_ids: Tensor | None = None,
        retrieved_source_mask: Tensor | None = None,
        retrieved_target_ids: Tensor | None = None,
        retrieved_target_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> EditLstmEncoderOutput:
        input_ids, source_ids, target_ids = check_pair(input_ids, retrieved_source_ids, retrieved_target_ids)
        x = self._look_up("input_ids", input_ids, attention_mask)
        p = self._look_up("retrieved_source_ids", source_ids, retrieved_source_mask)
        q = self._look_up("retrieved_target_ids", target_ids, retrieved_target_mask)
        sentences = (x, p, q) if self.config.copy else (x,)
        embeddings, mask = join_rows([part.embeddings for part in sentences], [part.mask for part in sentences])
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

    def _look_up(self, name: str, ids: Tensor, mask: Tensor | None) -> EmbeddedSentences:
        known = ids
        if self.config.copy and name != "input_ids":
            known = ids.where(ids < self.config.vocab_size, self.config.unk_token_id)
        return EmbeddedSentences(
            ids, torch.ones_like(ids) if mask is None else mask, embed(self.embed_tokens, known, name)
        )

    def _remember(self, p: EmbeddedSentences, q: EmbeddedSentences, outputs: Tensor) -> dict[str, Any]:
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
            cache.pair_keys = self.copy.project_keys(encoder_outputs)
        return cache

    @can_return_tuple
    def forward(
        self,
        inputs_embeds: Tensor,
        attention_mask: Tensor | None = None,
        *,
        encoder_outputs: EditLstmEncoderOutput,
        encoder_attention_mask: Tensor | None = None,
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
            found = self.copy(outputs.last_hidden_state, encoder_outputs, cache.pair_keys)
            outputs.last_hidden_state, outputs.copying = found
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
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        retrieved_source_ids: Tensor | None = None,
        retrieved_source_mask: Tensor | None = None,
        retrieved_target_ids: Tensor | None = None,
        retrieved_target_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
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
        states, masks = self.embed_targets(decoder_input_ids, outside), (attention_mask, decoder_attention_mask)
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

    def score(self, outputs: EditLstmModelOutput, labels: Tensor | None) -> dict[str, Tensor | None]:
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
