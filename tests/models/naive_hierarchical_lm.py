"""The equations of Traynor 2018, chapter 2, symbol by symbol for one sentence: the ground truth of the fast paths."""

from __future__ import annotations

import torch
from torch.nn.functional import gelu


def hierarchical_lm(model, source: list[int], decoder_inputs: list[int]) -> torch.Tensor:
    """Logits `(target_length, vocab_size)` of `HierarchicalLmForConditionalGeneration`, without dropout."""
    sentences = sentence_vectors(model, source)
    closed, rows = [], []
    for length in range(1, len(decoder_inputs) + 1):
        words, spelled = split_stream(model.config, decoder_inputs[:length])
        if decoder_inputs[length - 1] in marks(model.config):
            closed, spelled = words, []
        rows.append(next_symbol(model, sentences, [word_vector(model, word) for word in closed], spelled))
    return torch.stack(rows)


def marks(config) -> set[int]:
    return {config.decoder_start_token_id, config.eos_token_id, config.stop_token_id}


def split_stream(config, ids: list[int]) -> tuple[list[list[int]], list[int]]:
    """The closed words of a stream, and the characters of the one still open."""
    words, spelled = [], []
    for symbol in ids:
        if symbol != config.stop_token_id:
            spelled.append(symbol)
        if symbol in marks(config):
            words.append(spelled)
            spelled = []
    return words, spelled


def word_vector(model, characters: list[int]) -> torch.Tensor:
    encoder = model.model.encoder
    x = concatenated(model, characters)
    x = gelu(encoder.word_encoder.spelling.weight @ x + encoder.word_encoder.spelling.bias)
    return feed_forward(encoder.word_encoder.layers, x)


def concatenated(model, characters: list[int]) -> torch.Tensor:
    """Embeddings side by side, clipped or zero-padded."""
    config, table = model.config, model.model.encoder.embed_tokens.weight
    x = table.new_zeros(config.max_characters * config.embedding_size)
    for place, character in enumerate(characters[: config.max_characters]):
        x[place * config.embedding_size : (place + 1) * config.embedding_size] = table[character]
    return x


def feed_forward(stack, x: torch.Tensor) -> torch.Tensor:
    for layer in stack.layers:
        x = gelu(layer.weight @ x + layer.bias)
    return x


def sentence_vectors(model, source: list[int]) -> list[torch.Tensor]:
    encoder, config = model.model.encoder, model.config
    words, spelled = split_stream(config, source)
    outputs = [word_vector(model, word) for word in [*words, *([spelled] if spelled else [])]]
    vectors = []
    for i, (layer, attention) in enumerate(zip(encoder.layers, encoder.attentions, strict=True)):
        outputs = run_layer(layer, config, outputs, causal=False)
        mean = sum(outputs) / len(outputs)
        query = gelu(attention.query.weight @ mean + attention.query.bias)
        values = [y[: config.value_size] for y in outputs]
        keys = [y[len(y) - config.key_size :] for y in outputs]
        vector = attention_over(query, keys, values, config.num_heads)
        if encoder.projections is not None:
            vector = gelu(encoder.projections[i].weight @ vector + encoder.projections[i].bias)
        vectors.append(vector)
    return vectors


def attention_over(query, keys, values, heads: int) -> torch.Tensor:
    k, v = len(query) // heads, len(values[0]) // heads
    parts = []
    for head in range(heads):
        scores = torch.stack([query[head * k :][:k] @ key[head * k :][:k] for key in keys])
        weights = scores.exp() / scores.exp().sum()
        parts.append(sum(a * value[head * v :][:v] for a, value in zip(weights, values, strict=True)))
    return torch.cat(parts)


def run_layer(layer, config, inputs: list[torch.Tensor], causal: bool) -> list[torch.Tensor]:
    return {"sarah": sarah, "gru": gru, "transformer": transformer}[config.sentence_encoder](
        layer, config, inputs, causal
    )


def sarah(layer, config, inputs, causal):
    outputs = []
    for x in inputs:
        value, query = x[: config.value_size], x[len(x) - config.key_size :]
        if outputs:
            values = [y[: config.value_size] for y in outputs]
            keys = [y[config.value_size :] for y in outputs]
            value = value + attention_over(query, keys, values, config.num_heads)
        outputs.append(gelu(layer.output.weight @ value + layer.output.bias))
    return outputs


def gru(layer, config, inputs, causal):
    return gru_states(layer.gru, inputs)


def gru_states(cell, inputs):
    size, outputs = cell.hidden_size, []
    h = inputs[0].new_zeros(size) if inputs else None
    for x in inputs:
        r_x, u_x, c_x = (cell.input.weight @ x + cell.input.bias).split(size)
        r_h, u_h, c_h = (cell.hidden.weight @ h).split(size)
        r, u = torch.sigmoid(r_x + r_h), torch.sigmoid(u_x + u_h)
        h = u * h + (1 - u) * torch.tanh(c_x + r * c_h)
        outputs.append(h)
    return outputs


def transformer(layer, config, inputs, causal):
    projected = []
    for place, x in enumerate(inputs):
        x = x + layer.positions.weight[min(place, config.max_words - 1)] + layer.position_bias
        projected.append([gelu(part.weight @ x + part.bias) for part in (layer.query, layer.key, layer.value)])
    outputs = []
    for place, (query, key, _) in enumerate(projected):
        seen = projected[: place + 1] if causal else projected
        attended = attention_over(query, [k for _, k, _ in seen], [v for _, _, v in seen], config.num_heads)
        outputs.append(torch.cat((attended, key)))
    return outputs


def next_symbol(model, sentences, words: list[torch.Tensor], spelled: list[int]) -> torch.Tensor:
    decoder, config = model.model.decoder, model.config
    outputs = words
    for layer, sentence in zip(decoder.layers, sentences, strict=True):
        inputs = [torch.cat((x[: len(sentence)] + sentence, x[len(sentence) :])) for x in outputs]
        outputs = run_layer(layer, config, inputs, causal=True)
    word = feed_forward(decoder.projection, outputs[-1][: config.value_size])
    partial = spelled_so_far(model, spelled)
    hidden = feed_forward(decoder.word_decoder.layers, word + partial)
    return model.lm_head.weight @ hidden + model.lm_head.bias


def spelled_so_far(model, spelled: list[int]) -> torch.Tensor:
    speller = model.model.decoder.word_decoder.speller
    if model.config.word_decoder == "mlp":
        return gelu(speller.spelling.weight @ concatenated(model, spelled))
    table = model.model.encoder.embed_tokens.weight
    states = gru_states(speller.gru, [table[character] for character in spelled])
    h = states[-1] if states else table.new_zeros(speller.state_size)
    return gelu(speller.output.weight @ h + speller.output.bias)
