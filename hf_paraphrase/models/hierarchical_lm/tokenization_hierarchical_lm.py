from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizer

from ..layers.portable import PortableTokenizer

# In the order of their ids, which HierarchicalLmConfig has as defaults.
MARKS = ("<pad>", "<s>", "</s>", "<unk>", "<stop>")
VOCAB_SIZE, MAX_CHARACTERS = 306, 20

# All of ASCII's visible characters, then those that typeset English books hold, then Latin letters with accents.
ALPHABETS = (
    range(0x21, 0x7F),
    tuple(map(ord, "‘’‚“”„–—―…•′″£€°§©®¶†‡×÷½¼¾«»¿¡æœÆŒ")),
    range(0xC0, 0x100),
    range(0xA1, 0xC0),
    range(0x100, 0x180),
)
OPENING, CLOSING, JOINING = "([{“‘«¿¡", ")]}”’»,.;:!?%…", "'’-–—/&"


class HierarchicalLmTokenizer(PortableTokenizer, PreTrainedTokenizer):
    """Text as one flat stream of characters with marks of words and of the sentence, for `HierarchicalLmModel`.

    Words are runs of letters or runs of anything else but white space, cut to 20 characters (Traynor 2018, section
    3.1.1), and every word's characters are followed by STOP, the whole by the END word: `I am.` is
    `I <stop> a m <stop> . <stop> </s>`. The START word `<s>` occurs only in decoder inputs, where the model adds it.
    Marks that a text spells out, such as `</s>`, are plain characters.

    Decoding puts spaces between words where English has them; the original white space is lost.

    Args:
        vocab_file: A JSON object from symbols to ids; a default alphabet of 306 symbols where it is missing.
        max_characters: Maximum characters of a word; longer ones are cut.
        kwargs: What `PreTrainedTokenizer` takes.
    """

    vocab_files_names = {"vocab_file": "vocab.json"}
    model_input_names = ["input_ids", "attention_mask"]

    def __init__(self, vocab_file: str | None = None, max_characters: int = MAX_CHARACTERS, **kwargs: Any):
        self.max_characters = max_characters
        self.stop_token = MARKS[4]
        self.vocab = default_vocabulary() if vocab_file is None else json.loads(Path(vocab_file).read_text("utf-8"))
        self.symbols = {index: symbol for symbol, index in self.vocab.items()}
        marks = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), MARKS, strict=False))
        options = {"split_special_tokens": True, "special_tokens_pattern": "eos", **marks, **kwargs}
        super().__init__(max_characters=max_characters, **options)

    @classmethod
    def from_texts(cls, texts: Iterable[str], vocab_size: int = VOCAB_SIZE, **kwargs: Any) -> HierarchicalLmTokenizer:
        """Make a tokenizer of the commonest characters of some texts.

        Args:
            texts: The texts to count.
            vocab_size: Number of symbols, marks included; fewer where the texts have fewer characters.
            kwargs: What the class takes.

        Raises:
            ValueError: `vocab_size` leaves no room for a character.
        """
        if vocab_size <= len(MARKS):
            raise ValueError(f"`vocab_size` must be over {len(MARKS)}, the number of marks, not {vocab_size}")
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update("".join(text.split()))
        # Of equally common ones the first in Unicode, so that the order of the texts makes no difference.
        commonest = sorted(counts, key=lambda character: (-counts[character], character))
        tokenizer = cls(**kwargs)
        tokenizer.vocab = {symbol: i for i, symbol in enumerate((*MARKS, *commonest[: vocab_size - len(MARKS)]))}
        tokenizer.symbols = {index: symbol for symbol, index in tokenizer.vocab.items()}
        tokenizer._update_total_vocab_size()
        return tokenizer

    @property
    def vocab_size(self) -> int:
        return len(self.vocab)

    @property
    def stop_token_id(self) -> int:
        """The id of STOP, which ends a word."""
        return self.vocab[self.stop_token]

    def get_vocab(self) -> dict[str, int]:
        """Return every symbol's id."""
        return {**self.vocab, **self.added_tokens_encoder}

    def split_words(self, text: str) -> list[str]:
        """Split a text into words of at most `max_characters` characters."""
        runs = (run for chunk in text.split() for _, run in groupby(chunk, str.isalpha))
        return ["".join(run)[: self.max_characters] for run in runs]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Join characters to words at STOP, and words to text."""
        words = [""]
        for token in tokens:
            if token == self.stop_token:
                words.append("")
            else:
                words[-1] += token
        return join_words([word for word in words if word])

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str]:
        """Write the symbols, in the order of their ids."""
        name = self.vocab_files_names["vocab_file"]
        path = Path(save_directory, f"{filename_prefix}-{name}" if filename_prefix else name)
        path.write_text(json.dumps(self.vocab, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
        return (str(path),)

    def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
        return [symbol for word in self.split_words(text) for symbol in (*word, self.stop_token)]

    def _convert_token_to_id(self, token: str) -> int:
        return self.vocab.get(token, self.vocab[MARKS[3]])

    def _convert_id_to_token(self, index: int) -> str:
        return self.symbols.get(index, MARKS[3])


def default_vocabulary() -> dict[str, int]:
    """The marks and 301 characters of English and Western European text."""
    characters = dict.fromkeys(chr(code) for alphabet in ALPHABETS for code in alphabet)
    # The soft hyphen is invisible.
    characters.pop("\xad", None)
    return {symbol: index for index, symbol in enumerate([*MARKS, *characters][:VOCAB_SIZE])}


def join_words(words: list[str]) -> str:
    """Put spaces between words, but before closing and behind opening punctuation and around an apostrophe or hyphen.

    Straight double quotes open and close by turns. Words are those of `HierarchicalLmTokenizer.split_words`.
    """
    text, is_glued, is_quoted = "", True, False
    for i, word in enumerate(words):
        is_last = i + 1 == len(words)
        joins = word in JOINING and i > 0 and not is_last and words[i - 1].isalpha() and words[i + 1].isalpha()
        closes_quote = '"' in word and is_quoted
        before = is_glued or joins or closes_quote or word[0] in CLOSING
        text += word if before else f" {word}"
        if word.count('"') % 2:
            is_quoted = not is_quoted
        is_glued = joins or word[-1] in OPENING or (word[-1] == '"' and is_quoted)
    return text
