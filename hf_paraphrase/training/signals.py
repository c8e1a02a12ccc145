from __future__ import annotations

import signal
import threading
from types import FrameType

__all__ = ["StopSignals", "TrainingInterrupted"]


class TrainingInterrupted(Exception):
    """A signal stopped the training, which was saved first.

    Args:
        number: The signal.
        message: Where training stopped and how to go on.
    """

    def __init__(self, number: int, message: str):
        super().__init__(message)
        self.exit_code = 128 + number


class StopSignals:
    """While entered, SIGTERM and Ctrl-C set `received` instead of killing; a second Ctrl-C interrupts at once.

    Launchers pass Ctrl-C on as SIGTERM, which therefore does not count as a second one. Python allows handlers in
    the main thread alone; in others, signals keep their usual effect.
    """

    def __init__(self):
        self.received: int | None = None
        self._interrupts = 0
        self._previous: dict[int, object] = {}

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
