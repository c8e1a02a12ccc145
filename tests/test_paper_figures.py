from __future__ import annotations

import pytest

from hf_paraphrase.models.configuration_residual_lstm import ResidualLstmConfig
from hf_paraphrase.paper_figures import find_paper_row
from tests.tiny_models import make_bart


@pytest.mark.parametrize(
    ("fields", "model", "bleu"),
    [
        ({"num_layers": 2, "residual_interval": 0}, "2-layer sequence to sequence", {5: 15.9, 10: 16.5}),
        ({"residual_interval": 0, "attention": "additive"}, "4-layer attention", {5: 33.1, 10: 33.4}),
        ({"residual_interval": 0, "bidirectional_encoder": True}, "4-layer bi-directional", {5: 32.6, 10: 32.8}),
        ({"hidden_size": 64, "embedding_size": 64}, "4-layer residual", {5: 36.7, 10: 37.0}),
        ({"attention": "additive"}, "4-layer residual", {5: 36.7, 10: 37.0}),
    ],
)
def test_rows_of_the_paper(fields: dict, model: str, bleu: dict) -> None:
    row = find_paper_row(ResidualLstmConfig(**fields), "mscoco")
    assert row.model == f"Prakash et al. 2016, {model}, 512 units"
    assert row.bleu == bleu


def test_no_row() -> None:
    assert find_paper_row(ResidualLstmConfig(), "synthetic_questions") is None
    assert find_paper_row(ResidualLstmConfig(), None) is None
    assert find_paper_row(ResidualLstmConfig(num_layers=8), "mscoco") is None
    assert find_paper_row(ResidualLstmConfig(bidirectional_encoder=True), "mscoco") is None
    assert find_paper_row(make_bart().config, "mscoco") is None
