"""Shared by all encoder-decoders here: embeddings, handling of encoder outputs, the forward pass, return values."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqModelOutput,
)
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs, can_return_tuple

from .portable import PortableModel
from .token_ids import embed

# What a decoder returns.
DecoderOutput = BaseModelOutputWithPastAndCrossAttentions

# The default of fields that a model sets before it reads them: a `ModelOutput` may have one field without a default.
SET_BY_MODEL: Any = None

EncoderOutput = TypeVar("EncoderOutput", bound=BaseModelOutput)


class WritingPreTrainedModel(PortableModel, PreTrainedModel):
    """Base of the encoder-decoders of a family, whose decoder makes its own cache."""

    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _skip_keys_device_placement = ["cache"]

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False


class EncoderDecoder(PreTrainedModel):
    """Mixin, before a family's base class, for models of an `encoder`, which has the embeddings, and a `decoder`."""

    encoder: PreTrainedModel
    decoder: PreTrainedModel

    # What the encoder returns, why no other's outputs will do, and what forward returns.
    encoder_output_class: type[BaseModelOutput]
    encoder_output_reason: str
    output_class: type[Seq2SeqModelOutput] = Seq2SeqModelOutput
    encoder_class: type[Any]
    decoder_class: type[Any]

    def __init__(self, config: Any):
        super().__init__(config)
        self.encoder, self.decoder = self.encoder_class(config), self.decoder_class(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.embed_tokens = value

    def get_decoder_embeddings(self) -> nn.Embedding:
        """Return the table that embeds the decoder's inputs: the encoder's, unless a family has two."""
        return cast(nn.Embedding, self.encoder.embed_tokens)

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        cache: Any = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> Seq2SeqModelOutput:
        """Encode the source unless `encoder_outputs` are given, and run the decoder over its inputs.

        Args:
            input_ids: Source words `(batch, source_length)`.
            attention_mask: `(batch, source_length)`, 0 at padding, which may stand on either side or between.
            decoder_input_ids: Target words so far `(batch, target_length)`; with `cache`, the new ones only.
            decoder_attention_mask: `(batch, target_length)`, all words so far; only needed where padding stands before
                a target word.
            encoder_outputs: What the encoder returned for this source.
            cache: The cache of the steps before. It is updated in place and returned.
            inputs_embeds: `(batch, source_length, embedding_size)`, instead of `input_ids`.
            decoder_inputs_embeds: `(batch, target_length, embedding_size)`, instead of `decoder_input_ids`.
            use_cache: Return the cache; `config.use_cache` by default.
            kwargs: `output_hidden_states` to return the embeddings and every layer's output of encoder and decoder;
                `output_attentions` to return all weights there are, those over the source as `cross_attentions`.

        Returns:
            `last_hidden_state` of shape `(batch, target_length, hidden_size)` and what was asked for.

        Raises:
            ValueError: An id is not in the vocabulary, or the inputs of one side are missing.
        """
        encoder_outputs = self.encode(
            encoder_outputs, input_ids=input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds, **kwargs
        )
        if (decoder_input_ids is None) == (decoder_inputs_embeds is None):
            raise ValueError("pass either `decoder_input_ids` or `decoder_inputs_embeds` (or `labels` to the LM head)")
        states = self.embed_targets(decoder_input_ids) if decoder_inputs_embeds is None else decoder_inputs_embeds
        masks = attention_mask, decoder_attention_mask
        outputs = self.decode(states, encoder_outputs, *masks, cache, use_cache, **kwargs)
        return self.join_outputs(encoder_outputs, outputs)

    def encode(self, encoder_outputs: EncoderOutput | None, **inputs: Any) -> EncoderOutput:
        """Run the encoder, unless its outputs are given.

        Raises:
            ValueError: The outputs are another encoder's.
        """
        if encoder_outputs is None:
            return self.encoder(**inputs, return_dict=True)
        if not isinstance(encoder_outputs, self.encoder_output_class):
            raise ValueError(
                f"`encoder_outputs` must be what this model's encoder returned: {self.encoder_output_reason}"
            )
        return encoder_outputs

    def embed_targets(self, ids: Tensor | None, num_outside_words: int | None = None) -> Tensor:
        """Embed the decoder's inputs.

        Args:
            ids: `(batch, target_length)`.
            num_outside_words: For a model that copies: so many ids from `vocab_size` on are read as the unknown word.

        Raises:
            ValueError: They are missing, or an id is not in the vocabulary.
        """
        if ids is None:
            raise ValueError("pass `decoder_input_ids` (or `labels` to the LM head)")
        if num_outside_words is not None:
            size = self.config.vocab_size
            ids = ids.masked_fill((ids >= size) & (ids < size + num_outside_words), self.config.unk_token_id)
        return embed(self.get_decoder_embeddings(), ids, "decoder_input_ids")

    def decode(
        self,
        states: Tensor,
        encoder_outputs: BaseModelOutput,
        attention_mask: Tensor | None,
        decoder_attention_mask: Tensor | None,
        cache: Any,
        use_cache: bool | None,
        **kwargs: Any,
    ) -> Any:
        """Run the decoder over embedded inputs; other arguments as in `forward`."""
        return self.decoder(
            states,
            attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            encoder_attention_mask=attention_mask,
            cache=cache,
            use_cache=self.config.use_cache if use_cache is None else use_cache,
            return_dict=True,
            **kwargs,
        )

    def join_outputs(self, encoder: BaseModelOutput, decoder: DecoderOutput, **others: Any) -> Any:
        """Make an `output_class` of the encoder's and the decoder's outputs, with other fields of a family's own."""
        return self.output_class(
            last_hidden_state=decoder.last_hidden_state,
            cache=decoder.cache,
            decoder_hidden_states=decoder.hidden_states,
            decoder_attentions=decoder.attentions,
            cross_attentions=decoder.cross_attentions,
            encoder_last_hidden_state=encoder.last_hidden_state,
            encoder_hidden_states=encoder.hidden_states,
            encoder_attentions=encoder.attentions,
            **others,
        )
