"""Pushes through a Hub that fails 30% of all requests: complete by themselves, or by more of the same calls.

At that share one call in eight gives up, after five attempts.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from tests.hub.conftest import Client
from tests.hub.runs import write_run
from tests.hub.server import HubServer

from .trials import Trials

SHARE = 0.3
MOST_CALLS = 5


class RandomFault:
    """A fault of the server's that befalls any request, with a probability.

    Args:
        draw: Decides which requests fail, and how.
        share: How many of them do.
    """

    pattern = ""
    retry_after = None

    def __init__(self, draw: random.Random, share: float):
        self.draw, self.share = draw, share

    @property
    def times(self) -> bool:
        """Whether the request at hand fails."""
        self.status = self.draw.choice([None, 429, 500, 502, 503, 504])
        self.done = self.draw.random() < 0.3
        return self.draw.random() < self.share

    @times.setter
    def times(self, value: int) -> None:
        """It does not wear out."""


def push_through_faults(count: int, seed: int = 0) -> Trials:
    """Push a small checkpoint `count` times, each to a new repository."""
    trials = Trials(f"pushes, {SHARE:.0%} of the requests fail")
    with tempfile.TemporaryDirectory(prefix="pushes-") as scratch, HubServer() as server:
        run = write_run(Path(scratch) / "tiny")
        client = Client(server.endpoint, Path(scratch) / "home")
        try:
            expected = push(server, client, run, None)
            for number in range(count):
                with trials.trial(f"push {number}"):
                    found = push(server, client, run, random.Random(f"{seed} {number}"))
                    assert found == expected, f"not complete: {sorted(expected.keys() ^ found.keys()) or 'contents'}"
        finally:
            client.process.stdin.close()
            client.process.wait()
    return trials


def push(server: HubServer, client: Client, run: Path, draw: random.Random | None) -> dict[str, bytes]:
    """Push, again if need be, and return what the repository then holds."""
    server.clear()
    server.faults = [] if draw is None else [RandomFault(draw, SHARE)]
    for _ in range(MOST_CALLS):
        answer = client("push", run, "--repo-id", "you/tiny")
        if answer.status == 0:
            break
        assert answer.status == 2 and "the same push again finishes it" in answer.errors, answer
    files = server.repository("you/tiny").files()
    return {path: blob.content for path, blob in files.items()}
