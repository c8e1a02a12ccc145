"""FSET (Kazemnejad et al. 2020) written one query, one head and one token at a time, for a row without padding."""

from __future__ import annotations

import math

import torch


def multi_head_attention(attention, query, keys, values):
    """MultiHead(Q: query, K: keys, V: values) for one query vector and lists of key and value vectors."""
    size, heads = len(query), attention.num_heads
    width = size // heads
    q = attention.query.weight @ query + attention.query.bias
    ks = [attention.key.weight @ key + attention.key.bias for key in keys]
    vs = [attention.value.weight @ value + attention.value.bias for value in values]
    outputs, all_weights = [], []
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        scores = torch.stack([q[part] @ k[part] / math.sqrt(width) for k in ks])
        weights = torch.exp(scores) / torch.exp(scores).sum()
        outputs.append(sum(weight * v[part] for weight, v in zip(weights, vs, strict=True)))
        all_weights.append(weights)
    return attention.output.weight @ torch.cat(outputs) + attention.output.bias, torch.stack(all_weights)


def add_and_norm(norm, x, y):
    """LayerNorm(x + y) of one vector."""
    total = x + y
    centred = total - total.mean()
    return centred / torch.sqrt((centred**2).mean() + norm.eps) * norm.weight + norm.bias


def layer(block, xs, memories=(), causal=False):
    """One post-norm layer over the vectors `xs`; also each position's weights over the last memory."""
    first, second = block.feed_forward[0], block.feed_forward[2]
    outputs, last_weights = [], []
    for t, x in enumerate(xs):
        seen = xs[: t + 1] if causal else xs
        h = add_and_norm(block.norms[0], x, multi_head_attention(block.self_attention, x, seen, seen)[0])
        for n, (keys, values) in enumerate(memories):
            attended, weights = multi_head_attention(block.memory_attentions[n], h, keys, values)
            h = add_and_norm(block.norms[n + 1], h, attended)
        inner = torch.clamp(first.weight @ h + first.bias, min=0)
        outputs.append(add_and_norm(block.norms[-1], h, second.weight @ inner + second.bias))
        last_weights.append(weights if memories else None)
    return outputs, last_weights


def with_positions(xs):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i + 1) = cos of the same, added to each vector."""
    size = len(xs[0])
    result = []
    for position, x in enumerate(xs):
        angles = [position / 10000 ** (2 * (i // 2) / size) for i in range(size)]
        waves = [math.sin(a) if i % 2 == 0 else math.cos(a) for i, a in enumerate(angles)]
        result.append(x + torch.tensor(waves, dtype=x.dtype))
    return result


def words(model, ids):
    table = model.get_input_embeddings().weight
    return [table[word] * math.sqrt(table.shape[1]) for word in ids]


def micro_edits(model, p, q):
    """The outputs of Edit Encoder and dense layer for [AGR] p, given q; the first is z_{p→q}. Also R_q."""
    provider = model.model.encoder.edit_provider
    targets = with_positions(words(model, q))
    for block in provider.target_encoder:
        targets, _ = layer(block, targets)
    start = [] if provider.aggregate is None else [provider.aggregate]
    states = with_positions(start + words(model, p))
    for block in provider.edit_encoder:
        states, _ = layer(block, states, [(targets, targets)])
    dense = provider.micro_edit
    return [torch.tanh(dense.weight @ state + dense.bias) for state in states], targets


def edits(model, p, q):
    """z (None without [AGR]), M and R_p."""
    provider = model.model.encoder.edit_provider
    forward, _ = micro_edits(model, p, q)
    backward, encoded_p = micro_edits(model, q, p)
    if provider.aggregate is None:
        return None, forward, encoded_p
    return provider.combine.weight @ torch.cat((forward[0], backward[0])), forward[1:], encoded_p


def fset(model, x, p, q, target):
    """The logits of the decoder inputs `target`, and the last layer's weights over its last memory."""
    encoder, decoder = model.model.encoder, model.model.decoder
    z, m, encoded_p = edits(model, p, q)
    encoded_x = with_positions(words(model, x))
    for block in encoder.layers:
        encoded_x, _ = layer(block, encoded_x)
    states = words(model, target)
    if z is not None:
        states = [decoder.join.weight @ torch.cat((state, z)) for state in states]
    states = with_positions(states)
    memories = [(encoded_x, encoded_x)] + ([(encoded_p, m)] if model.config.use_micro_edits else [])
    for block in decoder.layers:
        states, weights = layer(block, states, memories, causal=True)
    return torch.stack([model.lm_head.weight @ state for state in states]), torch.stack(weights, dim=1)
