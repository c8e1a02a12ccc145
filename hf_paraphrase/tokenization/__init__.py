"""Training tokenizers whose files load by `AutoTokenizer` alone."""

from __future__ import annotations

from .words import train_word_tokenizer

__all__ = ["train_word_tokenizer"]
