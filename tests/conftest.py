from __future__ import annotations

import os
import tempfile

import pytest
import torch
from hypothesis import settings

# Nothing in the suite may reach for the network; set before transformers and datasets read it.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
# Nor may it fill, or be helped by, the caches of whoever runs it.
CACHE = tempfile.TemporaryDirectory(prefix="hf_paraphrase-tests-")
os.environ["HF_HOME"] = CACHE.name
# The same examples in every run; `python -m tests.reliability` draws others.
settings.register_profile("seeded", derandomize=True)
settings.load_profile("seeded")


@pytest.fixture(autouse=True)
def seeded():
    """Start every test from the same random state."""
    torch.manual_seed(0)
