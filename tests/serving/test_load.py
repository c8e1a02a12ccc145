"""Many clients at once, on loopback."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

import httpx
import pytest

from hf_paraphrase import ResidualLstmConfig, ResidualLstmForConditionalGeneration
from hf_paraphrase.serving.limits import Limits
from hf_paraphrase.serving.served_model import serve_paraphraser
from tests.generation.paraphrasers import make_paraphraser, random_sentences
from tests.models.tiny import save, tiny_bart

from .running import RunningServer, run_app
from .test_app import expected, same

ROOT = Path(__file__).parents[2]
BATCHED = re.compile(r'paraphrase_batch_size_(count|sum)\{task="paraphrase"\} (\S+)')


async def ask(address: str, texts: list[str], at_once: int) -> list[httpx.Response]:
    """Ask for the paraphrases of each text by a request of its own."""
    places = asyncio.Semaphore(at_once)
    limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once)
    async with httpx.AsyncClient(base_url=address, timeout=300, limits=limits) as client:

        async def post(text: str) -> httpx.Response:
            async with places:
                return await client.post("/paraphrase", json={"texts": text, "n": 2})

        return await asyncio.gather(*map(post, texts))


def count_batches(server: RunningServer) -> tuple[float, float]:
    """Batches so far, and the texts in them."""
    found = dict(BATCHED.findall(server.client.get("/metrics").text))
    return float(found["count"]), float(found["sum"])


def test_two_hundred_at_once_get_what_each_would_get_alone():
    distinct = random_sentences(40)
    texts = distinct * 5
    with run_app(make_paraphraser("bart"), Limits(max_batch=32, max_wait_ms=20.0)) as server:
        answers = asyncio.run(ask(server.address, texts, at_once=200))
        batches, computed = count_batches(server)
    assert {answer.status_code for answer in answers} == {200}
    wanted = {text: expected("bart", text, n=2) for text in distinct}
    for text, answer in zip(texts, answers, strict=True):
        (found,) = answer.json()["results"]
        assert found["source"] == text and same(found["paraphrases"], wanted[text])
    assert computed == 200 and batches <= 50


def test_nothing_that_was_taken_is_lost_when_the_server_stops():
    texts = random_sentences(60)
    served, gate, taken = serve_paraphraser("tiny", make_paraphraser("bart"), 16), threading.Event(), []

    def paraphrase(some: list[str], options: tuple) -> list:
        taken.extend(some)
        if some:
            gate.wait()
        return served.paraphrase(some, options)

    async def ask_and_stop(server: RunningServer) -> list[httpx.Response]:
        asking = asyncio.create_task(ask(server.address, texts, at_once=60))
        async with httpx.AsyncClient(base_url=server.address, timeout=60) as client:
            while (await client.get("/health")).json()["waiting"] + len(taken) < 60:
                await asyncio.sleep(0.01)
        server.stop()
        await asyncio.sleep(0.3)
        gate.set()
        return await asking

    with run_app(replace(served, paraphrase=paraphrase), Limits(max_batch=16)) as server:
        answers = asyncio.run(ask_and_stop(server))
        with pytest.raises(httpx.ConnectError):
            server.post("/paraphrase", texts="a cat")
    assert {answer.status_code for answer in answers} == {200} and len(taken) == 60
    for text, answer in zip(texts, answers, strict=True):
        assert same(answer.json()["results"][0]["paraphrases"], expected("bart", text, n=2))


@contextmanager
def run_command(folder: str, *options: str) -> Iterator[tuple[str, subprocess.Popen, IO[str]]]:
    """The address of a server in a process of its own, the process, and what it writes on standard error."""
    command = [sys.executable, "-m", "hf_paraphrase", "serve", folder, "--port", "0", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "KEY": "sesame"}
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            yield re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0], process, log
        finally:
            process.kill()


def test_the_command_serves_until_it_is_told_to_stop(tmp_path):
    folder = save(tiny_bart(), tmp_path / "model")
    asked = {"url": "/paraphrase", "json": {"texts": "a cat"}}

    async def ask_and_signal(address: str, process: subprocess.Popen) -> list[int]:
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            refused = await client.post(**asked)
            client.headers["Authorization"] = "Bearer sesame"
            asking = asyncio.create_task(client.post(**asked))
            while (await client.get("/health")).json()["waiting"] < 1 and not asking.done():
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            return [refused.status_code, (await asking).status_code]

    with run_command(folder, "--api-key-env", "KEY", "--max-wait-ms", "1000") as (address, process, log):
        assert asyncio.run(ask_and_signal(address, process)) == [401, 200]
        status = process.wait(timeout=60)
        log.seek(0)
        errors = log.read()
    assert status == 0 and "Application shutdown complete" in errors, errors


def read_process(address: str, what: str) -> float:
    """What Prometheus is told of the server's process."""
    return float(re.search(rf"^process_{what} (\S+)", httpx.get(f"{address}/metrics").text, re.M)[1])


@pytest.fixture
def realistic(tmp_path) -> str:
    """A model of the size of a small recipe's, with random weights."""
    config = ResidualLstmConfig(
        vocab_size=8000, embedding_size=256, hidden_size=256, num_layers=2, attention="additive"
    )
    model = ResidualLstmForConditionalGeneration(config)
    model.generation_config.max_new_tokens = 12
    return save(model, tmp_path / "model")


@pytest.mark.slow
def test_memory_stays_flat(tmp_path):
    """Over 5,000 requests, some of other options, to other paths and refused."""
    model = tiny_bart()
    model.generation_config.max_new_tokens = 7
    with run_command(save(model, tmp_path / "model"), "--max-batch", "64") as (address, *_):
        for seed in range(11, 15):  # until buffers have the sizes that they need
            asyncio.run(ask(address, random_sentences(500, seed), at_once=50))
        before = read_process(address, "resident_memory_bytes")
        for seed in range(1, 11):
            asyncio.run(ask(address, random_sentences(500, seed), at_once=50))
            for asked in ({"decoding": "sample", "seed": seed}, {"seed": -seed}):
                httpx.post(f"{address}/paraphrase", json={"texts": "a cat", **asked}, timeout=60)
            httpx.get(f"{address}/no/such/path/{seed}")
        grown = read_process(address, "resident_memory_bytes") - before
    assert grown < 32 * 2**20


@pytest.mark.slow
def test_many_at_once_cost_a_third_of_what_they_cost_one_at_a_time(realistic):
    """By the processor time of the server, which does not depend on what else the machine does."""
    texts = random_sentences(200)
    with run_command(realistic, "--max-batch", "64") as (address, *_):
        asyncio.run(ask(address, texts[:20], at_once=20))
        seconds = []
        for at_once in (1, 200):
            start = read_process(address, "cpu_seconds_total")
            asyncio.run(ask(address, texts, at_once))
            seconds.append(read_process(address, "cpu_seconds_total") - start)
    assert seconds[0] >= 3 * seconds[1]
