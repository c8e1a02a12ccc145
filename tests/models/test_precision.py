from __future__ import annotations

import pytest
import torch

from hf_paraphrase.models.precision import fast_dtype


@pytest.mark.parametrize(("device", "module"), [("cpu", torch.cpu), ("cuda", torch.cuda)])
@pytest.mark.parametrize(("has_bfloat16", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_half_precision_where_the_hardware_has_it(monkeypatch, device, module, has_bfloat16, dtype) -> None:
    name = {"cpu": "_is_avx512_bf16_supported", "cuda": "is_bf16_supported"}[device]
    monkeypatch.setattr(module, name, lambda *args, **kwargs: has_bfloat16)
    assert fast_dtype(device) == fast_dtype(torch.device(device, 0)) == dtype


def test_elsewhere_single_precision() -> None:
    assert fast_dtype("mps") == torch.float32
