"""Seq2Seq+Ret and the copy editor, one word at a time: the ground truth of the batched models."""

from __future__ import annotations

import torch

from . import naive

MARKS = {0, 1, 2}


def edit_vector(model, p: list[int], q: list[int]) -> torch.Tensor:
    """Sum of the words in q and not in p, then of those in p and not in q, each word once."""
    encoder = model.model.encoder
    halves = []
    for words in (set(q) - set(p) - MARKS, set(p) - set(q) - MARKS):
        total = torch.zeros(model.config.embedding_size, dtype=model.dtype)
        for word in words:
            total = total + encoder.embed_tokens.weight[word]
        halves.append(encoder.edit_vector.word.weight @ total)
    return torch.cat(halves)


def edit_lstm(model, x: list[int], p: list[int], q: list[int], target: list[int]) -> torch.Tensor:
    """Logits (log-probabilities, with `copy`) of one row for the decoder inputs `target`."""
    encoder, decoder, config = model.model.encoder, model.model.decoder, model.config
    memory, (h, c) = naive.stacked_lstm(encoder.lstm, [encoder.embed_tokens.weight[word] for word in x])
    if decoder.bridge is not None:
        h, c = naive.bridge_states(decoder.bridge, h, c)
    table = (encoder if config.share_embeddings else decoder).embed_tokens.weight
    scores = []
    for word in target:
        step = [table[known(word, config)]]
        if not config.copy:
            step.append(edit_vector(model, p, q))
        (state,), (h, c) = naive.stacked_lstm(decoder.lstm, [torch.cat(step)], (h, c))
        if decoder.attention is not None:
            context, _ = naive.additive_attention(decoder.attention, state, memory)
            state = torch.tanh(decoder.combine.weight @ torch.cat((state, context)))
        scores.append(model.lm_head(state) if decoder.copy is None else copy_mixture(model, state, p, q))
    return torch.stack(scores)


def copy_mixture(model, state: torch.Tensor, p: list[int], q: list[int]) -> torch.Tensor:
    """log(g_0 P(w) + g_1 a_p(w) + g_2 a_q(w)) for every word, in the vocabulary or outside it."""
    encoder, copy, config = model.model.encoder, model.model.decoder.copy, model.config
    sides = []
    for pointer, words in zip(copy.pointers, (p, q), strict=True):
        embedded = [encoder.embed_tokens.weight[known(word, config)] for word in words]
        sides.append((words, *naive.additive_attention(pointer, state, naive.stacked_lstm(encoder.lstm, embedded)[0])))
    joined = torch.cat([state, *(context for _, context, _ in sides)])
    gates = (copy.gate.weight @ joined + copy.gate.bias).softmax(0)
    generated = model.lm_head(torch.tanh(copy.combine.weight @ joined)).softmax(0)
    size = max(config.vocab_size, max(p + q) + 1)
    total = torch.zeros(size, dtype=state.dtype)
    total[: config.vocab_size] = gates[0] * generated
    for gate, (words, _, weights) in zip(gates[1:], sides, strict=True):
        for word, weight in zip(words, weights, strict=True):
            total[word] += gate * weight
    return total.log()


def known(word: int, config) -> int:
    return word if word < config.vocab_size else config.unk_token_id
