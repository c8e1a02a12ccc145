from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hf_paraphrase.serving.batching import Batcher, QueueFullError


class Recorder:
    """Answers with each value in capitals, and remembers what it was asked; it may be made to wait.

    Values with a question mark are refused.
    """

    def __init__(self):
        self.batches: list[tuple[list[str], Any]] = []
        self.started, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def __call__(self, values: list[str], options: Any) -> list[str]:
        self.batches.append((values, options))
        self.started.set()
        self.go_on.wait()
        if any("?" in value for value in values):
            raise ValueError(f"no questions: {len(values)}")
        return [value.upper() for value in values]


def run(test, **options) -> Recorder:
    """Run a coroutine of a batcher and a recorder."""
    recorder = Recorder()

    async def inner() -> None:
        with ThreadPoolExecutor(1) as thread:
            settings = {"max_batch": 3, "max_wait": 0.0, "max_queue": 100, **options}
            async with Batcher(recorder, thread, **settings) as batcher:
                await asyncio.wait_for(test(batcher, recorder), 60)

    asyncio.run(inner())
    return recorder


async def hold(batcher: Batcher, recorder: Recorder) -> asyncio.Future:
    """Keep the thread busy with a value until `recorder.go_on` is set."""
    recorder.go_on.clear()
    (future,) = batcher.submit(["held"], "of its own")
    await asyncio.to_thread(recorder.started.wait)
    return future


def test_what_waits_together_is_computed_together():
    async def test(batcher, recorder):
        await hold(batcher, recorder)
        futures = batcher.submit(["a", "b"]) + batcher.submit(["c"]) + batcher.submit(["d"])
        recorder.go_on.set()
        assert await asyncio.gather(*futures) == ["A", "B", "C", "D"]

    assert run(test).batches[1:] == [(["a", "b", "c"], None), (["d"], None)]


def test_other_options_are_another_batch_and_the_eldest_comes_first():
    async def test(batcher, recorder):
        await hold(batcher, recorder)
        futures = [batcher.submit([value], options)[0] for value, options in (("a", 1), ("b", 2), ("c", 1), ("d", 2))]
        recorder.go_on.set()
        assert await asyncio.gather(*futures) == ["A", "B", "C", "D"]

    assert run(test).batches[1:] == [(["a", "c"], 1), (["b", "d"], 2)]


def test_a_batch_is_of_like_sizes_and_nobody_waits_for_ever():
    async def test(batcher, recorder):
        await hold(batcher, recorder)
        futures = batcher.submit(["ddddd", "a", "b", "eeee", "c", "ffffff"])
        recorder.go_on.set()
        assert await asyncio.gather(*futures) == ["DDDDD", "A", "B", "EEEE", "C", "FFFFFF"]

    assert run(test).batches[1:] == [(["ddddd", "eeee", "ffffff"], None), (["a", "b", "c"], None)]


def test_a_value_waits_for_others_until_its_batch_is_full():
    async def test(batcher, recorder):
        first = batcher.submit(["a"])
        await asyncio.sleep(0.05)
        assert not recorder.batches
        assert await asyncio.gather(*first, *batcher.submit(["b", "c"])) == ["A", "B", "C"]

    assert run(test, max_wait=60.0).batches == [(["a", "b", "c"], None)]


def test_a_value_waits_no_longer_than_it_is_told_to():
    async def test(batcher, recorder):
        assert await asyncio.gather(*batcher.submit(["a"])) == ["A"]

    assert run(test, max_wait=0.01).batches == [(["a"], None)]


def test_a_full_queue_takes_all_or_nothing():
    async def test(batcher, recorder):
        held = await hold(batcher, recorder)
        first = batcher.submit(["a"])
        with pytest.raises(QueueFullError, match="room for 1 of 2, not for 2 more"):
            batcher.submit(["b", "c"])
        second = batcher.submit(["d"])
        recorder.go_on.set()
        assert await asyncio.gather(held, *first, *second) == ["HELD", "A", "D"]

    assert run(test, max_queue=2).batches[1:] == [(["a", "d"], None)]


def test_a_value_that_fails_does_not_spoil_the_others():
    async def test(batcher, recorder):
        futures = batcher.submit(["a", "b?", "c"])
        assert await asyncio.gather(*futures, return_exceptions=True) == ["A", futures[1].exception(), "C"]
        assert str(futures[1].exception()) == "no questions: 1"
        assert await asyncio.gather(*batcher.submit(["d"])) == ["D"]

    run(test)


class PanicException(BaseException):
    """Like that of tokenizers, which is not an Exception."""


@pytest.mark.parametrize("error", [PanicException("stack"), SystemExit(3), StopIteration(), asyncio.CancelledError()])
def test_whatever_a_worker_raises_ends_one_value_alone(error):
    def compute(values, options):
        if "bad" in values:
            raise error
        return values

    async def inner() -> None:
        with ThreadPoolExecutor(1) as thread:
            async with Batcher(compute, thread, max_batch=3, max_wait=0.0, max_queue=9) as batcher:
                futures = batcher.submit(["a", "bad", "c"])
                await asyncio.wait(futures, timeout=60)
                assert (futures[0].result(), futures[2].result()) == ("a", "c")
                assert type(error).__name__ in str(futures[1].exception())
                assert await asyncio.wait_for(batcher.submit(["d"])[0], 60) == "d"
                assert batcher.is_running

    asyncio.run(inner())


@pytest.mark.parametrize("error", [PanicException("stack"), SystemExit(3), asyncio.CancelledError(), MemoryError()])
def test_a_worker_that_fails_outside_the_model_starts_anew(error):
    failures = [error]

    def observe(size):
        if failures:
            raise failures.pop()

    async def test(batcher, recorder):
        futures = batcher.submit(["a"]) + batcher.submit(["b"], "of its own")
        await asyncio.wait(futures, timeout=60)
        assert all(type(error).__name__ in repr(future.exception()) for future in futures)
        assert await batcher.submit(["c"])[0] == "C"
        assert batcher.is_running

    run(test, observe=observe)


def test_a_worker_that_was_cancelled_says_so():
    async def test(batcher, recorder):
        batcher.task.cancel()
        await asyncio.wait([batcher.task])
        assert not batcher.is_running

    run(test)


def test_what_was_cancelled_leaves_room():
    async def test(batcher, recorder):
        await hold(batcher, recorder)
        for future in batcher.submit(["a", "b"]):
            future.cancel()
        assert batcher.num_waiting == 0
        futures = batcher.submit(["c", "d"])
        recorder.go_on.set()
        assert await asyncio.gather(*futures) == ["C", "D"]

    assert run(test, max_queue=2).batches[1:] == [(["c", "d"], None)]


def test_what_was_cancelled_is_not_computed():
    async def test(batcher, recorder):
        await hold(batcher, recorder)
        first, second = batcher.submit(["a", "b"])
        (third,) = batcher.submit(["alone"], "cancelled")
        first.cancel()
        third.cancel()
        recorder.go_on.set()
        assert await second == "B"

    assert run(test).batches[1:] == [(["b"], None)]


def test_what_was_taken_is_computed_before_the_end():
    futures = []

    async def test(batcher, recorder):
        await hold(batcher, recorder)
        futures.extend(batcher.submit(list("abcdefgh")))
        asyncio.get_running_loop().call_later(0.05, recorder.go_on.set)

    run(test)
    assert [future.result() for future in futures] == list("ABCDEFGH")


def test_results_of_the_wrong_number_are_an_error():
    async def inner():
        with ThreadPoolExecutor(1) as thread:
            limits = {"max_batch": 2, "max_wait": 0.0, "max_queue": 9}
            async with Batcher(lambda values, options: values + values, thread, **limits) as batcher:
                with pytest.raises(RuntimeError, match="2 results of 1 values"):
                    await asyncio.gather(*batcher.submit(["a"]))

    asyncio.run(inner())
