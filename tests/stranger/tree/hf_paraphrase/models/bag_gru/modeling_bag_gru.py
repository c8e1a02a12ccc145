from __future__ import annotations

import torch
from torch import nn
from transformers import GenerationMixin, PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput
from transformers.utils import can_return_tuple

from ..layers.language_model_head import LanguageModelHeadMixin, language_model_loss
from ..layers.portable import PortableModel
from ..layers.token_ids import embed
from .configuration_bag_gru import BagGruConfig


class BagGruCache:
    """What the decoder remembers between two steps of `generate()`: the GRU's state `(batch, hidden_size)`."""

    is_compileable = False

    def __init__(self, state: torch.Tensor):
        self.state, self.seen_tokens = state, 0

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of decoder positions seen."""
        return self.seen_tokens

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        """Keep, for every beam, the state of the hypothesis that it continues."""
        self.state = self.state.index_select(0, beam_idx)


class BagGruPreTrainedModel(PortableModel, PreTrainedModel):
    config_class = BagGruConfig
    base_model_prefix = "model"
    _skip_keys_device_placement = ["cache"]

    def _init_weights(self, module: nn.Module) -> None:
        bound = self.config.initializer_range
        for parameter in module.parameters(recurse=False):
            init.uniform_(parameter, -bound, bound)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False


class BagGruEncoder(BagGruPreTrainedModel):
    """The mean of the words, whatever their order, through one tanh layer."""

    def __init__(self, config: BagGruConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layer = nn.Linear(config.hidden_size, config.hidden_size)
        self.post_init()

    @can_return_tuple
    def forward(
        self, input_ids=None, attention_mask=None, inputs_embeds=None, output_hidden_states=False, **kwargs
    ) -> BaseModelOutput:
        if inputs_embeds is None:
            inputs_embeds = embed(self.embed_tokens, input_ids, "input_ids")
        if attention_mask is None:
            attention_mask = inputs_embeds.new_ones(inputs_embeds.shape[:2])
        real = attention_mask.to(inputs_embeds.dtype).unsqueeze(-1)
        mean = (inputs_embeds * real).sum(1, keepdim=True) / real.sum(1, keepdim=True).clamp(min=1)
        state = torch.tanh(self.layer(mean))
        return BaseModelOutput(state, hidden_states=(state,) if output_hidden_states else None)


class BagGruModel(BagGruPreTrainedModel):
    """The encoder, and a GRU (Cho et al. 2014, section 2.3) that starts from its state, without the output layer."""

    def __init__(self, config: BagGruConfig):
        super().__init__(config)
        self.encoder = BagGruEncoder(config)
        self.decoder = nn.GRUCell(config.hidden_size, config.hidden_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.encoder.embed_tokens

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        self.encoder.embed_tokens = value

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: BaseModelOutput | None = None,
        cache: BagGruCache | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> Seq2SeqModelOutput:
        """Encode the source unless `encoder_outputs` are given, and run the decoder over its inputs.

        Args:
            input_ids: Source words `(batch, source_length)`.
            attention_mask: `(batch, source_length)`, 0 at padding, which may stand anywhere.
            decoder_input_ids: Target words so far `(batch, target_length)`; with `cache`, the new ones only.
            decoder_attention_mask: `(batch, target_length)`, 0 at padding.
            encoder_outputs: What the encoder returned for this source.
            cache: The cache of the steps before; it is updated in place and returned.
            inputs_embeds: `(batch, source_length, hidden_size)` in place of `input_ids`.
            use_cache: Return the cache; `config.use_cache` by default.
            output_hidden_states: Return the encoder's state, and the decoder's inputs and states.
        """
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask, inputs_embeds, output_hidden_states)
        words = embed(self.encoder.embed_tokens, decoder_input_ids, "decoder_input_ids")
        real = torch.ones_like(decoder_input_ids) if decoder_attention_mask is None else decoder_attention_mask
        cache = cache or BagGruCache(encoder_outputs.last_hidden_state[:, 0])
        states = self._run(words, real[:, -words.shape[1] :].bool(), cache.state)
        cache.state, cache.seen_tokens = states[:, -1], cache.seen_tokens + words.shape[1]
        return Seq2SeqModelOutput(
            last_hidden_state=states,
            cache=cache if (self.config.use_cache if use_cache is None else use_cache) else None,
            decoder_hidden_states=(words, states) if output_hidden_states else None,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
        )

    def _run(self, words: torch.Tensor, real: torch.BoolTensor, state: torch.Tensor) -> torch.Tensor:
        """The states `(batch, length, hidden_size)`; where there is no word, the one before it."""
        states = []
        for t in range(words.shape[1]):
            state = torch.where(real[:, t : t + 1], self.decoder(words[:, t], state), state)
            states.append(state)
        return torch.stack(states, dim=1)


class BagGruForConditionalGeneration(LanguageModelHeadMixin, BagGruPreTrainedModel, GenerationMixin):
    """The encoder-decoder with a softmax over the vocabulary, for training and `generate()`."""

    _tied_weights_keys = {"lm_head.weight": "model.encoder.embed_tokens.weight"}

    def __init__(self, config: BagGruConfig):
        super().__init__(config)
        self.model = BagGruModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        labels: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        **kwargs,
    ) -> Seq2SeqLMOutput:
        """Score every next word; the arguments are those of `BagGruModel.forward`, and `labels`.

        Args:
            labels: Target words `(batch, target_length)`, -100 where there is none. The decoder's inputs are made from
                them, shifted to the right, unless they are given.
        """
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None:
                decoder_input_ids, decoder_attention_mask = self.read_labels(labels, decoder_attention_mask)
        sides = (input_ids, attention_mask, decoder_input_ids, decoder_attention_mask)
        outputs = self.model(*sides, inputs_embeds=inputs_embeds, use_cache=use_cache, **kwargs)
        logits = self.lm_head(outputs.last_hidden_state)
        further = {name: value for name, value in outputs.items() if name != "last_hidden_state"}
        return Seq2SeqLMOutput(loss=language_model_loss(logits, labels), logits=logits, **further)
