"""Training tokenizers whose files load by `AutoTokenizer` alone."""

from .tokenizers import join_sentences, train_document_tokenizer, train_tokenizer, train_word_tokenizer

__all__ = ["join_sentences", "train_document_tokenizer", "train_tokenizer", "train_word_tokenizer"]
