from __future__ import annotations

import logging
import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, set_seed
from datasets import Dataset, IterableDataset
from torch import nn
from torch.optim import SGD, Adagrad, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, get_scheduler

from ..common.errors import InputError, TrainingInterrupted
from .arguments import TrainingConfig
from .batching import LengthBatches, fingerprint, share_batches
from .checkpoints import Checkpoints, TrainingState, get_random_state, set_random_state
from .losses import Validation, add_up
from .mixture import describe_mixture
from .recipe import Recipe
from .reporting import Reporter, perplexity
from .tasks import Task, TaskData
from .train_rows import Portion, StoredRows, StreamedRows

logger = logging.getLogger(__name__)

# Set where another process started this one and answers for it: by torchrun, and by `reproduce`.
LAUNCHED = "HF_PARAPHRASE_LAUNCHED"
LAUNCHERS = ("TORCHELASTIC_RUN_ID", LAUNCHED)


def follow_launcher() -> None:
    """Stop as by SIGTERM when the launcher that started this process is gone, which would leave it to nobody.

    An exiting shell is not a launcher: runs started by `nohup` continue.
    """
    if not any(name in os.environ for name in LAUNCHERS):
        return
    launcher = os.getppid()

    def watch() -> None:
        while os.getppid() == launcher:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


class StopSignals:
    """While entered, SIGTERM and Ctrl-C set `received` instead of killing; a second Ctrl-C interrupts at once.

    Launchers pass Ctrl-C on as SIGTERM, which therefore does not count as a second one. Python allows handlers in
    the main thread alone; in others, signals keep their usual effect.
    """

    def __init__(self):
        self.received: int | None = None
        self._interrupts = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._interrupts += number == signal.SIGINT
        if self._interrupts > 1:
            raise KeyboardInterrupt
        self.received = self.received or number


class TrainingDiverged(InputError):
    """The loss or its gradient is not finite: the optimizer's settings have to change."""


class TrainingRun:
    """The training of one model, from the first step or a checkpoint to the last.

    A step takes the gradient of the loss summed over all that counts in its batches (the target's tokens, for most
    tasks) and divided by their number, or by that of the rows, on however many processes they lie.
    Everything that decides the next step (weights, optimizer, schedule, random generators, the number of steps) is in
    a checkpoint, and the order of the batches follows from seed and epoch (in a stream, from the place in it that the
    checkpoint names), so that a resumed run takes the same steps.

    Args:
        model: A new model, or that of the checkpoint to resume from.
        resumed: State and tensors of that checkpoint.
        stream: The train split, where it is streamed; `data` has the beginning of it.
    """

    def __init__(
        self,
        recipe: Recipe,
        task: Task,
        directory: Path,
        accelerator: Accelerator,
        model: PreTrainedModel,
        data: TaskData,
        resumed: tuple[TrainingState, dict[str, Any]] | None = None,
        stream: IterableDataset | None = None,
    ):
        training = recipe.training
        self.recipe, self.training, self.task = recipe, training, task
        self.accelerator, self.data, self.encoded = accelerator, data, data.splits
        self.directory, self.checkpoints = directory, Checkpoints(directory)
        self.mixture = describe_mixture(training, self.encoded)
        self.collator = task.make_collator(data.tokenizer)
        self.validation_counts = task.counts(self.encoded["validation"])
        if stream is None:
            self.train_rows: StoredRows | StreamedRows = StoredRows(task, self.encoded["train"])
        else:
            self.train_rows = StreamedRows(task, data.tokenizer, stream, resumed[0].stream if resumed else None)
        self.validation_batches = LengthBatches(
            *task.lengths(self.encoded["validation"]),
            max_rows=training.train_batch_size,
            max_tokens=training.max_tokens_per_batch,
        ).in_order()
        self.total_steps = training.max_steps
        if training.max_steps < 1:
            self.total_steps = math.ceil(training.num_train_epochs * self.train_rows.steps_per_epoch)

        optimizer = make_optimizer(model, training)
        self.scheduler = make_scheduler(optimizer, training, self.train_rows.steps_per_epoch, self.total_steps)
        self.model = model
        self.wrapped, self.optimizer = accelerator.prepare(model, optimizer)
        self.state = TrainingState(data_fingerprint=fingerprint(self.encoded["train"]))
        set_seed(training.seed, device_specific=True)
        if resumed is not None:
            self._restore(*resumed)
        self._interrupted = False
        self._out_of_time = self._exceeds_time(self.state.seconds)

    def fit(self, signals: StopSignals) -> None:
        """Train to the end, and validate, log and save on the way.

        Raises:
            TrainingInterrupted: If a signal stopped it, after saving.
            TrainingDiverged: The loss is not finite.
            OSError: If a checkpoint cannot be written.
        """
        self.signals, self._started = signals, time.perf_counter() - self.state.seconds
        self._cpu_started = time.process_time() - self.state.cpu_seconds / self.accelerator.num_processes
        self.reporter = Reporter(
            self.accelerator, self.recipe, self.directory, self.state.history, self.state.step, self.total_steps
        )
        for corpus in self.mixture:
            self.reporter.say(
                f"{corpus['name']}: {corpus['share']:.1%} of an epoch, {corpus['pairs_per_epoch']:,} of "
                f"{corpus['train_pairs']:,} pairs; {corpus['validation_pairs']:,} to validate with; licence: "
                f"{corpus['licence']}"
            )
        by_epoch = self.training.eval_strategy == "epoch"
        evaluation_interval = self.train_rows.steps_per_epoch if by_epoch else self.training.eval_steps
        self.wrapped.train()
        try:
            while True:
                done = self._out_of_time or self.state.step >= self.total_steps
                if self._interrupted:
                    self._save()
                    raise self._interruption()
                is_evaluated = any(entry["step"] == self.state.step for entry in self.state.evaluations)
                if (done or self._is_due(evaluation_interval)) and not is_evaluated:
                    self._evaluate()
                    continue
                if self._is_due(self.training.save_steps):
                    self._save()
                if done or self._is_out_of_patience:
                    return
                self._step()
        finally:
            # The wrapper that joins several processes goes before their group does: as the last that holds the group
            # it can wait for a thread that waits for it.
            self.wrapped = None
            self.accelerator.free_memory()
            self.reporter.close()

    @property
    def epoch(self) -> float:
        """Passes over the training pairs so far; over a stream, whole ones."""
        return self.train_rows.epochs(self.state.step)

    @property
    def _is_out_of_patience(self) -> bool:
        patience = self.training.early_stopping_patience
        return patience is not None and patience <= sum(
            entry["step"] > self.state.best_step for entry in self.state.evaluations
        )

    def _is_due(self, interval: int | None) -> bool:
        return interval is not None and self.state.step > 0 and self.state.step % interval == 0

    def _exceeds_time(self, seconds: float) -> bool:
        return self.training.max_train_time is not None and seconds > 60 * self.training.max_train_time

    def _step(self) -> None:
        began, cpu_began = time.perf_counter(), time.process_time()
        portion, batches = self.train_rows.at(self.state.step)
        tokens = int(sum(portion.counts[rows].sum() for rows in batches))
        loss = self._backward(portion, batches, tokens)
        learning_rate = float(self.scheduler.get_last_lr()[0])
        norm = self._clip_gradient()
        # The scaler of fp16 expects infinite gradients now and then, and leaves such steps out.
        if not math.isfinite(loss) or (self.accelerator.scaler is None and not math.isfinite(norm)):
            raise self._divergence(f"the loss is {loss}, its gradient's norm {norm}")
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.scheduler.step()

        state = self.state
        state.step += 1
        state.train_tokens += tokens
        state.train_seconds += time.perf_counter() - began
        state.train_cpu_seconds += time.process_time() - cpu_began
        state.loss_since_log += loss * tokens
        state.tokens_since_log += tokens
        state.loss_since_eval += loss * tokens
        state.tokens_since_eval += tokens
        recent_loss = state.loss_since_log / state.tokens_since_log
        self.reporter.advance(recent_loss, learning_rate, state.train_tokens / state.train_seconds)
        if self._is_due(self.training.logging_steps):
            self._log(learning_rate, norm)

    def _backward(self, portion: Portion, batches: list[np.ndarray], tokens: int) -> float:
        """Accumulate the gradient of a step's loss; return the mean loss over its tokens, of all processes."""
        likelihood: float | torch.Tensor = 0.0
        divisor = tokens if self.training.loss_normalization == "tokens" else sum(map(len, batches))
        shares = self._share(portion.rows, batches, portion.number)
        for number, (batch, rows) in enumerate(shares, 1):
            is_last = number == len(batches)
            batch = self.task.prepare_batch(batch, self.state.step, self.total_steps)
            with nullcontext() if is_last else self.accelerator.no_sync(self.wrapped):
                loss, nll = self.task.loss_sums(self.wrapped, batch, self.data)
                # The processes' gradients are averaged: times their number, that is the sum it should be.
                counts = len(rows) > 0
                self.accelerator.backward(loss * (counts * self.accelerator.num_processes / divisor))
            likelihood += nll * counts
        return self._agree(float(likelihood)) / tokens

    def _share(
        self, encoded: Dataset, batches: list[np.ndarray], epoch: int | None
    ) -> Iterator[tuple[dict[str, torch.Tensor], np.ndarray]]:
        def make_batch(rows: Sequence[int]) -> dict[str, torch.Tensor]:
            return self.collator(self.task.features(encoded, rows, epoch))

        return share_batches(batches, make_batch, self.accelerator)

    def _clip_gradient(self) -> float:
        """Clip the gradient norm, and return the original one."""
        self.accelerator.unscale_gradients()
        parameters = [parameter for parameter in self.model.parameters() if parameter.grad is not None]
        norm = torch.nn.utils.get_total_norm([grad for one in parameters if (grad := one.grad) is not None])
        if self.training.max_grad_norm is not None and norm > self.training.max_grad_norm:
            torch.nn.utils.clip_grads_with_norm_(parameters, self.training.max_grad_norm, norm)
        return float(norm)

    def _agree(self, part: float = 0.0) -> float:
        """Add up the processes' parts of a number, and let all know if one of them was stopped or is out of time."""
        is_late = self._exceeds_time(time.perf_counter() - self._started)
        total, stopped, late = add_up(self.accelerator, [part, self.signals.received is not None, is_late])
        self._interrupted, self._out_of_time = stopped > 0, late > 0
        return total

    def _log(self, learning_rate: float, norm: float) -> None:
        state = self.state
        loss = state.loss_since_log / state.tokens_since_log
        state.loss_since_log, state.tokens_since_log = 0.0, 0
        self.reporter.log(
            {
                "step": state.step,
                "epoch": self.epoch,
                "loss": loss,
                "perplexity": perplexity(loss),
                "learning_rate": learning_rate,
                "grad_norm": norm if math.isfinite(norm) else None,
                "target_tokens_per_second": state.train_tokens / state.train_seconds,
            }
        )

    def _evaluate(self) -> None:
        """Validate, and save; or, where a signal comes, leave both for the resumed run."""

        def is_stopped() -> bool:
            self._agree()
            return self._interrupted

        shares = self._share(self.encoded["validation"], self.validation_batches, None)
        validation = Validation(self.model, shares, self.validation_counts, self.accelerator, is_stopped)
        scores = self.task.validate(self.data, validation)
        if scores is None:
            return
        state, loss, cost = self.state, scores["loss"], self.task.cost(scores)
        if not math.isfinite(loss):
            raise self._divergence(f"the validation loss is {loss}")
        train_loss = state.loss_since_eval / state.tokens_since_eval
        state.loss_since_eval, state.tokens_since_eval = 0.0, 0
        is_best = state.best_cost is None or cost < state.best_cost
        if is_best:
            state.best_step, state.best_cost = state.step, cost
        self.reporter.log(
            {
                "step": state.step,
                "epoch": self.epoch,
                "train_loss": train_loss,
                "train_perplexity": perplexity(train_loss),
                **{f"eval_{name}": value for name, value in scores.items()},
                "eval_perplexity": perplexity(loss),
                "seconds": time.perf_counter() - self._started,
            }
        )
        self.reporter.say(
            f"epoch {self.epoch:.2f}, step {state.step}: perplexity {perplexity(train_loss):.2f} in training, "
            f"{perplexity(loss):.2f} in validation"
            + "".join(f", {name} {value:.3f}" for name, value in scores.items() if name != "loss")
            + (" (best)" if is_best else "")
        )
        self._save(is_best)

    def _save(self, is_best: bool = False) -> None:
        self.state.stream = self.train_rows.place
        self.state.seconds = time.perf_counter() - self._started
        (self.state.cpu_seconds,) = add_up(self.accelerator, [time.process_time() - self._cpu_started])
        tensors = {
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "scaler": self.accelerator.scaler.state_dict() if self.accelerator.scaler else None,
            "random": gather_object([get_random_state()]),
        }
        if self.accelerator.is_main_process:
            if is_best:
                self.checkpoints.save_best(self.model, self.data.tokenizer, self.state)
            self.checkpoints.save_last(self.model, self.data.tokenizer, self.state, tensors)
        self.accelerator.wait_for_everyone()

    def _restore(self, state: TrainingState, tensors: dict[str, Any]) -> None:
        if state.data_fingerprint != self.state.data_fingerprint:
            raise InputError("--resume: the training pairs are not those that the run began with; give the same data")
        self.state = state
        self.optimizer.load_state_dict(tensors["optimizer"])
        self.scheduler.load_state_dict(tensors["scheduler"])
        # A run without float16 has no scaler to save.
        if self.accelerator.scaler and tensors["scaler"]:
            self.accelerator.scaler.load_state_dict(tensors["scaler"])
        if len(tensors["random"]) == self.accelerator.num_processes:
            set_random_state(tensors["random"][self.accelerator.process_index])
        else:
            logger.warning(
                "the run was saved by %d processes, not %d: dropout will differ from that of a run never stopped",
                len(tensors["random"]),
                self.accelerator.num_processes,
            )

    def _interruption(self) -> TrainingInterrupted:
        number = max(gather_object([self.signals.received or 0]))
        return TrainingInterrupted(
            number,
            f"stopped by {signal.Signals(number).name} after step {self.state.step} of {self.total_steps}; "
            f"saved {self.checkpoints.newest()}, from which --resume goes on",
        )

    def _divergence(self, finding: str) -> TrainingDiverged:
        kept = self.checkpoints.newest()
        return TrainingDiverged(
            f"training diverged after step {self.state.step}: {finding}, the learning rate "
            f"{self.scheduler.get_last_lr()[0]:g}. Try a lower `learning_rate`, a lower `max_grad_norm` or more "
            f"`warmup_steps`; {f'the last good checkpoint is {kept}' if kept else 'no checkpoint was saved yet'}"
        )


def make_optimizer(model: nn.Module, training: TrainingConfig) -> Optimizer:
    """Make the optimizer of a recipe; weight decay is for matrices alone, not for biases and norms.

    For SGD and AdaGrad it is an l2 penalty of `weight_decay / 2` times the squared weights, part of the gradient.
    """
    matrices = [parameter for parameter in model.parameters() if parameter.requires_grad and parameter.ndim > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.requires_grad and parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": training.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    if training.optim == "sgd":
        return SGD(groups, lr=training.learning_rate)
    if training.optim == "adagrad":
        return Adagrad(groups, lr=training.learning_rate, fused=True)
    # The fused kernel takes a sixth of the time on a CPU.
    return AdamW(groups, lr=training.learning_rate, betas=(training.adam_beta1, training.adam_beta2), fused=True)


def make_scheduler(
    optimizer: Optimizer, training: TrainingConfig, steps_per_epoch: int | None, total_steps: int
) -> LambdaLR:
    """Make the learning rate's schedule, a function of the number of steps alone.

    `step_halving` multiplies the rate by 0.5 after `halving_start_epoch` epochs and again after each further
    `halving_interval_epochs` (Prakash et al. 2016, section 4.3: after every third epoch); no other needs the steps of
    an epoch.
    """
    if training.lr_scheduler_type != "step_halving":
        return get_scheduler(training.lr_scheduler_type, optimizer, training.warmup_steps, total_steps)

    def factor(step: int) -> float:
        # The small addition keeps an epoch's end where it is when intervals such as 0.1 round.
        beyond = step / steps_per_epoch - training.halving_start_epoch + 1e-9
        return 1.0 if beyond < 0 else 0.5 ** (1 + math.floor(beyond / training.halving_interval_epochs))

    return LambdaLR(optimizer, factor)
