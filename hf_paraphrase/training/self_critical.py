from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import torch
from accelerate.utils import extract_model_from_parallel
from torch import nn
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase, TextClassificationPipeline

from ..errors import InputError
from ..generation.selection import load_matching_pipeline, score_by_matcher
from ..installation import require
from ..models.layers.precision import at_least_single
from .losses import cross_entropy_sums

__all__ = ["Reward", "SelfCritical", "load_reward", "log_probabilities", "reward_by_matcher", "reward_by_rouge"]

# Sources, targets and outputs, as many of each -> a number for each output, the more the better.
Reward = Callable[[Sequence[str], Sequence[str], Sequence[str]], list[float]]


def load_reward(name: str, trust_remote_code: bool = False) -> Reward:
    """Make the reward that a recipe names.

    Args:
        name: `rouge`, or where to load a classifier of sentence pairs from.

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


class SelfCritical:
    """Policy gradient whose baseline is the reward of the model's own greedy output.

    For a source x the model draws an output y, word by word from its own distribution, and writes a greedy one ŷ. The
    loss of the row is `-(r(x, y) - r(x, ŷ)) log p(y | x)`, whose gradient is, in the mean over draws, that of the
    expected reward, negated. It is a sum over the words of y, and the loss of a step is divided, as cross-entropy is,
    by the number of target words: an output stands where its row's target would.

    Source: Li et al. 2018 for a matching model that rewards a paraphraser; Rennie et al. 2017 for the baseline. Left
    out of Li et al. are rewards of unfinished outputs by further draws, the rescaling of rewards by rank, and a
    matcher that learns on (inverse reinforcement learning, with its curriculum).

    Args:
        tokenizer: Makes texts of ids, for the reward.
        max_new_tokens: Most tokens of an output, its end token included.
        cross_entropy_weight: Part of the loss that is the target's cross-entropy, in [0, 1).
    """

    def __init__(
        self,
        reward: Reward,
        tokenizer: PreTrainedTokenizerBase,
        max_new_tokens: int,
        cross_entropy_weight: float = 0.0,
    ):
        self.reward, self.tokenizer, self.max_new_tokens = reward, tokenizer, max_new_tokens
        self.cross_entropy_weight = cross_entropy_weight

    def loss_sums(
        self, model: nn.Module, batch: dict[str, torch.Tensor], label_smoothing: float = 0.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The loss of a batch, and the negative log-likelihood of its targets to report, as `cross_entropy_sums`.

        Draws come from torch's generator, as dropout does. Outputs are written without dropout; the gradient is taken
        with that of the model's configuration, and exact where it is 0.

        Args:
            model: In training mode.
            batch: What its forward takes, `labels` among it.
        """
        bare = extract_model_from_parallel(model, keep_torch_compile=False)
        inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
        drawn = self._write(bare, batch, do_sample=True)
        advantages = self._rewards(batch, drawn) - self.greedy_rewards(bare, batch)
        suppressed = bare.generation_config.suppress_tokens or []
        end = self.tokenizer.eos_token_id
        loss = -(advantages * log_probabilities(model, inputs, drawn, end, suppressed)).sum()
        weight = self.cross_entropy_weight
        # Targets that take no part in the loss are scored for the report alone.
        with torch.set_grad_enabled(weight > 0):
            smoothed, likelihood = cross_entropy_sums(model, batch, label_smoothing)
        return weight * smoothed + (1 - weight) * loss, likelihood

    def greedy_rewards(self, model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """The reward of the greedy output of each row, `(rows,)`."""
        return self._rewards(batch, self._write(model, batch, do_sample=False))

    def _write(self, model: PreTrainedModel, batch: dict[str, torch.Tensor], do_sample: bool) -> torch.Tensor:
        inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
        with _as_policy(model, self.max_new_tokens):
            return cast(Any, model).generate(**inputs, do_sample=do_sample)

    def _rewards(self, batch: dict[str, torch.Tensor], outputs: torch.Tensor) -> torch.Tensor:
        targets = batch["labels"].masked_fill(batch["labels"] == -100, self.tokenizer.pad_token_id)
        texts = (
            self.tokenizer.batch_decode(ids, skip_special_tokens=True)
            for ids in (batch["input_ids"], targets, outputs)
        )
        return torch.tensor(self.reward(*texts), device=outputs.device, dtype=torch.float32)


def log_probabilities(
    model: nn.Module,
    inputs: dict[str, torch.Tensor],
    outputs: torch.Tensor,
    eos_token_id: int,
    suppressed: Sequence[int] = (),
) -> torch.Tensor:
    """The log-probability of each output given its source, in nats, summed over its tokens: `(rows,)`.

    Args:
        model: Returns `logits`.
        outputs: As `generate()` returns them, `(rows, 1 + length)`: a start token, and padding behind the end.
        eos_token_id: The end token, which counts; later tokens do not.
        suppressed: Tokens that are never generated; the others share their probability.
    """
    words = outputs[:, 1:]
    is_end = words == eos_token_id
    is_behind = is_end.cumsum(1) > is_end.long()
    # Not by `labels`, for which the model would compute a loss, and might leave out the logits.
    scored = model(
        **inputs, decoder_input_ids=outputs[:, :-1], decoder_attention_mask=(~is_behind).long(), use_cache=False
    )
    logits = at_least_single(scored.logits)
    if suppressed:
        logits = logits.index_fill(-1, torch.tensor(suppressed, device=logits.device), -torch.inf)
    labels = words.masked_fill(is_behind, -100)
    # As rows of a matrix, for which this takes about half the time that it takes for words in a middle dimension.
    losses = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    return -losses.view_as(labels).sum(1)


@contextmanager
def _as_policy(model: PreTrainedModel, max_new_tokens: int) -> Iterator[None]:
    """Let a model generate by its own distribution: no dropout, beams or filters, but for tokens never written."""
    training, usual = model.training, model.generation_config
    kept = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "suppress_tokens")
    model.generation_config = GenerationConfig(
        max_new_tokens=max_new_tokens, do_sample=True, top_k=0, **{name: getattr(usual, name) for name in kept}
    )
    model.eval()
    try:
        yield
    finally:
        model.train(training)
        model.generation_config = usual
