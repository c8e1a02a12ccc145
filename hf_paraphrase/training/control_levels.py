"""Control tokens of training pairs: the level of a pair's novelty as a token before its source."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import numpy as np
from tokenizers import AddedToken
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from ..metrics.pinc.scoring import pinc

__all__ = ["CONTROL", "ControlLevels", "add_tokens", "draw_plain"]

# Column of encoded pairs that holds the id of each pair's control token.
CONTROL = "control"
# A model that learnt to differ should not copy unless it is asked to.
DEFAULT_STRENGTH = 0.5


class ControlLevels:
    """The levels of a recipe's `control_tokens: novelty`, and the token of each.

    Args:
        edges: The PINC at which each level except the first begins, from 0 to 1.
        tokenizer: Has their tokens.

    Source: Bandel et al. 2022, Quality Controlled Paraphrase Generation.
    """

    def __init__(self, edges: Sequence[float], tokenizer: PreTrainedTokenizerBase):
        self.edges = list(edges)
        self.ids = cast(list[int], tokenizer.convert_tokens_to_ids(self.names(edges)))

    @staticmethod
    def names(edges: Sequence[float]) -> list[str]:
        """The tokens, from the nearest level to the freest."""
        return [f"<novelty-{level}>" for level in range(len(edges) + 1)]

    def measure(self, sources: Sequence[str], targets: Sequence[str]) -> list[int]:
        """The ids of the control tokens of pairs, by the PINC of target against source, ignoring case."""
        scores = pinc(targets, sources, lowercase=True).statistics["pinc"].rows[:, 0]
        return [self.ids[bisect_right(self.edges, score)] for score in scores.tolist()]

    def write_into(self, config: PreTrainedConfig) -> None:
        """Write into a model's config what `find_control` reads there."""
        config.control_tokens, config.control_edges = self.names(self.edges), self.edges
        if getattr(config, "default_strength", None) is None:
            config.default_strength = DEFAULT_STRENGTH


def add_tokens(tokenizer: PreTrainedTokenizerBase, names: Sequence[str]) -> PreTrainedTokenizerBase:
    """Add control tokens to a tokenizer, which reads their names in a text as text from now on."""
    tokenizer.add_tokens([AddedToken(name, special=True, normalized=False) for name in names], special_tokens=True)
    tokenizer.split_special_tokens = tokenizer.init_kwargs["split_special_tokens"] = True
    return tokenizer


@lru_cache(maxsize=1)
def draw_plain(count: int, share: float, seed: int, epoch: int) -> frozenset[int]:
    """The numbers of the rows that have no control token in an epoch; seed and epoch alone decide."""
    # The third number sets these draws apart from those that order the batches, and from other draws of an epoch.
    return frozenset(np.flatnonzero(np.random.default_rng((seed, epoch, 4)).random(count) < share).tolist())
