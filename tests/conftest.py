from __future__ import annotations

import os

import pytest
import torch

# Nothing in the suite may reach for the network; set before transformers and datasets read it.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")


@pytest.fixture(autouse=True)
def seeded():
    """Start every test from the same random state."""
    torch.manual_seed(0)
