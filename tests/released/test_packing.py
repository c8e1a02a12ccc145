"""The packed form of a checkpoint: small, near to it, and never half written."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.released import packing
from hf_paraphrase.released.packing import PACKED_FILE, pack, unpack
from tests.models.tiny import save, tiny_bart


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return Path(save(tiny_bart(), tmp_path / "checkpoint"))


def test_an_unpacked_checkpoint_is_the_packed_one(checkpoint: Path, tmp_path: Path) -> None:
    weights = load_file(checkpoint / "model.safetensors")
    weights["model.shared.weight"][5] = 0  # such as the row of a padding token
    save_file(weights, checkpoint / "model.safetensors", {"format": "pt"})
    size = pack(checkpoint, tmp_path / "packed")
    unpack(tmp_path / "packed", tmp_path / "unpacked")
    unpacked = load_file(tmp_path / "unpacked" / "model.safetensors")
    assert size < 0.6 * (checkpoint / "model.safetensors").stat().st_size
    assert unpacked.keys() == weights.keys()
    for name, weight in weights.items():
        assert unpacked[name].dtype == torch.float32
        if weight.ndim == 2 and len(weight) > 1:
            # Half of a step, of which the largest value of a row has 127.
            assert ((unpacked[name] - weight).abs() <= 0.501 / 127 * weight.abs().amax(1, keepdim=True)).all(), name
        else:
            assert torch.equal(unpacked[name], weight), name
    assert not (tmp_path / "unpacked" / "README.md").exists()
    for path in checkpoint.glob("*.json"):
        assert (tmp_path / "unpacked" / path.name).read_bytes() == path.read_bytes()


def test_a_card_comes_along(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "card.md").write_text("# The card\n", encoding="utf-8")
    (checkpoint / "README.md").write_text("# Its own\n", encoding="utf-8")
    for card, text in ((tmp_path / "card.md", "# The card\n"), (None, "# Its own\n")):
        pack(checkpoint, tmp_path / "packed", card)
        unpack(tmp_path / "packed", tmp_path / text.strip())
        assert (tmp_path / text.strip() / "README.md").read_text(encoding="utf-8") == text


def test_a_parameter_that_is_called_scale_stays(checkpoint: Path, tmp_path: Path) -> None:
    scale = torch.tensor([0.25, 3.0])
    weights = {"layer": torch.tensor([1.0, 2.0]), "layer.scale": scale, "scale": scale.clone()}
    save_file(weights, checkpoint / "model.safetensors", {"format": "pt"})
    pack(checkpoint, tmp_path / "packed")
    unpack(tmp_path / "packed", tmp_path / "unpacked")
    unpacked = load_file(tmp_path / "unpacked" / "model.safetensors")
    assert {name: tensor.tolist() for name, tensor in unpacked.items()} == {
        name: tensor.tolist() for name, tensor in weights.items()
    }


def test_what_is_missing_or_too_large_is_refused(checkpoint: Path, tmp_path: Path, monkeypatch) -> None:
    pack(checkpoint, tmp_path / "packed")
    before = (tmp_path / "packed" / PACKED_FILE).read_bytes()
    monkeypatch.setattr(packing, "LARGEST", 1000)
    with pytest.raises(InputError, match=r"the packed weights have [\d,]+ bytes, more than 1,000"):
        pack(checkpoint, tmp_path / "packed")
    (checkpoint / "tokenizer.json").unlink()
    with pytest.raises(InputError, match="has no tokenizer.json: name a folder that `save_pretrained` wrote"):
        pack(checkpoint, tmp_path / "packed")
    assert (tmp_path / "packed" / PACKED_FILE).read_bytes() == before
