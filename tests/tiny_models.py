"""Models and tokenizers small enough to build in a test."""

from __future__ import annotations

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

WORDS = [
    "how",
    "do",
    "i",
    "learn",
    "to",
    "cook",
    "what",
    "is",
    "the",
    "way",
    "can",
    "you",
    "make",
    "bread",
    "fast",
    "?",
]


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A word-level tokenizer: `words </s>`."""
    special = ["<pad>", "<s>", "</s>", "<unk>"]
    vocabulary = {word: index for index, word in enumerate(special + WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def make_bart(seed: int = 0) -> BartForConditionalGeneration:
    """An untrained BART whose weights are wide enough that its outputs depend on its inputs."""
    torch.manual_seed(seed)
    config = BartConfig(
        vocab_size=4 + len(WORDS),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=64,
        init_std=0.6,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        forced_eos_token_id=None,
    )
    model = BartForConditionalGeneration(config).eval()
    model.generation_config.max_length = None
    model.generation_config.max_new_tokens = 12
    return model
