from __future__ import annotations

from typing import Any, Protocol, cast

import torch
from transformers import PreTrainedConfig

from ..layers.attention import AdditiveAttention
from ..layers.packing import LstmState, PackedOrder, packed_order, replace_states, select_states
from ..layers.recurrent import StackedLstm
from .sentences import SentenceLayout, find_sentences
from .states import HierarchicalCache


class Parts(Protocol):
    """The parts of a decoder."""

    config: PreTrainedConfig
    words: StackedLstm
    sentences: StackedLstm | None
    attention: AdditiveAttention | None


class DecoderRun:
    """The decoder's states on their way through some positions; the cache stays as it is.

    Args:
        decoder: Its parts: `words` and, where it has them, `sentences` and `attention`.
        cache: The states to start from.
        encoder_outputs: The attention's keys and values: `sentence_states` and `sentence_mask`.
    """

    def __init__(self, decoder: Parts, cache: HierarchicalCache, encoder_outputs: Any):
        self.decoder, self.keys, self.encoder_outputs = decoder, cache.attention_keys, encoder_outputs
        self.state, self.sentence_state, self.weights = cache.state, cache.sentence_state, cache.weights
        self.prepacked = cache.prepacked
        self.end_of_sentence = decoder.config.end_of_sentence_token_id

    def step(self, ids: torch.Tensor, inputs: torch.Tensor, real: torch.Tensor):
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
    def step_all(self, ids: torch.Tensor, inputs: torch.Tensor, real: torch.Tensor):
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

    def _run_sentences(
        self, inputs: torch.Tensor, packed: PackedOrder, sentences: torch.Tensor, found: SentenceLayout
    ) -> torch.Tensor:
        """Run the words of one sentence of each of some rows, and close those that end: outputs of all words."""
        rows = found.document[sentences]
        (*_, outputs), state = self.decoder.words.run_packed(inputs, packed.sizes, select_states(self.state, rows))
        self.state = replace_states(self.state, rows, state)
        closed = found.closed[sentences]
        if self.sentence_state is None or not closed.any():
            return outputs
        last = packed.last[closed]
        return outputs.index_copy(0, last, self._close_sentences(rows[closed], outputs[last]))

    def _close_sentences(self, rows: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """Step the sentence LSTM of some rows by the vectors of the sentences they closed; its state starts the next.

        Returns:
            Its outputs `(rows, hidden_size)`.
        """
        before, inputs = cast(LstmState, self.sentence_state), vectors
        state = select_states(before, rows)
        if self.decoder.attention is not None and self.keys is not None and self.weights is not None:
            memory, mask = self.encoder_outputs.sentence_states[rows], self.encoder_outputs.sentence_mask[rows]
            context, weights = self.decoder.attention(state[0][-1].unsqueeze(1), self.keys[rows], memory, mask)
            inputs = torch.cat((vectors, context.squeeze(1)), dim=-1)
            self.weights = self.weights.index_copy(0, rows, weights.squeeze(1))
        lstm = cast(StackedLstm, self.decoder.sentences)
        outputs, state, _ = lstm(inputs.unsqueeze(1), None, state, prepacked=self.prepacked)
        self.sentence_state = replace_states(before, rows, state)
        self.state = replace_states(self.state, rows, state)
        return outputs.squeeze(1)

    @staticmethod
    def _last_output(real: torch.Tensor) -> torch.Tensor:
        """For each position the last output so far: 0 to batch - 1 are those before the first word of each row."""
        seen = real.long().cumsum(1)
        before = seen[:, -1].cumsum(0) - seen[:, -1]
        rows = torch.arange(len(real), device=real.device)
        return torch.where(seen > 0, len(real) + before.unsqueeze(1) + seen - 1, rows.unsqueeze(1))
