from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers.tokenizer_base import BaseTokenizer

from ..common.errors import InputError


def split_words(texts: Iterable[str], *, tokenize: str = "13a", lowercase: bool = False) -> list[list[str]]:
    """Split texts into words with one of sacrebleu's tokenizers, as BLEU does; raises InputError for another one."""
    check_tokenize(tokenize)
    tokenizer = BLEU(tokenize=tokenize, force=True).tokenizer
    words = [tokenizer((text.lower() if lowercase else text).rstrip()).split() for text in texts]
    # sacrebleu remembers 65,536 lines with a tokenizer each, which a long-lived process cannot spare.
    for part in (tokenizer, *vars(tokenizer).values()):
        if isinstance(part, BaseTokenizer) and hasattr(call := type(part).__call__, "cache_clear"):
            call.cache_clear()
    return words


def check_tokenize(tokenize: str) -> None:
    """Refuse what is no tokenizer of sacrebleu."""
    if tokenize not in BLEU.TOKENIZERS:
        raise InputError(f"unknown tokenize {tokenize!r}; available: {', '.join(BLEU.TOKENIZERS)}")


def check_order(max_order: int) -> None:
    """Refuse a length of n-grams below 1."""
    if max_order < 1:
        raise InputError(f"max_order must be at least 1, got {max_order}")


def sign_words(tokenize: str, lowercase: bool) -> str:
    """What a signature says of words that `split_words` made."""
    return f"case:{'lc' if lowercase else 'mixed'}|tok:{tokenize}"


def ngrams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """All runs of `n` words, from left to right."""
    return zip(*(islice(words, start, None) for start in range(n)), strict=False)
