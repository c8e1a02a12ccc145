from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hf_paraphrase import CoupledLstmConfig, CoupledLstmForSequenceClassification, ParaphraseRetriever
from hf_paraphrase.tokenization import train_word_tokenizer
from tests.models.test_pipeline_pairs import PAIRS, tiny_fset
from tests.models.tiny import save


@pytest.fixture(scope="session")
def editor(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An FSET with a memory of three pairs."""
    folder = tmp_path_factory.mktemp("editor")
    ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard").save_pretrained(folder / "retriever")
    return save(tiny_fset(), folder)


@pytest.fixture(scope="session")
def matcher(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A coupled LSTM of three units."""
    torch.manual_seed(0)
    config = CoupledLstmConfig(vocab_size=10, embedding_size=4, hidden_size=3, num_blocks=2, initializer_range=1.0)
    tokenizer = train_word_tokenizer(["a b c d e f"], vocab_size=10, sentence_pairs=True)
    return save(CoupledLstmForSequenceClassification(config), tmp_path_factory.mktemp("matcher"), tokenizer)


@pytest.fixture(scope="session")
def home() -> Path:
    """The root of the repository."""
    return Path(__file__).parents[2]
