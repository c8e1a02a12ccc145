"""The scan of a SARAh layer over packed sentences, with its gradient written out."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["scan_sarah"]


@torch.compiler.disable
def scan_sarah(
    value: torch.Tensor,
    query: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    kept: torch.Tensor | None,
    sizes: list[int],
    num_heads: int,
) -> torch.Tensor:
    """Run a SARAh layer over all words of all sentences (Traynor 2018, section 2.4.3).

    `y_t = GELU(W (v_t + s_t) + b)`, where s_t is the attention of q_t over the values and keys that y_1 … y_{t-1} are
    split into, all heads at once. The outputs share one buffer instead of one per step, and the weight's gradient is
    one product.

    Args:
        value: v of every word, `(words, value_size)`, packed.
        query: q of every word, `(words, key_size)`.
        weight: `(value_size + key_size, value_size)`.
        bias: `(value_size + key_size,)`.
        kept: What dropout multiplies outputs by, `(words, value_size + key_size)`; None for no dropout.
        sizes: For each step how many sentences are that long.
        num_heads: Parts that values, keys and queries are split into.

    Returns:
        The outputs `(words, value_size + key_size)`, packed.
    """
    with torch.autocast(value.device.type, enabled=False):
        value, query = value.to(weight.dtype), query.to(weight.dtype)
        return SarahScan.apply(value, query, weight, bias, kept, sizes, num_heads)


class SarahScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, query, weight, bias, kept, sizes, num_heads):
        steps, value_size = len(sizes), value.shape[1]
        rows = sizes[0] * num_heads if sizes else 0
        values = value.new_zeros(rows, steps, value_size // num_heads)
        keys = value.new_zeros(rows, steps, query.shape[1] // num_heads)
        weights = value.new_zeros(rows, steps, steps)
        aware, inner = value.clone(), value.new_empty(len(value), len(weight))
        outputs = torch.empty_like(inner)
        query = query.contiguous()
        for t, (words, heads) in enumerate(_steps(sizes, num_heads)):
            if t:
                scores = torch.bmm(query[words].view(heads, 1, -1), keys[:heads, :t].transpose(1, 2))
                weights[:heads, t, :t] = scores.softmax(dim=-1).squeeze(1)
                summary = torch.bmm(weights[:heads, t : t + 1, :t], values[:heads, :t])
                aware[words] += summary.view(-1, value_size)
            inner[words] = torch.addmm(bias, aware[words], weight.t())
            y = nn.functional.gelu(inner[words])
            outputs[words] = y if kept is None else y * kept[words]
            values[:heads, t] = outputs[words, :value_size].reshape(heads, -1)
            keys[:heads, t] = outputs[words, value_size:].reshape(heads, -1)
        ctx.save_for_backward(query, weight, kept, aware, inner, values, keys, weights)
        ctx.sizes, ctx.num_heads = sizes, num_heads
        return outputs

    @staticmethod
    def backward(ctx, gradient):
        query, weight, kept, aware, inner, values, keys, weights = ctx.saved_tensors
        d_values, d_keys = torch.zeros_like(values), torch.zeros_like(keys)
        d_inner, d_aware, d_query = torch.empty_like(inner), torch.empty_like(aware), torch.zeros_like(query)
        for t, (words, heads) in reversed(list(enumerate(_steps(ctx.sizes, ctx.num_heads)))):
            count = words.stop - words.start
            used_later = (d_values[:heads, t].reshape(count, -1), d_keys[:heads, t].reshape(count, -1))
            d_output = gradient[words] + torch.cat(used_later, dim=1)
            if kept is not None:
                d_output = d_output * kept[words]
            d_inner[words] = torch.ops.aten.gelu_backward(d_output, inner[words])
            d_aware[words] = d_inner[words] @ weight
            if not t:
                continue
            d_summary = d_aware[words].view(heads, 1, -1)
            a = weights[:heads, t : t + 1, :t]
            d_a = torch.bmm(d_summary, values[:heads, :t].transpose(1, 2))
            d_scores = a * (d_a - (a * d_a).sum(dim=-1, keepdim=True))
            d_query[words] = torch.bmm(d_scores, keys[:heads, :t]).view(count, -1)
            d_values[:heads, :t].baddbmm_(a.transpose(1, 2), d_summary)
            d_keys[:heads, :t].baddbmm_(d_scores.transpose(1, 2), query[words].view(heads, 1, -1))
        return d_aware, d_query, d_inner.t() @ aware, d_inner.sum(dim=0), None, None, None


def _steps(sizes: list[int], num_heads: int):
    """For each step its words in packed order, and its sentences times heads."""
    start = 0
    for size in sizes:
        yield slice(start, start + size), size * num_heads
        start += size
