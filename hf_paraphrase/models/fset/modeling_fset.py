from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache, GenerationMixin
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs, can_return_tuple
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from ..layers.encoder_decoder import SET_BY_MODEL, DecoderOutput, EncoderDecoder, WritingPreTrainedModel
from ..layers.language_model_head import LanguageModelHeadMixin, scored
from ..layers.token_ids import check_pair, embed, join_rows
from ..layers.transformer import (
    Dropout,
    Memory,
    MultiHeadAttention,
    PostNormLayer,
    additive_mask,
    causal_mask,
    position_states,
    zero_padding,
)
from .configuration_fset import FsetConfig


class Tokens(NamedTuple):
    """A batch of sequences: embeddings `(batch, length, hidden_size)` and their mask `(batch, length)` of 1 and 0."""

    states: Tensor
    mask: Tensor


class SoleMap(nn.Linear):
    """A linear map without a residual connection."""


class EditProvider(nn.Module):
    """The Edit Provider: reads a pair (p, q) and finds the edits between them (Kazemnejad et al. 2020, section 3.2.1).

    The Target Encoder turns q into R_q. The Edit Encoder reads [AGR] p, and each of its layers also attends to R_q;
    a dense layer with tanh makes each of its outputs a micro edit vector: z_{p→q} at [AGR], M at the tokens of p. The
    same weights go from q to p, which gives z_{q→p}, and R_p by the Target Encoder; `z = Linear([z_{p→q}; z_{q→p}])`
    without bias. Both directions are one batch of twice the size.

    Readings where the paper leaves a choice: [AGR] is a vector of its own, no word of the vocabulary; it has no micro
    edit in M, since R_p has no position for it.
    """

    def __init__(self, config: FsetConfig):
        super().__init__()
        size, heads = config.hidden_size, config.provider_heads
        layers = range(config.provider_layers)
        self.target_encoder = nn.ModuleList(PostNormLayer(config, heads) for _ in layers)
        self.edit_encoder = nn.ModuleList(PostNormLayer(config, heads, [(size, size)]) for _ in layers)
        self.micro_edit = SoleMap(size, config.micro_edit_size)
        self.dropout = Dropout(config.dropout)
        self.aggregate = self.combine = None
        if config.use_edit_vector:
            self.aggregate = nn.Parameter(torch.empty(size))
            self.combine = SoleMap(2 * config.micro_edit_size, config.edit_vector_size, bias=False)

    def forward(self, p: Tokens, q: Tokens) -> tuple[Tensor | None, Tensor, Tensor]:
        """Find the edits of a batch of pairs: z, which may be None, M and R_p, as `FsetEncoderOutput` has them."""
        rows, length = p.mask.shape
        both, reverse = (Tokens(*join_rows(*zip(*sides, strict=True))) for sides in ((p, q), (q, p)))
        encoded = self._encode_targets(reverse)
        positions = encoded[rows:, :length]
        if self.combine is None or self.aggregate is None:
            inputs = self._start_edits(p, Tokens(encoded[:rows], reverse.mask[:rows]))
            return None, zero_padding(self._finish_edits(*inputs), p.mask), positions
        first = self.aggregate.expand(2 * rows, 1, -1).to(both.states.dtype)
        mask = nn.functional.pad(both.mask, (1, 0), value=1)
        both = Tokens(torch.cat((first, both.states), dim=1), mask)
        inputs = self._start_edits(both, Tokens(encoded, reverse.mask))
        there = self._finish_edits(*(part[:rows] for part in inputs))
        # From q to p nothing is asked for but z, so that the last layer need not compute the rest.
        back = self._finish_edits(*(part[rows:] for part in inputs), num_outputs=1)
        vector = self.combine(torch.cat((there[:, 0], back[:, 0]), dim=-1))
        return vector, zero_padding(there[:, 1 : length + 1], p.mask), positions

    def _encode_targets(self, target: Tokens) -> Tensor:
        states, mask = self._start(target)
        for layer in self.target_encoder:
            states = layer(states, mask)
        return zero_padding(states, target.mask)

    def _start_edits(self, source: Tokens, target: Tokens) -> tuple[Tensor, ...]:
        """Run all layers of the Edit Encoder except the last, and return its inputs."""
        states, mask = self._start(source)
        memory = target.states, additive_mask(target.mask, target.states.dtype)
        for layer in self.edit_encoder[:-1]:
            states = layer(states, mask, [Memory(memory[0], *memory)])
        return states, mask, *memory

    def _finish_edits(
        self, states: Tensor, mask: Tensor, target: Tensor, target_mask: Tensor, *, num_outputs: int | None = None
    ) -> Tensor:
        memory = Memory(target, target, target_mask)
        return torch.tanh(self.micro_edit(self.edit_encoder[-1](states, mask, [memory], num_outputs=num_outputs)))

    def _start(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        states = self.dropout(tokens.states + position_states(tokens.mask, tokens.states))
        return states, additive_mask(tokens.mask, states.dtype)


@dataclass
class FsetEncoderOutput(BaseModelOutput):
    """Encoder outputs of x and the edits of the retrieved pair; `generate()` repeats it for every beam.

    Args:
        last_hidden_state: R_x, `(batch, source_length, hidden_size)`, zero at padding, as are M and R_p.
        edit_vector: z, `(batch, edit_vector_size)`, where the configuration has it.
        micro_edit_vectors: M, `(batch, retrieved_length, micro_edit_size)`, one for each token of p.
        retrieved_states: R_p, `(batch, retrieved_length, hidden_size)`.
        retrieved_mask: `(batch, retrieved_length)`, 0 at the padding of p.
        hidden_states: On request, the embeddings of x and every layer's output.
        attentions: On request, every layer's weights `(batch, num_heads, source_length, source_length)`.
    """

    last_hidden_state: Tensor = SET_BY_MODEL
    edit_vector: Tensor | None = None
    micro_edit_vectors: Tensor = SET_BY_MODEL
    retrieved_states: Tensor = SET_BY_MODEL
    retrieved_mask: Tensor = SET_BY_MODEL


@dataclass
class FsetModelOutput(Seq2SeqModelOutput):
    """`Seq2SeqModelOutput` with the edits and, on request, the weights over p; see `FsetSeq2SeqLMOutput`."""

    edit_vector: Tensor | None = None
    micro_edit_vectors: Tensor | None = None
    retrieved_attentions: tuple[Tensor, ...] | None = None


@dataclass
class FsetSeq2SeqLMOutput(Seq2SeqLMOutput):
    """`Seq2SeqLMOutput` with the requested outputs of the edits.

    Args:
        edit_vector: z, `(batch, edit_vector_size)`, with `output_edits=True`.
        micro_edit_vectors: M, `(batch, retrieved_length, micro_edit_size)`, with `output_edits=True`.
        retrieved_attentions: With `output_attentions=True`, every decoder layer's weights over the tokens of p,
            `(batch, num_heads, target_length, retrieved_length)`; those over x are `cross_attentions`.
    """

    edit_vector: Tensor | None = None
    micro_edit_vectors: Tensor | None = None
    retrieved_attentions: tuple[Tensor, ...] | None = None


class FsetPreTrainedModel(WritingPreTrainedModel):
    config_class = FsetConfig
    _no_split_modules = ["PostNormLayer"]
    _supports_sdpa = True

    def _init_weights(self, module: nn.Module) -> None:
        """Small matrices, zero biases, and embeddings of unit variance once they are scaled.

        Where matrices keep the variance of what they map, every sub-layer writes over half of what comes to it: behind
        six post-norm layers all words of a sentence look alike, and the decoder has nothing to tell them apart by.
        Maps without a residual connection beside them do keep it: of what they make small, the decoder sees nothing.
        """
        super()._init_weights(module)
        if isinstance(module, SoleMap):
            init.xavier_uniform_(module.weight)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=self.config.hidden_size**-0.5)
        elif isinstance(module, EditProvider) and module.aggregate is not None:
            init.normal_(module.aggregate)


class FsetEncoder(FsetPreTrainedModel):
    """Everything computed once per sequence: the Edit Performer's encoder over x, and the Edit Provider."""

    # Not of the Edit Provider, which is made of such layers too.
    _can_record_outputs = {
        "hidden_states": OutputRecorder(PostNormLayer, layer_name="layers"),
        "attentions": OutputRecorder(MultiHeadAttention, index=1, layer_name="layers"),
    }

    def __init__(self, config: FsetConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(PostNormLayer(config, config.num_heads) for _ in range(config.num_layers))
        self.edit_provider = EditProvider(config)
        self.dropout = Dropout(config.dropout)
        self.post_init()

    # `hidden_states[-1]` is what the last layer returned; `last_hidden_state` is zero at padding.
    @capture_outputs(tie_last_hidden_states=False)
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
    ) -> FsetEncoderOutput:
        input_ids, source_ids, target_ids = check_pair(input_ids, retrieved_source_ids, retrieved_target_ids)
        x = self._look_up("input_ids", input_ids, attention_mask)
        p = self._look_up("retrieved_source_ids", source_ids, retrieved_source_mask)
        q = self._look_up("retrieved_target_ids", target_ids, retrieved_target_mask)
        vector, micro_edits, positions = self.edit_provider(p, q)
        states, mask = x.states + position_states(attention_mask, x.states), additive_mask(attention_mask, self.dtype)
        states = self.dropout(states)
        for layer in self.layers:
            states = layer(states, mask, output_attentions=output_attentions)
        return FsetEncoderOutput(
            last_hidden_state=zero_padding(states, attention_mask),
            edit_vector=vector,
            micro_edit_vectors=micro_edits,
            retrieved_states=positions,
            retrieved_mask=p.mask,
        )

    def _look_up(self, name: str, ids: Tensor, mask: Tensor | None) -> Tokens:
        states = embed(self.embed_tokens, ids, name) * self.config.hidden_size**0.5
        return Tokens(states, torch.ones_like(ids) if mask is None else mask)


class FsetDecoder(FsetPreTrainedModel):
    """The Edit Performer's decoder: in each layer, after self-attention, it attends to x and to the micro edits."""

    # `cross_attentions` has both of a layer, one behind the other.
    _can_record_outputs = {
        "hidden_states": PostNormLayer,
        "attentions": OutputRecorder(MultiHeadAttention, index=1, layer_name="self_attention"),
        "cross_attentions": OutputRecorder(MultiHeadAttention, index=1, layer_name="memory_attentions"),
    }

    def __init__(self, config: FsetConfig):
        super().__init__(config)
        size = config.hidden_size
        memory_sizes = [(size, size)] + ([(size, config.micro_edit_size)] if config.use_micro_edits else [])
        self.layers = nn.ModuleList(
            PostNormLayer(config, config.num_heads, memory_sizes, index) for index in range(config.num_layers)
        )
        self.join = None
        if config.use_edit_vector:
            self.join = SoleMap(size + config.edit_vector_size, size, bias=False)
        self.dropout = Dropout(config.dropout)
        self.post_init()

    @capture_outputs
    def forward(
        self,
        inputs_embeds: Tensor,
        attention_mask: Tensor | None = None,
        *,
        encoder_outputs: FsetEncoderOutput,
        encoder_attention_mask: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        use_cache: bool = True,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> DecoderOutput:
        if use_cache and cache is None:
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        past = 0 if cache is None else cache.get_seq_length()
        states = inputs_embeds
        if self.join is not None and encoder_outputs.edit_vector is not None:
            vector = encoder_outputs.edit_vector.unsqueeze(1).expand(-1, states.shape[1], -1)
            states = self.join(torch.cat((states, vector), dim=-1))
        mask = causal_mask(attention_mask, states.shape[1], past, states)
        states = self.dropout(states + position_states(attention_mask, states, past))
        memories = self._make_memories(encoder_outputs, encoder_attention_mask)
        for layer in self.layers:
            states = layer(states, mask, memories, cache=cache, output_attentions=output_attentions)
        return DecoderOutput(last_hidden_state=states, cache=cache if use_cache else None)

    def _make_memories(self, encoder_outputs: FsetEncoderOutput, mask: Tensor | None) -> Sequence[Memory]:
        source = encoder_outputs.last_hidden_state
        memories = [Memory(source, source, additive_mask(mask, source.dtype))]
        if self.config.use_micro_edits:
            edits = encoder_outputs.retrieved_states, encoder_outputs.micro_edit_vectors
            memories.append(Memory(*edits, additive_mask(encoder_outputs.retrieved_mask, source.dtype)))
        return memories


class FsetModel(EncoderDecoder, FsetPreTrainedModel):
    """The Editor of Kazemnejad et al. 2020, section 3.2, without the output layer.

    The encoder reads x and, in the Edit Provider, the retrieved pair (p, q); the decoder joins z to each of its input
    tokens and attends to R_x, then to the micro edits: `h' = MultiHead(Q: h, K: R_p, V: M)`. Readings where the paper
    leaves a choice: one embedding table serves x, p, q and y, which have one language and one vocabulary; a linear map
    without bias brings the joined token and z back to the layers' width; positions are sines and cosines.
    """

    encoder_class, decoder_class = FsetEncoder, FsetDecoder
    encoder_output_class, encoder_output_reason = FsetEncoderOutput, "it carries the edits"
    output_class = FsetModelOutput

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
        encoder_outputs: FsetEncoderOutput | None = None,
        cache: EncoderDecoderCache | None = None,
        use_cache: bool | None = None,
        output_edits: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> FsetModelOutput:
        """Encode x and the pair unless `encoder_outputs` are given, and run the decoder over its inputs.

        Other arguments and errors are those of `EncoderDecoder.forward`.

        Args:
            retrieved_source_ids: Words of p, `(batch, retrieved_length)`.
            retrieved_source_mask: Its mask, as `attention_mask`.
            retrieved_target_ids: Words of q, `(batch, retrieved_target_length)`.
            retrieved_target_mask: Its mask.
            output_edits: Return `edit_vector` (z) and `micro_edit_vectors` (M).
            kwargs: With `output_attentions` the weights over p are returned as `retrieved_attentions`.
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
        states = self.embed_targets(decoder_input_ids) * self.config.hidden_size**0.5
        masks = attention_mask, decoder_attention_mask
        outputs = self.decode(states, encoder_outputs, *masks, cache, use_cache, **kwargs)
        names = ("edit_vector", "micro_edit_vectors") if output_edits else ()
        edits = {name: getattr(encoder_outputs, name) for name in names}
        if outputs.cross_attentions is not None and self.config.use_micro_edits:
            edits["retrieved_attentions"] = outputs.cross_attentions[1::2]
            outputs.cross_attentions = outputs.cross_attentions[::2]
        return self.join_outputs(encoder_outputs, outputs, **edits)


class FsetForConditionalGeneration(LanguageModelHeadMixin, FsetPreTrainedModel, GenerationMixin):
    """FSET with a softmax over the vocabulary, for training and `generate()`, which takes the retrieved pairs too.

    With the sizes of Table 1, 8,000 words and tied embeddings it has 1,786,728 parameters. The paper calls its own
    half the size of its LSTM baseline and a fifth of its Transformer's. Of our `hub_configs`, `transformer-quora` has
    8,973,312, and the small baselines `residual-lstm-quora-small` and `transformer-quora-small` have 6,529,344 and
    4,675,584.
    """

    _tied_weights_keys = {"lm_head.weight": "model.encoder.embed_tokens.weight"}
    output_class = FsetSeq2SeqLMOutput
    forward = scored(FsetModel.forward)

    def __init__(self, config: FsetConfig):
        super().__init__(config)
        self.model = FsetModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()
