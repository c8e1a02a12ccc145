"""Losses of a batch and of a split, summed so that they do not depend on how rows are shared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import extract_model_from_parallel
from torch import nn
from torch.nn import functional
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase, TextClassificationPipeline

from ..common.errors import InputError
from ..common.installation import require
from ..generation.selection import load_matching_pipeline, score_by_matcher
from ..models.layers.precision import at_least_single
from .batching import Batch, share_batches

# A loss to minimise and one to report, detached, each summed over the units of a batch.
Sums = tuple[torch.Tensor, torch.Tensor]


def cross_entropy_sums(model: nn.Module, batch: Batch, label_smoothing: float = 0.0) -> Sums:
    """The loss to minimise, and the negative log-likelihood of the labels to report, in nats, summed over tokens.

    Sums, because a step may consist of several batches on several processes: only the number of tokens in the whole
    step makes a mean that does not depend on how the step was divided. At least one of the batch's labels is not -100.
    `label_smoothing` spreads part of each target's probability over all words (Szegedy et al. 2016).
    """
    labels = batch["labels"]
    outputs = model(**batch)
    likelihood = outputs.loss * (labels != -100).sum()
    if not label_smoothing:
        return likelihood, likelihood.detach()
    logits = at_least_single(outputs.logits.flatten(0, 1))
    smoothed = nn.functional.cross_entropy(logits, labels.flatten(), reduction="sum", label_smoothing=label_smoothing)
    return smoothed, likelihood.detach()


@dataclass
class Validation:
    """Measures a model on a split, over all processes."""

    model: nn.Module  # without the wrapper for several processes
    shares: Iterable[tuple[Batch, np.ndarray]]  # this process's batches, as of `share_batches`
    counts: np.ndarray  # how much each row of the split counts
    accelerator: Accelerator  # knows the processes
    stop: Callable[[], bool]  # asked before every batch whether to give up; the same on every process

    @torch.no_grad()
    def mean_loss(self, loss_sums: Callable[[nn.Module, Batch], Sums]) -> float | None:
        """The mean loss, by `Task.loss_sums`, for each unit that counts; None if it was given up.

        Dropout is off, and random generators end as they began, so that validating does not change the training.
        """
        total, units, stopped, device = 0.0, 0, False, self.accelerator.device
        training = self.model.training
        self.model.eval()
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            for batch, rows in self.shares:
                stopped = self.stop()
                if stopped:
                    break
                if len(rows):
                    total += float(loss_sums(self.model, batch)[1])
                    units += int(self.counts[rows].sum())
        self.model.train(training)
        if stopped:
            return None
        all_total, all_units = add_up(self.accelerator, [total, units])
        return all_total / all_units

    def of(self, batches: Iterable[np.ndarray], make_batch: Callable[[Sequence[int]], Batch], counts: np.ndarray):
        """The same of other rows: arguments as in `share_batches`, and how much each row counts."""
        return replace(self, shares=share_batches(batches, make_batch, self.accelerator), counts=counts)


def add_up(accelerator: Accelerator, values: list[float]) -> list[float]:
    """Sum each of some numbers over the processes."""
    if accelerator.num_processes == 1:
        return values
    return accelerator.reduce(torch.tensor(values, dtype=torch.float64, device=accelerator.device), "sum").tolist()


# Words from which the flat loss is the faster one too, on a CPU: with the 306 symbols of a language model of
# characters it takes a third longer than all logits at once.
FLAT_FROM = 2000
# Positions whose logits exist at one time.
CHUNK = 256


def flat_cross_entropy(states: torch.Tensor, projection: nn.Linear, labels: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy in nats of a softmax over the vocabulary, without ever having all its logits.

    They are made for 256 positions at a time, and their gradients with them. PyTorch's own `linear_cross_entropy` does
    so, since version 2.13; before that, and in half precision, to which PyTorch's rounds the loss and in which it does
    not multiply on CPUs, our own does. The result is in single precision at least. Labels are `(batch,
    target_length)`, -100 if there is none, and states `(batch, target_length, hidden_size)`.
    """
    device, weight, bias = states.device.type, projection.weight, projection.bias
    states, labels = states.flatten(0, -2), labels.to(states.device).flatten()
    states = states.to(torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype)
    with torch.autocast(device, enabled=False):
        if hasattr(functional, "linear_cross_entropy") and states.dtype in (torch.float32, torch.float64):
            options = nn.LinearCrossEntropyOptions(batch_chunk_size=CHUNK)
            return functional.linear_cross_entropy(states, weight, labels, linear_bias=bias, options=options)
        total = ChunkedCrossEntropy.apply(states, weight, bias, labels, torch.is_grad_enabled())
    return total / (labels != -100).sum()


class ChunkedCrossEntropy(torch.autograd.Function):
    """The summed cross-entropy of a softmax of `states @ weight.T + bias`, by chunks of positions.

    Products use the precision of the states; sums use at least single precision.
    """

    @staticmethod
    def forward(ctx, states, weight, bias, labels, with_gradients):
        """Sum the costs of `labels` `(positions,)`, and make the gradients now, while the logits are there."""
        cast, total = weight.to(states.dtype), at_least_single(states.new_zeros(()))
        shift = 0.0 if bias is None else at_least_single(bias)
        if with_gradients:
            of_states = torch.empty_like(states)
            of_weight = torch.zeros_like(weight, dtype=total.dtype)
            of_bias = total.new_zeros(len(weight))
        for start in range(0, len(states), CHUNK):
            part = slice(start, start + CHUNK)
            is_there, targets = (labels[part] != -100).unsqueeze(1), labels[part].clamp_min(0).unsqueeze(1)
            logits = at_least_single(states[part] @ cast.t()).add_(shift)
            normaliser = logits.logsumexp(dim=1, keepdim=True)
            total += ((normaliser - logits.gather(1, targets)) * is_there).sum()
            if with_gradients:
                errors = logits.sub_(normaliser).exp_().mul_(is_there)
                errors.scatter_add_(1, targets, -is_there.to(errors.dtype))
                of_bias += errors.sum(dim=0)
                errors = errors.to(states.dtype)
                torch.mm(errors, cast, out=of_states[part])
                of_weight += errors.t() @ states[part]
        if with_gradients:
            ctx.save_for_backward(of_states, of_weight.to(weight.dtype), of_bias.to(weight.dtype))
        ctx.has_bias = bias is not None
        return total

    @staticmethod
    def backward(ctx, slope):
        of_states, of_weight, of_bias = ctx.saved_tensors
        return of_states * slope, of_weight * slope, of_bias * slope if ctx.has_bias else None, None, None


class SampledCrossEntropy:
    """Estimates that mean cross-entropy from the label and some words that are drawn for the whole batch.

    A word is drawn with a probability π in proportion to how often it is a label in training, at most 1, and then
    stands for 1/π words: `log(exp z_label + Σ_{w drawn, w ≠ label} exp(z_w) / π_w) − z_label`, whose sum over words
    is that of the full softmax in expectation. So frequent words are always there, and the loss estimates the full
    one. Without gradients, as in validation, it is the full one (`flat_cross_entropy`).

    Importance sampling of the normaliser is by Bengio & Senécal 2008, words shared by a batch by Jean et al. 2015
    (section 3), and the draw without replacement and its weights by Horvitz & Thompson 1952.

    Args:
        counts: How often each word of the vocabulary is a label, `(vocab_size,)`.
        samples: Words to draw, fewer than the vocabulary has.
    """

    def __init__(self, counts: np.ndarray, samples: int):
        # No word is impossible: those that are not labels must be there to become improbable.
        self.probabilities = torch.from_numpy(_draw_probabilities(counts + 1.0, samples))
        self.cumulative, self.samples = self.probabilities.cumsum(0), samples

    def draw(self) -> torch.Tensor:
        """Draw as many different words by systematic sampling: one random number, equal steps along the sums of π."""
        steps = torch.rand((), dtype=torch.float64) + torch.arange(self.samples)
        return torch.searchsorted(self.cumulative, steps, right=True).clamp_max(len(self.cumulative) - 1)

    def __call__(self, states: torch.Tensor, projection: nn.Linear, labels: torch.Tensor) -> torch.Tensor:
        """Estimate what `flat_cross_entropy` computes, of the same arguments."""
        if not torch.is_grad_enabled():
            return flat_cross_entropy(states, projection, labels)
        labels = labels.to(states.device)
        states, labels = states[labels != -100], labels[labels != -100]
        drawn = self.draw()
        weights = self.probabilities[drawn].log().to(states)
        drawn = drawn.to(states.device)
        words = torch.cat((drawn, labels))
        # One look-up, for its gradient is as large as the table.
        vectors, own_vectors = functional.embedding(words, projection.weight).tensor_split([self.samples])
        shifts = projection.bias[words] if projection.bias is not None else states.new_zeros(len(words))
        shift, own_shift = shifts.tensor_split([self.samples])
        others = at_least_single(functional.linear(states, vectors, shift)) - at_least_single(weights)
        others = others.masked_fill(drawn == labels.unsqueeze(1), -torch.inf)
        own = at_least_single((states * own_vectors).sum(dim=1) + own_shift)
        return (torch.logaddexp(own, others.logsumexp(dim=1)) - own).mean()


def _draw_probabilities(counts: np.ndarray, samples: int) -> np.ndarray:
    """Numbers in proportion to the counts, at most 1, whose sum is `samples`."""
    order = np.argsort(-counts, kind="stable")
    falling = counts[order]
    rest = falling[::-1].cumsum()[::-1]
    # These would exceed probability 1, and are always drawn.
    certain = int(np.argmax(falling * (samples - np.arange(len(counts))) <= rest))
    probabilities = np.ones(len(counts))
    probabilities[order[certain:]] = falling[certain:] * (samples - certain) / rest[certain]
    return probabilities


# Sources, targets and outputs, as many of each -> a number for each output, the more the better.
Reward = Callable[[Sequence[str], Sequence[str], Sequence[str]], list[float]]


def load_reward(name: str, trust_remote_code: bool = False) -> Reward:
    """Make the reward that a recipe names: `rouge`, or where to load a classifier of sentence pairs from.

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
        max_new_tokens: Maximum tokens of an output, its end token included.
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

    def loss_sums(self, model: nn.Module, batch: Batch, label_smoothing: float = 0.0) -> Sums:
        """The loss of a batch, and the negative log-likelihood of its targets to report, as `cross_entropy_sums`.

        Draws come from torch's generator, as dropout does. Outputs are written without dropout; the gradient is taken
        with that of the model's configuration, and exact where it is 0.
        """
        bare = extract_model_from_parallel(model, keep_torch_compile=False)
        inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
        drawn = self._write(bare, inputs, do_sample=True)
        advantages = self._rewards(batch, drawn) - self.greedy_rewards(bare, batch)
        suppressed = bare.generation_config.suppress_tokens or []
        loss = -(advantages * self._log_probabilities(model, inputs, drawn, suppressed)).sum()
        weight = self.cross_entropy_weight
        # Targets that take no part in the loss are scored for the report alone.
        with torch.set_grad_enabled(weight > 0):
            smoothed, likelihood = cross_entropy_sums(model, batch, label_smoothing)
        return weight * smoothed + (1 - weight) * loss, likelihood

    def greedy_rewards(self, model: PreTrainedModel, batch: Batch) -> torch.Tensor:
        """The reward of the greedy output of each row, `(rows,)`."""
        inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
        return self._rewards(batch, self._write(model, inputs, do_sample=False))

    def _write(self, model: PreTrainedModel, inputs: Batch, do_sample: bool) -> torch.Tensor:
        with _as_policy(model, self.max_new_tokens):
            return cast(Any, model).generate(**inputs, do_sample=do_sample)

    def _rewards(self, batch: Batch, outputs: torch.Tensor) -> torch.Tensor:
        targets = batch["labels"].masked_fill(batch["labels"] == -100, self.tokenizer.pad_token_id)
        texts = (
            self.tokenizer.batch_decode(ids, skip_special_tokens=True)
            for ids in (batch["input_ids"], targets, outputs)
        )
        return torch.tensor(self.reward(*texts), device=outputs.device, dtype=torch.float32)

    def _log_probabilities(
        self, model: nn.Module, inputs: Batch, outputs: torch.Tensor, suppressed: list[int]
    ) -> torch.Tensor:
        """The log-probability of each of the outputs `(rows, 1 + length)` of `generate()`, its end token included."""
        words = outputs[:, 1:]
        is_end = words == self.tokenizer.eos_token_id
        is_behind = is_end.cumsum(1) > is_end.long()
        # Not by `labels`, for which the model would compute a loss, and might leave out the logits.
        written = {"decoder_input_ids": outputs[:, :-1], "decoder_attention_mask": (~is_behind).long()}
        logits = at_least_single(model(**inputs, **written, use_cache=False).logits)
        if suppressed:  # the others share their probability
            logits = logits.index_fill(-1, torch.tensor(suppressed, device=logits.device), -torch.inf)
        labels = words.masked_fill(is_behind, -100)
        # As rows of a matrix, for which this takes about half the time that it takes for words in a middle dimension.
        losses = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
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
