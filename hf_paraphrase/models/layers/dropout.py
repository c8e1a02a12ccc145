from __future__ import annotations

import torch
from torch import nn

# Random numbers of 15 bits: as many as int16 has without a sign.
LEVELS = 2**15


class Dropout(nn.Dropout):
    """`nn.Dropout`, and several times as fast in training on a CPU.

    There PyTorch draws a random number of 32 bits for every element and compares it. Here one of 64 bits serves four
    elements, which are compared by integer arithmetic, so that p is a multiple of 1/32768. The scale is that of the
    rounded p, and the expectation exactly the input.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Drop elements of `x` in training."""
        return x * self.noise(x) if self._is_slow(x) else super().forward(x)

    def add(self, x: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        """Return `x + self(outputs)`."""
        if not self._is_slow(outputs):
            return x + super().forward(outputs)
        return torch.addcmul(x, outputs, self.noise(outputs))

    def noise(self, x: torch.Tensor) -> torch.Tensor:
        """Draw what each element of `x` is multiplied with: 0 or `1 / (1 - p)`."""
        dropped = round(self.p * LEVELS)
        drawn = torch.empty(x.numel() // 4 + 1, dtype=torch.long).random_().view(torch.int16)[: x.numel()]
        # Minus one where an element stays: the sign of an integer, which is spread over all its bits.
        stays = drawn.bitwise_and_(LEVELS - 1).sub_(dropped).bitwise_not_().bitwise_right_shift_(15)
        return stays.view(x.shape).to(x.dtype).mul_(-LEVELS / (LEVELS - dropped))

    def _is_slow(self, x: torch.Tensor) -> bool:
        return self.training and x.device.type == "cpu" and 0 < self.p < 1 and not torch.compiler.is_compiling()
