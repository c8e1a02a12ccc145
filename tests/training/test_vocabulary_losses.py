"""The loss by chunks of positions, and from a sample of words, against the plain softmax over all words."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from hf_paraphrase import EditLstmConfig, EditLstmForConditionalGeneration
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.training import losses
from hf_paraphrase.training.arguments import TrainingConfig
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.losses import SampledCrossEntropy, cross_entropy_sums, flat_cross_entropy
from hf_paraphrase.training.tasks import TASKS, base

from .tiny_runs import make_pairs, make_recipe

WORDS = 50


@pytest.fixture(params=[True, False], ids=["bias", "no bias"])
def projection(request):
    torch.manual_seed(0)
    return nn.Linear(6, WORDS, bias=request.param)


@pytest.fixture
def states():
    return torch.randn(3, 7, 6, generator=torch.Generator().manual_seed(1)).requires_grad_()


@pytest.fixture
def labels():
    labels = torch.randint(WORDS, (3, 7), generator=torch.Generator().manual_seed(2))
    labels[1, 4:] = labels[2, :2] = -100
    return labels


@pytest.fixture(params=["torch's", "ours"])
def either(request, monkeypatch):
    """Chunks smaller than the batch, by PyTorch and by what stands in for it in older ones."""
    monkeypatch.setattr(losses, "CHUNK", 4)
    if request.param == "ours":
        monkeypatch.delattr(functional, "linear_cross_entropy", raising=False)


def plain(states, projection, labels):
    return functional.cross_entropy(projection(states).flatten(0, 1).float(), labels.flatten())


def gradients(loss, states, projection):
    return torch.autograd.grad(3 * loss, [states, *projection.parameters()])


def test_the_flat_loss_and_its_gradients_are_those_of_the_plain_one(either, projection, states, labels):
    expected, loss = plain(states, projection, labels), flat_cross_entropy(states, projection, labels)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradients(loss, states, projection), gradients(expected, states, projection))
    with torch.no_grad():
        torch.testing.assert_close(flat_cross_entropy(states, projection, labels), expected)


def test_double_precision_stays(either, projection, states, labels):
    projection, states = projection.double(), states.detach().double().requires_grad_()
    expected = functional.cross_entropy(projection(states).flatten(0, 1), labels.flatten())
    loss = flat_cross_entropy(states, projection, labels)
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)
    found, wanted = (gradients(each, states, projection) for each in (loss, expected))
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


def test_autocast_multiplies_in_half_precision_and_sums_in_single(projection, states, labels, monkeypatch):
    monkeypatch.setattr(losses, "CHUNK", 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected, loss = plain(states, projection, labels), flat_cross_entropy(states, projection, labels)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=2e-3, atol=0)
    for ours, theirs in zip(*(gradients(each, states, projection) for each in (loss, expected)), strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours, theirs, rtol=0.02, atol=2e-3)


def test_no_tensor_has_the_logits_of_all_positions(either, projection, labels, monkeypatch):
    """Of 21 positions, 4 have theirs at a time."""
    from torch.utils._python_dispatch import TorchDispatchMode

    sizes = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            made = function(*args, **(kwargs or {}))
            sizes.extend(
                part.numel() for part in (made if isinstance(made, tuple) else (made,)) if torch.is_tensor(part)
            )
            return made

    states = torch.zeros(3, 7, 6, requires_grad=True)
    with Watch():
        flat_cross_entropy(states, projection, labels).backward()
    assert max(sizes) <= 6 * WORDS < 21 * WORDS


COUNTS = np.array([1000, 300, 100] + [5] * 17 + [1] * 30)


def test_all_words_but_one_are_the_whole_softmax_nearly(projection, states, labels):
    """Each is drawn with a probability of nearly 1, and weighs as much more."""
    sampled = SampledCrossEntropy(np.full(WORDS, 3), WORDS)
    assert sorted(sampled.draw().tolist()) == list(range(WORDS))
    expected, loss = plain(states, projection, labels), sampled(states, projection, labels)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradients(loss, states, projection), gradients(expected, states, projection))


def test_words_are_drawn_once_and_as_often_as_their_probability_says():
    sampled = SampledCrossEntropy(COUNTS, 12)
    torch.manual_seed(0)
    draws = [sampled.draw().tolist() for _ in range(4000)]
    assert all(len(set(words)) == 12 for words in draws)
    found = np.bincount(np.concatenate(draws), minlength=WORDS) / len(draws)
    expected = sampled.probabilities.numpy()
    assert expected.sum() == pytest.approx(12) and (expected[:3] == 1).all() and (expected[3:] < 1).all()
    assert expected[3] / expected[-1] == pytest.approx(6 / 2)
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_the_sum_over_words_is_right_in_expectation(projection, states, labels):
    """exp(loss) p(label) is the sum: its mean over many draws is that of the whole softmax."""
    sampled, kept = SampledCrossEntropy(COUNTS, 12), labels != -100
    state, label = states.detach()[kept][:1], labels[kept][:1]
    torch.manual_seed(0)
    projection.requires_grad_(False)
    sums = [float(sampled(state[None], projection, label[None]).exp()) for _ in range(4000)]
    expected = float(plain(state[None], projection, label[None]).exp())
    assert np.std(sums) > 0.01 * expected
    assert np.mean(sums) == pytest.approx(expected, rel=0.02)


def test_the_sampled_gradient_is_right_for_many_samples(projection, states, labels):
    sampled = SampledCrossEntropy(COUNTS, 40)
    torch.manual_seed(0)
    expected = gradients(plain(states, projection, labels), states, projection)
    draws = [gradients(sampled(states, projection, labels), states, projection) for _ in range(500)]
    for part, whole in zip(zip(*draws, strict=True), expected, strict=True):
        torch.testing.assert_close(torch.stack(part).mean(0), whole, rtol=0, atol=0.02)


def test_without_gradients_the_sampled_loss_is_the_whole_one(projection, states, labels):
    with torch.no_grad():
        loss = SampledCrossEntropy(COUNTS, 3)(states, projection, labels)
        torch.testing.assert_close(loss, plain(states, projection, labels))


def make_task(**fields):
    recipe = make_recipe(**fields)
    task = TASKS[recipe.training.task](recipe.training)
    rows = make_pairs()
    data = task.encode(rows, task.make_tokenizer(rows["train"], 20))
    return task, data, task.make_model(recipe.make_config(data.tokenizer), data)


@pytest.mark.parametrize("flat_from", [17, 16])
def test_training_makes_no_logits_of_many_words_unless_labels_are_smoothed(monkeypatch, flat_from):
    monkeypatch.setattr(base, "FLAT_FROM", flat_from)
    batch = {"input_ids": torch.tensor([[5, 6, 2]]), "labels": torch.tensor([[6, 5, 2]])}
    for smoothing in (0.0, 0.1):
        task, data, model = make_task(label_smoothing_factor=smoothing, dropout=0.0)
        assert model.config.vocab_size == 16
        task.prepare_model(model, data)
        assert (model(**batch).logits is None) == (flat_from == 16 and not smoothing)
        assert cross_entropy_sums(model, batch, smoothing)[1] > 0
        assert model(input_ids=batch["input_ids"], decoder_input_ids=batch["labels"]).logits is not None


def test_counts_of_labels_are_those_of_the_train_split():
    task, data, model = make_task(sampled_softmax=6)
    task.prepare_model(model, data)
    counts = np.zeros(model.config.vocab_size)
    for row in data.splits["train"]:
        np.add.at(counts, row["labels"], 1)
    expected = SampledCrossEntropy(counts, 6).probabilities
    torch.testing.assert_close(model.flat_loss.probabilities, expected)


def test_drawn_words_start_at_their_frequencies_and_those_of_a_checkpoint_where_it_was(tmp_path):
    task, data, model = make_task(sampled_softmax=6)
    counts = np.bincount(np.concatenate(data.splits["train"]["labels"]), minlength=16) + 1.0
    torch.testing.assert_close(model.lm_head.bias.exp().double(), torch.from_numpy(counts / counts.sum()))
    plain = make_task()[2]
    plain.save_pretrained(tmp_path)
    data.tokenizer.save_pretrained(tmp_path)
    tuned = make_task(sampled_softmax=6, pretrained=str(tmp_path))[2]
    assert torch.equal(tuned.lm_head.bias, plain.lm_head.bias)


def test_started_at_frequencies_drawn_words_cost_adamw_no_perplexity():
    """Words by Zipf's law, one in eight drawn: after equal steps within 3% of the full softmax, or better.

    Where the bias starts at 0, the perplexity is more than 10% worse.
    """
    words, steps = 1000, 40
    counts = 1e5 / np.arange(1, words + 1)
    shares = torch.from_numpy(counts / counts.sum()).float()
    batches = torch.multinomial(shares, steps * 200, True, generator=torch.Generator().manual_seed(0))

    def perplexity(loss, bias):
        torch.manual_seed(0)
        projection, states = nn.Linear(8, words), torch.ones(1, 200, 8)
        projection.bias.data.copy_(bias)
        optimizer = torch.optim.AdamW(projection.parameters(), lr=0.005)
        for labels in batches.view(steps, 1, 200):
            loss(states, projection, labels).backward()
            optimizer.step()
            optimizer.zero_grad()
        return functional.cross_entropy(projection(states[0, :1]), shares[None]).exp().item()

    full, sampled = flat_cross_entropy, SampledCrossEntropy(counts, words // 8)
    expected = perplexity(full, torch.zeros(words))
    assert perplexity(sampled, torch.zeros(words)) > 1.1 * expected
    assert perplexity(sampled, shares.log()) < 1.03 * expected


def test_a_run_with_samples_learns_resumes_and_validates_with_all_words(tmp_path):
    pairs = make_pairs()
    summary = train(make_recipe(sampled_softmax=8, num_train_epochs=6), tmp_path / "run", dataset=pairs)
    losses = [entry["eval_loss"] for entry in summary["evaluations"]]
    assert losses[-1] < losses[0] < math.log(20)
    task, data, model = make_task()
    model = type(model).from_pretrained(tmp_path / "run").eval()
    batch = task.make_collator(data.tokenizer)(task.features(data.splits["validation"], range(11), None))
    with torch.no_grad():
        assert float(model(**batch).loss) == pytest.approx(summary["best"]["eval_loss"], rel=1e-4)
    assert "flat_loss" not in json.loads((tmp_path / "run" / "config.json").read_text())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sampled_softmax": 0}, "`sampled_softmax` must be at least 1"),
        ({"task": "match", "sampled_softmax": 5}, "not `task: match`"),
        ({"task": "language_model", "sampled_softmax": 5}, "not `task: language_model`"),
        ({"sampled_softmax": 5, "label_smoothing_factor": 0.1}, "leave `sampled_softmax` out"),
    ],
)
def test_where_samples_make_no_sense(fields, message):
    with pytest.raises(InputError, match=message):
        TrainingConfig(dataset="d", **fields)


def test_samples_that_the_model_cannot_use():
    task, data, model = make_task(sampled_softmax=20)
    with pytest.raises(InputError, match="must be less than the"):
        task.prepare_model(model, data)
    sizes = {"vocab_size": 20, "embedding_size": 4, "hidden_size": 4, "num_layers": 2, "attention": "additive"}
    copier = EditLstmForConditionalGeneration(EditLstmConfig(**sizes, copy=True, unk_token_id=3))
    with pytest.raises(InputError, match="the loss of this edit_lstm needs all words' scores"):
        task.prepare_model(copier, data)
