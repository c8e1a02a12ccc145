from __future__ import annotations

import pytest
import torch
from datasets import Dataset

from hf_paraphrase import HierarchicalLmConfig, HierarchicalLmForConditionalGeneration, HierarchicalLmTokenizer
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.evaluation.language_models import (
    evaluate_language_model,
    read_language_model_statistics,
)
from hf_paraphrase.evaluation.results import Results
from hf_paraphrase.training.tasks.language_model import encode_documents

DOCUMENTS = Dataset.from_dict({"sentences": [["The sun.", "Rain, and wind.", "Snow."], ["Sun.", "Ice and snow."]]})


def make_model() -> tuple[HierarchicalLmForConditionalGeneration, HierarchicalLmTokenizer]:
    tokenizer = HierarchicalLmTokenizer()
    sizes = {"word_encoder_sizes": (12, 12), "value_size": 8, "key_size": 4, "word_decoder_sizes": (8,)}
    config = HierarchicalLmConfig(embedding_size=4, word_decoder_hidden_size=6, **sizes)
    return HierarchicalLmForConditionalGeneration(config).train(), tokenizer


@pytest.mark.parametrize("objective", ["next_sentence", "autoencode"])
def test_nits_per_character_are_those_of_single_examples(objective, tmp_path):
    model, tokenizer = make_model()
    results = evaluate_language_model(
        model, tokenizer, DOCUMENTS, objective=objective, batch_size=2, n_samples=20, output_dir=tmp_path
    )
    total, count = 0.0, 0
    for row in encode_documents(DOCUMENTS, tokenizer, objective):
        with torch.no_grad():
            loss = model(**{name: torch.tensor([row[name]]) for name in ("input_ids", "labels")}).loss
        total, count = total + loss.item() * len(row["labels"]), count + len(row["labels"])
    (entry,) = results.entries
    (score,) = entry.scores
    assert score.metric == "nits_per_character" and entry.objective == objective
    assert score.score == pytest.approx(total / count, rel=1e-5) and score.low <= score.score <= score.high
    assert results.data.counts == {"characters": count}
    assert Results.load(tmp_path / "results-test.json") == results
    (read,) = read_language_model_statistics(tmp_path / entry.outputs).values()
    assert (read.name, read.score) == (score.metric, pytest.approx(score.score))


def test_samples_are_bounded():
    model, tokenizer = make_model()
    results = evaluate_language_model(model, tokenizer, DOCUMENTS, max_samples=2, n_samples=5)
    assert results.data.rows == 2
    with pytest.raises(InputError, match="none of the 0 documents"):
        evaluate_language_model(model, tokenizer, DOCUMENTS.select([]))
