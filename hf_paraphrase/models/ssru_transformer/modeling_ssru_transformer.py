from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache, GenerationMixin
from transformers.cache_utils import DynamicLayer
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.marian.modeling_marian import MarianAttention, MarianDecoderLayer, MarianEncoderLayer
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from ..layers.encoder_decoder import DecoderOutput, EncoderDecoder, WritingPreTrainedModel
from ..layers.language_model_head import LanguageModelHeadMixin, scored
from ..layers.precision import at_least_single
from ..layers.scan import is_traced, scan
from ..layers.token_ids import embed
from ..layers.transformer import additive_mask, position_states, zero_padding
from .configuration_ssru_transformer import SsruTransformerConfig


class StateLayer(DynamicLayer):
    """A layer of a cache that keeps only the last of its states: `keys` is `(batch, 1, 1, d_model)`."""

    is_croppable = False

    def __init__(self):
        super().__init__()
        self.cumulative_length = 0

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Go on by the states of some positions, `(batch, 1, length, d_model)`; there are no values."""
        self.cumulative_length += key_states.shape[2]
        self.keys, self.values, self.is_initialized = key_states[:, :, -1:], value_states, True
        return self.keys, self.values

    def get_seq_length(self) -> int:
        """Return the number of positions that led to the state."""
        return self.cumulative_length


class Ssru(nn.Module):
    """The simpler simple recurrent unit of Kim et al. 2019, section 2.1, instead of a decoder's self-attention.

    x_t = W h_t,  f_t = σ(W_f h_t + b_f),  c_t = f_t ∘ c_{t-1} + (1 - f_t) ∘ x_t,  output ReLU(c_t)
    """

    def __init__(self, size: int, layer_idx: int):
        super().__init__()
        self.layer_idx = layer_idx
        self.w = nn.Linear(size, size, bias=False)
        self.f = nn.Linear(size, size)

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, None]:
        """Read a sequence, with the arguments and results of the attention that it replaces.

        Args:
            hidden_states: `(batch, length, size)`.
            attention_mask: `(batch, length, 1)`, false at padding, where the state is unchanged.
            cache: Holds the initial state, and receives the last one.

        Returns:
            `(batch, length, size)`, and None for weights.
        """
        x, forget = at_least_single(self.w(hidden_states)), at_least_single(self.f(hidden_states)).sigmoid()
        added = x - forget * x
        if attention_mask is not None:
            forget, added = forget.masked_fill(~attention_mask, 1.0), added.masked_fill(~attention_mask, 0.0)
        own = None if cache is None else cache.self_attention_cache
        if own is None or own.get_seq_length(self.layer_idx) == 0:
            state = torch.zeros_like(added[:, 0])
        else:
            layer: Any = own.layers[self.layer_idx]
            state = layer.keys[:, 0, 0]
        states = recur(state, forget, added)
        if own is not None:
            own.update(states.unsqueeze(1), states[:, None, :0], self.layer_idx)
        return states.relu().to(hidden_states.dtype), None


def recur(state: Tensor, forget: Tensor, added: Tensor) -> Tensor:
    """Compute all c_t = forget_t ∘ c_{t-1} + added_t, `(batch, length, size)`, from c_0, `(batch, size)`.

    Two operations a position and direction: on a CPU this is several times as fast as indexing the positions, and as
    a scan in a logarithmic number of steps, which does more work.
    """
    if is_traced():

        def step(c, f, a):
            c = torch.addcmul(a, f, c)
            return c, c.clone()

        _, (scanned,) = scan(step, [state], [forget.transpose(0, 1), added.transpose(0, 1)])
        return scanned.transpose(0, 1)
    states = []
    for f, a in zip(forget.unbind(1), added.unbind(1), strict=True):
        state = torch.addcmul(a, f, state)
        states.append(state)
    return torch.stack(states, dim=1)


class SsruDecoderLayer(MarianDecoderLayer):
    """Marian's decoder layer with an SSRU for self-attention."""

    def __init__(self, config: SsruTransformerConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        self.self_attn = Ssru(config.d_model, layer_idx)

    def forward(
        self,
        states: Tensor,
        real: Tensor | None,
        memory: Tensor,
        memory_mask: Tensor | None,
        cache: EncoderDecoderCache | None,
    ) -> Tensor:
        """Read targets, of which several that follow each other may have one source, such as the beams of a text.

        Args:
            states: `(targets, length, d_model)`.
            real: `(targets, length, 1)`, false at padding.
            memory: `(sources, source_length, d_model)`.
            memory_mask: Added to the scores, `(sources, 1, 1, source_length)`.
            cache: Holds the states of all targets, and the keys and values of all sources.
        """
        outputs, _ = self.self_attn(states, real, cache)
        states = self.self_attn_layer_norm(states + self.drop(outputs, self.dropout))
        by_source = states.view(memory.shape[0], -1, states.shape[2])
        outputs, _ = self.encoder_attn(by_source, memory, attention_mask=memory_mask, cache=cache)
        states = self.encoder_attn_layer_norm(states + self.drop(outputs.view_as(states), self.dropout))
        inner = self.drop(self.activation_fn(self.fc1(states)), self.activation_dropout)
        return self.final_layer_norm(states + self.drop(self.fc2(inner), self.dropout))

    def drop(self, states: Tensor, share: float) -> Tensor:
        """Apply dropout while training."""
        return nn.functional.dropout(states, share, self.training)


class SsruTransformerPreTrainedModel(WritingPreTrainedModel):
    config_class = SsruTransformerConfig
    _no_split_modules = ["MarianEncoderLayer", "SsruDecoderLayer"]

    def add_positions(self, inputs_embeds: Tensor, attention_mask: Tensor | None, past: int = 0) -> Tensor:
        """Scale embeddings `(batch, length, d_model)`, and add positions counted without padding.

        As in Marian, all sines precede all cosines.
        """
        if self.config.scale_embedding:
            inputs_embeds = inputs_embeds * self.config.d_model**0.5
        waves = position_states(attention_mask, inputs_embeds, past)
        states = inputs_embeds + waves.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
        return nn.functional.dropout(states, self.config.dropout, self.training)


class SsruTransformerEncoder(SsruTransformerPreTrainedModel):
    _can_record_outputs = {"hidden_states": MarianEncoderLayer, "attentions": OutputRecorder(MarianAttention, index=1)}

    def __init__(self, config: SsruTransformerConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.layers = nn.ModuleList(MarianEncoderLayer(config, index) for index in range(config.encoder_layers))
        self.post_init()

    # `hidden_states[-1]` is what the last layer returned; `last_hidden_state` is zero at padding.
    @capture_outputs(tie_last_hidden_states=False)
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> BaseModelOutput:
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("pass either `input_ids` or `inputs_embeds` to the encoder")
        if input_ids is not None:
            inputs_embeds = embed(self.embed_tokens, input_ids, "input_ids")
        states = self.add_positions(cast(Tensor, inputs_embeds), attention_mask)
        mask = additive_mask(attention_mask, states.dtype)
        for layer in self.layers:
            states = layer(states, mask)
        return BaseModelOutput(zero_padding(states, attention_mask))


class SsruTransformerDecoder(SsruTransformerPreTrainedModel):
    _can_record_outputs = {
        "hidden_states": SsruDecoderLayer,
        "cross_attentions": OutputRecorder(MarianAttention, index=1, layer_name="encoder_attn"),
    }

    def __init__(self, config: SsruTransformerConfig):
        super().__init__(config)
        self.layers = nn.ModuleList(SsruDecoderLayer(config, index) for index in range(config.decoder_layers))
        self.post_init()

    @capture_outputs
    def forward(
        self,
        inputs_embeds: Tensor,
        attention_mask: Tensor | None = None,
        *,
        encoder_outputs: BaseModelOutput,
        encoder_attention_mask: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        use_cache: bool = True,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> DecoderOutput:
        if use_cache and cache is None:
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
            cache.self_attention_cache.layers = [StateLayer() for _ in self.layers]
        past = 0 if cache is None else cache.get_seq_length()
        states = self.add_positions(inputs_embeds, attention_mask, past)
        real = None if attention_mask is None else attention_mask[:, past:, None].bool()
        source_mask = additive_mask(encoder_attention_mask, states.dtype)
        for layer in self.layers:
            states = layer(states, real, encoder_outputs.last_hidden_state, source_mask, cache)
        return DecoderOutput(states, cache=cache if use_cache else None)


class SsruTransformerModel(EncoderDecoder, SsruTransformerPreTrainedModel):
    """A Transformer encoder, and a decoder of SSRUs and attention to the source, without the output layer.

    This is Marian's Transformer with the option `transformer-decoder-autoreg: rnn` and SSRU cells, in which Bergamot's
    students translate. Sub-layers end in dropout, the residual connection and layer normalisation. Attention runs in
    plain operations, which for sentences are as fast as the fused ones.
    """

    encoder_class, decoder_class = SsruTransformerEncoder, SsruTransformerDecoder
    encoder_output_class, encoder_output_reason = BaseModelOutput, "the last hidden state, in a `BaseModelOutput`"


class SsruTransformerForConditionalGeneration(LanguageModelHeadMixin, SsruTransformerPreTrainedModel, GenerationMixin):
    """The encoder-decoder with a softmax over the vocabulary, for training and `generate()`."""

    _tied_weights_keys = {"lm_head.weight": "model.encoder.embed_tokens.weight"}
    # Whether several targets may have one source: see `SsruDecoderLayer`.
    shares_sources = True
    forward = scored(SsruTransformerModel.forward)

    def __init__(self, config: SsruTransformerConfig):
        super().__init__(config)
        self.model = SsruTransformerModel(config)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size)
        self.post_init()
