"""Shared by all encoder-decoders here: embeddings, handling of encoder outputs, and return values."""

from __future__ import annotations

from typing import Any, TypeVar

from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqModelOutput,
)

__all__ = ["SET_BY_MODEL", "EncoderDecoder"]

# The default of fields that a model sets before it reads them: a `ModelOutput` may have one field without a default.
SET_BY_MODEL: Any = None

EncoderOutput = TypeVar("EncoderOutput", bound=BaseModelOutput)


class EncoderDecoder(PreTrainedModel):
    """Mixin, before a family's base class, for models of an `encoder`, which has the embeddings, and a `decoder`."""

    encoder: PreTrainedModel
    decoder: PreTrainedModel

    # What the encoder returns, why no other's outputs will do, and what forward returns.
    encoder_output_class: type[BaseModelOutput]
    encoder_output_reason: str
    output_class: type[Seq2SeqModelOutput] = Seq2SeqModelOutput

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.embed_tokens = value

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

    def join_outputs(
        self, encoder: BaseModelOutput, decoder: BaseModelOutputWithPastAndCrossAttentions, **others: Any
    ) -> Any:
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
