from __future__ import annotations

import pytest
import torch

from hf_paraphrase.models.layers import precision
from hf_paraphrase.models.layers.precision import fast_dtype, runs_lstm


@pytest.mark.parametrize(("device", "module"), [("cpu", torch.cpu), ("cuda", torch.cuda)])
@pytest.mark.parametrize(("has_bfloat16", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_half_precision_where_the_hardware_has_it(monkeypatch, device, module, has_bfloat16, dtype) -> None:
    name = {"cpu": "_is_avx512_bf16_supported", "cuda": "is_bf16_supported"}[device]
    monkeypatch.setattr(module, name, lambda *args, **kwargs: has_bfloat16)
    monkeypatch.setattr(precision, "runs_lstm", lambda dtype: True)
    assert fast_dtype(device) == fast_dtype(torch.device(device, 0)) == dtype


def test_the_cpu_is_asked_once_what_it_can_run(cpu_without_bfloat16) -> None:
    before = torch.get_rng_state()
    assert not runs_lstm(torch.bfloat16) and not runs_lstm(torch.float16)
    assert torch.equal(torch.get_rng_state(), before)
    assert runs_lstm.cache_info().misses == 2
    assert not runs_lstm(torch.bfloat16) and runs_lstm.cache_info().misses == 2


def test_hardware_that_onednn_leaves_alone_is_not_fast(monkeypatch, cpu_without_bfloat16) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    assert fast_dtype("cpu") == torch.float32


def test_elsewhere_single_precision() -> None:
    assert fast_dtype("mps") == torch.float32
