"""Dynamic batching of concurrent requests."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

logger = logging.getLogger(__name__)


class QueueFullError(Exception):
    """The queue has no room for the values; the message has the numbers."""


@dataclass(eq=False)
class Waiting:
    """A value that waits to be computed.

    `arrived` is in seconds by the event loop's clock, and values of similar `size`, such as their length, share a
    batch. `future` gets the result.
    """

    arrived: float
    value: Any
    size: int
    future: Future = field(repr=False)


class Batcher:
    """Computes values that arrive one by one, many at a time, in another thread.

    A batch holds values of the same options. A batch starts with the oldest value, so that none waits forever; if more
    values are queued than fit, those nearest to it in size join, which minimises padding. If a batch fails, each value
    is retried alone, so that one cannot spoil the others.

    Args:
        compute: From values and their options to as many results, in order.
        thread: Where it does so; batchers of one thread take turns.
        max_batch: Values at a time.
        max_wait: Seconds that a value waits for others while its batch has room.
        max_queue: Values that may wait.
        size: Of a value.
        observe: Called with the size of every batch.
    """

    def __init__(
        self,
        compute: Callable[[list[Any], Any], Sequence[Any]],
        thread: Executor,
        *,
        max_batch: int,
        max_wait: float,
        max_queue: int,
        size: Callable[[Any], int] = len,
        observe: Callable[[int], None] = lambda number: None,
    ):
        self.compute, self.thread, self.size, self.observe = compute, thread, size, observe
        self.max_batch, self.max_wait, self.max_queue = max_batch, max_wait, max_queue
        self.groups: dict[Hashable, list[Waiting]] = {}
        self.batch: list[Waiting] = []
        self.arrival = asyncio.Event()
        self.is_closing = False

    async def __aenter__(self) -> Batcher:
        self.task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Compute what still waits, and stop."""
        self.is_closing = True
        self.arrival.set()
        await asyncio.wait([self.task])

    @property
    def num_waiting(self) -> int:
        """How many values wait."""
        return sum(not one.future.cancelled() for group in self.groups.values() for one in group)

    @property
    def is_running(self) -> bool:
        """Whether what waits will be computed."""
        return not self.task.done()

    def submit(self, values: Sequence[Any], options: Hashable = None) -> list[Future]:
        """Let values wait for their turn: all of them, or none where the queue is full (QueueFullError).

        Values with the same options may share a batch.

        Returns:
            For each value what its result, or its error, will be set on. A cancelled one is not computed.
        """
        if self.num_waiting + len(values) > self.max_queue:
            room = self.max_queue - self.num_waiting
            raise QueueFullError(f"the queue has room for {room} of {self.max_queue}, not for {len(values)} more")
        loop = asyncio.get_running_loop()
        waiting = [Waiting(loop.time(), value, self.size(value), loop.create_future()) for value in values]
        if waiting:
            self.groups.setdefault(options, []).extend(waiting)
            self.arrival.set()
        return [one.future for one in waiting]

    async def _run(self) -> None:
        while self.groups or not self.is_closing:
            try:
                await self._serve_next()
            except BaseException as error:  # noqa: BLE001 - whatever it is, later requests need this task
                if self.task.cancelling():
                    raise
                logger.error("batching failed and starts anew", exc_info=error)
                self._fail(_as_exception(error))

    async def _serve_next(self) -> None:
        """Compute a batch, or wait until something arrives."""
        self.arrival.clear()
        if not self.groups:
            await self.arrival.wait()
            return
        options = min(self.groups, key=lambda key: self.groups[key][0].arrived)
        await self._wait_for_others(self.groups[options])
        self.batch = self._take(options)
        if self.batch:
            self.observe(len(self.batch))
            await self._compute(self.batch, options)

    def _fail(self, error: Exception) -> None:
        """Fail all queued values with an error."""
        for one in chain(self.batch, *self.groups.values()):
            if not one.future.done():
                one.future.set_exception(error)
        self.groups.clear()

    async def _wait_for_others(self, group: list[Waiting]) -> None:
        loop = asyncio.get_running_loop()
        until = group[0].arrived + self.max_wait
        while len(group) < self.max_batch and not self.is_closing and (left := until - loop.time()) > 0:
            self.arrival.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.arrival.wait(), left)

    def _take(self, options: Hashable) -> list[Waiting]:
        """Take the next batch out of those that wait."""
        group = [one for one in self.groups.pop(options) if not one.future.cancelled()]
        nearest = sorted(group[1:], key=lambda one: abs(one.size - group[0].size))
        left = set(nearest[self.max_batch - 1 :])
        if left:
            self.groups[options] = [one for one in group if one in left]
        return [one for one in group if one not in left]

    async def _compute(self, batch: list[Waiting], options: Any) -> None:
        values = [one.value for one in batch]
        loop = asyncio.get_running_loop()
        outcomes = await loop.run_in_executor(self.thread, self._find_outcomes, values, options)
        for one, outcome in zip(batch, outcomes, strict=True):
            if one.future.cancelled():
                continue
            if isinstance(outcome, Exception):
                one.future.set_exception(outcome)
            else:
                one.future.set_result(outcome)

    def _find_outcomes(self, values: list[Any], options: Any) -> list[Any]:
        """The results of values, or their errors."""
        try:
            results = list(self.compute(values, options))
            if len(results) != len(values):
                raise RuntimeError(f"{len(results)} results of {len(values)} values")
            return results
        except BaseException as error:  # noqa: BLE001 - a panic of tokenizers is not an Exception
            if len(values) == 1:
                return [_as_exception(error)]
            return [self._find_outcomes([value], options)[0] for value in values]


def _as_exception(error: BaseException) -> Exception:
    """An error that a future can hold and that ends only who awaits it, whatever a worker raised."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
