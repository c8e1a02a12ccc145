from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from .portable import PortableModel
from .precision import at_least_single
from .token_ids import shift_tokens_right

__all__ = ["LanguageModelHeadMixin", "language_model_loss"]


class LanguageModelHeadMixin(PortableModel):
    """What encoder-decoders with a softmax over the vocabulary share; before `PreTrainedModel`.

    The class that it is mixed into has the encoder-decoder in `model` and the output layer in `lm_head`.
    """

    def get_input_embeddings(self) -> nn.Embedding:
        return self.model.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        self.model.set_input_embeddings(value)

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """Generate as `GenerationMixin.generate` does.

        Raises:
            ValueError: `inputs_embeds` are given to a model that needs to know which words it reads.
        """
        if (
            kwargs.get("inputs_embeds") is not None
            and "inputs_embeds" not in inspect.signature(self.forward).parameters
        ):
            raise ValueError(
                f"`inputs_embeds`: a {type(self).__name__} must know which words it reads; pass `input_ids`, or what "
                "its encoder made of them as `encoder_outputs`"
            )
        return super().generate(*args, **kwargs)

    def prepare_decoder_input_ids_from_labels(self, labels: torch.LongTensor) -> torch.LongTensor:
        """Shift labels `(batch, target_length)` one to the right, behind `decoder_start_token_id`."""
        return shift_tokens_right(labels, self.config.pad_token_id, self.config.decoder_start_token_id)

    def read_labels(
        self, labels: torch.LongTensor, decoder_attention_mask: torch.Tensor | None
    ) -> tuple[torch.LongTensor, torch.Tensor]:
        """Return the decoder's inputs that labels imply, and their mask, which is made unless it is given.

        Args:
            labels: `(batch, target_length)`, -100 where there is none.
            decoder_attention_mask: `(batch, target_length)`, or None.
        """
        if decoder_attention_mask is None:
            decoder_attention_mask = (labels != -100).cummax(dim=1).values
        return self.prepare_decoder_input_ids_from_labels(labels), decoder_attention_mask


def language_model_loss(logits: torch.FloatTensor, labels: torch.LongTensor | None) -> torch.FloatTensor | None:
    """Return the mean cross-entropy in nats over the labels that are not -100; None where there are no labels.

    Args:
        logits: `(batch, target_length, vocab_size)`.
        labels: `(batch, target_length)`.
    """
    if labels is None:
        return None
    return nn.functional.cross_entropy(at_least_single(logits.flatten(0, 1)), labels.to(logits.device).flatten())
