"""The baselines of Liu et al. 2016, one pair and one word at a time."""

from __future__ import annotations

import torch

from tests.models.naive import stacked_lstm


def nbow(encoder, xs, ys):
    return torch.cat((sum(xs), sum(ys)))


def single(encoder, xs, ys):
    states, _ = stacked_lstm(encoder.lstm, [*xs, *ys])
    return states[-1]


def parallel(encoder, xs, ys):
    return torch.cat((stacked_lstm(encoder.x_lstm, xs)[0][-1], stacked_lstm(encoder.y_lstm, ys)[0][-1]))


def attention(encoder, xs, ys):
    """Rocktäschel et al. 2016, equations 11 to 15; the second LSTM begins with the first one's memory cell."""
    memory, (_, cells) = stacked_lstm(encoder.x_lstm, xs)
    states, _ = stacked_lstm(encoder.y_lstm, ys, ([torch.zeros_like(cells[0])], cells))
    weights, size = encoder.attention, len(states[0])
    w_r, w_t = weights.recurrent.weight[:size], weights.recurrent.weight[size:]
    r = torch.zeros_like(states[0])
    for h in states:
        query = weights.query.weight @ h + w_r @ r
        scores = [weights.score.weight[0] @ torch.tanh(weights.memory.weight @ y + query) for y in memory]
        alpha = torch.exp(torch.stack(scores)) / sum(torch.exp(score) for score in scores)
        r = sum(a * y for a, y in zip(alpha, memory, strict=True)) + torch.tanh(w_t @ r)
    return torch.tanh(weights.attended.weight @ r + weights.last.weight @ states[-1])


def logits(model, x_ids, y_ids):
    """The logits of a `PairLstmForSequenceClassification` for one pair of lists of ids."""
    encode = {"nbow": nbow, "single": single, "parallel": parallel, "attention": attention}[model.config.encoder]
    table = model.embed_tokens.weight
    features = encode(model.encoder, [table[word] for word in x_ids], [table[word] for word in y_ids])
    dense, output = model.head.dense, model.head.output
    return output.weight @ torch.tanh(dense.weight @ features + dense.bias) + output.bias
