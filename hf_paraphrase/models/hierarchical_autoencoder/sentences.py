"""The sentences of flat streams of word ids, laid out so that one packed LSTM call runs over many of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from ..layers.lstm_kernels import LstmState, PackedOrder, packed_order, replace_states, select_states
from ..layers.recurrent import RecurrentCache


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

    real: Tensor
    word_sentence: Tensor
    word_number: Tensor
    document: Tensor
    number: Tensor
    length: Tensor
    closed: Tensor


@torch.compiler.disable
def find_sentences(ids: Tensor, real: Tensor, marks: tuple[int, ...], whole: bool = False) -> SentenceLayout:
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


def reverse(number: Tensor, length: Tensor, closed: Tensor) -> Tensor:
    """Number units backwards, but for a closing one, which stays the last."""
    last = length - closed.long() - 1
    return torch.where(number <= last, last - number, number)


@dataclass(eq=False)
class HierarchicalCache(RecurrentCache):
    """The decoder's cache between `generate()` steps: word and sentence states.

    Args:
        state: (h, c) of the word LSTM, each `(num_layers, batch, hidden_size)`.
        attention_keys: Projected states of the source's sentences `(batch, sentences, hidden_size)`.
        sentence_state: (h, c) of the sentence LSTM; None without hierarchy.
        weights: The last attention weights `(batch, sentences)`; zero in the first sentence.
    """

    sentence_state: LstmState | None = None
    weights: Tensor | None = None

    def reorder_cache(self, beam_idx: Tensor) -> None:
        super().reorder_cache(beam_idx)
        if self.sentence_state is not None:
            self.sentence_state = select_states(self.sentence_state, beam_idx)
        if self.weights is not None:
            self.weights = self.weights.index_select(0, beam_idx)


def spread_rows(state: LstmState, rows: Tensor, batch_size: int) -> LstmState:
    """States of some rows as those of a batch, zero for its other rows."""
    h, c = (part.new_zeros(len(part), batch_size, part.shape[-1]) for part in state)
    return replace_states((h, c), rows, state)


class DecoderRun:
    """The decoder's states on their way through some positions; the cache stays as it is.

    Args:
        decoder: Its parts: `words` and, where it has them, `sentences` and `attention`.
        cache: The states to start from.
        encoder_outputs: The attention's keys and values: `sentence_states` and `sentence_mask`.
    """

    def __init__(self, decoder: Any, cache: HierarchicalCache, encoder_outputs: Any):
        self.decoder, self.keys, self.encoder_outputs = decoder, cache.attention_keys, encoder_outputs
        self.state, self.sentence_state, self.weights = cache.state, cache.sentence_state, cache.weights
        self.prepacked = cache.prepacked
        self.end_of_sentence = decoder.config.end_of_sentence_token_id

    def step(self, ids: Tensor, inputs: Tensor, real: Tensor):
        """Take one position `(batch, 1)` of all rows; those that close a sentence also step in the one above."""
        outputs, state, _ = self.decoder.words(inputs, None, self.state, prepacked=self.prepacked)
        if torch.compiler.is_compiling() or not real.all():
            before = self.decoder.words.dropout(self.state[0][-1]).unsqueeze(1)
            outputs = torch.where(real.unsqueeze(-1), outputs, before)
            state = tuple(torch.where(real.unsqueeze(0), new, old) for new, old in zip(state, self.state, strict=True))
        self.state = state
        if self.sentence_state is not None:
            rows = (real & (ids == self.end_of_sentence)).squeeze(1).nonzero().squeeze(1)
            if len(rows):
                sentences = self._close_sentences(rows, outputs[rows, 0])
                outputs = outputs.index_copy(0, rows, sentences.unsqueeze(1))
        return outputs, None if self.weights is None else self.weights.unsqueeze(1)

    @torch.compiler.disable
    def step_all(self, ids: Tensor, inputs: Tensor, real: Tensor):
        """Take many positions, sentence by sentence: the n-th sentences of all rows are one packed call.

        A sentence starts where the sentence before led the LSTM above, so sentences of one document cannot run side by
        side.
        """
        found = find_sentences(ids, real, (self.end_of_sentence,), whole=self.sentence_state is None)
        before = self.decoder.words.dropout(self.state[0][-1])
        outputs, order = [before], [torch.arange(len(ids), device=ids.device)]
        weights: list[Any] = [self.weights]
        inputs = inputs[real]
        number_of_word = found.number[found.word_sentence]
        for number in range(int(found.number.max()) + 1 if len(found.number) else 0):
            words = (number_of_word == number).nonzero().squeeze(1)
            sentences = (found.number == number).nonzero().squeeze(1)
            of_words = torch.searchsorted(sentences, found.word_sentence[words])
            packed = packed_order(of_words, found.word_number[words], found.length[sentences])
            sentences, words = sentences[packed.sentences], words[packed.words]
            weights.append(None if self.weights is None else self.weights[found.document[found.word_sentence[words]]])
            outputs.append(self._run_sentences(inputs[words], packed, sentences, found))
            order.append(words + len(ids))
            if self.weights is not None:
                weights[-1] = weights[-1].index_copy(0, packed.last, self.weights[found.document[sentences]])
        back = torch.cat(order).argsort()[self._last_output(real)]
        return torch.cat(outputs)[back], None if self.weights is None else torch.cat(weights)[back]

    def _run_sentences(self, inputs: Tensor, packed: PackedOrder, sentences: Tensor, found: SentenceLayout) -> Tensor:
        """Run the words of one sentence of each of some rows, and close those that end: outputs of all words."""
        rows = found.document[sentences]
        (*_, outputs), state = self.decoder.words.run_packed(inputs, packed.sizes, select_states(self.state, rows))
        self.state = replace_states(self.state, rows, state)
        closed = found.closed[sentences]
        if self.sentence_state is None or not closed.any():
            return outputs
        last = packed.last[closed]
        return outputs.index_copy(0, last, self._close_sentences(rows[closed], outputs[last]))

    def _close_sentences(self, rows: Tensor, vectors: Tensor) -> Tensor:
        """Step the sentence LSTM of some rows by the vectors of the sentences they closed; its state starts the next.

        Returns its outputs `(rows, hidden_size)`.
        """
        before, inputs = cast(LstmState, self.sentence_state), vectors
        state = select_states(before, rows)
        if self.decoder.attention is not None and self.keys is not None and self.weights is not None:
            memory, mask = self.encoder_outputs.sentence_states[rows], self.encoder_outputs.sentence_mask[rows]
            query = self.decoder.attention.query(state[0][-1].unsqueeze(1))
            context, weights = self.decoder.attention(query, self.keys[rows], memory, mask)
            inputs = torch.cat((vectors, context.squeeze(1)), dim=-1)
            self.weights = self.weights.index_copy(0, rows, weights.squeeze(1))
        outputs, state, _ = self.decoder.sentences(inputs.unsqueeze(1), None, state, prepacked=self.prepacked)
        self.sentence_state = replace_states(before, rows, state)
        self.state = replace_states(self.state, rows, state)
        return outputs.squeeze(1)

    @staticmethod
    def _last_output(real: Tensor) -> Tensor:
        """For each position the last output so far: 0 to batch - 1 are those before the first word of each row."""
        seen = real.long().cumsum(1)
        before = seen[:, -1].cumsum(0) - seen[:, -1]
        rows = torch.arange(len(real), device=real.device)
        return torch.where(seen > 0, len(real) + before.unsqueeze(1) + seen - 1, rows.unsqueeze(1))
