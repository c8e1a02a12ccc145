from __future__ import annotations

import torch
from torch import nn

__all__ = ["VocabularyProjection"]

# Slices of the matrix that stay in a core's cache while all rows pass, and the size from which that pays.
SLICE, LARGE = 2**19, 2**23


class VocabularyProjection(nn.Linear):
    """The linear layer that scores every word of the vocabulary: `nn.Linear`, and faster in decoding on the CPU.

    With the few rows of a decoding step, a product with a matrix that no cache holds waits for memory. Cut into slices
    of words, it takes two thirds to four fifths of the time.
    """

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Score the words.

        Args:
            hidden: `(*, in_features)`.

        Returns:
            `(*, out_features)`.
        """
        rows = hidden.reshape(-1, self.in_features)
        if not self._is_worth_slicing(rows):
            return super().forward(hidden)
        scores = rows.new_empty(len(rows), self.out_features)
        words = SLICE // self.in_features
        for start in range(0, self.out_features, words):
            part = slice(start, start + words)
            if self.bias is None:
                torch.mm(rows, self.weight[part].t(), out=scores[:, part])
            else:
                torch.addmm(self.bias[part], rows, self.weight[part].t(), out=scores[:, part])
        return scores.view(*hidden.shape[:-1], self.out_features)

    def _is_worth_slicing(self, rows: torch.Tensor) -> bool:
        return (
            # Checked first: traced code must not inspect the number of rows.
            not (torch.compiler.is_compiling() or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"))
            and rows.device.type == "cpu"
            and rows.dtype == self.weight.dtype
            and len(rows) > 1
            and self.weight.numel() >= LARGE
        )
