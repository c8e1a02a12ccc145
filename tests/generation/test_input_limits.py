from __future__ import annotations

import logging

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.engine import (
    SourceCutter,
    compute_perplexity,
    generate_paraphrases,
    generate_several,
    halve_once,
    match_pairs,
    source_limit,
)
from hf_paraphrase.generation.writers import ModelWriter
from tests.generation.paraphrasers import PARAPHRASERS, make_paraphraser, random_sentences
from tests.models.tiny import tiny_bart, tiny_matcher, tiny_t5, word_tokenizer

OUT_OF_MEMORY = "CUDA out of memory. Tried to allocate 20.00 GiB"


def run_out_of_memory(model, monkeypatch, most: int) -> list[int]:
    """Let a model fail as on a full GPU for batches of more than `most` rows; the sizes that it was asked for."""
    asked, encode = [], model.get_encoder().forward if model.config.is_encoder_decoder else model.forward

    def forward(input_ids=None, *args, **kwargs):
        asked.append(len(input_ids))
        if len(input_ids) > most:
            raise torch.OutOfMemoryError(OUT_OF_MEMORY)
        return encode(input_ids, *args, **kwargs)

    monkeypatch.setattr(model.get_encoder() if model.config.is_encoder_decoder else model, "forward", forward)
    return asked


def test_limit_is_the_least_that_anybody_knows():
    assert source_limit(tiny_t5(), word_tokenizer()) == 1024
    assert source_limit(tiny_bart(), word_tokenizer()) == 300
    assert source_limit(tiny_bart(), word_tokenizer(model_max_length=20)) == 20


@pytest.mark.parametrize("limit", [2, 5, 6, 7])
def test_texts_are_cut_between_words(limit):
    cutter = SourceCutter(tiny_t5(), word_tokenizer(), limit)
    text = "the cat  sat on a mat"
    # The end token takes a place.
    assert cutter(text).split() == text.split()[: limit - 1]
    assert text.startswith(cutter("the cat  sat on a mat"))
    assert (cutter.read, cutter.cut) == (2, 2 * (limit < 7))


def test_the_prefix_counts():
    cutter = SourceCutter(tiny_t5(), word_tokenizer(), 6, "make a : ")
    assert cutter("the cat sat on a mat") == "the cat"
    assert cutter.describe() == "1 of 1 texts have more than 6 tokens and are read up to there (`max_source_length`)"


def test_of_outputs_for_a_split_too_those_that_are_cut_are_counted(caplog):
    texts = ["the cat sat on a mat " * 300, "the cat", ""]
    assert len(generate_paraphrases(tiny_t5(), word_tokenizer(), texts, max_new_tokens=3)) == 3
    told = [record.getMessage() for record in caplog.records if "tokens" in record.getMessage()]
    assert told == ["1 of 2 texts have more than 1,024 tokens and are read up to there (`max_source_length`)"]


@pytest.mark.parametrize("text", ["x" * 100_000, " " * 100_000 + "x", "the " * 25_000, "é\n" * 50_000])
def test_any_long_text_is_cut_soon(text):
    lengths = []

    class Tokenizer(PreTrainedTokenizerFast):
        def __call__(self, text, **kwargs):
            lengths.append(len(text))
            return super().__call__(text, **kwargs)

    tokenizer = word_tokenizer()
    tokenizer = Tokenizer(tokenizer_object=tokenizer.backend_tokenizer, eos_token="</s>")
    cutter = SourceCutter(tiny_t5(), tokenizer, 10)
    assert len(tokenizer(cutter(text))["input_ids"]) <= 10
    assert max(lengths) <= 1000 and cutter.cut == 1


@pytest.mark.parametrize("length", [0, -1, 2.5, "7", True])
def test_a_limit_is_a_number_of_tokens(length):
    with pytest.raises(InputError, match="`max_source_length` must be a whole number"):
        make_paraphraser("t5")("the cat", max_source_length=length)


@pytest.mark.parametrize("name", PARAPHRASERS)
def test_no_model_reads_more_than_the_limit(name, monkeypatch, caplog):
    paraphraser = make_paraphraser(name)
    widths = []
    # Whatever reads a text looks its tokens up.
    for module in paraphraser.model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.register_forward_pre_hook(lambda _, inputs: widths.append(inputs[0].numel()))
    texts = ["the cat " * 10_000, "a dog"]
    with caplog.at_level(logging.WARNING):
        found = paraphraser(texts, n=1, num_candidates=2, max_source_length=16, keep=(), max_new_tokens=4)
    assert len(found) == 2 and max(widths) < 2_000
    assert "1 of 2 texts have more than 16 tokens" in caplog.text
    list(paraphraser(iter(texts), n=1, num_candidates=2, max_source_length=16, keep=(), max_new_tokens=4))
    assert caplog.text.count("1 of 2 texts") == 2


def test_what_is_kept_is_looked_for_in_the_whole_text():
    text = "the cat sat on a mat 17"
    records = make_paraphraser("t5")(text, n=1, max_source_length=4, keep=("numbers",), return_rejected=True)
    assert records and all(record.reason and "17" in record.reason for record in records)


def test_halving():
    asked = []

    def run(rows: list[int]) -> list[int]:
        asked.append(len(rows))
        if len(rows) > 4:
            raise torch.OutOfMemoryError(OUT_OF_MEMORY)
        return rows

    assert halve_once(run, [*range(7)]) == [*range(7)]
    with pytest.raises(torch.OutOfMemoryError):
        halve_once(run, [*range(16)])
    assert asked == [7, 4, 3, 16, 8]
    with pytest.raises(RuntimeError, match="shapes"):
        halve_once(lambda rows: (_ for _ in ()).throw(RuntimeError("shapes differ")), [0, 1])


def test_a_batch_that_does_not_fit_is_halved_once(monkeypatch, caplog):
    texts = random_sentences(8)
    model, tokenizer = tiny_bart(), word_tokenizer()
    calls = [
        lambda size: generate_several(model, tokenizer, texts, 2, batch_size=size, max_new_tokens=4),
        lambda size: ModelWriter(model, tokenizer).mean_log_probs(texts, texts[::-1], size),
        lambda size: compute_perplexity(model, tokenizer, texts, texts[::-1], batch_size=size),
    ]
    whole = [call(8) for call in calls]
    asked = run_out_of_memory(model, monkeypatch, 4)
    halved = [call(8) for call in calls]
    assert asked == [8, 4, 4] * 3 and caplog.text.count("8 texts at once do not fit") == 3
    assert halved[0] == whole[0]
    assert halved[1] == pytest.approx(whole[1], rel=1e-5)
    assert halved[2] == pytest.approx(whole[2], rel=1e-5)
    asked.clear()
    run_out_of_memory(model, monkeypatch, 2)
    with pytest.raises(torch.OutOfMemoryError):
        calls[0](8)


def test_pairs_that_do_not_fit_are_halved_once(monkeypatch):
    model, tokenizer, texts = tiny_matcher(3), word_tokenizer(), random_sentences(6)
    whole = match_pairs(model, tokenizer, texts, texts[::-1], batch_size=6)
    asked = run_out_of_memory(model, monkeypatch, 3)
    torch.testing.assert_close(match_pairs(model, tokenizer, texts, texts[::-1], batch_size=6), whole)
    assert asked == [6, 3, 3]
