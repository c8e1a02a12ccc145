from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import RepoCard

import hf_paraphrase
from hf_paraphrase.metrics import list_metrics

FOLDER = Path(hf_paraphrase.__file__).parent / "metrics"


@pytest.mark.parametrize("name", list_metrics())
def test_every_metric_has_a_valid_card(name):
    card = RepoCard.load(FOLDER / name / "README.md")
    assert {"title", "description", "tags", "license"} <= card.data.to_dict().keys()
    assert {"evaluate", "metric"} <= set(card.data["tags"])
    for section in ("How to use", "Inputs", "Output", "Limits", "Sources"):
        assert f"\n## {section}" in card.text, f"{name} lacks {section}"
    assert f'load_metric("{name}")' in card.text
