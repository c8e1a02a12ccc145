"""Tiny language models that answer prompts, for the tests of teachers."""

from __future__ import annotations

import string

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hf_paraphrase import Paraphraser
from hf_paraphrase.generation.prompts import Prompt

CHAT = (
    "{% for message in messages %}{{ message['role'][0] + ':' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}a:{% endif %}"
)


PROMPT = Prompt(
    system="Rewrite.",
    user="{text}{strength}",
    plain="T: {text}\nP:",
    strength={0: "", 1: " freely"},
    examples=[{"text": "go", "paraphrase": "walk"}],
)


def byte_tokenizer(chat: bool = True) -> PreTrainedTokenizerFast:
    """A token for every letter and digit, and a few signs; what a random model makes of them has no unpaired marks."""
    alphabet = [*string.ascii_letters, *string.digits, ":", ",", "Ġ", "Ċ"]
    vocabulary = {token: i for i, token in enumerate(["<pad>", "<|end|>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = {"pad_token": "<pad>", "eos_token": "<|end|>"}
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special, model_max_length=4096)
    made.chat_template = CHAT if chat else None
    return made


def tiny_llama(seed: int = 0, positions: int = 4096) -> LlamaForCausalLM:
    """A language model with weights so wide that what it writes depends on what it reads."""
    config = LlamaConfig(
        vocab_size=68,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=positions,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config).eval()
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.6, 0.6)
    return model


def make_teacher(chat: bool = True, prompt: Prompt | None = PROMPT, **options) -> Paraphraser:
    """A paraphraser with such a model."""
    return Paraphraser(tiny_llama(), byte_tokenizer(chat), prompt=prompt, **options)
