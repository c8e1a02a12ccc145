"""Characters to words and back: the word encoder and the word decoders of Traynor 2018, sections 2.3 and 2.6."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

from ..layers.layer_weights import parameter_of
from .configuration_hierarchical_lm import HierarchicalLmConfig
from .ragged import Ragged
from .sentence_layers import Gru, ScaledLinear

# Mean of an English word or punctuation mark; other positions are zeros.
CHARACTERS = 4


class FeedForward(GradientCheckpointingLayer):
    """GELU layers, each followed by dropout, for inputs whose mean square before a dropout is `mean_square`."""

    def __init__(self, input_size: int, sizes: Sequence[int], dropout: float, mean_square: float = 1.0):
        super().__init__()
        widths = [input_size, *sizes]
        squares = [mean_square / (1 - dropout)] + [1 / (1 - dropout)] * len(sizes)
        layers = zip(widths, widths[1:], squares, strict=False)
        self.layers = nn.ModuleList(
            ScaledLinear(before, after, mean_square=square) for before, after, square in layers
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(*, input_size)` to `(*, sizes[-1])`."""
        for layer in self.layers:
            x = self.dropout(nn.functional.gelu(layer(x)))
        return x


class Spelling(ScaledLinear):
    """A linear layer over the embeddings of a word's characters, concatenated and clipped or zero-padded.

    Each character is multiplied by its own columns of the weight and the products are added, so that padding costs
    nothing.
    """

    def __init__(self, config: HierarchicalLmConfig, out_features: int, bias: bool = True):
        self.places, self.width = config.max_characters, config.embedding_size
        super().__init__(self.places * self.width, out_features, bias, mean_square=CHARACTERS / self.places)

    def products(self, embeddings: Tensor, sizes: list[int]) -> Tensor:
        """Multiply packed characters `(characters, embedding_size)`; those behind the last place count as nothing."""
        parts = embeddings.split(sizes) if sizes else ()
        weight = parameter_of(self)
        found = [part @ columns.t() for part, columns in zip(parts, weight.split(self.width, dim=1), strict=False)]
        clipped = embeddings.new_zeros(sum(sizes[self.places :]), self.out_features)
        return torch.cat((*found, clipped.to(weight.dtype)))

    def at(self, embeddings: Tensor, places: Tensor) -> Tensor:
        """Multiply one character for each row, `(batch, embedding_size)`, which stands at `places`."""
        columns = parameter_of(self).view(self.out_features, self.places, self.width).transpose(0, 1)
        products = (columns[places.clamp(max=self.places - 1)] @ embeddings.unsqueeze(-1)).squeeze(-1)
        return products * (places < self.places).unsqueeze(1)


class WordEncoder(nn.Module):
    """GELU layers over the embeddings of a word's characters (section 2.3)."""

    def __init__(self, config: HierarchicalLmConfig):
        super().__init__()
        first, *others = config.word_encoder_sizes
        self.spelling = Spelling(config, first)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = FeedForward(first, others, config.dropout)

    def forward(self, embeddings: Tensor, words: Ragged) -> Tensor:
        """Map packed characters `(characters, embedding_size)` to `(words, word_encoder_sizes[-1])`."""
        products = self.spelling.products(embeddings, words.sizes)
        sums = products.new_zeros(words.count, products.shape[-1]).index_add(0, words.run, products)
        return self.layers(self.dropout(nn.functional.gelu(sums + parameter_of(self.spelling, "bias"))))


class GruSpeller(nn.Module):
    """Represents the characters so far by a GRU and a GELU layer (section 2.6.2)."""

    def __init__(self, config: HierarchicalLmConfig):
        super().__init__()
        self.state_size = config.word_decoder_hidden_size
        self.gru = Gru(config.embedding_size, self.state_size)
        self.output = ScaledLinear(self.state_size, config.value_size)

    def forward(self, embeddings: Tensor, sizes: list[int]) -> Tensor:
        return self.gru(embeddings, sizes)

    def step(self, embeddings: Tensor, state: Tensor, places: Tensor) -> Tensor:
        return self.gru.step(embeddings, state)

    def finish(self, state: Tensor) -> Tensor:
        return nn.functional.gelu(self.output(state))


class MlpSpeller(nn.Module):
    """Represents the characters so far by one GELU layer over their embeddings (section 2.6.1).

    It has no bias: so it has the thesis' number of parameters.
    """

    def __init__(self, config: HierarchicalLmConfig):
        super().__init__()
        self.state_size = config.value_size
        self.spelling = Spelling(config, self.state_size, bias=False)

    def forward(self, embeddings: Tensor, sizes: list[int]) -> Tensor:
        """Add up the products: of its first character, its first two, …, for every word at once."""
        sums: list[Tensor] = []
        for products in self.spelling.products(embeddings, sizes).split(sizes):
            sums.append(sums[-1][: len(products)] + products if sums else products)
        return torch.cat(sums) if sums else embeddings.new_zeros(0, self.state_size)

    def step(self, embeddings: Tensor, state: Tensor, places: Tensor) -> Tensor:
        return state + self.spelling.at(embeddings, places)

    def finish(self, state: Tensor) -> Tensor:
        return nn.functional.gelu(state)


class WordDecoder(nn.Module):
    """Scores a word's next character from the word's vector and the characters so far (section 2.6).

    Reading: where the sentence decoder's vector is wider than `value_size`, its value part is what is added to.
    """

    def __init__(self, config: HierarchicalLmConfig):
        super().__init__()
        self.speller = GruSpeller(config) if config.word_decoder == "gru" else MlpSpeller(config)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = FeedForward(config.value_size, config.word_decoder_sizes, config.dropout, mean_square=2.0)

    def forward(self, vectors: Tensor, embeddings: Tensor, spans: Ragged) -> Tensor:
        """Run over all words `(words, value_size)` and their characters, packed as `spans` says, START first.

        Returns the inputs of the output layer, packed, `(characters, word_decoder_sizes[-1])`.
        """
        first = spans.sizes[0] if spans.sizes else 0
        states = self.speller(embeddings[first:], spans.sizes[1:])
        states = torch.cat((states.new_zeros(first, self.speller.state_size), states))
        return self.score(vectors[spans.run], states)

    def score(self, vectors: Tensor, states: Tensor) -> Tensor:
        """Map words' vectors and the speller's states, row by row, to the inputs of the output layer."""
        return self.layers(vectors + self.dropout(self.speller.finish(states)))
