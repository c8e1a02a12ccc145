from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from ..errors import InputError
from .words import SPECIAL_TOKENS, train_fast, train_word_tokenizer

__all__ = ["train_tokenizer"]

BYTES = pre_tokenizers.ByteLevel.alphabet()
# The parts of `tokenizers` that make each kind of sub-words.
SUBWORDS: dict[str, tuple[Callable[[], models.Model], Callable[..., trainers.Trainer]]] = {
    "bpe": (models.BPE, trainers.BpeTrainer),
    "unigram": (models.Unigram, partial(trainers.UnigramTrainer, unk_token=SPECIAL_TOKENS["unk_token"])),
}


def train_tokenizer(
    texts: Iterable[str],
    vocab_size: int,
    model: Literal["word", "bpe", "unigram"] = "word",
    lowercase: bool = True,
    sentence_pairs: bool = False,
) -> PreTrainedTokenizerFast:
    """Train a tokenizer of whole words, or of sub-words that need no `<unk>` for any text.

    Words are those of `train_word_tokenizer`. Sub-words are made of the bytes of UTF-8, all 256 of which are in the
    vocabulary: what was never seen is spelt, and decoding gives the normalised text back, character by character. That
    text is in NFC and, unless `lowercase=False`, in lower case, with one space for any white space and none at its
    ends.

    Args:
        texts: Training texts; read once, in order.
        vocab_size: Most tokens, the four special tokens included (`<pad>` 0, `<s>` 1, `</s>` 2, `<unk>` 3).
        model: Its kind, as `tokenizers` spells it: "word"; "bpe", which joins the most frequent pairs of neighbours
            (Sennrich et al. 2016); or "unigram", which keeps the pieces that make the texts most probable (Kudo 2018).
            The same texts give the same words and the same BPE; unigram sums floats in no fixed order, so pieces of
            nearly equal probability may swap.
        lowercase: Whether to lower-case everything.
        sentence_pairs: Whether to return `token_type_ids` too, as `train_word_tokenizer` does.

    Returns:
        A fast tokenizer. What it saves is loaded by `AutoTokenizer` without this package.

    Raises:
        InputError: Unknown kind, a text that is not a string, no words, or a `vocab_size` too small for any word or
            for all bytes.
    """
    if model == "word":
        return train_word_tokenizer(texts, vocab_size, lowercase, sentence_pairs)
    if model not in SUBWORDS:
        raise InputError(f"`model` must be one of word, {', '.join(SUBWORDS)}, not {model!r}")
    make_model, make_trainer = SUBWORDS[model]
    tokenizer = Tokenizer(make_model())
    steps = [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Lowercase()] if lowercase else steps)
    # A word is the same behind a space and at the beginning. No special token can come of a text: bytes of letters and
    # of punctuation are never joined.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    return train_fast(tokenizer, make_trainer, texts, vocab_size, sentence_pairs, BYTES)
