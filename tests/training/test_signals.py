from __future__ import annotations

import os
import signal
import threading

import pytest

from hf_paraphrase.common.errors import TrainingInterrupted
from hf_paraphrase.training.run import StopSignals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_is_noted_and_handlers_are_put_back(number):
    before = signal.getsignal(number)
    with StopSignals() as signals:
        assert signals.received is None
        os.kill(os.getpid(), number)
        assert signals.received == number
    assert signal.getsignal(number) is before
    assert TrainingInterrupted(number, "stopped").exit_code == 128 + number


def test_second_interrupt_leaves_at_once():
    with StopSignals():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)  # which a launcher sends when it is interrupted itself
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_other_threads_leave_the_handlers_alone():
    before, inside = signal.getsignal(signal.SIGTERM), []

    def enter():
        with StopSignals():
            inside.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert inside == [before]
