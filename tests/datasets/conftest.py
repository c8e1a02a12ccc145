from __future__ import annotations

import datasets
import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep what a test downloads and the rows that it makes out of the user's cache."""
    folder = tmp_path / "cache of datasets"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder)
    monkeypatch.setattr(datasets.config, "DOWNLOADED_DATASETS_PATH", folder / "downloads")
    return folder
