"""Many clients at once, on loopback."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from hf_paraphrase.serving.app import Limits
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


def read_memory(server: RunningServer) -> float:
    """Bytes of the server's process."""
    return float(re.search(r"^process_resident_memory_bytes (\S+)", server.client.get("/metrics").text, re.M)[1])


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


def test_the_command_serves_until_it_is_told_to_stop(tmp_path):
    folder = save(tiny_bart(), tmp_path / "model")
    command = [sys.executable, "-m", "hf_paraphrase", "serve", folder, "--port", "0", "--api-key-env", "KEY"]
    process = subprocess.Popen(
        [*command, "--max-wait-ms", "1000"],
        env=os.environ | {"PYTHONPATH": str(ROOT), "KEY": "sesame", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+", line)[0]
        headers = {"Authorization": "Bearer sesame"}
        assert httpx.post(f"{address}/paraphrase", json={"texts": "a cat"}, timeout=60).status_code == 401

        async def ask_and_signal() -> httpx.Response:
            async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client:
                asking = asyncio.create_task(client.post("/paraphrase", json={"texts": "a cat"}))
                while (await client.get("/health")).json()["waiting"] < 1 and not asking.done():
                    await asyncio.sleep(0.01)
                process.send_signal(signal.SIGTERM)
                return await asking

        assert asyncio.run(ask_and_signal()).status_code == 200
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert "Application shutdown complete" in errors
    finally:
        process.kill()


@pytest.mark.slow
def test_memory_stays_flat():
    """Over 5,000 requests, of ever other options and paths."""
    with run_app(make_paraphraser("bart"), Limits(max_batch=64)) as server:
        asyncio.run(ask(server.address, random_sentences(1000), at_once=50))
        before = read_memory(server)
        for seed in range(1, 6):
            asyncio.run(ask(server.address, random_sentences(1000, seed), at_once=50))
            server.post("/paraphrase", texts="a cat", decoding="sample", seed=seed)
            server.client.get(f"/no/such/path/{seed}")
        grown = read_memory(server) - before
    assert grown < 20 * 2**20


@pytest.mark.slow
def test_many_at_once_are_served_three_times_as_fast_as_one_at_a_time():
    texts = random_sentences(200)
    with run_app(make_paraphraser("residual_lstm"), Limits(max_batch=64, max_wait_ms=5.0)) as server:
        asyncio.run(ask(server.address, texts[:20], at_once=20))
        seconds = []
        for at_once in (1, 200):
            start = time.perf_counter()
            asyncio.run(ask(server.address, texts, at_once))
            seconds.append(time.perf_counter() - start)
    assert seconds[0] >= 3 * seconds[1]
