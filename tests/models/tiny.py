"""Small models with random weights, and a word-level tokenizer for them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

TEXT = "the a cat dog sat on mat how do i learn faster ? x y z to cook can you make bread"
WORDS = ["<pad>", "<s>", "</s>", "<unk>", *TEXT.split()]
SPECIAL_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def word_tokenizer(end: str = "</s>", **kwargs) -> PreTrainedTokenizerFast:
    """Make a tokenizer of `WORDS` that ends every text in `end`, or in nothing."""
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if end:
        tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {end}", special_tokens=[(end, 2)])
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special, **kwargs)


def tiny_bart(**overrides) -> BartForConditionalGeneration:
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=len(WORDS),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=300,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
        init_std=1.0,
        **SPECIAL_IDS,
        **overrides,
    )
    return BartForConditionalGeneration(config).eval()


def tiny_t5(**overrides) -> T5ForConditionalGeneration:
    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    # Large enough that outputs differ; with 4.0, rounding would move scores by more than 1e-4.
    config = T5Config(
        vocab_size=len(WORDS), decoder_start_token_id=0, initializer_factor=2.5, **sizes, **SPECIAL_IDS, **overrides
    )
    return T5ForConditionalGeneration(config).eval()


def tiny_matcher(num_labels: int, id2label: dict[int, str] | None = None) -> BertForSequenceClassification:
    """A classifier of sentence pairs, or with one label a scorer."""
    torch.manual_seed(2)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        pad_token_id=0,
        initializer_range=1.0,
        num_labels=num_labels,
        **({"id2label": id2label} if id2label else {}),
    )
    return BertForSequenceClassification(config).eval()


def tiny_gpt2() -> GPT2LMHeadModel:
    return GPT2LMHeadModel(GPT2Config(vocab_size=len(WORDS), n_embd=8, n_layer=1, n_head=1, **SPECIAL_IDS))


def shrink(values: dict[str, Any]) -> dict[str, Any]:
    """Those fields of any model's configuration that are widths, at most 16, and the vocabulary, that of `WORDS`."""
    wide = {name for name in values if name.endswith(("_size", "_dim", "d_model")) and isinstance(values[name], int)}
    stacks = {name for name in values if name.endswith("_sizes")}
    return {
        **{name: min(values[name], 16) for name in wide},
        **{name: [min(width, 16) for width in values[name]] for name in stacks},
        "vocab_size": len(WORDS),
    }


def tiny_model(config_class: type[PreTrainedConfig], model_class: type[PreTrainedModel]) -> PreTrainedModel:
    """Any model of the package, small, with weights so wide that its outputs depend on its inputs."""
    sizes = shrink({field.name: field.default for field in fields(config_class)})
    model = model_class(config_class(**sizes)).eval()
    torch.manual_seed(0)  # not before, so that these weights do not depend on those that a model starts with
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.8, 0.8)
    return model


def save(model: PreTrainedModel, folder, tokenizer: PreTrainedTokenizerFast | None = None) -> str:
    """Save a model with a tokenizer, and return the folder as `pipeline()` takes it."""
    model.save_pretrained(folder)
    (tokenizer or word_tokenizer()).save_pretrained(folder)
    return str(folder)
