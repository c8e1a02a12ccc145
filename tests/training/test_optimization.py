from __future__ import annotations

import pytest
import torch
from torch import nn

from hf_paraphrase.training.arguments import TrainingConfig
from hf_paraphrase.training.run import make_optimizer, make_scheduler


def rates(steps_per_epoch: int, epochs: int, **fields) -> list[float]:
    training = TrainingConfig(dataset="d", optim="sgd", **fields)
    optimizer = make_optimizer(nn.Linear(2, 2), training)
    scheduler = make_scheduler(optimizer, training, steps_per_epoch, steps_per_epoch * epochs)
    seen = []
    for _ in range(steps_per_epoch * epochs):
        seen.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return seen


def test_step_halving_after_every_third_epoch():
    """Prakash et al. 2016, section 4.3."""
    seen = rates(7, 10, learning_rate=1.0, lr_scheduler_type="step_halving")
    assert seen[::7] == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125]
    assert seen[20:22] == [1, 0.5]


def test_step_halving_every_half_epoch():
    """Li et al. 2015: after five epochs, every half one."""
    fields = {"halving_start_epoch": 5, "halving_interval_epochs": 0.5}
    seen = rates(10, 7, learning_rate=0.1, lr_scheduler_type="step_halving", **fields)
    assert seen[45:70:5] == pytest.approx([0.1, 0.05, 0.025, 0.0125, 0.00625])
    assert seen[49] == 0.1


def test_step_halving_is_exact_at_intervals_that_round():
    fields = {"halving_start_epoch": 0.3, "halving_interval_epochs": 0.1}
    seen = rates(10, 1, learning_rate=1.0, lr_scheduler_type="step_halving", **fields)
    assert seen == [1, 1, 1, 0.5, 0.25, 0.125, 2**-4, 2**-5, 2**-6, 2**-7]


def test_schedules_of_transformers_warm_up():
    seen = rates(10, 2, learning_rate=1.0, lr_scheduler_type="linear", warmup_steps=4)
    assert seen[:5] == [0, 0.25, 0.5, 0.75, 1]
    assert seen[-1] == pytest.approx(1 / 16)


def test_weight_decay_is_for_matrices_alone():
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    optimizer = make_optimizer(model, TrainingConfig(dataset="d", weight_decay=0.1))
    decays = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert {name: decays[id(p)] for name, p in model.named_parameters()} == {
        "0.weight": 0.1,
        "0.bias": 0.0,
        "1.weight": 0.0,
        "1.bias": 0.0,
    }


def test_frozen_parameters_are_left_out():
    model = nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    optimizer = make_optimizer(model, TrainingConfig(dataset="d"))
    (parameter,) = (p for group in optimizer.param_groups for p in group["params"])
    assert parameter is model.weight
    assert isinstance(optimizer, torch.optim.AdamW)


@pytest.mark.parametrize("optim", ["sgd", "adagrad"])
def test_weight_decay_is_l2(optim):
    model = nn.Linear(2, 1)
    start = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = make_optimizer(model, TrainingConfig(dataset="d", optim=optim, weight_decay=0.3, learning_rate=0.1))
    gradients = [torch.tensor([[0.2, -0.4]]), torch.tensor([0.6])]
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        parameter.grad = gradient
    optimizer.step()
    gradients[0] = gradients[0] + 0.3 * start["weight"]
    # AdaGrad's first step divides each gradient by itself.
    steps = gradients if optim == "sgd" else [gradient.sign() for gradient in gradients]
    for (name, parameter), step in zip(model.named_parameters(), steps, strict=True):
        torch.testing.assert_close(parameter, start[name] - 0.1 * step)
