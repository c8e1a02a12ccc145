"""Checks that every encoder-decoder of the package must pass; an architecture's tests subclass `Seq2SeqMixin`."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GenerationConfig,
    LogitsProcessor,
    TextStreamer,
)

from hf_paraphrase.tokenization import train_word_tokenizer

# Three sources of 6, 4 and 1 words: the lengths that padding has to make equal.
SOURCES = [[5, 6, 7, 8, 9, 2], [9, 4, 7, 2], [2]]
TARGETS = [[6, 5, 2], [4, 9, 8, 7, 2], [2]]
DECODING = {
    "greedy": {},
    "beam": {"num_beams": 3},
    "beam with a length penalty": {"num_beams": 4, "length_penalty": 2.0, "early_stopping": True},
    "beam of 10": {"num_beams": 10, "num_return_sequences": 10},
    "no repeats": {"num_beams": 2, "no_repeat_ngram_size": 1, "bad_words_ids": [[5]]},
}


def pad(rows: list[list[int]], side: str, value: int) -> torch.Tensor:
    """Pad rows on the `left`, on the `right`, or `between` their first token and the others."""
    width = max(map(len, rows)) + 1
    padded = torch.full((len(rows), width), value)
    for row, ids in zip(padded, rows, strict=True):
        ids = torch.tensor(ids)
        if side == "left":
            row[width - len(ids) :] = ids
        elif side == "right":
            row[: len(ids)] = ids
        else:
            row[0], row[width - len(ids) + 1 :] = ids[0], ids[1:]
    return padded


def check_double_precision(model: torch.nn.Module, batch: dict[str, torch.Tensor], step: float = 1e-6) -> None:
    """Compare the gradient of the loss, in a random direction, to the loss on both sides."""
    torch.manual_seed(0)
    model = model.double()
    weights = list(model.parameters())
    direction = [torch.randn_like(weight) for weight in weights]
    loss = model(**batch).loss
    assert loss.dtype == torch.float64
    loss.backward()
    slope = sum((weight.grad * side).sum() for weight, side in zip(weights, direction, strict=True))
    losses = []
    with torch.no_grad():
        for distance in (step, -2 * step):
            for weight, side in zip(weights, direction, strict=True):
                weight += distance * side
            losses.append(model(**batch).loss)
    torch.testing.assert_close((losses[0] - losses[1]) / (2 * step), slope, rtol=1e-6, atol=1e-8)


def mask_of(name: str) -> str:
    """The name of the mask of some ids."""
    return "attention_mask" if name == "input_ids" else name.replace("_ids", "_mask")


def empty_rows(batch: dict[str, torch.Tensor], rows: list[int]) -> dict[str, torch.Tensor]:
    """A batch in which some rows have no word on any side."""
    emptied = {name: tensor.clone() for name, tensor in batch.items()}
    for name in batch:
        if name.endswith("_mask"):
            emptied[name][rows] = 0
    return emptied


def export_and_compare(model, batch: dict[str, torch.Tensor], **kwargs) -> None:
    """Export a model with sizes left open, and compare it with itself on other sizes, padding and rows without words.

    Args:
        model: In evaluation.
        batch: Tensors `(batch, length)`, all lengths of their own.
        kwargs: Other arguments of forward.
    """
    sizes = {name: {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC} for name in batch}
    with torch.no_grad():
        exported = torch.export.export(
            model, (), {**batch, **kwargs}, dynamic_shapes={**sizes, **dict.fromkeys(kwargs)}, strict=False
        ).module()
        wider = {
            name: torch.nn.functional.pad(torch.cat((tensor.flip(0), tensor)), (2, 1))
            for name, tensor in batch.items()
        }
        one = {name: tensor[[-1]] for name, tensor in wider.items()}
        for inputs in (batch, wider, empty_rows(wider, [0, 3]), one):
            expected = model(**inputs, **kwargs).logits
            logits = exported(**inputs, **kwargs).logits
            if logits.dim() == 3:  # scores where there are target words, of words that can be written
                real = inputs["decoder_attention_mask"].bool()
                logits, expected = logits[real][:, : expected.shape[-1]], expected[real]
            torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)


class Seq2SeqMixin:
    """Subclasses give `config_class`, `base_class`, `model_class` and `small_config(**overrides)` with 10 words."""

    # Option sets in which every generic check runs.
    variants: dict[str, dict] = {"default": {}}
    # Whether source and target have one embedding table; a configuration that can do both has `share_embeddings`.
    shares_embeddings: tuple[bool, ...] = (True, False)
    # Why `torch.export` cannot trace forward, where it cannot.
    not_exportable: str | None = None

    def small_config(self, **overrides):
        raise NotImplementedError("an architecture's tests say what its small configuration is")

    def small_model(self, variant: str = "default", **overrides):
        model = self.model_class(self.small_config(**self.variants[variant], **overrides)).eval()
        # Wider than a fresh model's, so that the words' scores are far enough apart to rank.
        for parameter in model.parameters():
            torch.nn.init.uniform_(parameter, -0.8, 0.8)
        return model

    def further_inputs(self, rows: Sequence[int], side: str = "right") -> dict[str, torch.Tensor]:
        """What a model reads beside `input_ids`, for some of the three rows; nothing by default."""
        return {}

    def alone(self, row: int) -> dict[str, torch.Tensor]:
        """The inputs of one row, as short as it is."""
        return {"input_ids": torch.tensor([SOURCES[row]]), **self.further_inputs([row])}

    def batch(self, side: str = "right", pad_token_id: int = 0) -> dict[str, torch.Tensor]:
        return {
            "input_ids": pad(SOURCES, side, pad_token_id),
            "attention_mask": pad([[1] * len(row) for row in SOURCES], side, 0),
            **self.further_inputs(range(len(SOURCES)), side),
            "labels": pad(TARGETS, side if side != "between" else "right", -100),
        }

    def attends(self, labels: torch.Tensor) -> torch.Tensor:
        """Which target positions attend to the source; all by default."""
        return torch.ones_like(labels, dtype=torch.bool)

    def pytest_generate_tests(self, metafunc):
        if "variant" in metafunc.fixturenames:
            metafunc.parametrize("variant", list(self.variants))

    def test_padding_changes_nothing_forward(self, variant):
        model = self.small_model(variant)
        for side in ("right", "left", "between"):
            batch = self.batch(side)
            with torch.no_grad():
                together = model(**batch)
            losses = []
            for row, target in enumerate(TARGETS):
                with torch.no_grad():
                    alone = model(**self.alone(row), labels=torch.tensor([target]))
                real = batch["labels"][row] != -100
                torch.testing.assert_close(together.logits[row, real], alone.logits[0], rtol=0, atol=1e-5)
                losses.append(alone.loss * len(target))
            expected = sum(losses) / sum(map(len, TARGETS))
            torch.testing.assert_close(together.loss, expected, rtol=0, atol=1e-5)

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

    @pytest.mark.parametrize("rows", [[1], [0, 1, 2]])
    def test_rows_without_a_word_are_like_any_others(self, variant, rows):
        model, batch = self.small_model(variant), self.batch()
        labels = batch.pop("labels")
        masked, other_words = empty_rows(batch, rows), empty_rows(batch, rows)
        for name in batch:
            if name.endswith("_ids"):
                other_words[name] = batch[name].masked_fill(masked[mask_of(name)] == 0, 5)
        with torch.no_grad():
            usual, together, wider = (model(**inputs, labels=labels) for inputs in (batch, masked, other_words))
            alone = [
                model(**{name: tensor[[row], :2] for name, tensor in masked.items()}, labels=labels[[row]])
                for row in rows
            ]
        assert together.logits.isfinite().all()
        torch.testing.assert_close(wider.logits, together.logits, rtol=0, atol=1e-5)
        torch.testing.assert_close(
            together.logits[rows], torch.cat([outputs.logits for outputs in alone]), rtol=0, atol=1e-5
        )
        others = [row for row in range(len(labels)) if row not in rows]
        torch.testing.assert_close(together.logits[others], usual.logits[others], rtol=0, atol=1e-5)
        model.train()(**masked, labels=labels).loss.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
        for options in ({}, {"num_beams": 3, "num_return_sequences": 2}):
            count = options.get("num_return_sequences", 1)
            usual, together = (
                words_of(model.eval().generate(**inputs, max_new_tokens=5, **options)) for inputs in (batch, masked)
            )
            assert len(together) == count * len(labels)
            for row in others:
                assert together[row * count : (row + 1) * count] == usual[row * count : (row + 1) * count]

    def test_targets_without_a_word_cost_nothing(self, variant):
        model, batch = self.small_model(variant), self.batch()
        nothing = torch.full_like(batch.pop("labels"), -100)
        with torch.no_grad():
            assert model(**batch, labels=nothing).logits.isfinite().all()

    def test_embeddings_in_place_of_words_work_or_are_refused(self, variant):
        model, inputs = self.small_model(variant), self.alone(0)
        expected = model.generate(**inputs, max_new_tokens=4)
        inputs["inputs_embeds"] = model.get_input_embeddings()(inputs.pop("input_ids"))
        if "inputs_embeds" in inspect.signature(model.forward).parameters:
            assert torch.equal(model.generate(**inputs, max_new_tokens=4), expected)
        else:
            with pytest.raises(
                ValueError, match="`inputs_embeds`: a .* must know which words it reads; pass `input_ids`"
            ):
                model.generate(**inputs, max_new_tokens=4)

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
                    past_key_values=cache,
                    use_cache=True,
                )
                cache = outputs.past_key_values
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

    def test_attentions_and_hidden_states_on_request(self, variant):
        model, batch = self.small_model(variant), self.batch()
        plain = model(**batch)
        assert plain.decoder_hidden_states is None and plain.cross_attentions is None
        full = model(**batch, output_hidden_states=True, output_attentions=True)
        torch.testing.assert_close(full.logits, plain.logits)
        rows, targets = batch["labels"].shape
        for states, length in ((full.decoder_hidden_states, targets), (full.encoder_hidden_states, 7)):
            assert all(state.shape[:2] == (rows, length) for state in states)
        if full.cross_attentions is not None:
            weights = full.cross_attentions[-1]
            assert weights.shape == (rows, weights.shape[1], targets, batch["input_ids"].shape[1])
            attends = self.attends(batch["labels"])[:, None].expand(weights.shape[:-1])
            torch.testing.assert_close(weights.sum(-1), attends.float())
            assert not weights[1, :, :, len(SOURCES[1]) :].any()
        batch.pop("labels")
        generated = model.generate(
            **batch,
            num_beams=2,
            max_new_tokens=3,
            output_attentions=True,
            output_hidden_states=True,
            return_dict_in_generate=True,
        )
        assert 1 <= len(generated.decoder_hidden_states) <= 3

    def test_tuples_on_request(self):
        model, batch = self.small_model(), self.batch()
        outputs = model(**batch)
        loss, logits, *_ = model(**batch, return_dict=False)
        assert torch.equal(loss, outputs.loss) and torch.equal(logits, outputs.logits)

    def test_saved_model_is_the_same_model(self, variant, tmp_path):
        model, batch = self.small_model(variant), self.batch()
        model.save_pretrained(tmp_path)
        assert not list(tmp_path.glob("*.bin")) and (tmp_path / "model.safetensors").exists()
        loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
        assert type(loaded) is self.model_class and not loaded.training
        torch.testing.assert_close(loaded(**batch).logits, model(**batch).logits)
        assert type(AutoConfig.from_pretrained(tmp_path)) is self.config_class
        base = AutoModel.from_pretrained(tmp_path)
        assert type(base) is self.base_class
        for name, weight in base.state_dict().items():
            assert torch.equal(weight, model.base_model.state_dict()[name]), name

    def test_tied_and_shared_embeddings_survive_saving(self, tmp_path):
        for share, tie in itertools.product(self.shares_embeddings, (True, False)):
            folder = tmp_path / f"{share}-{tie}"
            sharing = {} if len(self.shares_embeddings) == 1 else {"share_embeddings": share}
            model = self.model_class(self.small_config(tie_word_embeddings=tie, **sharing))
            model.save_pretrained(folder)
            loaded = AutoModelForSeq2SeqLM.from_pretrained(folder)
            base = loaded.base_model
            table = (base.get_input_embeddings() if share else base.get_decoder_embeddings()).weight
            assert (loaded.lm_head.weight is table) == tie
            assert (table is loaded.get_input_embeddings().weight) == share
            assert loaded.num_parameters() == model.num_parameters()
            loaded.resize_token_embeddings(13)
            inputs = {"input_ids": torch.tensor([[12, 2]]), **self.further_inputs([0])}
            loaded(**inputs, labels=torch.tensor([[12, 2]])).loss.backward()
            assert loaded.lm_head.out_features == 13 and (loaded.lm_head.weight is table) <= tie

    def test_bfloat16(self, variant, tmp_path):
        model, batch = self.small_model(variant), self.batch()
        model.save_pretrained(tmp_path)
        half = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, dtype=torch.bfloat16)
        assert half.dtype == torch.bfloat16
        outputs = half(**batch)
        assert outputs.logits.dtype == torch.bfloat16
        torch.testing.assert_close(outputs.loss, model(**batch).loss, rtol=0.05, atol=0.05)
        batch.pop("labels")
        assert len(half.generate(**batch, num_beams=2, max_new_tokens=4)) == len(SOURCES)

    def test_double_precision_is_kept(self, variant):
        """A quotient of differences is the gradient to six digits, where nothing on the way is single."""
        check_double_precision(self.small_model(variant), self.batch())

    def test_gradient_checkpointing_gives_the_same_gradients(self, variant):
        model, batch = self.small_model(variant).train(), self.batch()
        gradients = []
        for enable in (False, True):
            if enable:
                model.gradient_checkpointing_enable()
            model.zero_grad()
            torch.manual_seed(1)
            model(**batch).loss.backward()
            gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
        assert gradients[0].keys() == gradients[1].keys()
        for name, gradient in gradients[0].items():
            torch.testing.assert_close(gradients[1][name], gradient, msg=name)

    def test_every_parameter_learns(self, variant):
        model = self.small_model(variant).train()
        model(**self.batch()).loss.backward()
        still = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
        assert still == []

    def test_compiled_forward_equals_plain(self, variant):
        model, batch = self.small_model(variant), self.batch()
        compiled = torch.compile(model, backend="eager")
        torch.testing.assert_close(compiled(**batch).logits, model(**batch).logits)

    def test_exported_forward_equals_plain(self, variant):
        model, batch = self.small_model(variant), self.batch()
        labels = batch.pop("labels")
        batch |= {"decoder_input_ids": labels.clamp(min=0), "decoder_attention_mask": (labels != -100).long()}
        batch["decoder_input_ids"][:, 0] = 1
        if self.not_exportable is None:
            export_and_compare(model, batch, use_cache=False)
        else:
            with pytest.raises(torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode):
                export_and_compare(model, batch, use_cache=False)

    def test_ids_outside_the_vocabulary_are_named(self):
        model, batch = self.small_model(), self.batch()
        for name, key in (("input_ids", "input_ids"), ("decoder_input_ids", "labels")):
            bad = dict(batch, **{key: batch[key].clone()})
            bad[key][0, 0] = 10
            with pytest.raises(ValueError, match=f"`{name}` holds the id 10, but the vocabulary has 10"):
                model(**bad)

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

    def test_tokenizer_travels_with_the_model(self, tmp_path):
        tokenizer = train_word_tokenizer(["a b c d e f"], vocab_size=10)
        self.small_model().save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        loaded = AutoTokenizer.from_pretrained(tmp_path)
        assert loaded("a b c").input_ids == tokenizer("a b c").input_ids


def words_of(sequences: torch.Tensor, eos_token_id: int = 2) -> list[list[int]]:
    """What each row generated: behind the start token, up to its first end mark."""
    rows = [ids[1:].tolist() for ids in sequences]
    return [ids[: ids.index(eos_token_id) + 1] if eos_token_id in ids else ids for ids in rows]


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
