"""Checks that every encoder-decoder of the package must pass; an architecture's tests subclass `Seq2SeqMixin`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer

from hf_paraphrase.tokenization import train_word_tokenizer

from .generation_checks import GenerationChecks
from .opt_outs import OptOuts
from .small_batches import SOURCES, TARGETS, empty_rows, mask_of, pad, words_of


def check_double_precision(model: torch.nn.Module, batch: dict[str, torch.Tensor], step: float = 1e-6) -> None:
    """Compare the gradient of the loss, in a random direction, to the loss on both sides."""
    torch.manual_seed(0)
    model = model.double()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
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


class Seq2SeqMixin(OptOuts, GenerationChecks):
    """Subclasses give `config_class`, `base_class`, `model_class` and `small_config(**overrides)` with 10 words."""

    # Option sets in which every generic check runs.
    variants: dict[str, dict] = {"default": {}}

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

    def test_padding_changes_no_gradient(self, variant):
        """In double precision, to which what attends to padding with the smallest weight is not equal."""
        model = self.small_model(variant).double()

        def differentiate(loss: torch.Tensor) -> dict[str, torch.Tensor]:
            model.zero_grad()
            loss.backward()
            return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

        words = sum(map(len, TARGETS))
        losses = [
            model(**self.alone(row), labels=torch.tensor([target])).loss * len(target) / words
            for row, target in enumerate(TARGETS)
        ]
        expected = differentiate(sum(losses))
        for side in ("right", "left", "between"):
            loss = model(**self.batch(side)).loss
            torch.testing.assert_close(loss, sum(losses), rtol=0, atol=1e-9)
            gradients = differentiate(loss)
            assert gradients.keys() == expected.keys()
            for name, gradient in gradients.items():
                torch.testing.assert_close(gradient, expected[name], rtol=0, atol=1e-9, msg=f"{name}, {side}")

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
        with self.supports("inputs_embeds"):
            assert torch.equal(model.generate(**inputs, max_new_tokens=4), expected)

    def test_attentions_and_hidden_states_on_request(self, variant):
        model, batch = self.small_model(variant), self.batch()
        plain = model(**batch)
        assert plain.decoder_hidden_states is None and plain.cross_attentions is None
        full = model(**batch, output_hidden_states=True, output_attentions=True)
        torch.testing.assert_close(full.logits, plain.logits)
        (rows, targets), words = batch["labels"].shape, batch["input_ids"].shape[1]
        assert all(state.shape[:2] == (rows, targets) for state in full.decoder_hidden_states)
        assert all(len(state) == rows for state in full.encoder_hidden_states)
        with self.supports("encoder_states_of_every_word"):
            for state in full.encoder_hidden_states:
                assert state.shape[1] == words, f"{state.shape[1]} states of the encoder for {words} words"
        if full.cross_attentions is not None:
            weights = full.cross_attentions[-1]
            assert weights.shape == (rows, weights.shape[1], targets, words)
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
        options = {"share_embeddings": [True, False], "tie_word_embeddings": [True, False]}
        with self.supports("separate_embeddings"):
            assert "share_embeddings" in self.small_config().to_dict(), "a configuration with no `share_embeddings`"
        if "separate_embeddings" in self.opt_outs:
            del options["share_embeddings"]
        with self.supports("tied_embeddings"):
            self.small_config(tie_word_embeddings=True)
        if "tied_embeddings" in self.opt_outs:
            options["tie_word_embeddings"] = [False]
        for number, values in enumerate(itertools.product(*options.values())):
            fields = dict(zip(options, values, strict=True))
            self.check_saved_embeddings(
                self.model_class(self.small_config(**fields)), tmp_path / str(number), **fields
            )

    def check_saved_embeddings(self, model, folder, tie_word_embeddings: bool, share_embeddings: bool = True) -> None:
        model.save_pretrained(folder)
        loaded = AutoModelForSeq2SeqLM.from_pretrained(folder)
        base = loaded.base_model
        table = (base.get_input_embeddings() if share_embeddings else base.get_decoder_embeddings()).weight
        assert (loaded.lm_head.weight is table) == tie_word_embeddings
        assert (table is loaded.get_input_embeddings().weight) == share_embeddings
        assert loaded.num_parameters() == model.num_parameters()
        loaded.resize_token_embeddings(13)
        inputs = {"input_ids": torch.tensor([[12, 2]]), **self.further_inputs([0])}
        loaded(**inputs, labels=torch.tensor([[12, 2]])).loss.backward()
        assert loaded.lm_head.out_features == 13 and (loaded.lm_head.weight is table) <= tie_word_embeddings

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

    @pytest.mark.parametrize("layers", [{nn.Linear}, None], ids=["linear", "all"])
    def test_int8_layers(self, variant, layers):
        model, batch = self.small_model(variant), self.batch()
        quantized = torch.ao.quantization.quantize_dynamic(model, layers)
        exact, outputs = model(**batch).logits, quantized(**batch)
        assert (outputs.logits - exact).abs().mean() < 0.1 * exact.abs().mean()
        torch.testing.assert_close(quantized(**batch, output_hidden_states=True).logits, outputs.logits)
        batch.pop("labels")
        for num_beams in (1, 2):
            assert len(quantized.generate(**batch, num_beams=num_beams, max_new_tokens=4)) == len(SOURCES)

    def test_weights_that_stay_on_the_disk(self, variant, tmp_path):
        model, batch = self.small_model(variant), self.batch()
        model.save_pretrained(tmp_path / "model")
        offloaded = AutoModelForSeq2SeqLM.from_pretrained(
            tmp_path / "model", device_map={"": "disk"}, offload_folder=tmp_path / "disk"
        )
        assert all(parameter.is_meta for parameter in offloaded.parameters())
        torch.testing.assert_close(offloaded(**batch).logits, model(**batch).logits)
        batch.pop("labels")
        for num_beams in (1, 2):
            options = {"num_beams": num_beams, "max_new_tokens": 4}
            assert torch.equal(offloaded.generate(**batch, **options), model.generate(**batch, **options))

    def test_autocast_on_a_cpu_without_bfloat16(self, variant, cpu_without_bfloat16):
        """Rows of one length, for which nothing is packed."""
        model, batch = self.small_model(variant).train(), self.batch()
        batch["attention_mask"] = torch.ones_like(batch["attention_mask"])
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(**batch).loss
        loss.backward()
        assert torch.isfinite(loss)
        batch.pop("labels")
        with torch.autocast("cpu", torch.bfloat16):
            assert len(model.eval().generate(**batch, num_beams=2, max_new_tokens=4)) == len(SOURCES)

    def test_double_precision_is_kept(self, variant):
        """A quotient of differences is the gradient to six digits, where nothing on the way is single."""
        check_double_precision(self.small_model(variant), self.batch())

    def test_gradient_checkpointing_gives_the_same_gradients(self, variant):
        model, batch = self.small_model(variant).train(), self.batch()
        gradients = []
        for enable in (False, True):
            if enable:
                with self.supports("gradient_checkpointing"):
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
        with self.supports("export"):
            export_and_compare(model, batch, use_cache=False)

    def test_ids_outside_the_vocabulary_are_named(self):
        model, batch = self.small_model(), self.batch()
        for name, key in (("input_ids", "input_ids"), ("decoder_input_ids", "labels")):
            bad = dict(batch, **{key: batch[key].clone()})
            bad[key][0, 0] = 10
            with pytest.raises(ValueError, match=f"`{name}` holds the id 10, but the vocabulary has 10"):
                model(**bad)

    def test_tokenizer_travels_with_the_model(self, tmp_path):
        tokenizer = train_word_tokenizer(["a b c d e f"], vocab_size=10)
        self.small_model().save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        loaded = AutoTokenizer.from_pretrained(tmp_path)
        assert loaded("a b c").input_ids == tokenizer("a b c").input_ids
