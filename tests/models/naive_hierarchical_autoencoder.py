"""The equations of Li et al. 2015, one document, one sentence and one word at a time."""

from __future__ import annotations

import torch

from .naive import clip_or_pad


def lstm(stack, x, state, identity):
    """One step of all layers (equations 1 to 3; with tanh unless `identity`); state: (h, c) of each layer."""
    (group,), result = stack.groups, []
    for layer, (h, c) in enumerate(state):
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        w_x, w_h, b_x, b_h = (getattr(group, f"{name}_l{layer}") for name in names)
        i, f, g, o = (w_x @ x + b_x + w_h @ h + b_h).chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        x = torch.sigmoid(o) * (c if identity else torch.tanh(c))
        result.append((x, c))
    return result


def split_sentences(words, marks):
    """Sentences with their marks."""
    sentences, sentence = [], []
    for word in words:
        sentence.append(word)
        if word in marks:
            sentences.append(sentence)
            sentence = []
    return [*sentences, sentence] if sentence else sentences


def backwards(units, is_mark):
    """In reverse, but for a mark at the end."""
    return [*units[-2::-1], units[-1]] if is_mark(units[-1]) else units[::-1]


def zeros(model):
    start = clip_or_pad(model.lm_head.weight[0], 0).new_zeros(model.config.hidden_size)
    return [(start, start)] * model.config.num_layers


def encode(model, source):
    """e_D as the (h, c) of each layer, and the states of the sentences in the source's order (equations 5 and 6)."""
    encoder, config = model.model.encoder, model.config
    identity, end_d = config.cell_output == "identity", config.eos_token_id
    marks = [config.end_of_sentence_token_id, end_d]

    def read(words):
        if config.reverse_source:
            words = backwards(words, lambda word: word in (marks if encoder.sentences else [end_d]))
        state = zeros(model)
        for word in words:
            state = lstm(encoder.words, encoder.embed_tokens.weight[word], state, identity)
        return state

    if encoder.sentences is None:
        return read(source), []
    sentences = list(enumerate(split_sentences(source, marks)))
    if config.reverse_source:
        sentences = backwards(sentences, lambda sentence: sentence[1] == [end_d])
    state, states = zeros(model), {}
    for number, sentence in sentences:
        state = lstm(encoder.sentences, read(sentence)[-1][0], state, identity)
        if sentence != [end_d] or len(sentences) == 1:
            states[number] = state[-1][0]
    return state, [states[number] for number in sorted(states)]


def attend(attention, query, states):
    """v_i = U·tanh(W1 h_{t-1} + W2 h_i), a = softmax(v), m = Σ a_i h_i (equations 10 to 12)."""
    v = torch.stack(
        [attention.score.weight[0] @ torch.tanh(attention.query(query) + attention.key(h)) for h in states]
    )
    a = v.exp() / v.exp().sum()
    return sum(weight * h for weight, h in zip(a, states, strict=True)), a


def decode(model, source, target):
    """Logits behind each of the decoder's inputs `target`, and the weights over the source's sentences at each."""
    decoder, config = model.model.decoder, model.config
    identity = config.cell_output == "identity"
    table = (model.model.encoder if config.share_embeddings else decoder).embed_tokens.weight
    document, states = encode(model, source)
    sentence, words = document, document
    logits, weights = [], []
    a = table.new_zeros(len(states))
    for word in target:
        if word != config.decoder_start_token_id:
            words = lstm(decoder.words, table[word], words, identity)
        if word == config.end_of_sentence_token_id and decoder.sentences is not None:
            x = words[-1][0]
            if config.attention:
                m, a = attend(decoder.attention, sentence[-1][0], states)
                x = torch.cat((x, m))
            sentence = words = lstm(decoder.sentences, x, sentence, identity)
        logits.append(model.lm_head(words[-1][0]))
        weights.append(a)
    return torch.stack(logits), torch.stack(weights)
