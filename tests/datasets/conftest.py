from __future__ import annotations

import datasets
import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep the rows that a test makes out of the user's cache."""
    folder = tmp_path / "cache of datasets"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder)
    return folder
