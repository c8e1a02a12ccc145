"""Liu et al. 2016, section 3, as it is written: one cell, one direction and one pair at a time, in a double loop."""

from __future__ import annotations

import torch

# Where the four directions start, and which way they go: (reads X backwards, reads Y backwards).
CORNERS = ((False, False), (False, True), (True, True), (True, False))


def tight_step(cell, x, y, features, left, up):
    """[c̃; o; i; f1; f2] = T(x_i, y_j, h_{i,j-1}, h_{i-1,j}); `left` is (h, c) at (i, j - 1), `up` at (i - 1, j)."""
    inputs = cell.input_x(x) + cell.input_y(y) if cell.is_first else cell.input(x)
    candidate, o, i, f1, f2 = (inputs + cell.recurrent[0].weight @ torch.cat((left[0], up[0], features))).chunk(5)
    c = torch.tanh(candidate) * torch.sigmoid(i) + left[1] * torch.sigmoid(f1) + up[1] * torch.sigmoid(f2)
    return torch.sigmoid(o) * torch.tanh(c), c


def loose_step(cell, x, y, features, left, up):
    """LSTM1 goes along X from (i - 1, j), LSTM2 along Y from (i, j - 1); h and c are those of both, side by side."""
    if not cell.is_first:
        x, y = x.chunk(2)[0], y.chunk(2)[1]
    # Where the two have the same weights, the first is also the last.
    sides = (cell.inputs[0](x), cell.recurrent[0], up, 0), (cell.inputs[-1](y), cell.recurrent[-1], left, 1)
    parts = []
    for inputs, recurrent, before, side in sides:
        candidate, o, i, f = (inputs + recurrent.weight @ torch.cat((before[0], features))).chunk(4)
        c = torch.tanh(candidate) * torch.sigmoid(i) + before[1].chunk(2)[side] * torch.sigmoid(f)
        parts.append((torch.sigmoid(o) * torch.tanh(c), c))
    return tuple(torch.cat(part) for part in zip(*parts, strict=True))


def match_features(config, table, x_word, y_word):
    """Whether two words are the same, and the cosine of their vectors; nothing is known of an unknown word."""
    if not config.match_features:
        return table.new_zeros(0)
    if config.unk_token_id in (x_word, y_word):
        return table.new_zeros(2)
    x, y = table[x_word], table[y_word]
    cosine = x @ y / (x @ x).sqrt().clamp(min=1e-12) / (y @ y).sqrt().clamp(min=1e-12)
    return torch.stack((cosine.new_tensor(float(x_word == y_word)), cosine))


def direction(cell, step, xs, ys, features, width):
    """h of one direction over a grid of inputs `xs[i][j]`, `ys[i][j]`, read from (0, 0) on."""
    n, m = len(xs), len(xs[0])
    zero = xs[0][0].new_zeros(width)
    states = {(i, -1): (zero, zero) for i in range(n)} | {(-1, j): (zero, zero) for j in range(m)}
    for i in range(n):
        for j in range(m):
            states[i, j] = step(cell, xs[i][j], ys[i][j], features[i][j], states[i, j - 1], states[i - 1, j])
    return [[states[i, j][0] for j in range(m)] for i in range(n)]


def flip(grid, backwards_x, backwards_y):
    rows = grid[::-1] if backwards_x else grid
    return [row[::-1] if backwards_y else row for row in rows]


def coupled_lstm(model, x_ids, y_ids):
    """The grids of all blocks of a `CoupledLstmModel` for one pair of lists of ids, each `(n, m, grid_size)`."""
    config = model.config
    step = tight_step if config.coupling == "tight" else loose_step
    table = model.embed_tokens.weight
    xs = [[table[word] for _ in y_ids] for word in x_ids]
    ys = [[table[word] for word in y_ids] for _ in x_ids]
    features = [[match_features(config, table, x, y) for y in y_ids] for x in x_ids]
    grids = []
    for block in model.blocks:
        total = 0
        for number in range(config.num_directions):
            cell = block.cells[0 if config.share_directions else number]
            corner = CORNERS[number]
            h = direction(cell, step, *(flip(grid, *corner) for grid in (xs, ys, features)), config.grid_size)
            total = total + torch.stack([torch.stack(row) for row in flip(h, *corner)])
        grids.append(total)
        xs = ys = [list(row) for row in total]
        features = [[table.new_zeros(0) for _ in y_ids] for _ in x_ids]
    return grids


def pool(grid, p, q):
    """The maximum of each unit in p × q cells of one `(n, m, width)` grid; a sentence that is too short repeats."""
    n, m, _ = grid.shape
    cells = []
    for a in range(p):
        rows = list(range(a * n // p, (a + 1) * n // p)) or [a * n // p]
        for b in range(q):
            columns = list(range(b * m // q, (b + 1) * m // q)) or [b * m // q]
            cells.append(grid[rows][:, columns].flatten(0, 1).max(0).values)
    return torch.cat(cells)
