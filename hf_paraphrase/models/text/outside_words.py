"""Words outside a tokenizer's vocabulary, for models that copy them: to ids from `vocab_size` on, and back to text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from transformers import PreTrainedTokenizerBase

__all__ = ["OpenTokenizer", "decode_with_words"]


class OpenTokenizer:
    """A tokenizer that gives each unknown word its own id, in order of appearance.

    A sub-word tokenizer knows every word, and one without offsets (a slow one) cannot say which it did not know: their
    ids stay as they are.

    Args:
        tokenizer: The tokenizer.
        vocab_size: The first id of a word outside its vocabulary.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, vocab_size: int):
        self.tokenizer, self.vocab_size = tokenizer, vocab_size
        self._ids: dict[str, int] = {}

    @property
    def words(self) -> dict[int, str]:
        """The words outside the vocabulary so far, by their ids."""
        return {number: word for word, number in self._ids.items()}

    def __call__(self, texts: Sequence[str], **kwargs: Any) -> dict[str, list[list[int]]]:
        """Encode texts.

        Args:
            texts: Texts.
            kwargs: Of the tokenizer's own call, such as `truncation`.

        Returns:
            `input_ids`, a list for each text.
        """
        encoded = self.tokenizer(list(texts), **kwargs)
        if encoded.encodings is None or self.tokenizer.unk_token_id is None:
            return {"input_ids": encoded["input_ids"]}
        rows = zip(texts, encoded["input_ids"], encoded.encodings, strict=True)
        return {"input_ids": [self.number(text, ids, encoding.offsets) for text, ids, encoding in rows]}

    def num_special_tokens_to_add(self) -> int:
        """As the tokenizer's own."""
        return self.tokenizer.num_special_tokens_to_add()

    def number(self, text: str, ids: list[int], offsets: list[tuple[int, int]]) -> list[int]:
        """Replace the unknown word's id among those of a text, whose tokens stand at `offsets`."""
        unknown = self.tokenizer.unk_token_id
        if unknown not in ids:
            return ids
        return [
            self._id_of(text[start:end]) if word == unknown else word
            for word, (start, end) in zip(ids, offsets, strict=True)
        ]

    def _id_of(self, word: str) -> int:
        normalizer = self.tokenizer.backend_tokenizer.normalizer
        word = word if normalizer is None else normalizer.normalize_str(word)
        return self._ids.setdefault(word, self.vocab_size + len(self._ids))


def decode_with_words(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], words: Mapping[int, str], **kwargs: Any
) -> str:
    """Decode ids, including those of words outside the vocabulary.

    Args:
        tokenizer: Knows the others.
        ids: What a model generated.
        words: `OpenTokenizer.words` of the text it copied from.
        kwargs: Of the tokenizer's `decode`.
    """
    if words.keys().isdisjoint(ids):
        return cast(str, tokenizer.decode(cast(list[int], ids), **kwargs))
    skipped = tokenizer.all_special_ids if kwargs.get("skip_special_tokens") else []
    tokens = [
        words[word] if word in words else cast(str, tokenizer.convert_ids_to_tokens(word))
        for word in ids
        if word not in skipped
    ]
    decoder = tokenizer.backend_tokenizer.decoder
    return " ".join(tokens) if decoder is None else decoder.decode(tokens)
