from __future__ import annotations

import gc

import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers.tokenizer_base import BaseTokenizer

from hf_paraphrase.metrics.words import split_words


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "none"])
def test_words_are_those_of_sacrebleu(tokenize):
    texts = ["How much is it? 3.50, I think.", "A self-made cup.", "", "How much is it? 3.50, I think."]
    tokenizer = BLEU(tokenize=tokenize, force=True).tokenizer
    assert split_words(texts, tokenize=tokenize) == [tokenizer(text).split() for text in texts]


@pytest.mark.parametrize("tokenize", ["13a", "intl"])
def test_nothing_is_kept_of_what_was_split(tokenize):
    """sacrebleu's caches hold a tokenizer for every line of every call."""
    split_words(["a cat"], tokenize=tokenize)

    def count() -> int:
        gc.collect()
        return sum(issubclass(type(kept), BaseTokenizer) for kept in gc.get_objects())

    before = count()
    for number in range(50):
        split_words([f"text {number}", f"another {number}"], tokenize=tokenize)
    assert count() <= before
