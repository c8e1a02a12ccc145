from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import GenerationMixin, PreTrainedConfig
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqModelOutput
from transformers.utils import can_return_tuple

from ..layers.encoder_decoder import SET_BY_MODEL, DecoderOutput, EncoderDecoder, WritingPreTrainedModel
from ..layers.language_model_head import LanguageModelHeadMixin, scored
from ..layers.layer_weights import draw_uniform
from ..layers.lstm_kernels import LstmState
from ..layers.recurrent import AdditiveAttention, RecurrentCache, StackedLstm, count_source_beams
from ..layers.token_ids import embed
from .configuration_residual_lstm import ResidualLstmConfig


@dataclass
class ResidualLstmEncoderOutput(BaseModelOutput):
    """Encoder outputs with the final state, batch first so that `generate()` can repeat it for every beam.

    Args:
        last_hidden_state: `(batch, source_length, memory_size)`, zero at padding.
        final_hidden: h of every layer and direction after the last real word, `(batch, layers, hidden_size)`.
        final_cell: c of the same shape.
        hidden_states: On request, the embeddings and every layer's output.
    """

    last_hidden_state: Tensor = SET_BY_MODEL
    final_hidden: Tensor = SET_BY_MODEL
    final_cell: Tensor = SET_BY_MODEL


class ResidualLstmPreTrainedModel(WritingPreTrainedModel):
    config_class: type[PreTrainedConfig] = ResidualLstmConfig
    _no_split_modules = ["StackedLstm"]

    def _init_weights(self, module: nn.Module) -> None:
        # The base class would draw LSTM weights by Xavier's rule; these models start uniform (config docstring).
        draw_uniform(module, self.config.initializer_range)

    def _resize_token_embeddings(self, new_num_tokens, pad_to_multiple_of=None, mean_resizing=True):
        embeddings = super()._resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        decoder = self.get_decoder()
        if decoder.embed_tokens is not None:
            decoder.embed_tokens = self._get_resized_embeddings(
                decoder.embed_tokens, embeddings.num_embeddings, mean_resizing=mean_resizing
            )
        return embeddings


class ResidualLstmEncoder(ResidualLstmPreTrainedModel):
    def __init__(self, config: ResidualLstmConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size, config.pad_token_id)
        self.lstm = StackedLstm(
            config.embedding_size,
            config.hidden_size,
            config.encoder_layers,
            config.residual_interval,
            config.dropout,
            config.bidirectional_encoder,
        )
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> ResidualLstmEncoderOutput:
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("pass either `input_ids` or `inputs_embeds` to the encoder")
        if input_ids is not None:
            inputs_embeds = embed(self.embed_tokens, input_ids, "input_ids")
        outputs, (h, c), layers = self.lstm(
            inputs_embeds, attention_mask, output_hidden_states=bool(output_hidden_states)
        )
        return ResidualLstmEncoderOutput(
            last_hidden_state=outputs,
            final_hidden=h.transpose(0, 1),
            final_cell=c.transpose(0, 1),
            hidden_states=None if layers is None else (inputs_embeds, *layers),
        )


class StateBridge(nn.Module):
    """Linear maps from the two directions' final states to the state in which each decoder layer starts.

    Decoder layers 2k and 2k + 1 both read layer k of the encoder, which has half as many layers.
    """

    def __init__(self, config: ResidualLstmConfig):
        super().__init__()
        sizes = (2 * config.hidden_size, config.hidden_size)
        self.hidden = nn.ModuleList(nn.Linear(*sizes) for _ in range(config.num_layers))
        self.cell = nn.ModuleList(nn.Linear(*sizes) for _ in range(config.num_layers))

    def forward(self, state: LstmState) -> LstmState:
        """Map (h, c) of `(layers * 2, batch, hidden_size)` to the same of `(num_layers, batch, hidden_size)`."""
        return self._map(self.hidden, state[0]), self._map(self.cell, state[1])

    @staticmethod
    def _map(maps: nn.ModuleList, part: Tensor) -> Tensor:
        both = [torch.cat((part[i], part[i + 1]), dim=-1) for i in range(0, len(part), 2)]
        return torch.stack([linear(both[layer // 2]) for layer, linear in enumerate(maps)])


class ResidualLstmDecoder(ResidualLstmPreTrainedModel):
    def __init__(self, config: ResidualLstmConfig):
        super().__init__(config)
        self.embed_tokens = None
        if not config.share_embeddings:
            self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size, config.pad_token_id)
        self.lstm = StackedLstm(
            config.decoder_input_size, config.hidden_size, config.num_layers, config.residual_interval, config.dropout
        )
        self.bridge = StateBridge(config) if config.bidirectional_encoder else None
        self.attention = self.combine = None
        if config.attention is not None:
            self.attention = AdditiveAttention(
                config.hidden_size, config.memory_size, cast(int, config.attention_size)
            )
            self.combine = nn.Linear(config.hidden_size + config.memory_size, config.hidden_size, bias=False)
        self.post_init()

    def init_cache(self, encoder_outputs: Any) -> RecurrentCache:
        """Start from the encoder's final (h, c), layer by layer, with the attention keys of its outputs."""
        final = (encoder_outputs.final_hidden, encoder_outputs.final_cell)
        h, c = (part.transpose(0, 1).contiguous() for part in final)
        memory, keys, beams = encoder_outputs.last_hidden_state, None, 1
        if self.attention is not None:
            beams = count_source_beams(memory)
            keys = self.attention.project_keys(memory[::beams])
            keys = keys if beams == 1 else keys.repeat_interleave(beams, dim=0)
        return RecurrentCache((h, c) if self.bridge is None else self.bridge((h, c)), keys, beams=beams)

    @can_return_tuple
    def forward(
        self,
        inputs_embeds: Tensor,
        attention_mask: Tensor | None = None,
        *,
        encoder_outputs: ResidualLstmEncoderOutput,
        encoder_attention_mask: Tensor | None = None,
        cache: RecurrentCache | None = None,
        use_cache: bool = True,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> DecoderOutput:
        if cache is None:
            cache = self.init_cache(encoder_outputs)
        length = inputs_embeds.shape[1]
        if attention_mask is not None:
            attention_mask = attention_mask[:, -length:]
        outputs, state, layers = self.lstm(
            inputs_embeds, attention_mask, cache.state, bool(output_hidden_states), cache.prepacked
        )
        weights = None
        if self.attention is not None:
            sources = (encoder_outputs.last_hidden_state, encoder_attention_mask)
            outputs, weights = self._attend(self.attention, outputs, *sources, cache)
        if use_cache:
            cache.update(state, length)
        return DecoderOutput(
            last_hidden_state=outputs,
            cache=cache if use_cache else None,
            hidden_states=None if layers is None else (inputs_embeds, *layers),
            cross_attentions=(weights.unsqueeze(1),) if output_attentions and weights is not None else None,
        )

    def _attend(
        self, attention: AdditiveAttention, outputs, memory, memory_mask, cache: RecurrentCache
    ) -> tuple[Tensor, Tensor]:
        """Attend from all positions at once."""
        rows, length, _ = outputs.shape
        # In a step, the beams of one source are queries to the same memory.
        beams = cache.beams if length == 1 and _have_one_mask(memory_mask, cache.beams) else 1
        queries = cache.prepacked.linear(attention.query, outputs).reshape(rows // beams, length * beams, -1)
        keys, mask = cast(Tensor, cache.attention_keys), None if memory_mask is None else memory_mask[::beams]
        found = attention(queries, keys[::beams], memory[::beams], mask)
        context, weights = (part.reshape(rows, length, -1) for part in found)
        combined = cache.prepacked.linear(cast(nn.Linear, self.combine), torch.cat((outputs, context), dim=-1))
        return torch.tanh(combined), weights


def _have_one_mask(mask: Tensor | None, beams: int) -> bool:
    return mask is None or beams == 1 or bool((mask.unflatten(0, (-1, beams)) == mask[::beams, None]).all())


class ResidualLstmModel(EncoderDecoder, ResidualLstmPreTrainedModel):
    """The encoder and decoder of Prakash et al. 2016, section 2, without the output layer.

    The encoder reads the source; the decoder starts from its final (h, c), layer by layer. Readings where the paper
    leaves a choice: the additive attention scores with the decoder's top state and its context joins that state in one
    tanh layer before the output layer, so that teacher forcing stays one fused call; a bi-directional encoder's two
    final states reach the decoder's layers by linear maps.
    """

    encoder: ResidualLstmEncoder
    decoder: ResidualLstmDecoder

    encoder_class: type[Any] = ResidualLstmEncoder
    decoder_class: type[Any] = ResidualLstmDecoder
    encoder_output_class: type[BaseModelOutput] = ResidualLstmEncoderOutput
    encoder_output_reason = "it carries the final state"

    def get_decoder_embeddings(self) -> nn.Embedding:
        return self.encoder.embed_tokens if self.decoder.embed_tokens is None else self.decoder.embed_tokens


class ResidualLstmForConditionalGeneration(LanguageModelHeadMixin, ResidualLstmPreTrainedModel, GenerationMixin):
    """The encoder-decoder of Prakash et al. 2016 with a softmax over the vocabulary, for training and `generate()`."""

    model_class = ResidualLstmModel
    forward = scored(ResidualLstmModel.forward)

    def __init__(self, config: ResidualLstmConfig):
        super().__init__(config)
        self.model = self.model_class(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        table = "encoder" if config.share_embeddings else "decoder"
        self._tied_weights_keys = {"lm_head.weight": f"model.{table}.embed_tokens.weight"}
        self.post_init()

    def project(self, outputs: Seq2SeqModelOutput) -> Tensor:
        hidden, cache = outputs.last_hidden_state, outputs.cache
        return super().project(outputs) if cache is None else cache.prepacked.linear(self.lm_head, hidden)

    @property
    def attends_to_words(self) -> bool:
        """Whether there is attention."""
        return self.config.attention is not None
