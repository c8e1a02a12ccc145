"""Recurrence over any number of steps in one operation, which `torch.export` can trace where a loop is unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn


def is_traced() -> bool:
    """Whether `torch.export` is tracing (with `strict=False`, its default), and not `torch.compile`."""
    return torch.compiler.is_compiling() and not torch.compiler.is_dynamo_compiling()


def scan(
    step: Callable,
    state: Sequence[Tensor],
    inputs: Sequence[Tensor],
    others: Sequence[Tensor] = (),
    module: nn.Module | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """Go through inputs by their first dimension: `step(*state, *inputs, *others) -> (*state, *outputs)`.

    Args:
        step: Reads no tensor but its arguments and the module's parameters, and neither changes nor returns one.
        state: Before the first step.
        inputs: `(steps, …)`; it gets one step at a time.
        others: What every step reads.
        module: Its parameters are read, too.

    Returns:
        The last state, and the outputs, each `(steps, …)`.
    """
    # A prototype of PyTorch's, imported where it is needed alone. The operation itself, since the function around it
    # compiles: then an export would depend on the sizes of those before it.
    from torch._higher_order_ops.scan import scan_op

    names: tuple[str, ...] = ()
    state, count = list(state), len(state) + len(inputs) + len(others)
    if module is not None:
        caller = Caller(module, step)
        names, parameters = zip(*caller.named_parameters(), strict=True)
        others = (*others, *parameters)

    def call(*tensors: Tensor) -> tuple[Tensor, ...]:
        if module is None:
            return step(*tensors)
        return torch.func.functional_call(caller, dict(zip(names, tensors[count:], strict=True)), tensors[:count])

    results = scan_op(call, state, list(inputs), tuple(others))
    return list(results[: len(state)]), list(results[len(state) :])


class Caller(nn.Module):
    """Calls a function that reads a module's parameters, so that others can be put in their place."""

    def __init__(self, module: nn.Module, function: Callable):
        super().__init__()
        self.module, self.function = module, function

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        return self.function(*tensors)
