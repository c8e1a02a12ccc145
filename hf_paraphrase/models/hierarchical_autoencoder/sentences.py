"""The sentences of flat streams of word ids, laid out so that one packed LSTM call runs over many of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class SentenceLayout:
    """The layout of sentences in a batch of flat streams: a sentence is a run of words up to its end token.

    Sentences are numbered through the batch, the first document's first; words from 0 in their sentence.

    Args:
        real: Which positions hold words, `(batch, length)`.
        word_sentence: For each word, row by row, its sentence's number in the batch, `(words,)`.
        word_number: For each word its number in the sentence, `(words,)`.
        document: For each sentence its row of the batch, `(sentences,)`.
        number: For each sentence its number in the document, `(sentences,)`.
        length: For each sentence its words, closing mark included, `(sentences,)`.
        closed: For each sentence whether its last word is a closing mark, `(sentences,)`.
    """

    real: torch.Tensor
    word_sentence: torch.Tensor
    word_number: torch.Tensor
    document: torch.Tensor
    number: torch.Tensor
    length: torch.Tensor
    closed: torch.Tensor

    def count(self) -> torch.Tensor:
        """The number of sentences of each document, `(batch,)`."""
        return torch.bincount(self.document, minlength=len(self.real))


@torch.compiler.disable
def find_sentences(
    ids: torch.Tensor, real: torch.Tensor, marks: tuple[int, ...], whole: bool = False
) -> SentenceLayout:
    """Find the sentences of each row.

    Args:
        ids: Word ids `(batch, length)`.
        real: Mask of real positions, `(batch, length)`; the others may be anywhere and close nothing.
        marks: Ids that close a sentence. Words behind a row's last mark are a sentence that is not closed.
        whole: Treat each row as one sentence, ignoring marks inside.

    Returns:
        The `SentenceLayout`; a row without words has none.
    """
    closes = torch.isin(ids, torch.tensor(marks, device=ids.device)) & real
    in_document = torch.zeros_like(ids) if whole else closes.cumsum(1) - closes.long()
    rows = torch.arange(len(ids), device=ids.device).unsqueeze(1).expand_as(ids)
    rows, in_document, closes = rows[real], in_document[real], closes[real]
    starts = torch.ones_like(closes)
    starts[1:] = (rows[1:] != rows[:-1]) | (in_document[1:] != in_document[:-1])
    first_words = starts.nonzero().squeeze(1)
    length = torch.cat((first_words, first_words.new_tensor([len(rows)]))).diff()
    word_sentence = starts.cumsum(0) - 1
    return SentenceLayout(
        real=real,
        word_sentence=word_sentence,
        word_number=torch.arange(len(rows), device=ids.device) - first_words[word_sentence],
        document=rows[first_words],
        number=in_document[first_words],
        length=length,
        closed=closes[first_words + length - 1],
    )


def reverse(number: torch.Tensor, length: torch.Tensor, closed: torch.Tensor) -> torch.Tensor:
    """Number units backwards, but for a closing one, which stays the last."""
    last = length - closed.long() - 1
    return torch.where(number <= last, last - number, number)
