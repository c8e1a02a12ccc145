from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationMixin
from transformers.modeling_outputs import Seq2SeqLMOutput, Seq2SeqModelOutput
from transformers.utils import can_return_tuple

from .portable import TASK, PortableModel
from .precision import at_least_single
from .products import linear
from .token_ids import shift_tokens_right

# Slices of the matrix that stay in a core's cache while all rows pass, and the size from which that pays.
SLICE, LARGE = 2**19, 2**23


def score_words(layer: nn.Linear, hidden: Tensor) -> Tensor:
    """Return `layer(hidden)`, the scores of all words of the vocabulary; in decoding on the CPU, in slices of words.

    With the few rows of a decoding step, a product with a matrix that no cache holds waits for memory.
    """
    if _is_learning(layer):
        return linear(hidden.flatten(0, -2), layer.weight, layer.bias).unflatten(0, hidden.shape[:-1])
    if not _is_worth_slicing(layer, hidden):
        return layer(hidden)
    rows = hidden.reshape(-1, layer.in_features)
    scores = rows.new_empty(len(rows), layer.out_features)
    words = SLICE // layer.in_features
    for start in range(0, layer.out_features, words):
        part = slice(start, start + words)
        torch.mm(rows, layer.weight[part].t(), out=scores[:, part])
        if layer.bias is not None:
            scores[:, part] += layer.bias[part]
    return scores.view(*hidden.shape[:-1], layer.out_features)


def _is_learning(layer: nn.Module) -> bool:
    """Whether gradients are recorded of a plain layer, whose weights are at hand without calling it."""
    is_plain = type(layer) is nn.Linear and type(layer.weight) is nn.Parameter and "forward" not in vars(layer)
    return is_plain and not layer._forward_pre_hooks and not layer._forward_hooks and torch.is_grad_enabled()


def _is_worth_slicing(layer: nn.Module, hidden: Tensor) -> bool:
    return (
        # Checked first: traced code must not inspect the number of rows.
        not (torch.compiler.is_compiling() or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"))
        # Layers of quantised models have no matrix, or none at hand.
        and type(layer) is nn.Linear
        and layer.weight.numel() >= LARGE
        and hidden.device.type == layer.weight.device.type == "cpu"
        and hidden.dtype == layer.weight.dtype
        and hidden.numel() > layer.in_features
    )


class LanguageModelHeadMixin(PortableModel, GenerationMixin):
    """What encoder-decoders with a softmax over the vocabulary share; before a family's base class.

    The class that it is mixed into has the encoder-decoder in `model`, the output layer in `lm_head`, and a `forward`
    that `scored` made of the encoder-decoder's. A checkpoint brings the text2text pipeline too.
    """

    lm_head: nn.Linear
    output_class: type[Seq2SeqLMOutput] = Seq2SeqLMOutput
    # The loss is a mean over one batch, also where `Trainer` accumulates gradients over several.
    accepts_loss_kwargs = False
    # Whether `cross_attentions` align outputs with source words.
    attends_to_words = True
    # Whether the loss of labels is the cross-entropy of a softmax of what the output layer makes of the states alone.
    has_plain_loss = True
    # Computes that loss from the states, the output layer and the labels, where the logits of labels are not wanted.
    flat_loss: Callable[[Tensor, nn.Linear, Tensor], Tensor] | None = None

    def save_pretrained(self, save_directory: str | os.PathLike, *args: Any, **kwargs: Any) -> None:
        """Save the model as `PortableModel` does, and name the pipeline in its `config.json`."""
        # Imported here, since `search` imports layers. transformers copies what a module imports, wherever it does so.
        from ..search.pipeline_text2text import Text2TextGenerationPipeline

        # Its file in a checkpoint, see `bundle.py`.
        name = f"search.{Text2TextGenerationPipeline.__name__}"
        self.config.custom_pipelines = {TASK: {"impl": name, "pt": ["AutoModelForSeq2SeqLM"], "type": "text"}}
        try:
            super().save_pretrained(save_directory, *args, **kwargs)
        finally:
            del self.config.custom_pipelines

    def score(self, outputs: Any, labels: Tensor | None) -> dict[str, Tensor | None]:
        """Compute the logits and, of labels, the loss; with further fields of the output, if a family has them.

        Args:
            outputs: The encoder-decoder's, of its `output_class`.
            labels: `(batch, target_length)`, -100 to ignore. With `flat_loss` they have no logits.
        """
        if labels is not None and self.flat_loss is not None:
            return {"loss": self.flat_loss(outputs.last_hidden_state, self.lm_head, labels), "logits": None}
        logits = self.project(outputs)
        return {"loss": language_model_loss(logits, labels), "logits": logits}

    def project(self, outputs: Any) -> Tensor:
        """Score the words of the vocabulary at every position: `(batch, target_length, vocab_size)`."""
        return score_words(self.lm_head, outputs.last_hidden_state)

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """Generate as `GenerationMixin.generate` does.

        Raises:
            ValueError: `inputs_embeds` for a model that needs token ids.
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

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Shift labels `(batch, target_length)` one to the right, behind `decoder_start_token_id`."""
        return shift_tokens_right(labels, self.config.pad_token_id, self.config.decoder_start_token_id)

    def read_labels(self, labels: Tensor, decoder_attention_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the decoder's inputs that labels imply, and their mask, which is made unless it is given.

        All are `(batch, target_length)`; labels are -100 where there is none.
        """
        if decoder_attention_mask is None:
            decoder_attention_mask = (labels != -100).cummax(dim=1).values
        return self.prepare_decoder_input_ids_from_labels(labels), decoder_attention_mask


def scored(body_forward: Callable[..., Seq2SeqModelOutput]) -> Callable[..., Seq2SeqLMOutput]:
    """Make the `forward` of a model with an output layer of its encoder-decoder's: the same arguments, and `labels`.

    The signature names all of them, since `Trainer`, `torch.export` and others look there. From the third on, they are
    given by name.
    """

    @can_return_tuple
    def forward(self, input_ids=None, attention_mask=None, *, labels=None, **kwargs):
        """Score every next token; arguments as in the encoder-decoder's `forward`, and `labels`.

        Args:
            labels: Target tokens `(batch, target_length)`, -100 to ignore. The decoder's inputs are made
                from them, shifted to the right, unless they are given.

        Returns:
            `loss`, the mean cross-entropy in nats over the labels that are not -100; `logits` of shape `(batch,
            target_length, vocab_size)`, and the requested outputs. A family whose `score` differs says so there.
        """
        if labels is not None:
            kwargs["use_cache"] = False
            if kwargs.get("decoder_input_ids") is None and kwargs.get("decoder_inputs_embeds") is None:
                mask = kwargs.get("decoder_attention_mask")
                kwargs["decoder_input_ids"], kwargs["decoder_attention_mask"] = self.read_labels(labels, mask)
        outputs = self.model(input_ids=input_ids, attention_mask=attention_mask, **kwargs, return_dict=True)
        names = self.output_class.__dataclass_fields__
        shared = {name: value for name, value in outputs.items() if name in names}
        return self.output_class(**self.score(outputs, labels), **shared)

    signature, named = inspect.signature(body_forward), inspect.Parameter.KEYWORD_ONLY
    labels = inspect.Parameter("labels", named, default=None, annotation="torch.Tensor | None")
    model, input_ids, attention_mask, *others, flags = signature.parameters.values()
    others = [parameter.replace(kind=named) for parameter in others]
    forward.__signature__ = signature.replace(
        parameters=[model, input_ids, attention_mask, *others, labels, flags], return_annotation="Seq2SeqLMOutput"
    )
    return forward


def language_model_loss(logits: Tensor, labels: Tensor | None) -> Tensor | None:
    """Return the mean cross-entropy in nats over the labels that are not -100; None without labels.

    Logits are `(batch, target_length, vocab_size)`, labels `(batch, target_length)`.
    """
    if labels is None:
        return None
    return nn.functional.cross_entropy(at_least_single(logits.flatten(0, 1)), labels.to(logits.device).flatten())
