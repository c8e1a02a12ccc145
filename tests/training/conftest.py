from __future__ import annotations

import os

import pytest
from accelerate.state import AcceleratorState

from hf_paraphrase.training import loop


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Leave out what takes most of the time of a tiny run: waiting for the disk, and drawing."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(loop, "plot_learning_curves", lambda runs, path: None)


@pytest.fixture
def other_precision():
    """Accelerate lets a process choose its precision once; the fixture's value lets it choose anew."""

    def forget():
        AcceleratorState._reset_state(reset_partial_state=True)

    forget()
    yield forget
    forget()
