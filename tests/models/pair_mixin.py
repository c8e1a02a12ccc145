"""Checks that every model of sentence pairs must pass; an architecture's tests subclass `SentencePairMixin`."""

from __future__ import annotations

import os

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer, pipeline

import hf_paraphrase
from hf_paraphrase.models.layers.sentence_pair import max_margin_loss
from hf_paraphrase.tokenization import train_word_tokenizer
from tests.models.modeling_mixin import check_double_precision, export_and_compare
from tests.models.opt_outs import OptOuts
from tests.models.small_batches import empty_rows, pad
from tests.models.tiny import save
from tests.models.without_package import run_without_the_package

TASK = "text-classification"
# Pairs of 4 and 2, 1 and 5, 3 and 3, 2 and 1, 1 and 1 words.
FIRST = [[4, 5, 6, 7], [9], [5, 5, 8], [7, 2], [2]]
SECOND = [[6, 8], [4, 6, 9, 5, 2], [5, 8, 7], [3], [4]]
LABELS = [0, 1, 1, 0, 1]
TEXTS = [("a b", "c"), ("", "d e f a"), ("f", " "), ("unheard of", "a"), ("a b c", "c b a")]


def two_sequences(side: str = "right") -> dict[str, torch.Tensor]:
    """The pairs as two sequences, padded on some side."""
    ones = [[[1] * len(row) for row in rows] for rows in (FIRST, SECOND)]
    return {
        "input_ids": pad(FIRST, side, 0),
        "attention_mask": pad(ones[0], side, 0),
        "pair_input_ids": pad(SECOND, side, 0),
        "pair_attention_mask": pad(ones[1], side, 0),
    }


def one_sequence(side: str = "right") -> dict[str, torch.Tensor]:
    """The pairs as one sequence with types, padded on some side."""
    both = list(zip(FIRST, SECOND, strict=True))
    return {
        "input_ids": pad([one + other for one, other in both], side, 0),
        "attention_mask": pad([[1] * len(one + other) for one, other in both], side, 0),
        "token_type_ids": pad([[0] * len(one) + [1] * len(other) for one, other in both], side, 0),
    }


class SentencePairMixin(OptOuts):
    """Subclasses give `config_class`, `model_class` and `small_config(**overrides)` with 10 words."""

    # Option sets in which every generic check runs.
    variants: dict[str, dict] = {"default": {}}

    def small_config(self, **overrides):
        raise NotImplementedError("an architecture's tests say what its small configuration is")

    def small_model(self, variant: str = "default", **overrides):
        torch.manual_seed(0)
        model = self.model_class(self.small_config(**self.variants[variant], **overrides)).eval()
        # Wider than a fresh model's, so that the logits are far apart.
        for parameter in model.parameters():
            torch.nn.init.uniform_(parameter, -0.8, 0.8)
        return model

    def pytest_generate_tests(self, metafunc):
        if "variant" in metafunc.fixturenames:
            metafunc.parametrize("variant", list(self.variants))

    def test_double_precision_is_kept(self, variant):
        check_double_precision(self.small_model(variant), {**two_sequences(), "labels": torch.tensor(LABELS)})

    def test_padding_and_company_change_nothing(self, variant):
        model = self.small_model(variant)
        with torch.no_grad():
            alone = [
                model(input_ids=torch.tensor([x]), pair_input_ids=torch.tensor([y]), labels=torch.tensor([label]))
                for x, y, label in zip(FIRST, SECOND, LABELS, strict=True)
            ]
            for side in ("right", "left", "between"):
                for batch in (two_sequences(side), one_sequence(side)):
                    together = model(**batch, labels=torch.tensor(LABELS))
                    expected = torch.cat([outputs.logits for outputs in alone])
                    torch.testing.assert_close(together.logits, expected, rtol=0, atol=1e-5)
                    loss = torch.stack([outputs.loss for outputs in alone]).mean()
                    torch.testing.assert_close(together.loss, loss, rtol=0, atol=1e-5)

    @pytest.mark.parametrize("rows", [[1], [0, 1, 2, 3, 4]])
    def test_rows_without_a_word_are_like_any_others(self, variant, rows):
        model, batch = self.small_model(variant), two_sequences()
        masked = empty_rows(batch, rows)
        logits = model(**masked).logits
        alone = [model(**{name: tensor[[row], :2] for name, tensor in masked.items()}).logits for row in rows]
        torch.testing.assert_close(logits[rows], torch.cat(alone), rtol=0, atol=1e-5)
        others = [row for row in range(len(LABELS)) if row not in rows]
        torch.testing.assert_close(logits[others], model(**batch).logits[others], rtol=0, atol=1e-5)
        model.train()(**masked, labels=torch.tensor(LABELS)).loss.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())

    def test_exported_forward_equals_plain(self, variant):
        with self.supports("export"):
            export_and_compare(self.small_model(variant), two_sequences())

    def test_gradient_checkpointing_gives_the_same_gradients(self, variant):
        model, gradients = self.small_model(variant).train(), []
        for enable in (False, True):
            if enable:
                with self.supports("gradient_checkpointing"):
                    model.gradient_checkpointing_enable()
            model.zero_grad()
            torch.manual_seed(1)
            model(**two_sequences(), labels=torch.tensor(LABELS)).loss.backward()
            gradients.append({name: p.grad.clone() for name, p in model.named_parameters()})
        for name, gradient in gradients[0].items():
            torch.testing.assert_close(gradients[1][name], gradient, msg=name)

    def test_both_sentences_and_their_order_count(self, variant):
        model, batch = self.small_model(variant), two_sequences()
        swapped = dict(zip(batch, [*batch.values()][2:] + [*batch.values()][:2], strict=True))
        logits = model(**batch).logits
        assert (model(**swapped).logits - logits).abs().max() > 1e-3
        for name in ("input_ids", "pair_input_ids"):
            changed = batch | {name: batch[name].where(batch[name] != 5, 6)}
            assert (model(**changed).logits - logits).abs().max() > 1e-3

    def test_ranking(self, variant):
        model, batch = self.small_model(variant, problem_type="ranking"), two_sequences()
        labels, group_ids = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0]), torch.tensor([0, 0, 0, 1, 1])
        outputs = model(**batch, labels=labels, group_ids=group_ids)
        assert outputs.logits.shape == (5, 1)
        torch.testing.assert_close(outputs.loss, max_margin_loss(outputs.logits[:, 0], labels, group_ids))
        outputs.loss.backward()
        assert all(parameter.grad is not None for parameter in model.parameters())

    def test_learns_to_tell_pairs_apart(self, variant):
        model, batch = self.small_model(variant), two_sequences()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(60):
            optimizer.zero_grad()
            loss = model(**batch, labels=torch.tensor(LABELS)).loss
            loss.backward()
            optimizer.step()
        assert model(**batch).logits.argmax(1).tolist() == LABELS

    def test_weights_start_uniform(self, variant):
        model = self.model_class(self.small_config(**self.variants[variant], vocab_size=500, initializer_range=0.1))
        values = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
        assert values.abs().max() <= 0.1 and abs(values.std() - 0.1 / 3**0.5) < 0.005
        assert not model.get_input_embeddings().weight[0].any()

    def test_tuples_on_request(self, variant):
        model, batch = self.small_model(variant), two_sequences()
        outputs = model(**batch, labels=torch.tensor(LABELS))
        loss, logits, *_ = model(**batch, labels=torch.tensor(LABELS), return_dict=False)
        assert torch.equal(loss, outputs.loss) and torch.equal(logits, outputs.logits)

    def test_saved_model_is_the_same_model(self, variant, tmp_path):
        model, batch = self.small_model(variant, num_labels=3), two_sequences()
        model.save_pretrained(tmp_path)
        assert not list(tmp_path.glob("*.bin")) and (tmp_path / "model.safetensors").exists()
        loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
        assert type(loaded) is self.model_class and not loaded.training
        torch.testing.assert_close(loaded(**batch).logits, model(**batch).logits)
        assert type(AutoConfig.from_pretrained(tmp_path)) is self.config_class
        assert loaded.config.to_json_string() == model.config.to_json_string()
        if self.config_class in AutoModel._model_mapping:
            for name, weight in AutoModel.from_pretrained(tmp_path).state_dict().items():
                assert torch.equal(weight, model.base_model.state_dict()[name]), name

    def test_bfloat16(self, variant, tmp_path):
        model, batch = self.small_model(variant), two_sequences()
        model.save_pretrained(tmp_path)
        half = AutoModelForSequenceClassification.from_pretrained(tmp_path, dtype=torch.bfloat16)
        outputs = half(**batch, labels=torch.tensor(LABELS))
        assert outputs.logits.dtype == torch.bfloat16
        outputs.loss.backward()
        torch.testing.assert_close(outputs.loss, model(**batch, labels=torch.tensor(LABELS)).loss, rtol=0.1, atol=0.1)

    def test_autocast(self, variant):
        model, batch = self.small_model(variant), two_sequences()
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(**batch, labels=torch.tensor(LABELS)).loss
        loss.backward()
        torch.testing.assert_close(loss, model(**batch, labels=torch.tensor(LABELS)).loss, rtol=0.1, atol=0.1)

    @pytest.mark.parametrize("layers", [{nn.Linear}, None], ids=["linear", "all"])
    def test_int8_layers(self, variant, layers):
        model, batch = self.small_model(variant), two_sequences()
        quantized = torch.ao.quantization.quantize_dynamic(model, layers)
        exact = model(**batch).logits
        assert (quantized(**batch).logits - exact).abs().mean() < 0.1 * exact.abs().mean()

    def test_weights_that_stay_on_the_disk(self, variant, tmp_path):
        model, batch = self.small_model(variant), two_sequences()
        model.save_pretrained(tmp_path / "model")
        offloaded = AutoModelForSequenceClassification.from_pretrained(
            tmp_path / "model", device_map={"": "disk"}, offload_folder=tmp_path / "disk"
        )
        assert all(parameter.is_meta for parameter in offloaded.parameters())
        torch.testing.assert_close(offloaded(**batch).logits, model(**batch).logits)

    def test_autocast_on_a_cpu_without_bfloat16(self, variant, cpu_without_bfloat16):
        """Sentences of one length, for which nothing is packed."""
        model, ids = self.small_model(variant), torch.tensor([[4, 5, 6]])
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(input_ids=ids, pair_input_ids=ids, labels=torch.tensor([1])).loss
        loss.backward()
        assert torch.isfinite(loss)

    def test_resized_embeddings(self, variant):
        model, batch = self.small_model(variant), two_sequences()
        before = model(**batch).logits
        model.resize_token_embeddings(13)
        torch.testing.assert_close(model(**batch).logits, before)
        model(input_ids=torch.tensor([[12]]), pair_input_ids=torch.tensor([[2]]))

    def test_an_id_outside_the_vocabulary_is_named(self, variant):
        with pytest.raises(ValueError, match="the id 10, but the vocabulary has 10"):
            self.small_model(variant)(input_ids=torch.tensor([[1]]), pair_input_ids=torch.tensor([[10, 2]]))

    def save(self, variant: str, folder) -> str:
        tokenizer = train_word_tokenizer(["a b c d e f"], vocab_size=10, sentence_pairs=True)
        return save(self.small_model(variant, id2label={0: "other", 1: "same"}), folder, tokenizer)

    def test_pipeline_alone_and_in_batches(self, variant, tmp_path, caplog):
        folder = self.save(variant, tmp_path)
        pipe = pipeline(TASK, model=folder)
        assert type(pipe.model) is self.model_class and not caplog.records
        pairs = [{"text": text, "text_pair": pair} for text, pair in TEXTS]
        alone = [pipe(pair) for pair in pairs]
        tokenizer = AutoTokenizer.from_pretrained(folder)
        for (text, pair), result in zip(TEXTS, alone, strict=True):
            probabilities = pipe.model(**tokenizer(text, pair, return_tensors="pt")).logits.softmax(-1)[0]
            assert result["label"] == ("other", "same")[probabilities.argmax()]
            assert result["score"] == pytest.approx(probabilities.max().item(), abs=1e-5)
        for batched in (pipe(pairs, batch_size=2), pipe(pairs, batch_size=5)):
            assert [result["label"] for result in batched] == [result["label"] for result in alone]
            assert [result["score"] for result in batched] == pytest.approx([one["score"] for one in alone], abs=1e-5)

    def test_one_text_alone_is_no_pair(self, variant, tmp_path):
        with pytest.raises(ValueError, match="pass two texts"):
            pipeline(TASK, model=self.save(variant, tmp_path))("a b")

    def test_without_the_package(self, tmp_path):
        # Every variant saves the same modules.
        folder = self.save(next(iter(self.variants)), tmp_path / "checkpoint")
        pairs = [{"text": text, "text_pair": pair} for text, pair in TEXTS]
        refusal, first, second = run_without_the_package(folder, TASK, pairs, tmp_path)
        assert "trust_remote_code=True" in refusal
        assert first == second == pipeline(TASK, model=folder)(pairs, batch_size=2)
        assert set(os.listdir(tmp_path / "again")) == set(os.listdir(folder))

    def test_public_names(self):
        assert getattr(hf_paraphrase, self.model_class.__name__) is self.model_class
        assert getattr(hf_paraphrase, self.config_class.__name__) is self.config_class
