"""Layers of the sentence encoder and decoder of Traynor 2018: over packed words, or word by word in decoding."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from ..layers.layer_weights import parameter_of
from ..layers.lstm_kernels import steps_of
from ..layers.recurrent import fit_width
from .configuration_hierarchical_lm import HierarchicalLmConfig
from .ragged import Ragged

# GELU(z) has a mean square of 1 where z is normal with this standard deviation.
GAIN = 1.47
# The bias' share of z's variance. With none, a vector that is a little too small gets smaller from layer to layer, a
# large one larger (Schoenholz et al. 2017, Deep information propagation, section 3).
BIAS = 0.1


class ScaledLinear(nn.Linear):
    """A linear layer before a GELU whose parameters start so that outputs have a mean square of 1.

    Args:
        mean_square: Of the inputs in training, as expected; dropout p makes 1 / (1 - p) of 1.
        scale: What all initial parameters are multiplied by, for smaller outputs.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, mean_square: float = 1.0, scale: float = 1.0
    ):
        super().__init__(in_features, out_features, bias=bias)
        self.mean_square, self.scale = mean_square, scale

    def draw(self) -> tuple[Tensor, Tensor | None]:
        """Draw a weight, and a bias if any, from torch's generator."""
        weight = torch.randn_like(self.weight) * math.sqrt((1 - BIAS) / (self.in_features * self.mean_square))
        bias = None if self.bias is None else torch.randn_like(self.bias) * math.sqrt(BIAS)
        return self._rescale(weight), None if bias is None else self._rescale(bias)

    def _rescale(self, parameter: Tensor) -> Tensor:
        return parameter * (GAIN * self.scale)


@torch.compiler.disable
def scan_sarah(
    value: Tensor, query: Tensor, weight: Tensor, bias: Tensor, kept: Tensor | None, sizes: list[int], num_heads: int
) -> Tensor:
    """Run a SARAh layer over packed words of sentences (Traynor 2018, section 2.4.3); returns outputs like `kept`.

    `y_t = GELU(W (v_t + s_t) + b)`, where s_t is the attention of q_t over the values and keys that y_1 … y_{t-1} are
    split into, all heads at once. The outputs share one buffer instead of one per step, and the weight's gradient is
    one product.

    Args:
        value: v of every word, `(words, value_size)`, packed.
        query: q of every word, `(words, key_size)`.
        weight: `(value_size + key_size, value_size)`.
        bias: `(value_size + key_size,)`.
        kept: What dropout multiplies outputs by, `(words, value_size + key_size)`; None for no dropout.
        sizes: For each step how many sentences are that long.
    """
    with torch.autocast(value.device.type, enabled=False):
        value, query = value.to(weight.dtype), query.to(weight.dtype)
        return SarahScan.apply(value, query, weight, bias, kept, sizes, num_heads)


class SarahScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, query, weight, bias, kept, sizes, num_heads):
        steps, value_size = len(sizes), value.shape[1]
        rows = sizes[0] * num_heads if sizes else 0
        values = value.new_zeros(rows, steps, value_size // num_heads)
        keys = value.new_zeros(rows, steps, query.shape[1] // num_heads)
        weights = value.new_zeros(rows, steps, steps)
        aware, inner = value.clone(), value.new_empty(len(value), len(weight))
        outputs = torch.empty_like(inner)
        query = query.contiguous()
        for t, words in enumerate(steps_of(sizes)):
            heads = sizes[t] * num_heads
            if t:
                scores = torch.bmm(query[words].view(heads, 1, -1), keys[:heads, :t].transpose(1, 2))
                weights[:heads, t, :t] = scores.softmax(dim=-1).squeeze(1)
                summary = torch.bmm(weights[:heads, t : t + 1, :t], values[:heads, :t])
                aware[words] += summary.view(-1, value_size)
            inner[words] = torch.addmm(bias, aware[words], weight.t())
            y = nn.functional.gelu(inner[words])
            outputs[words] = y if kept is None else y * kept[words]
            values[:heads, t] = outputs[words, :value_size].reshape(heads, -1)
            keys[:heads, t] = outputs[words, value_size:].reshape(heads, -1)
        ctx.save_for_backward(query, weight, kept, aware, inner, values, keys, weights)
        ctx.sizes, ctx.num_heads = sizes, num_heads
        return outputs

    @staticmethod
    def backward(ctx, gradient):
        query, weight, kept, aware, inner, values, keys, weights = ctx.saved_tensors
        d_values, d_keys = torch.zeros_like(values), torch.zeros_like(keys)
        d_inner, d_aware, d_query = torch.empty_like(inner), torch.empty_like(aware), torch.zeros_like(query)
        for t, words in reversed(list(enumerate(steps_of(ctx.sizes)))):
            count, heads = ctx.sizes[t], ctx.sizes[t] * ctx.num_heads
            used_later = (d_values[:heads, t].reshape(count, -1), d_keys[:heads, t].reshape(count, -1))
            d_output = gradient[words] + torch.cat(used_later, dim=1)
            if kept is not None:
                d_output = d_output * kept[words]
            d_inner[words] = torch.ops.aten.gelu_backward(d_output, inner[words])
            d_aware[words] = d_inner[words] @ weight
            if not t:
                continue
            d_summary = d_aware[words].view(heads, 1, -1)
            a = weights[:heads, t : t + 1, :t]
            d_a = torch.bmm(d_summary, values[:heads, :t].transpose(1, 2))
            d_scores = a * (d_a - (a * d_a).sum(dim=-1, keepdim=True))
            d_query[words] = torch.bmm(d_scores, keys[:heads, :t]).view(count, -1)
            d_values[:heads, :t].baddbmm_(a.transpose(1, 2), d_summary)
            d_keys[:heads, :t].baddbmm_(d_scores.transpose(1, 2), query[words].view(heads, 1, -1))
        return d_aware, d_query, d_inner.t() @ aware, d_inner.sum(dim=0), None, None, None


# The mean square of the mean of a sentence's words in a new model.
OWN = 0.7
# What such a mean adds to the mean square of a sum: its own, and twice its product with the rest, since outputs of
# GELU have a mean of ½.
MEAN = OWN + 0.6


def split(x: Tensor, value_size: int, key_size: int) -> tuple[Tensor, Tensor]:
    """Take the first elements for a value and the last for a key or query; they may overlap, or leave a gap."""
    return x[..., :value_size], x[..., x.shape[-1] - key_size :]


def key_scale(config: HierarchicalLmConfig) -> float:
    """What keys or queries are multiplied by at first: attention is not scaled, and would look at one word alone."""
    return (config.key_size // config.num_heads) ** -0.25


def expected_square(config: HierarchicalLmConfig, means: int) -> float:
    """The mean square, in training, of a word's vector with a sentence vector added if `means` is 1.

    Dropout p makes 1 / (1 - p) of the word's 1, and noise of weight w adds w² of what is the sentence vector's own.
    """
    return 1 / (1 - config.dropout) + means * (MEAN + OWN * config.sentence_noise**2)


def attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, num_heads: int) -> Tensor:
    """Unscaled multi-head attention (sections 2.4.4 and 2.4.6); zero if everything is masked.

    Arguments and result are `(batch, queries or length, size)`; the mask is `(batch, queries or 1, length)`.
    """
    query, keys, values = (x.unflatten(-1, (num_heads, -1)).transpose(1, 2) for x in (query, keys, values))
    scores = (query @ keys.transpose(-1, -2)).masked_fill(~mask.unsqueeze(1), torch.finfo(query.dtype).min)
    weights = scores.softmax(dim=-1) * mask.unsqueeze(1)
    return (weights @ values).transpose(1, 2).flatten(2)


class SentenceAttention(nn.Module):
    """Combines a layer's outputs into its sentence vector (section 2.4.5).

    Keys and values are split from the outputs; the query is one GELU layer over their mean.
    """

    def __init__(self, input_size: int, config: HierarchicalLmConfig):
        super().__init__()
        self.sizes, self.num_heads = (config.value_size, config.key_size), config.num_heads
        self.query = ScaledLinear(input_size, config.key_size, scale=key_scale(config))

    def forward(self, outputs: Tensor, sentences: Ragged) -> Tensor:
        """Map packed outputs `(words, input_size)` to `(sentences, value_size)`."""
        padded, mask = sentences.pad(outputs), sentences.mask()
        mean = padded.sum(dim=1) / sentences.lengths.clamp(min=1).unsqueeze(1)
        query = nn.functional.gelu(self.query(mean.to(padded.dtype)))
        values, keys = split(padded, *self.sizes)
        return attend(query.unsqueeze(1), keys, values, mask.unsqueeze(1), self.num_heads).squeeze(1)


class Gru(nn.Module):
    """One layer of gated recurrent units with one bias for each gate.

    Reading: `h' = tanh(W x + b + r ⊙ (U h))`, where the thesis (section 2.4.1) has `U (r ⊙ h)`. Both are known as GRU
    and have the same parameters; this one runs in the fused kernels of PyTorch and cuDNN, which compute no other.
    """

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.hidden_size = hidden_size
        self.input = ScaledLinear(input_size, 3 * hidden_size)
        self.hidden = nn.Linear(hidden_size, 3 * hidden_size, bias=False)

    # torch.compile cannot trace packed sequences, and has nothing to gain on a fused GRU.
    @torch.compiler.disable
    def forward(self, x: Tensor, sizes: list[int]) -> Tensor:
        """Run over packed sequences `(total, input_size)`; returns `(total, hidden_size)`."""
        if not len(x):
            return x.new_zeros(0, self.hidden_size)
        x = x.to(self.input.weight.dtype)
        start = x.new_zeros(1, sizes[0], self.hidden_size)
        return torch.gru(x, torch.tensor(sizes), start, self._weights(), True, 1, 0.0, self.training, False)[0]

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        """Run one step of inputs `(batch, input_size)` from states `(batch, hidden_size)`."""
        return torch.gru_cell(x, h, *self._weights())

    def _weights(self) -> list[Tensor]:
        bias = parameter_of(self.input, "bias")
        return [parameter_of(self.input), parameter_of(self.hidden), bias, torch.zeros_like(bias)]


class GruLayer(nn.Module):
    """A sentence layer of `value_size` gated recurrent units, whose state is their activations.

    They are bounded, so its initial weights do not depend on what is added to its inputs.
    """

    def __init__(self, input_size: int, config: HierarchicalLmConfig, means: int):
        super().__init__()
        self.output_size = config.value_size
        self.gru = Gru(input_size, config.value_size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, sentences: Ragged, causal: bool) -> Tensor:
        return self.dropout(self.gru(x, sentences.sizes))

    def new_state(self, like: Tensor, words: int) -> Tensor:
        return like.new_zeros(len(like), self.output_size)

    def step(self, x: Tensor, state: Tensor, rows: Tensor, count: Tensor) -> Tensor:
        state[rows] = self.gru.step(x, state[rows])
        return state[rows]


class ValuesAndKeys(ScaledLinear):
    """The linear layer of SARAh, whose keys, the rows behind the values, start small."""

    def __init__(self, config: HierarchicalLmConfig, mean_square: float):
        super().__init__(config.value_size, config.value_size + config.key_size, mean_square=mean_square)
        self.key_scale = key_scale(config)

    def _rescale(self, parameter: Tensor) -> Tensor:
        values, keys = super()._rescale(parameter).tensor_split([self.in_features])
        return torch.cat((values, keys * self.key_scale))


class SarahLayer(nn.Module):
    """A Self Attentive Recurrent Array (section 2.4.3), whose state is its outputs so far.

    With `key_size` k and `value_size` v: inputs are split into a value of v and a query of k, outputs of v + k into a
    value and a key. A layer has (v + 1)(v + k) parameters and, in the encoder, those of its sentence attention: for
    512 and 256, 393,984 + 196,864 = 590,848, where the thesis prints 590,866.
    """

    def __init__(self, input_size: int, config: HierarchicalLmConfig, means: int):
        super().__init__()
        self.sizes, self.num_heads = (config.value_size, config.key_size), config.num_heads
        self.output_size = sum(self.sizes)
        self.output = ValuesAndKeys(config, expected_square(config, means) + MEAN)  # of the words before
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, sentences: Ragged, causal: bool) -> Tensor:
        value, query = split(x, *self.sizes)
        weight, bias = parameter_of(self.output), parameter_of(self.output, "bias")
        kept = None
        if self.training and self.dropout.p:
            kept = self.dropout(torch.ones(len(x), self.output_size, dtype=weight.dtype, device=x.device))
        return scan_sarah(value, query, weight, bias, kept, sentences.sizes, self.num_heads)

    def new_state(self, like: Tensor, words: int) -> Tensor:
        return like.new_zeros(len(like), words, self.output_size)

    def step(self, x: Tensor, state: Tensor, rows: Tensor, count: Tensor) -> Tensor:
        value, query = split(x, *self.sizes)
        values, keys = split(state[rows], *self.sizes)
        mask = torch.arange(state.shape[1], device=x.device) < count.unsqueeze(1)
        summary = attend(query.unsqueeze(1), keys, values, mask.unsqueeze(1), self.num_heads).squeeze(1)
        y = nn.functional.gelu(self.output(value + summary))
        state[rows, count] = y
        return y


class TransformerLayer(nn.Module):
    """Attention between the words of a sentence (section 2.4.2), whose state is values and keys so far.

    Readings: the layer's output is the attended value and, since keys and the next layer's 768 inputs are taken from
    it (section 3.2.2), the word's key behind it; in the decoder a word sees those before it and itself.
    """

    def __init__(self, input_size: int, config: HierarchicalLmConfig, means: int):
        super().__init__()
        self.sizes, self.num_heads = (config.value_size, config.key_size), config.num_heads
        self.output_size = sum(self.sizes)
        self.positions = nn.Embedding(config.max_words, input_size)
        self.position_bias = nn.Parameter(torch.zeros(input_size))
        mean_square = expected_square(config, means) + 1  # of its position
        self.query = ScaledLinear(input_size, config.key_size, mean_square=mean_square, scale=key_scale(config))
        self.key = ScaledLinear(input_size, config.key_size, mean_square=mean_square)
        self.value = ScaledLinear(input_size, config.value_size, mean_square=mean_square)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, sentences: Ragged, causal: bool) -> Tensor:
        query, key, value = self._project(x, sentences.step)
        mask = sentences.mask().unsqueeze(1)
        if causal:
            mask = mask & mask.new_ones(mask.shape[-1], mask.shape[-1]).tril()
        query, keys, values = map(sentences.pad, (query, key, value))
        attended = attend(query, keys, values, mask, self.num_heads)[sentences.run, sentences.step]
        return torch.cat((attended, key), dim=-1)

    def new_state(self, like: Tensor, words: int) -> Tensor:
        return like.new_zeros(len(like), words, self.output_size)

    def step(self, x: Tensor, state: Tensor, rows: Tensor, count: Tensor) -> Tensor:
        query, key, value = self._project(x, count)
        state[rows, count] = torch.cat((value, key), dim=-1)
        values, keys = split(state[rows], *self.sizes)
        mask = torch.arange(state.shape[1], device=x.device) <= count.unsqueeze(1)
        attended = attend(query.unsqueeze(1), keys, values, mask.unsqueeze(1), self.num_heads).squeeze(1)
        return torch.cat((attended, key), dim=-1)

    def _project(self, x: Tensor, place: Tensor) -> tuple[Tensor, ...]:
        x = (
            x
            + self.positions(place.clamp(max=self.positions.num_embeddings - 1))
            + parameter_of(self, "position_bias")
        )
        return tuple(self.dropout(nn.functional.gelu(layer(x))) for layer in (self.query, self.key, self.value))


SentenceLayer = GruLayer | SarahLayer | TransformerLayer
LAYERS: dict[str, type[SentenceLayer]] = {"gru": GruLayer, "sarah": SarahLayer, "transformer": TransformerLayer}


def make_layer(input_size: int, config: HierarchicalLmConfig, means: int) -> SentenceLayer:
    """Make a layer of the kind that `config.sentence_encoder` names, whose inputs are sums of a vector and `means`.

    Its `forward(x, sentences, causal)` maps packed words `(words, input_size)` to `(words, output_size)`; its
    `step(x, state, rows, count)` one word for each of some rows, which have `count` words before it.
    """
    return LAYERS[config.sentence_encoder](input_size, config, means)


def condition(x: Tensor, sentence_vectors: Tensor) -> Tensor:
    """Add a sentence vector to the value part, the first elements, of a decoder layer's inputs (section 2.5)."""
    return x + fit_width(sentence_vectors, x.shape[-1])


class HierarchicalLmCache:
    """The decoder's cache between `generate()` steps: character, word and sentence levels.

    Args:
        config: Gives the capacity in words, which grows if needed, and in characters of a word.
        layers: Those of the decoder.
        like: Has the device and type of the states, and a row for each of the batch's, `(batch, value_size)`.
        spelling_size: Width of the word decoder's state.
    """

    # Rows close their words at different steps; generate() must not compile against it as a static cache.
    is_compileable = False

    def __init__(self, config: PreTrainedConfig, layers: Iterable[Any], like: Tensor, spelling_size: int):
        self.max_words = config.max_words + 1
        self.layers = [layer.new_state(like, self.max_words) for layer in layers]
        self.words = torch.zeros(len(like), dtype=torch.long, device=like.device)
        self.characters = torch.zeros_like(self.words)
        self.open_words = self.words.new_zeros(len(like), config.max_characters)
        self.spelling = like.new_zeros(len(like), spelling_size)
        self.vectors = torch.zeros_like(like)
        self.seen_tokens = 0

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of decoder positions seen; the same for every layer."""
        return self.seen_tokens

    def append(self, ids: Tensor, rows: Tensor) -> None:
        """Add a character to the open words of some rows."""
        fits = (rows & (self.characters < self.open_words.shape[1])).nonzero().squeeze(1)
        self.open_words[fits, self.characters[fits]] = ids[fits]
        self.characters += rows

    def close_words(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Take the open words of some rows: their symbols, where each starts, and how many characters it has."""
        symbols, characters = self.open_words[rows].flatten(), self.characters[rows]
        starts = torch.arange(len(rows), device=rows.device) * self.open_words.shape[1]
        self.characters[rows] = 0
        self.spelling[rows] = 0
        if int(self.words[rows].max()) >= self.max_words:
            self._grow()
        return symbols, starts, characters

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep, for every beam, the state of the hypothesis `beam_idx` that it continues."""
        self.layers = [state[beam_idx] for state in self.layers]
        for name in ("words", "characters", "open_words", "spelling", "vectors"):
            setattr(self, name, getattr(self, name)[beam_idx])

    def _grow(self) -> None:
        # A state without a dimension of words, a GRU's, has nothing to grow.
        self.layers = [
            nn.functional.pad(state, (0, 0, 0, self.max_words)) if state.dim() == 3 else state for state in self.layers
        ]
        self.max_words *= 2
