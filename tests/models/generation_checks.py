"""Checks of what every encoder-decoder of the package generates; `Seq2SeqMixin` takes them over."""

from __future__ import annotations

import itertools

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, GenerationConfig, LogitsProcessor, TextStreamer

from hf_paraphrase.tokenization import train_word_tokenizer

from .small_batches import SOURCES, TARGETS, pad, words_of

DECODING = {
    "greedy": {},
    "beam": {"num_beams": 3},
    "beam with a length penalty": {"num_beams": 4, "length_penalty": 2.0, "early_stopping": True},
    "beam of 10": {"num_beams": 10, "num_return_sequences": 10},
    "no repeats": {"num_beams": 2, "no_repeat_ngram_size": 1, "bad_words_ids": [[5]]},
}


class GenerationChecks:
    """They use `small_model`, `batch`, `alone` and `further_inputs` of the class that has them for a base."""

    @pytest.mark.parametrize("decoding", DECODING)
    def test_padding_changes_nothing_in_generation(self, variant, decoding):
        model, options = self.small_model(variant), DECODING[decoding]
        count = options.get("num_return_sequences", 1)
        alone = [model.generate(**self.alone(row), max_new_tokens=6, **options) for row in range(len(SOURCES))]
        for side in ("right", "left"):
            batch = self.batch(side)
            batch.pop("labels")
            together = model.generate(**batch, max_new_tokens=6, **options)
            for row, expected in enumerate(alone):
                got = together[row * count : (row + 1) * count]
                assert words_of(got) == words_of(expected)

    def test_token_by_token_equals_whole(self, variant):
        model, batch = self.small_model(variant), self.batch("left")
        decoder_input_ids = pad([[1, *row] for row in TARGETS], "left", 0)
        decoder_attention_mask = pad([[1] * (len(row) + 1) for row in TARGETS], "left", 0)
        batch.pop("labels")
        with torch.no_grad():
            whole = model(
                **batch, decoder_input_ids=decoder_input_ids, decoder_attention_mask=decoder_attention_mask
            ).logits
            cache, steps = None, []
            for t in range(decoder_input_ids.shape[1]):
                outputs = model(
                    **batch,
                    decoder_input_ids=decoder_input_ids[:, t : t + 1],
                    decoder_attention_mask=decoder_attention_mask[:, : t + 1],
                    cache=cache,
                    use_cache=True,
                )
                cache = outputs.cache
                assert cache.get_seq_length() == t + 1
                steps.append(outputs.logits)
        real = decoder_attention_mask.bool()
        torch.testing.assert_close(torch.cat(steps, dim=1)[real], whole[real], rtol=0, atol=1e-5)

    @pytest.mark.parametrize("decoding", DECODING)
    def test_cache_is_only_a_shortcut(self, variant, decoding):
        model, batch = self.small_model(variant), self.batch()
        batch.pop("labels")
        options = dict(DECODING[decoding], max_new_tokens=6, return_dict_in_generate=True, output_scores=True)
        fast, slow = (model.generate(**batch, **options, use_cache=use_cache) for use_cache in (True, False))
        assert torch.equal(fast.sequences, slow.sequences)
        torch.testing.assert_close(fast.scores[-1], slow.scores[-1], rtol=0, atol=1e-5)

    def test_beam_search_equals_exhaustive_search(self, variant):
        length, model = 3, self.small_model(variant, vocab_size=6)
        inputs = {"input_ids": torch.tensor([[3, 5, 4, 2]]), **self.further_inputs([0])}
        for length_penalty in (0.0, 1.0):
            result = model.generate(
                **inputs,
                num_beams=6**length,
                num_return_sequences=5,
                max_new_tokens=length,
                length_penalty=length_penalty,
                early_stopping="never",
                return_dict_in_generate=True,
                output_scores=True,
            )
            expected = exhaustive_search(model, inputs, length, length_penalty)[:5]
            assert words_of(result.sequences) == [words for _, words in expected]
            torch.testing.assert_close(
                result.sequences_scores, torch.tensor([score for score, _ in expected]), rtol=0, atol=1e-5
            )

    def test_narrow_beams_do_as_well_as_greedy_search(self, variant):
        model = self.small_model(variant)
        for row in range(len(SOURCES)):
            options = {"max_new_tokens": 5, "return_dict_in_generate": True, "output_scores": True, **self.alone(row)}
            beam = model.generate(num_beams=5, length_penalty=0.0, early_stopping="never", **options)
            greedy = model.generate(**options)
            scores = model.compute_transition_scores(greedy.sequences, greedy.scores, normalize_logits=True)
            assert beam.sequences_scores[0] >= scores.sum() - 1e-5

    @pytest.mark.parametrize("options", [{}, {"num_beams": 3}])
    def test_transition_scores_are_the_model_s_own(self, variant, options):
        model, batch = self.small_model(variant), self.batch()
        batch.pop("labels")
        result = model.generate(
            **batch, **options, max_new_tokens=6, return_dict_in_generate=True, output_scores=True, length_penalty=0.0
        )
        scores = model.compute_transition_scores(
            result.sequences, result.scores, result.get("beam_indices"), normalize_logits=not options
        )
        for row, words in enumerate(words_of(result.sequences)):
            expected = log_probability(model, {name: tensor[row : row + 1] for name, tensor in batch.items()}, words)
            got = scores[row][: len(words)].sum()
            torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)

    @pytest.mark.parametrize("options", [{}, {"num_beams": 3}])
    def test_sampling_is_seeded_and_returns_several(self, variant, options):
        model, batch = self.small_model(variant), self.batch()
        batch.pop("labels")
        runs = []
        for seed in (0, 0, 1):
            torch.manual_seed(seed)
            runs.append(
                model.generate(**batch, **options, do_sample=True, num_return_sequences=3, max_new_tokens=12, top_k=0)
            )
        assert len(runs[0]) == 3 * len(SOURCES)
        assert torch.equal(runs[0], runs[1])
        assert runs[0].shape != runs[2].shape or not torch.equal(runs[0], runs[2])

    def test_sampling_draws_from_the_model(self):
        model = self.small_model(vocab_size=6)
        inputs = {"input_ids": torch.tensor([[3, 5, 4, 2]]), **self.further_inputs([0])}
        with torch.no_grad():
            expected = model(**inputs, decoder_input_ids=torch.tensor([[1]])).logits[0, -1].softmax(-1)
        many = {name: tensor.expand(4000, -1) for name, tensor in inputs.items()}
        drawn = model.generate(**many, do_sample=True, top_k=0, max_new_tokens=1, renormalize_logits=True)[:, 1]
        frequencies = torch.bincount(drawn, minlength=6) / len(drawn)
        assert (frequencies - expected).abs().max() < 0.03

    def test_logits_processors_and_constraints(self, variant):
        class Only(LogitsProcessor):
            def __call__(self, input_ids, scores):
                return torch.full_like(scores, -torch.inf).index_fill(1, torch.tensor([7]), 0.0)

        model, inputs = self.small_model(variant), self.alone(0)
        got = model.generate(**inputs, max_new_tokens=3, logits_processor=[Only()])
        assert got[0, 1:].tolist() == [7, 7, 7]
        allowed = model.generate(
            **inputs, max_new_tokens=4, num_beams=3, prefix_allowed_tokens_fn=lambda batch_id, ids: [4, 8]
        )
        assert set(allowed[0, 1:].tolist()) <= {4, 8}

    def test_decoder_prompt_is_continued(self, variant):
        model, inputs = self.small_model(variant), self.alone(0)
        free = model.generate(**inputs, max_new_tokens=6, min_new_tokens=6)
        prompted = model.generate(**inputs, decoder_input_ids=free[:, :3], max_new_tokens=4, min_new_tokens=4)
        assert torch.equal(prompted, free)

    def test_streamer_prints_what_is_generated(self, capsys):
        model = self.small_model()
        tokenizer = train_word_tokenizer(["a b c d e f"], vocab_size=10)
        ids = model.generate(**self.alone(0), max_new_tokens=6, streamer=TextStreamer(tokenizer))
        assert capsys.readouterr().out.split() == tokenizer.decode(ids[0]).split()

    def test_assisted_decoding_is_refused(self):
        model = self.small_model()
        with pytest.raises(RuntimeError, match="requires a cache"):
            model.generate(**self.alone(0), assistant_model=self.small_model(), max_new_tokens=4, do_sample=False)

    def test_generation_config_is_kept(self, tmp_path):
        model = self.small_model()
        model.generation_config = GenerationConfig(num_beams=4, max_new_tokens=7, decoder_start_token_id=1)
        model.save_pretrained(tmp_path)
        loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
        assert loaded.generation_config.num_beams == 4 and loaded.generation_config.max_new_tokens == 7

    def test_a_batch_of_a_thousand_and_of_one(self):
        model = self.small_model()
        tokenizer = train_word_tokenizer(["a b c d e f"], vocab_size=10)
        texts = [" ".join("abcdef"[: 1 + i % 6]) for i in range(1000)]
        further = self.further_inputs([0])
        inputs = tokenizer(texts, return_tensors="pt", padding=True)
        inputs |= {name: tensor.expand(len(texts), -1) for name, tensor in further.items()}
        many = model.generate(**inputs, max_new_tokens=4, num_beams=2)
        for row in (0, 1, 999):
            inputs = tokenizer([texts[row]], return_tensors="pt")
            one = model.generate(**inputs, **further, max_new_tokens=4, num_beams=2)
            assert torch.equal(many[row, : one.shape[1]], one[0])


def log_probability(model, inputs: dict[str, torch.Tensor], words: list[int]) -> torch.Tensor:
    """Sum of the log-probabilities of `words`, by one teacher-forced pass over one row."""
    with torch.no_grad():
        logits = model(**inputs, decoder_input_ids=torch.tensor([[1, *words[:-1]]])).logits[0]
    return logits.log_softmax(-1)[range(len(words)), words].sum()


def exhaustive_search(
    model, inputs: dict[str, torch.Tensor], length: int, length_penalty: float
) -> list[tuple[float, list[int]]]:
    """All sequences of at most `length` words that end in </s> or are as long as allowed, best first."""
    vocab, eos = range(model.config.vocab_size), model.config.eos_token_id
    found = []
    for size in range(1, length + 1):
        for words in itertools.product(vocab, repeat=size):
            if eos in words[:-1] or (words[-1] != eos and size < length):
                continue
            total = log_probability(model, inputs, list(words)).item()
            found.append((total / size**length_penalty, list(words)))
    return sorted(found, reverse=True)
