"""Rewards for reinforcement learning: agreement with the target, or a matcher's judgement."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from transformers import TextClassificationPipeline

from ..errors import InputError
from ..generation.selection import load_matching_pipeline, score_by_matcher
from ..installation import require

__all__ = ["Reward", "load_reward", "reward_by_matcher", "reward_by_rouge"]

# Sources, targets and outputs, as many of each -> a number for each output, the more the better.
Reward = Callable[[Sequence[str], Sequence[str], Sequence[str]], list[float]]


def load_reward(name: str, trust_remote_code: bool = False) -> Reward:
    """Make the reward that a recipe names.

    Args:
        name: `rouge`, or where to load a classifier of sentence pairs from.
        trust_remote_code: Let its own code run.

    Raises:
        InputError: A library is missing, or the classifier does not exist.
    """
    if name == "rouge":
        require("rouge_score", "metrics", "`reward: rouge`", package="rouge-score")
        return reward_by_rouge
    matcher = load_matching_pipeline(name, trust_remote_code)
    if cast(int, matcher.model.config.num_labels) < 2:
        raise InputError(f"`reward`: {name} gives scores of no fixed range; name a model that labels pairs")
    # Which of its labels is wanted shows now, not after the first batch.
    score_by_matcher(["a"], [["a"]], matcher)
    return partial(reward_by_matcher, matcher)


def reward_by_rouge(sources: Sequence[str], targets: Sequence[str], outputs: Sequence[str]) -> list[float]:
    """ROUGE-2 (F, 0 to 1) of each output with its target."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rouge2"])
    return [scorer.score(*pair)["rouge2"].fmeasure for pair in zip(targets, outputs, strict=True)]


def reward_by_matcher(
    matcher: TextClassificationPipeline, sources: Sequence[str], targets: Sequence[str], outputs: Sequence[str]
) -> list[float]:
    """How probable a classifier finds it that each output means what its source does; 0 for an empty output."""
    scores = score_by_matcher(sources, [[output] for output in outputs], matcher)
    return [0.0 if score == -math.inf else score for (score,) in scores]
