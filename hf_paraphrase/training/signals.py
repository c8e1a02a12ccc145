from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType
from typing import Any

__all__ = ["LAUNCHED", "StopSignals", "TrainingInterrupted", "follow_launcher"]

# Set where another process started this one and answers for it: by torchrun, and by `reproduce`.
LAUNCHED = "HF_PARAPHRASE_LAUNCHED"
LAUNCHERS = ("TORCHELASTIC_RUN_ID", LAUNCHED)


class TrainingInterrupted(Exception):
    """A signal stopped the training, which was saved first.

    Args:
        message: Where training stopped and how to resume.
    """

    def __init__(self, number: int, message: str):
        super().__init__(message)
        self.exit_code = 128 + number


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
