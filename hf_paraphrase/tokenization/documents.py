from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from ..errors import InputError
from .words import SPECIAL_TOKENS, TOKEN, train_word_tokenizer

__all__ = ["END_OF_SENTENCE", "join_sentences", "train_document_tokenizer"]

END_OF_SENTENCE = "\n"
"""A document is a text with a sentence a line: the end of a line is the end-of-sentence mark, a word like others."""

# White space behind a sentence's last mark, and the quotes it closes, where a capital follows. Not behind titles and
# initials; sentences that are tokenised already ("was nice . we") never match.
TITLES = "".join(rf"(?<!\b{title}\.)" for title in ("Mr", "Mrs", "Ms", "Dr", "St", "Jr", "Sr", "Prof", "No", "vs"))
BETWEEN_SENTENCES = rf"(?<=[^\s.][.!?…]|[.!?…][”\"')\]])(?<!\b\p{{Lu}}\.){TITLES}[ \t]+(?=[“\"'(\[]?\p{{Lu}})"


def train_document_tokenizer(
    documents: Iterable[Sequence[str]], vocab_size: int, lowercase: bool = True
) -> PreTrainedTokenizerFast:
    r"""Train a word tokenizer of documents: one flat stream of words, with marks that close sentences and documents.

    A document is a list of sentences (`tokenizer(sentences, is_split_into_words=True)`) or a text with one sentence
    per line; inside a line, a sentence also ends at a full stop followed by white space and a capital, so ordinary
    text works. Either becomes `words \n words \n </s>`, and decoding writes one sentence a line again. Words are those
    of `train_word_tokenizer`.

    Args:
        documents: Lists of sentences to count words in; read once.
        vocab_size: Most words, the special tokens and the end-of-sentence mark included (`<pad>` 0, `<s>` 1, `</s>` 2,
            `<unk>` 3, `\n` 4).
        lowercase: Whether to lower-case everything.

    Returns:
        A fast tokenizer. `AutoTokenizer` loads it without this package.

    Raises:
        InputError: A sentence is not a string, there are no words, or `vocab_size` is too small for any.
    """
    tokenizer = train_word_tokenizer(_sentences(documents), vocab_size - 1, lowercase)
    backend = tokenizer.backend_tokenizer
    vocabulary = backend.get_vocab()
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    words.insert(len(SPECIAL_TOKENS), END_OF_SENTENCE)
    backend.model = models.WordLevel(
        {word: number for number, word in enumerate(words)}, unk_token=SPECIAL_TOKENS["unk_token"]
    )
    lines = (
        normalizers.Strip(),
        normalizers.Replace(Regex(BETWEEN_SENTENCES), END_OF_SENTENCE),
        normalizers.Replace(Regex(r"\s*[\r\n]\s*"), END_OF_SENTENCE),
        # After the last character, so that a blank text has no sentence.
        normalizers.Replace(Regex(r"(?<=\S)\z"), END_OF_SENTENCE),
    )
    backend.normalizer = normalizers.Sequence([*lines, backend.normalizer])
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(rf"\n|{TOKEN}"), behavior="removed", invert=True)
    ends = (decoders.Replace(Regex(r" ?\n ?"), "\n"), decoders.Replace(Regex(r"\n\z"), ""))
    backend.decoder = decoders.Sequence([backend.decoder, *ends])
    return tokenizer


def join_sentences(sentences: Sequence[str]) -> str:
    """Make the text of a document: one sentence per line."""
    return END_OF_SENTENCE.join(" ".join(sentence.split()) for sentence in sentences)


def _sentences(documents: Iterable[Sequence[str]]) -> Iterator[str]:
    for index, sentences in enumerate(documents):
        if isinstance(sentences, str):
            raise InputError(f"`documents` must be lists of sentences, but item {index} is the text {sentences!r}")
        yield from sentences
