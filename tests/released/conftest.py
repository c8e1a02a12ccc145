from __future__ import annotations

from pathlib import Path

import pytest

from hf_paraphrase import released
from hf_paraphrase.released.packing import pack
from tests.models.tiny import save, tiny_bart


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packed form of a tiny model."""
    folder = tmp_path_factory.mktemp("packed")
    pack(Path(save(tiny_bart(), folder / "checkpoint")), folder / "paraphraser_en_small")
    return folder / "paraphraser_en_small"


@pytest.fixture
def tiny_release(packed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the tiny model be the one that comes with the package."""
    monkeypatch.setattr(released, "RELEASED_FOLDER", packed)
    return packed
