from __future__ import annotations

import os
import tempfile
import threading

import pytest
import torch
from hypothesis import settings
from tqdm import tqdm

# Nothing in the suite may reach for the network; set before transformers and datasets read it.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
# Nor may it fill, or be helped by, the caches of whoever runs it.
CACHE = tempfile.TemporaryDirectory(prefix="hf_paraphrase-tests-")
os.environ["HF_HOME"] = CACHE.name
# The same examples in every run; `python -m tests.reliability` draws others.
settings.register_profile("seeded", derandomize=True)
settings.load_profile("seeded")
# Forked processes share tqdm's lock: one that a test kills while it holds it would stop all others for good.
# Subclasses use this lock once it exists.
tqdm.get_lock()
os.register_at_fork(after_in_child=lambda: tqdm.set_lock(threading.RLock()))


@pytest.fixture
def cpu_without_bfloat16(monkeypatch):
    """Let oneDNN lack the LSTM of half precision under autocast, as it does on a CPU with AVX2 alone."""
    # Not at the top, where the variables above would come too late for transformers.
    from hf_paraphrase.models.layers.precision import runs_lstm

    run = torch.lstm

    def run_or_fail(*arguments):
        # Packed sequences, whose second argument is the batch sizes, do not reach oneDNN.
        if torch.is_autocast_enabled("cpu") and isinstance(arguments[1], tuple | list):
            raise RuntimeError("could not create a primitive descriptor for the LSTM forward propagation primitive")
        return run(*arguments)

    monkeypatch.setattr(torch, "lstm", run_or_fail)
    monkeypatch.setattr(torch._VF, "lstm", run_or_fail, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    runs_lstm.cache_clear()
    yield
    runs_lstm.cache_clear()


@pytest.fixture(autouse=True)
def seeded():
    """Start every test from the same random state."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def installed_from_an_index(monkeypatch):
    """Wherever the package that is tested came from."""
    monkeypatch.setattr("hf_paraphrase.common.installation._read_origin", dict)
