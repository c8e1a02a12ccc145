"""Coupled LSTMs: one block of four directions, forward and backward, at the sizes of Liu et al. 2016."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from hf_paraphrase import CoupledLstmConfig
from hf_paraphrase.models.coupled_lstm.grid import DIRECTIONS, GridOrder
from hf_paraphrase.models.coupled_lstm.modeling_coupled_lstm import CoupledLstmBlock

from .timing import Row, in_turn, seconds

WORDS, GROWTH, GROWTH_BATCH = 20, (10, 20, 40, 80), 16


def random_words(batch: int, words: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings of X `(batch, words, 1, embedding_size)` and of Y `(batch, 1, words, embedding_size)`."""
    size = CoupledLstmConfig().embedding_size
    x, y = torch.randn(2, batch, words, size, device=device, requires_grad=True).unbind(0)
    return x.unsqueeze(2), y.unsqueeze(1)


def block_step(batch: int, words: int, device: str) -> Callable[[], None]:
    """Forward and backward of one block over grids of `words` × `words`, as the model runs it."""
    block, (x, y) = CoupledLstmBlock(CoupledLstmConfig(), is_first=True).to(device), random_words(batch, words, device)
    lengths = torch.full((batch,), words, device=device)
    return lambda: block(x, y, [GridOrder(lengths, lengths, words, words, DIRECTIONS)]).sum().backward()


def double_loop_step(batch: int, words: int, device: str) -> Callable[[], None]:
    """The same work cell after cell, one direction after the other; the batch is one product here too."""
    block, (x, y) = CoupledLstmBlock(CoupledLstmConfig(), is_first=True).to(device), random_words(batch, words, device)
    (cell,) = block.cells

    def scan(inputs_x: list[torch.Tensor], inputs_y: list[torch.Tensor]) -> torch.Tensor:
        zero = x.new_zeros(batch, cell.recurrent[0].in_features // 2)
        h, c = {}, {}
        for i in range(words):
            for j in range(words):
                left, up = (i, j - 1), (i - 1, j)
                states = torch.cat((h.get(left, zero), h.get(up, zero)), dim=1)
                gates = inputs_x[i] + inputs_y[j] + cell.recurrent[0](states)
                candidate, o, i_gate, f1, f2 = gates.chunk(5, dim=1)
                c[i, j] = torch.tanh(candidate) * torch.sigmoid(i_gate)
                c[i, j] = c[i, j] + torch.sigmoid(f1) * c.get(left, zero) + torch.sigmoid(f2) * c.get(up, zero)
                h[i, j] = torch.sigmoid(o) * torch.tanh(c[i, j])
        return torch.stack(list(h.values())).unflatten(0, (words, words))

    def step() -> None:
        inputs_x, inputs_y = cell.input_x(x)[:, :, 0].unbind(1), cell.input_y(y)[:, 0].unbind(1)
        total = 0
        for x_from_end, y_from_end in DIRECTIONS:
            dims = [dim for dim, from_end in enumerate((x_from_end, y_from_end)) if from_end]
            total = total + scan(inputs_x[:: -1 if x_from_end else 1], inputs_y[:: -1 if y_from_end else 1]).flip(dims)
        total.sum().backward()

    return step


def products(batch: int, words: int, device: str) -> Callable[[], None]:
    """The matrix products of such a step and nothing else, their results in memory that is at hand."""
    config = CoupledLstmConfig()
    states, gates = 2 * config.hidden_size, 5 * config.hidden_size
    weight, input_weight = (
        torch.randn(gates, states, device=device),
        torch.randn(gates, config.embedding_size, device=device),
    )
    sides = [torch.randn(batch * words, config.embedding_size, device=device) for _ in range(2)]
    sizes = [min(t + 1, words, 2 * words - 1 - t) * batch * len(DIRECTIONS) for t in range(2 * words - 1)]
    diagonals = [(torch.randn(size, states, device=device), torch.randn(size, gates, device=device)) for size in sizes]
    before, total = torch.empty(max(sizes), states, device=device), torch.empty_like(weight)

    def step() -> None:
        for side in sides:
            projected = side @ input_weight.t()
            projected @ input_weight, projected.t() @ side
        for state, gate in diagonals[1:]:
            torch.mm(state, weight.t(), out=gate)
        for state, gate in diagonals[1:]:
            torch.mm(gate, weight, out=before[: len(gate)])
            torch.mm(gate.t(), state, out=total)

    return step


def cost_of(words: int, device: str, repeats: int) -> tuple[float, float]:
    """Median seconds of a step with grids of `words` × `words`, and the MB that memory peaked above the imports."""
    before = memory_in_use("VmRSS")
    step = block_step(GROWTH_BATCH, words, device)
    step()
    elapsed = statistics.median(seconds(step, device) for _ in range(repeats))
    if device == "cuda":
        return elapsed, torch.cuda.max_memory_allocated() / 2**20
    return elapsed, memory_in_use("VmHWM") - before


def memory_in_use(kind: str) -> float:
    """MB of this process now (VmRSS) or at most (VmHWM); getrusage would count what it was before it became Python."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return int(line.split()[1]) / 1024


def fresh_cost_of(words: int, device: str, repeats: int) -> tuple[float, float]:
    """The same in a fresh process, whose memory has no other peak."""
    code = (
        f"import torch; torch.set_num_threads({torch.get_num_threads()})\n"
        f"from benchmarks.matching import cost_of; print(*cost_of({words}, {device!r}, {repeats}))"
    )
    folder = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True)
    elapsed, memory = map(float, done.stdout.split())
    return elapsed, memory


def benchmark_matching(device: str, repeats: int) -> Iterator[Row]:
    """A block against the double loop and against its products; time and memory a cell as sentences grow."""
    for batch in (1, 2, 4, 8):
        sides = (make(batch, WORDS, device) for make in (block_step, double_loop_step))
        ours, theirs, ratio = in_turn(*sides, repeats, device)
        figures = f"{1000 * ours:.1f}", f"{1000 * theirs:.1f}", f"{ratio:.1f}"
        yield Row(f"block, batch {batch}, ms", "a loop over the cells", *figures, goal="≥ 10" if batch == 8 else "")
    ours, floor, ratio = in_turn(*(make(64, WORDS, device) for make in (block_step, products)), repeats, device)
    figures = f"{1000 * ours:.0f}", f"{1000 * floor:.0f}", f"{1 / ratio:.2f} of their time"
    yield Row("block, batch 64, ms", "its products alone", *figures, goal="≤ 1.2")
    costs = {words: fresh_cost_of(words, device, repeats) for words in GROWTH}
    times = {words: 1e6 * elapsed / (GROWTH_BATCH * words**2) for words, (elapsed, _) in costs.items()}
    for words in GROWTH[1:]:
        figures = f"{times[words]:.1f}", f"{times[10]:.1f}", f"{times[words] / times[10]:.2f} of their time"
        yield f"{words} x {words} words, µs a cell", "10 x 10", *figures
    less, more = (memory for _, memory in list(costs.values())[-2:])
    figures = f"{more:.0f}", f"{less:.0f}", f"{more / less:.2f} times as much"
    yield "80 x 80 words, peak MB", "40 x 40, a quarter of that", *figures
