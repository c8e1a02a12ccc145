"""Small paraphrasers with random weights: T5, BART, and every generator of this package."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from hf_paraphrase import (
    EditLstmForConditionalGeneration,
    HierarchicalAutoencoderConfig,
    HierarchicalAutoencoderForConditionalGeneration,
    HierarchicalLmConfig,
    HierarchicalLmForConditionalGeneration,
    HierarchicalLmTokenizer,
    Paraphraser,
    ParaphraseRetriever,
    ResidualLstmConfig,
    ResidualLstmForConditionalGeneration,
)
from tests.models.test_pipeline_pairs import tiny_copy_editor, tiny_fset
from tests.models.tiny import TEXT, tiny_bart, tiny_model, tiny_t5, word_tokenizer

# What random weights write would not pass the default floors.
NO_FLOORS = {"min_adequacy": 0.0, "min_novelty": 0.0}
PAIRS = [
    ("the cat sat", "a cat sat"),
    ("the dog sat", "the dog on the mat"),
    ("how do i learn ?", "how learn faster ?"),
    ("can you make bread", "how do you make bread ?"),
]


def tiny_editor() -> EditLstmForConditionalGeneration:
    return tiny_copy_editor()


def tiny_residual_lstm() -> ResidualLstmForConditionalGeneration:
    return tiny_model(ResidualLstmConfig, ResidualLstmForConditionalGeneration)


def tiny_autoencoder() -> HierarchicalAutoencoderForConditionalGeneration:
    return tiny_model(HierarchicalAutoencoderConfig, HierarchicalAutoencoderForConditionalGeneration)


@cache
def character_tokenizer() -> HierarchicalLmTokenizer:
    return HierarchicalLmTokenizer.from_texts([TEXT], vocab_size=40)


def tiny_hierarchical_lm() -> HierarchicalLmForConditionalGeneration:
    torch.manual_seed(0)
    config = HierarchicalLmConfig(
        vocab_size=len(character_tokenizer()),
        embedding_size=4,
        max_characters=5,
        max_words=4,
        word_encoder_sizes=(10, 8),
        value_size=6,
        key_size=4,
        word_decoder_hidden_size=5,
        word_decoder_sizes=(7, 5),
    )
    model = HierarchicalLmForConditionalGeneration(config).eval()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.8, 0.8)
    with torch.no_grad():
        model.lm_head.bias[5:] += 2.0  # that it writes letters
    return model


MAKERS: dict[str, Callable] = {
    "t5": tiny_t5,
    "bart": tiny_bart,
    "residual_lstm": tiny_residual_lstm,
    "hierarchical_autoencoder": tiny_autoencoder,
    "fset": tiny_fset,
    "edit_lstm": tiny_editor,
    "hierarchical_lm": tiny_hierarchical_lm,
}
PARAPHRASERS = list(MAKERS)


class OpenParaphraser(Paraphraser):
    """Without floors unless a call asks for them."""

    def __call__(self, texts: Any, n: int = 3, **options: Any) -> Any:
        return super().__call__(texts, n, **{**NO_FLOORS, **options})


@cache
def make_paraphraser(name: str) -> Paraphraser:
    """Make a paraphraser, once; its model writes at most 7 tokens."""
    model = MAKERS[name]()
    model.generation_config.max_new_tokens = 7
    tokenizer = character_tokenizer() if name == "hierarchical_lm" else word_tokenizer()
    retriever = ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard") if name in ("fset", "edit_lstm") else None
    return OpenParaphraser(model, tokenizer, retriever=retriever)


def random_sentences(count: int, seed: int = 0) -> list[str]:
    """Sentences of the words that the tokenizers know, and some that they do not."""
    draw = random.Random(seed)
    words = [*TEXT.split(), "3", "Oslo"]
    return [" ".join(draw.choices(words, k=draw.randint(2, 7))) for _ in range(count)]
