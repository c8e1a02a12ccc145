"""The Transformer with SSRUs (Kim et al. 2019) written one query, head and token at a time, without padding."""

from __future__ import annotations

import math

import torch

from .naive_fset import add_and_norm


def linear(layer, x):
    return layer.weight @ x + (0 if layer.bias is None else layer.bias)


def ssru(unit, inputs):
    """c_t = f_t ∘ c_{t-1} + (1 - f_t) ∘ x_t from c_0 = 0, of which the ReLU comes out."""
    c, outputs = torch.zeros(len(inputs[0]), dtype=inputs[0].dtype), []
    for h in inputs:
        f = 1 / (1 + torch.exp(-(unit.f.weight @ h + unit.f.bias)))
        c = f * c + (1 - f) * (unit.w.weight @ h)
        outputs.append(torch.clamp(c, min=0))
    return outputs


def attention(block, query, memory):
    """One query vector's attention to a list of vectors."""
    width = len(query) // block.num_heads
    q = linear(block.q_proj, query)
    keys, values = [linear(block.k_proj, h) for h in memory], [linear(block.v_proj, h) for h in memory]
    outputs = []
    for head in range(block.num_heads):
        part = slice(head * width, (head + 1) * width)
        scores = torch.stack([q[part] @ key[part] / math.sqrt(width) for key in keys])
        weights = torch.exp(scores) / torch.exp(scores).sum()
        outputs.append(sum(weight * value[part] for weight, value in zip(weights, values, strict=True)))
    return linear(block.out_proj, torch.cat(outputs))


def feed_forward(layer, x):
    inner = torch.clamp(linear(layer.fc1, x), min=0)
    return add_and_norm(layer.final_layer_norm, x, linear(layer.fc2, inner))


def embed(model, ids):
    """Scaled embeddings, with sin(pos / 10000^(2i/d)) at i and the cosine of the same at d/2 + i added."""
    table, states = model.get_input_embeddings().weight, []
    size = table.shape[1]
    for position, word in enumerate(ids):
        angles = [position / 10000 ** (2 * i / size) for i in range(size // 2)]
        waves = [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]
        scale = math.sqrt(size) if model.config.scale_embedding else 1
        states.append(table[word] * scale + torch.tensor(waves, dtype=table.dtype))
    return states


def ssru_transformer(model, source, target):
    """The logits of the decoder inputs `target`."""
    encoded = embed(model, source)
    for layer in model.model.encoder.layers:
        attended = [attention(layer.self_attn, x, encoded) for x in encoded]
        encoded = [add_and_norm(layer.self_attn_layer_norm, *pair) for pair in zip(encoded, attended, strict=True)]
        encoded = [feed_forward(layer, x) for x in encoded]
    states = embed(model, target)
    for layer in model.model.decoder.layers:
        outputs = ssru(layer.self_attn, states)
        states = [add_and_norm(layer.self_attn_layer_norm, *pair) for pair in zip(states, outputs, strict=True)]
        attended = [attention(layer.encoder_attn, x, encoded) for x in states]
        states = [add_and_norm(layer.encoder_attn_layer_norm, *pair) for pair in zip(states, attended, strict=True)]
        states = [feed_forward(layer, x) for x in states]
    return torch.stack([linear(model.lm_head, state) for state in states])
