"""Several short examples in one row of a batch, without attention between them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from ..errors import InputError
from .batching import pad_rows

# Flash attention reads positions of a single row alone.
IMPLEMENTATIONS = ("eager", "sdpa", "flex_attention")


def pack_rows(
    examples: Sequence[tuple[list[int], list[int]]], most: int, pad_token_id: int
) -> dict[str, torch.Tensor]:
    """Pack examples into rows by best-fit decreasing, and pad the rows on the right.

    Positions begin at 0 with each example, and with each token of padding. Where they do not ascend by 1, transformers
    ends a sequence, as long as it gets no `attention_mask` and no cache.

    Args:
        examples: Token ids and labels, as long as each other; the first label of each is -100.
        most: Maximum tokens per row; a longer example has its own row.
        pad_token_id: Fills `input_ids`.

    Returns:
        `input_ids`, `position_ids` and `labels` of shape `(rows, longest row)`.
    """
    rows: list[list[int]] = []
    room: list[int] = []
    for number in sorted(range(len(examples)), key=lambda number: -len(examples[number][0])):
        length = len(examples[number][0])
        fitting = [row for row, left in enumerate(room) if left >= length]
        if fitting:
            best = min(fitting, key=room.__getitem__)
            rows[best].append(number)
            room[best] -= length
        else:
            rows.append([number])
            room.append(most - length)
    chosen = [[examples[number] for number in row] for row in rows]
    return {
        "input_ids": pad_rows([[token for ids, _ in row for token in ids] for row in chosen], pad_token_id),
        "position_ids": pad_rows([[place for ids, _ in row for place in range(len(ids))] for row in chosen], 0),
        "labels": pad_rows([[label for _, labels in row for label in labels] for row in chosen], -100),
    }


@torch.no_grad()
def check_packing(model: PreTrainedModel, ids: list[int]) -> None:
    """Refuse a model whose examples would read those before them in the row.

    Args:
        model: The model to train.
        ids: The tokens of an example.

    Raises:
        InputError: Its attention does not separate packed examples by their positions.
    """
    implementation = model.config._attn_implementation
    if implementation not in IMPLEMENTATIONS:
        raise InputError(f"`packing` needs attention by {', '.join(IMPLEMENTATIONS)}, not {implementation}")
    training = model.training
    model.eval()
    batch = pack_rows([(ids, ids), (ids[::-1], ids)], 2 * len(ids), 0)
    batch = {name: batch[name].to(model.device) for name in ("input_ids", "position_ids")}
    try:
        packed = model(**batch, use_cache=False).logits[0, len(ids) :]
        alone = model(input_ids=batch["input_ids"][:, len(ids) :], use_cache=False).logits[0]
    except TypeError:  # it knows no positions
        packed, alone = torch.zeros(1), torch.ones(1)
    model.train(training)
    if not torch.allclose(packed, alone, rtol=0.02, atol=0.02 * float(alone.abs().max())):
        raise InputError(f"`packing`: a {type(model).__name__} does not keep packed examples apart; leave it out")
