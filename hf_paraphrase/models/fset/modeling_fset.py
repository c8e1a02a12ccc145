from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from transformers import DynamicCache, EncoderDecoderCache, GenerationMixin, PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs, can_return_tuple
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from ..layers.dropout import Dropout
from ..layers.encoder_decoder import SET_BY_MODEL, EncoderDecoder
from ..layers.language_model_head import LanguageModelHeadMixin, scored
from ..layers.portable import PortableModel
from ..layers.token_ids import embed
from ..layers.transformer import (
    Memory,
    MultiHeadAttention,
    PostNormLayer,
    additive_mask,
    causal_mask,
    position_states,
    zero_padding,
)
from .configuration_fset import FsetConfig
from .edit_provider import EditProvider, SoleMap, Tokens

__all__ = ["FsetForConditionalGeneration", "FsetModel", "FsetPreTrainedModel"]


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

    last_hidden_state: torch.Tensor = SET_BY_MODEL
    edit_vector: torch.Tensor | None = None
    micro_edit_vectors: torch.Tensor = SET_BY_MODEL
    retrieved_states: torch.Tensor = SET_BY_MODEL
    retrieved_mask: torch.Tensor = SET_BY_MODEL


@dataclass
class FsetModelOutput(Seq2SeqModelOutput):
    """`Seq2SeqModelOutput` with the edits and, on request, the weights over p; see `FsetSeq2SeqLMOutput`."""

    edit_vector: torch.Tensor | None = None
    micro_edit_vectors: torch.Tensor | None = None
    retrieved_attentions: tuple[torch.Tensor, ...] | None = None


@dataclass
class FsetSeq2SeqLMOutput(Seq2SeqLMOutput):
    """`Seq2SeqLMOutput` with the requested outputs of the edits.

    Args:
        edit_vector: z, `(batch, edit_vector_size)`, with `output_edits=True`.
        micro_edit_vectors: M, `(batch, retrieved_length, micro_edit_size)`, with `output_edits=True`.
        retrieved_attentions: With `output_attentions=True`, every decoder layer's weights over the tokens of p,
            `(batch, num_heads, target_length, retrieved_length)`; those over x are `cross_attentions`.
    """

    edit_vector: torch.Tensor | None = None
    micro_edit_vectors: torch.Tensor | None = None
    retrieved_attentions: tuple[torch.Tensor, ...] | None = None


class FsetPreTrainedModel(PortableModel, PreTrainedModel):
    config_class = FsetConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _skip_keys_device_placement = ["cache"]
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

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        # The decoder makes its own: the cross-attention's has two entries a layer, for x and for p.
        return False


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
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        retrieved_source_ids: torch.Tensor | None = None,
        retrieved_source_mask: torch.Tensor | None = None,
        retrieved_target_ids: torch.Tensor | None = None,
        retrieved_target_mask: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> FsetEncoderOutput:
        x = self._look_up("input_ids", input_ids, attention_mask)
        p = self._look_up("retrieved_source_ids", retrieved_source_ids, retrieved_source_mask)
        q = self._look_up("retrieved_target_ids", retrieved_target_ids, retrieved_target_mask)
        if not x.mask.shape[0] == p.mask.shape[0] == q.mask.shape[0]:
            raise ValueError(
                f"{x.mask.shape[0]} sources have {p.mask.shape[0]} retrieved sources and {q.mask.shape[0]} targets"
            )
        edits = self.edit_provider(p, q)
        states, mask = x.states + position_states(attention_mask, x.states), additive_mask(attention_mask, self.dtype)
        states = self.dropout(states)
        for layer in self.layers:
            states = layer(states, mask, output_attentions=output_attentions)
        return FsetEncoderOutput(
            last_hidden_state=zero_padding(states, attention_mask),
            edit_vector=edits.vector,
            micro_edit_vectors=edits.micro,
            retrieved_states=edits.positions,
            retrieved_mask=p.mask,
        )

    def _look_up(self, name: str, ids: torch.Tensor | None, mask: torch.Tensor | None) -> Tokens:
        if ids is None:
            raise ValueError(
                f"`{name}` is missing: this model edits `input_ids` as the retrieved pair was edited, so it needs "
                "`input_ids`, `retrieved_source_ids` and `retrieved_target_ids` (`ParaphraseRetriever` finds pairs)"
            )
        return Tokens(
            embed(self.embed_tokens, ids, name) * self.config.hidden_size**0.5,
            torch.ones_like(ids) if mask is None else mask,
        )


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
        inputs_embeds: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        *,
        encoder_outputs: FsetEncoderOutput,
        encoder_attention_mask: torch.Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        use_cache: bool = True,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
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
        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=states, cache=cache if use_cache else None)

    def _make_memories(self, encoder_outputs: FsetEncoderOutput, mask: torch.Tensor | None) -> Sequence[Memory]:
        source = encoder_outputs.last_hidden_state
        memories = [Memory(source, source, additive_mask(mask, source.dtype))]
        if self.config.use_micro_edits:
            retrieved_mask = additive_mask(encoder_outputs.retrieved_mask, source.dtype)
            memories.append(
                Memory(encoder_outputs.retrieved_states, encoder_outputs.micro_edit_vectors, retrieved_mask)
            )
        return memories


class FsetModel(EncoderDecoder, FsetPreTrainedModel):
    """The Editor of Kazemnejad et al. 2020, section 3.2, without the output layer.

    The encoder reads x and, in the Edit Provider, the retrieved pair (p, q); the decoder joins z to each of its input
    tokens and attends to R_x, then to the micro edits: `h' = MultiHead(Q: h, K: R_p, V: M)`. Readings where the paper
    leaves a choice: one embedding table serves x, p, q and y, which have one language and one vocabulary; a linear map
    without bias brings the joined token and z back to the layers' width; positions are sines and cosines.
    """

    encoder: FsetEncoder
    decoder: FsetDecoder

    encoder_output_class, encoder_output_reason = FsetEncoderOutput, "it carries the edits"
    output_class = FsetModelOutput

    def __init__(self, config: FsetConfig):
        super().__init__(config)
        self.encoder = FsetEncoder(config)
        self.decoder = FsetDecoder(config)
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
        decoder_input_ids: torch.Tensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: FsetEncoderOutput | None = None,
        cache: EncoderDecoderCache | None = None,
        use_cache: bool | None = None,
        output_edits: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> FsetModelOutput:
        """Encode x and the pair unless `encoder_outputs` are given, and run the decoder over its inputs.

        Args:
            input_ids: Words of x, `(batch, source_length)`.
            attention_mask: `(batch, source_length)`, 0 at padding, which may stand on either side or between; so too
                the masks below.
            retrieved_source_ids: Words of p, `(batch, retrieved_length)`.
            retrieved_source_mask: Its mask.
            retrieved_target_ids: Words of q, `(batch, retrieved_target_length)`.
            retrieved_target_mask: Its mask.
            decoder_input_ids: Target words so far `(batch, target_length)`; with `cache`, the new ones only.
            decoder_attention_mask: `(batch, target_length)`, all words so far; only needed where padding stands before
                a target word.
            encoder_outputs: What the encoder returned for these inputs.
            cache: The cache of the steps before. It is updated in place and returned.
            use_cache: Return the cache; `config.use_cache` by default.
            output_edits: Return `edit_vector` (z) and `micro_edit_vectors` (M).
            kwargs: `output_hidden_states` to return the embeddings and every layer's output of encoder and decoder;
                `output_attentions` to return all weights: those over x as `cross_attentions`, those over p as
                `retrieved_attentions`.

        Returns:
            `last_hidden_state` of shape `(batch, target_length, hidden_size)` and the requested outputs.

        Raises:
            ValueError: An id is not in the vocabulary, or an input is missing.
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
        if decoder_input_ids is None:
            raise ValueError("pass `decoder_input_ids` (or `labels` to the LM head)")
        outputs = self.decoder(
            embed(self.encoder.embed_tokens, decoder_input_ids, "decoder_input_ids") * self.config.hidden_size**0.5,
            attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            encoder_attention_mask=attention_mask,
            cache=cache,
            use_cache=self.config.use_cache if use_cache is None else use_cache,
            return_dict=True,
            **kwargs,
        )
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
