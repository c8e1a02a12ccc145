"""The equations of the papers, written one step and one layer at a time: the ground truth of every fast path."""

from __future__ import annotations

import torch


def lstm_cell(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh):
    """One LSTM step for one row (Prakash et al. 2016, figure 2; gates in PyTorch's order i, f, g, o)."""
    gates = weight_ih @ x + bias_ih + weight_hh @ h + bias_hh
    i, f, g, o = gates.chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def clip_or_pad(x, width):
    """The first `width` elements of x, with zeros behind it where it has fewer."""
    result = x.new_zeros(width)
    size = min(width, len(x))
    result[:size] = x[:size]
    return result


def lstm_layer(lstm, layer, xs, h, c, suffix=""):
    """One direction of one layer over the steps `xs`."""
    weights = [getattr(lstm, f"{kind}_l{layer}{suffix}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    outputs = []
    for x in xs:
        h, c = lstm_cell(x, h, c, *weights)
        outputs.append(h)
    return outputs, h, c


def stacked_lstm(stack, xs, state=None):
    """ĥ^(l) = f^l(h^(l-1), h_{t-1}^(l)) + x_{l-n} over the steps `xs` of one row; returns outputs and all (h, c)."""
    interval, number, finals_h, finals_c = stack.residual_interval, 0, [], []
    below = group_input = xs
    for group in stack.groups:
        for layer in range(group.num_layers):
            outputs = [[] for _ in xs]
            for direction in range(2 if group.bidirectional else 1):
                start = xs[0].new_zeros(group.hidden_size)
                h, c = (start, start) if state is None else (state[0][len(finals_h)], state[1][len(finals_h)])
                steps = below[::-1] if direction else below
                layer_outputs, h, c = lstm_layer(group, layer, steps, h, c, "_reverse" if direction else "")
                for output, step in zip(outputs, layer_outputs[::-1] if direction else layer_outputs, strict=True):
                    output.append(step)
                finals_h.append(h)
                finals_c.append(c)
            below = [torch.cat(output) for output in outputs]
            number += 1
            if interval and number % interval == 0:
                below = [h + clip_or_pad(x, len(h)) for h, x in zip(below, group_input, strict=True)]
                group_input = below
    return below, (finals_h, finals_c)


def additive_attention(attention, query, memory):
    """v·tanh(W_q s + W_k h_i) for every source state, softmax, weighted sum; for one query of one row."""
    scores = torch.stack(
        [attention.score.weight[0] @ torch.tanh(attention.query(query) + attention.key(h)) for h in memory]
    )
    weights = torch.exp(scores) / torch.exp(scores).sum()
    return sum(weight * h for weight, h in zip(weights, memory, strict=True)), weights


def bridge_states(bridge, h, c):
    """The state in which each decoder layer starts, from the final ones of both directions."""
    both = [(torch.cat(h[2 * k : 2 * k + 2]), torch.cat(c[2 * k : 2 * k + 2])) for k in range(len(h) // 2)]
    h = [linear(both[layer // 2][0]) for layer, linear in enumerate(bridge.hidden)]
    return h, [linear(both[layer // 2][1]) for layer, linear in enumerate(bridge.cell)]


def residual_lstm(model, source, target):
    """Logits of a residual LSTM encoder-decoder for one source and the decoder inputs `target`, lists of ids."""
    encoder, decoder, config = model.model.encoder, model.model.decoder, model.config
    memory, (h, c) = stacked_lstm(encoder.lstm, [encoder.embed_tokens.weight[word] for word in source])
    if decoder.bridge is not None:
        h, c = bridge_states(decoder.bridge, h, c)
    table = (encoder if config.share_embeddings else decoder).embed_tokens.weight
    logits = []
    for word in target:
        (state,), (h, c) = stacked_lstm(decoder.lstm, [table[word]], (h, c))
        if decoder.attention is not None:
            context, _ = additive_attention(decoder.attention, state, memory)
            state = torch.tanh(decoder.combine.weight @ torch.cat((state, context)))
        logits.append(model.lm_head(state))
    return torch.stack(logits)
