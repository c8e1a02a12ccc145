from __future__ import annotations

from pathlib import Path

import pytest

from hf_paraphrase import papers
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.models.coupled_lstm.configuration_coupled_lstm import CoupledLstmConfig
from hf_paraphrase.models.edit_lstm.configuration_edit_lstm import EditLstmConfig
from hf_paraphrase.models.fset.configuration_fset import FsetConfig
from hf_paraphrase.models.hierarchical_autoencoder.configuration_hierarchical_autoencoder import (
    HierarchicalAutoencoderConfig,
)
from hf_paraphrase.models.residual_lstm.configuration_residual_lstm import ResidualLstmConfig
from hf_paraphrase.papers import find_matching_rows, find_paper, find_paper_rows, load_papers
from hf_paraphrase.papers.table import Claim, list_tables, load_table
from tests.models.tiny import tiny_bart


def test_a_file_each() -> None:
    folder = Path(papers.__file__).parent
    files = {path.stem for path in folder.glob("*.yaml")}
    # `Liu et al. 2016` is in `liu2016.yaml`, and its BibTeX agrees with both.
    assert {paper.name.split()[0].lower() + paper.name[-4:] for paper in load_papers()} == files
    for paper in load_papers():
        assert paper.name.split()[0].lower() in paper.citation.partition(",")[0]
        assert f"year = {{{paper.name[-4:]}}}" in paper.citation


def test_a_paper_is_found_by_its_architectures() -> None:
    assert find_paper("edit_lstm") is find_paper("fset") and find_paper("fset").name == "Kazemnejad et al. 2020"
    assert find_paper("bart") is None
    named = [model_type for paper in load_papers() for model_type in paper.architectures]
    assert len(named) == len(set(named))


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
    rows = find_paper_rows(ResidualLstmConfig(**fields), "mscoco")
    assert {row.model for row in rows} == {f"Prakash et al. 2016, {model}, 512 units"}
    assert {row.num_beams: row.scores["bleu_4"] for row in rows} == bleu


def test_all_figures_of_a_row() -> None:
    _, row = find_paper_rows(ResidualLstmConfig(), "ppdb")
    assert row.scores == {"bleu_4": 21.2, "meteor": 23.0, "embedding_greedy": 34.78, "ter": 77.0}


def test_no_row() -> None:
    assert not find_paper_rows(ResidualLstmConfig(), "synthetic_questions")
    assert not find_paper_rows(ResidualLstmConfig(), None)
    assert not find_paper_rows(ResidualLstmConfig(num_layers=8), "mscoco")
    # Residual connections need more than two layers (Prakash et al. 2016, section 5.2).
    assert not any(find_paper_rows(ResidualLstmConfig(num_layers=2), corpus) for corpus in ("mscoco", "ppdb"))
    assert not find_paper_rows(ResidualLstmConfig(bidirectional_encoder=True), "mscoco")
    assert not find_paper_rows(tiny_bart().config, "mscoco")


def test_rows_beside_models_of_pairs() -> None:
    (row,) = find_matching_rows(CoupledLstmConfig(), "snli")
    assert row.scores == {"accuracy": 0.851}
    rows = find_matching_rows(tiny_bart().config, "twitter_url")
    assert {row.model.split(", ")[1]: row.scores["max_f1"] for row in rows}["DeepPairwiseWord"] == 0.749
    assert not find_matching_rows(tiny_bart().config, "snli")
    assert not find_matching_rows(CoupledLstmConfig(), None)


def test_rows_of_fset_and_its_ablations() -> None:
    (whole,) = find_paper_rows(FsetConfig(), "quora")
    (ablated,) = find_paper_rows(FsetConfig(use_micro_edits=False), "quora")
    assert whole.scores["meteor"] == 38.57 and whole.scores["bleu_4"] == 33.46
    assert ablated.scores == {"rouge2": 39.36, "rouge1": 65.72, "bleu_4": 29.73, "bleu_2": 46.66}
    assert not find_paper_rows(FsetConfig(), "mscoco")


def test_rows_of_the_baselines_that_edit() -> None:
    (row,) = find_paper_rows(EditLstmConfig(), "twitter_url")
    assert "Seq2Seq+Ret" in row.model and row.scores["bleu_2"] == 31.58
    rae, copying = find_paper_rows(EditLstmConfig(copy=True, attention="additive"), "quora")
    assert "CopyEditor+Ret" in copying.model and copying.scores["rouge2"] == 35.59
    assert "RaE" in rae.model and rae.scores["meteor"] == 29.92
    assert not find_paper_rows(EditLstmConfig(), "mscoco")


def test_rows_of_the_autoencoders() -> None:
    (row,) = find_paper_rows(HierarchicalAutoencoderConfig(attention=True), "hotel_reviews")
    assert row.model == "Li et al. 2015, hierarchical, attention"
    assert row.scores == {"bleu_4": 28.5, "rouge1_recall": 62.4, "rouge2_recall": 35.5, "coherence": 1.57}
    assert find_paper_rows(HierarchicalAutoencoderConfig(), "mscoco") == []


def test_a_claim_is_read_as_it_is_printed() -> None:
    claims = [claim for name in list_tables() for one in load_table(name).measurements for claim in one.claims]
    assert [Claim.parse(str(claim)) for claim in claims] == claims
    assert Claim.parse("a, 2 layers at most 0.02 behind b in ter") == Claim("a, 2 layers", "b", "ter", 0.02)
    with pytest.raises(InputError, match="a claim is `A > B in SCORE`"):
        Claim.parse("a beats b")
