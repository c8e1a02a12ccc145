"""The hierarchical language model as its equations stand in batches: a yardstick.

Every word is padded to 20 characters and every sentence to 30 words, and the SARAh layers go step by step.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from hf_paraphrase import HierarchicalLmConfig


def feed_forward(sizes: list[int], dropout: float) -> nn.Sequential:
    layers = [part for pair in pairwise(sizes) for part in (nn.Linear(*pair), nn.GELU(), nn.Dropout(dropout))]
    return nn.Sequential(*layers)


class PaddedSarah(nn.Module):
    def __init__(self, value_size: int, key_size: int, dropout: float):
        super().__init__()
        self.value_size, self.key_size = value_size, key_size
        self.output = feed_forward([value_size, value_size + key_size], dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outputs: list[torch.Tensor] = []
        for word in x.unbind(1):
            aware = word[:, : self.value_size]
            if outputs:
                history = torch.stack(outputs, dim=1)
                scores = history[..., -self.key_size :] @ word[:, -self.key_size :].unsqueeze(-1)
                aware = aware + (scores.softmax(1) * history[..., : self.value_size]).sum(1)
            outputs.append(self.output(aware))
        return torch.stack(outputs, dim=1)


class PaddedLanguageModel(nn.Module):
    """Args: config, of SARAh layers with one head and a GRU word decoder."""

    def __init__(self, config: HierarchicalLmConfig):
        super().__init__()
        self.config, value, key = config, config.value_size, config.key_size
        self.characters = nn.Embedding(config.vocab_size, config.embedding_size)
        spelled = config.max_characters * config.embedding_size
        self.word_encoder = feed_forward([spelled, *config.word_encoder_sizes], config.dropout)
        self.encoder, self.decoder = (
            nn.ModuleList(PaddedSarah(value, key, config.dropout) for _ in range(config.num_layers)) for _ in "ed"
        )
        self.queries = nn.ModuleList(nn.Linear(value + key, key) for _ in range(config.num_layers))
        self.gru = nn.GRU(config.embedding_size, config.word_decoder_hidden_size, batch_first=True)
        self.spelled = feed_forward([config.word_decoder_hidden_size, value], config.dropout)
        self.word_decoder = feed_forward([value, *config.word_decoder_sizes], config.dropout)
        self.output = nn.Linear(config.word_decoder_sizes[-1], config.vocab_size)

    def encode_words(self, words: torch.LongTensor) -> torch.Tensor:
        embedded = self.characters(words) * (words > 0).unsqueeze(-1)
        return self.word_encoder(embedded.flatten(2))

    def forward(self, source: torch.LongTensor, target: torch.LongTensor, following: torch.LongTensor) -> torch.Tensor:
        """The mean loss over real symbols.

        Args:
            source: `(batch, words, max_characters)`, 0 where there is none.
            target: The words before each that is predicted, START first, `(batch, words, max_characters)`.
            following: Those that are predicted, with STOP or END, `(batch, words, max_characters + 1)`.
        """
        x, vectors, real = self.encode_words(source), [], (source > 0).any(-1, keepdim=True)
        for layer, query in zip(self.encoder, self.queries, strict=True):
            x = layer(x)
            mean = (x * real).sum(1) / real.sum(1).clamp(min=1)
            scores = x[..., -self.config.key_size :] @ nn.functional.gelu(query(mean)).unsqueeze(-1)
            weights = scores.masked_fill(~real, -torch.inf).softmax(1)
            vectors.append((weights * x[..., : self.config.value_size]).sum(1))
        x = self.encode_words(target)
        for layer, vector in zip(self.decoder, vectors, strict=True):
            width = x.shape[-1] - vector.shape[-1]
            x = layer(x + nn.functional.pad(vector, (0, width)).unsqueeze(1))
        before = nn.functional.pad(following[..., :-1], (1, 0)).flatten(0, 1)
        partial = self.spelled(self.gru(self.characters(before))[0]).unflatten(0, x.shape[:2])
        word = x[..., : self.config.value_size].unsqueeze(2)
        logits = self.output(self.word_decoder(word + partial))
        return nn.functional.cross_entropy(logits.flatten(0, 2), following.flatten(), ignore_index=0)
