from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..layers.recurrent import StackedLstm
from ..layers.scan import is_traced, scan
from ..layers.sentence_pair import MatchingHead, SentencePairClassifier, split_pair
from ..layers.token_ids import embed
from .configuration_pair_lstm import PairLstmConfig


class BagOfWordsEncoder(nn.Module):
    """The concatenated sums of the embeddings of X and Y (NBOW)."""

    def __init__(self, config: PairLstmConfig):
        super().__init__()
        self.output_size = 2 * config.embedding_size

    def forward(self, x: Tensor, y: Tensor, x_mask: Tensor, y_mask: Tensor) -> Tensor:
        """Encode pairs, as all encoders here do; returns `(batch, output_size)`.

        X is `(batch, n, embedding_size)` and Y `(batch, m, embedding_size)`; masks are true at words.
        """
        sums = [(words * mask.unsqueeze(-1)).sum(1) for words, mask in ((x, x_mask), (y, y_mask))]
        return torch.cat(sums, dim=-1)


class SingleLstmEncoder(nn.Module):
    """The last state of one LSTM that reads X and then Y, between them X's end token."""

    def __init__(self, config: PairLstmConfig):
        super().__init__()
        self.lstm = StackedLstm(config.embedding_size, config.hidden_size, num_layers=1)
        self.output_size = config.hidden_size

    def forward(self, x: Tensor, y: Tensor, x_mask: Tensor, y_mask: Tensor) -> Tensor:
        _, (h, _), _ = self.lstm(torch.cat((x, y), dim=1), torch.cat((x_mask, y_mask), dim=1))
        return h[0]


class ParallelLstmEncoder(nn.Module):
    """The last states of two LSTMs with separate weights, one for X and one for Y."""

    def __init__(self, config: PairLstmConfig):
        super().__init__()
        self.x_lstm = StackedLstm(config.embedding_size, config.hidden_size, num_layers=1)
        self.y_lstm = StackedLstm(config.embedding_size, config.hidden_size, num_layers=1)
        self.output_size = 2 * config.hidden_size

    def forward(self, x: Tensor, y: Tensor, x_mask: Tensor, y_mask: Tensor) -> Tensor:
        (_, (x_last, _), _), (_, (y_last, _), _) = self.x_lstm(x, x_mask), self.y_lstm(y, y_mask)
        return torch.cat((x_last[0], y_last[0]), dim=-1)


class AttentionLstmEncoder(nn.Module):
    """An LSTM over X, another over Y that begins with its memory cell, and word-by-word attention.

    Source: Rocktäschel et al. 2016, Reasoning about Entailment with Neural Attention, sections 2.2 and 2.4.
    """

    def __init__(self, config: PairLstmConfig):
        super().__init__()
        self.x_lstm = StackedLstm(config.embedding_size, config.hidden_size, num_layers=1)
        self.y_lstm = StackedLstm(config.embedding_size, config.hidden_size, num_layers=1)
        self.attention = WordByWordAttention(config.hidden_size)
        self.output_size = config.hidden_size

    def forward(self, x: Tensor, y: Tensor, x_mask: Tensor, y_mask: Tensor) -> Tensor:
        memory, (_, cell), _ = self.x_lstm(x, x_mask)
        states, (last, _), _ = self.y_lstm(y, y_mask, (torch.zeros_like(cell), cell))
        return self.attention(memory, x_mask, states, y_mask.sum(1), last[0])


class WordByWordAttention(nn.Module):
    """Attention from each word of Y, in turn, to all words of X.

    ```
    M_t = tanh(W_y Y + (W_h h_t + W_r r_{t-1}) ⊗ e)    α_t = softmax(wᵀ M_t)
    r_t = Y α_tᵀ + tanh(W_t r_{t-1})                   h* = tanh(W_p r_N + W_x h_N)
    ```

    There Y holds the states of the LSTM over the first sentence, and h_t are those over the second (Rocktäschel et
    al. 2016, equations 11 to 15).
    """

    def __init__(self, size: int):
        super().__init__()
        self.memory = nn.Linear(size, size, bias=False)
        self.query = nn.Linear(size, size, bias=False)
        # W_r above W_t: one product a step.
        self.recurrent = nn.Linear(size, 2 * size, bias=False)
        self.score = nn.Linear(size, 1, bias=False)
        self.attended = nn.Linear(size, size, bias=False)
        self.last = nn.Linear(size, size, bias=False)

    # The number of rows in a step depends on the lengths, for each of which torch.compile would recompile.
    @torch.compiler.disable
    def forward(self, memory: Tensor, memory_mask: Tensor, states: Tensor, lengths: Tensor, last: Tensor) -> Tensor:
        """Read states over Y `(batch, m, size)` word by word, each step the rows that still have a word.

        `memory` is states over X, `(batch, n, size)`, zero at padding; `last` the state after Y's last word. Returns
        h*, `(batch, size)`.
        """
        if is_traced():
            return self._scan(memory, memory_mask, states, lengths, last)
        order = lengths.argsort(descending=True)
        steps = torch.arange(states.shape[1], device=lengths.device)
        rows_of_steps = (lengths > steps.unsqueeze(1)).sum(1).tolist()
        memory, keys = memory[order], self.memory(memory)[order]
        hidden = ~memory_mask[order]
        queries = self.query(states)[order]
        r, finished = torch.zeros_like(last), []
        for t, rows in enumerate(rows_of_steps):
            finished.append(r[rows:])
            shift, carried = self.recurrent(r[:rows]).chunk(2, dim=-1)
            energies = torch.tanh(keys[:rows] + (queries[:rows, t] + shift).unsqueeze(1))
            scores = self.score(energies).squeeze(-1)
            scores = scores.masked_fill(hidden[:rows], torch.finfo(scores.dtype).min)
            attended = torch.bmm(scores.softmax(-1).unsqueeze(1), memory[:rows]).squeeze(1)
            r = attended + torch.tanh(carried)
        r = torch.cat([r, *reversed(finished)])[order.argsort()]
        return torch.tanh(self.attended(r) + self.last(last))

    def _scan(self, memory, memory_mask, states, lengths, last) -> Tensor:
        """Do the same, all rows at every step, in one operation for any number of steps."""

        def step(r, query, is_word, memory, keys, memory_mask):
            shift, carried = self.recurrent(r).chunk(2, dim=-1)
            scores = self.score(torch.tanh(keys + (query + shift).unsqueeze(1))).squeeze(-1)
            scores = scores.masked_fill(~memory_mask, torch.finfo(scores.dtype).min)
            attended = torch.bmm(scores.softmax(-1).unsqueeze(1), memory).squeeze(1)
            return (torch.where(is_word, attended + torch.tanh(carried), r),)

        is_word = torch.arange(states.shape[1], device=lengths.device).unsqueeze(1) < lengths
        inputs = self.query(states).transpose(0, 1), is_word.unsqueeze(-1)
        others = memory, self.memory(memory), memory_mask
        (r,), _ = scan(step, [torch.zeros_like(last)], inputs, others, self)
        return torch.tanh(self.attended(r) + self.last(last))


ENCODERS = {
    "nbow": BagOfWordsEncoder,
    "single": SingleLstmEncoder,
    "parallel": ParallelLstmEncoder,
    "attention": AttentionLstmEncoder,
}


class PairLstmForSequenceClassification(SentencePairClassifier):
    """A baseline of Liu et al. 2016 with a fully connected layer and an output layer: labels of a pair, or a score."""

    config_class = PairLstmConfig

    def __init__(self, config: PairLstmConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size, config.pad_token_id)
        self.encoder = ENCODERS[config.encoder](config)
        self.head = MatchingHead(self.encoder.output_size, config)
        self.post_init()

    def read_pair(self, *inputs: Any, output_hidden_states: bool | None = None) -> tuple[Tensor, None]:
        sides = split_pair(*inputs)
        x, y = (embed(self.embed_tokens, side.input_ids, "input_ids") for side in sides)
        return self.encoder(x, y, *(side.mask for side in sides)), None
