"""DNPG (Li et al. 2019) written one query, one head and one word at a time, for a row without padding."""

from __future__ import annotations

import math

import torch

from .naive_fset import add_and_norm, multi_head_attention, words

PHRASE, SENTENCE, END = 0, 1, 2


def positioned(x, position):
    size = len(x)
    angles = [position / 10000 ** (2 * (i // 2) / size) for i in range(size)]
    waves = [math.sin(angle) if i % 2 == 0 else math.cos(angle) for i, angle in enumerate(angles)]
    return x + torch.tensor(waves, dtype=x.dtype)


def lstm(module, xs, suffix=""):
    """The outputs of one layer, in one direction."""
    w, u, b, c_ = (getattr(module, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h = c = torch.zeros(u.shape[1], dtype=u.dtype)
    outputs = []
    for x in xs:
        i, f, g, o = (w @ x + b + u @ h + c_).chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return outputs


def layer(block, xs, seen, memory=None):
    """One post-norm layer; the word at t attends to the places `seen(t)` and to all of `memory`."""
    first, second = block.feed_forward[0], block.feed_forward[2]
    outputs = []
    for t, x in enumerate(xs):
        near = [xs[place] for place in seen(t)]
        h = add_and_norm(block.norms[0], x, multi_head_attention(block.self_attention, x, near, near)[0])
        if memory is not None:
            h = add_and_norm(block.norms[1], h, multi_head_attention(block.memory_attentions[0], h, memory, memory)[0])
        inner = torch.clamp(first.weight @ h + first.bias, min=0)
        outputs.append(add_and_norm(block.norms[-1], h, second.weight @ inner + second.bias))
    return outputs


def level_scores(model, ids):
    """What the separator gives each word: one layer in both directions, and a linear map."""
    separator = model.model.encoder.separator
    (group,), xs = separator.lstm.groups, words(model, ids)
    ahead, back = lstm(group, xs), lstm(group, xs[::-1], "_reverse")[::-1]
    return [separator.score.weight @ torch.cat(pair) + separator.score.bias for pair in zip(ahead, back, strict=True)]


def template_places(levels):
    """0, 1, 1, 1, 2 for sentence, phrase, phrase, phrase, sentence."""
    places = []
    for n, level in enumerate(levels):
        goes_on = n > 0 and level == PHRASE == levels[n - 1]
        places.append((places[-1] if places else -1) + (not goes_on))
    return places


def encode(model, ids, levels):
    """The states of the phrase words, and those of the template's."""
    encoder, half = model.model.encoder, model.config.window_size // 2
    xs, count = words(model, ids), len(ids)
    phrase = [
        positioned(x + encoder.embed_level.weight[:, level], place)
        for place, (x, level) in enumerate(zip(xs, levels, strict=True))
    ]
    for block in encoder.phrase_layers:
        phrase = layer(block, phrase, lambda t: [n for n in range(count) if abs(n - t) <= half])
    template = [
        positioned(x, place)
        for x, place, level in zip(xs, template_places(levels), levels, strict=True)
        if level == SENTENCE
    ]
    for block in encoder.sentence_layers:
        everywhere = range(len(template))
        template = layer(block, template, lambda t, everywhere=everywhere: everywhere)
    phrase = [state for state, level in zip(phrase, levels, strict=True) if level == PHRASE]
    nothing = [torch.zeros_like(xs[0])] * count
    return phrase or nothing, template or nothing


def dnpg(model, ids, levels, target):
    """`log Σ_z P(z_t) P_z(y_t)` of every word behind the decoder inputs `target`, and the aggregator's scores."""
    config, decoder = model.config, model.model.decoder
    phrase_memory, template_memory = encode(model, ids, levels)
    start = [positioned(x, place) for place, x in enumerate(words(model, target))]
    phrase, template = start, start
    for block in decoder.phrase_layers:
        near = lambda t: range(max(0, t - config.window_size + 1), t + 1)  # noqa: E731
        phrase = layer(block, phrase, near, phrase_memory)
    for block in decoder.sentence_layers:
        template = layer(block, template, lambda t: range(t + 1), template_memory)
    joined = [torch.cat(pair) for pair in zip(phrase, template, strict=True)]
    scores = [
        decoder.score_levels.weight @ h + decoder.score_levels.bias for h in lstm(decoder.aggregator.groups[0], joined)
    ]
    copied = [word for word, level in zip(ids, levels, strict=True) if level == PHRASE]
    rows = []
    for state, sentence_state, level_score in zip(phrase, template, scores, strict=True):
        p_phrase, p_sentence = torch.softmax(level_score, 0)
        by_phrase = torch.softmax(model.lm_head.weight @ state, 0)
        if decoder.pointer is not None and copied:
            pointer = decoder.pointer
            energies = torch.stack(
                [
                    pointer.score.weight[0]
                    @ torch.tanh(pointer.query.weight @ state + pointer.query.bias + pointer.key.weight @ memory)
                    for memory in phrase_memory
                ]
            )
            weights = torch.softmax(energies, 0)
            context = sum(weight * memory for weight, memory in zip(weights, phrase_memory, strict=True))
            gate = torch.sigmoid(decoder.gate.weight[0] @ torch.cat((state, context)) + decoder.gate.bias[0])
            by_phrase = gate * by_phrase
            outside = max([0, *(word + 1 - config.vocab_size for word in ids)])
            by_phrase = torch.cat((by_phrase, by_phrase.new_zeros(outside)))
            for word, weight in zip(copied, weights, strict=True):
                by_phrase[word] += (1 - gate) * weight
        by_sentence = torch.softmax(model.lm_head.weight @ sentence_state, 0)
        by_sentence = torch.cat((by_sentence, by_sentence.new_zeros(len(by_phrase) - len(by_sentence))))
        rows.append(torch.log(p_phrase * by_phrase + p_sentence * by_sentence))
    return torch.stack(rows), torch.stack(scores)
