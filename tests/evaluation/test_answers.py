"""`evaluate` of causal language models: what they answer, alone and chosen, and how probable the references are."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from transformers import BartForConditionalGeneration

from hf_paraphrase import Paraphraser
from hf_paraphrase.cli.evaluate import Evaluate
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.evaluation.paraphrases import evaluate_paraphraser
from tests.generation.language_models import PROMPT, byte_tokenizer, tiny_llama
from tests.models.tiny import save, tiny_bart, word_tokenizer

SOURCES = ["how do i cook", "a cat sat with Ann", "a dog"]
REFERENCES = [["how to cook"], ["Ann and a cat sat", "a cat"], ["dogs"]]
ROWS = Dataset.from_dict({"source": SOURCES, "references": REFERENCES})


@pytest.fixture
def prompt(tmp_path: Path) -> str:
    PROMPT.save(tmp_path / "mine.yaml")
    return str(tmp_path / "mine.yaml")


def evaluate(prompt: str, model=None, **options):
    tokenizer = byte_tokenizer()
    return evaluate_paraphraser(model or tiny_llama(), tokenizer, ROWS, n_samples=5, prompt=prompt, **options)


def test_the_likeliest_answers_are_scored(prompt: str, tmp_path: Path) -> None:
    results = evaluate(prompt, num_beams=[1, 3], max_new_tokens=8, output_dir=tmp_path, metrics=["bleu", "pinc"])
    model = Paraphraser(tiny_llama(), byte_tokenizer(), prompt=prompt)
    asked = {"decoding": "beam", "keep": (), "min_adequacy": 0, "return_rejected": True, "max_new_tokens": 8}
    for entry, width in zip(results.of("model"), (1, 3), strict=True):
        outputs = [json.loads(line)["prediction"] for line in (tmp_path / entry.outputs).read_text().splitlines()]
        expected = [model(text, 1, num_candidates=1, num_beams=width, **asked)[0].text for text in SOURCES]
        assert outputs == expected and entry.find("pinc").score > 50
    total = tokens = 0
    for source, references in zip(SOURCES, ROWS["references"], strict=True):
        ids, answer = (model.writer.encoder.encode(source), model.writer.encoder.encode_answer(references[0]))
        logits = tiny_llama()(torch.tensor([ids + answer])).logits[0, len(ids) - 1 : -1].log_softmax(-1)
        total += logits.gather(1, torch.tensor(answer).unsqueeze(1)).sum().item()
        tokens += len(answer)
    assert results.entries[0].perplexity == pytest.approx(math.exp(-total / tokens), rel=1e-3)
    assert results.entries[0].counts["reference_tokens"] == tokens


def test_samples_and_several_answers(prompt: str, tmp_path: Path) -> None:
    def sample(seed: int) -> list[list[str]]:
        options = {"decoding": "sample", "num_return_sequences": 3, "max_new_tokens": 8}
        (entry,) = evaluate(prompt, seed=seed, output_dir=tmp_path, **options).of("model")
        return [json.loads(line)["predictions"] for line in (tmp_path / entry.outputs).read_text().splitlines()]

    first, again, other = map(sample, (1, 1, 2))
    assert first == again != other
    assert all(len(set(several)) == 3 for several in first)


def test_what_a_paraphraser_chooses(prompt: str) -> None:
    (entry,) = evaluate(prompt, choose=True, decoding="sample", num_candidates=4, max_new_tokens=8).of("model")
    assert entry.counts["answered"] <= len(SOURCES)


def test_what_cannot_be_is_refused(prompt: str) -> None:
    for options, message in (
        ({"decoding": "dips"}, "`decoding='dips'` is not available with a language model"),
        ({"num_candidates": 4}, "`num_candidates`: .* chosen by `choose`"),
        ({"replace_unknown": True}, "replace_unknown|unknown"),
    ):
        with pytest.raises(InputError, match=message):
            evaluate(prompt, **options)
    bart: BartForConditionalGeneration = tiny_bart()
    with pytest.raises(InputError, match="`prompt` is for language models"):
        evaluate_paraphraser(bart, word_tokenizer(), ROWS, prompt=prompt)


def test_the_command(prompt: str, tmp_path: Path) -> None:
    """Of a folder of rows; a model that `train` made knows its prompt."""
    (tmp_path / "rows").mkdir()
    ROWS.to_json(tmp_path / "rows" / "test.jsonl")
    model = save(tiny_llama(), tmp_path / "model", byte_tokenizer())
    given = {"dataset": str(tmp_path / "rows"), "num_beams": [1], "max_new_tokens": 8, "n_samples": 5}
    told = Evaluate(model=model, prompt=prompt, **given).run()
    PROMPT.save(Path(model) / "prompt.yaml")
    assert Evaluate(model=model, **given).run().entries[0].scores == told.entries[0].scores
