"""Runs the cells of a notebook as Jupyter does, without it."""

from __future__ import annotations

import ast
import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any


def run_notebook(path: Path) -> dict[str, Any]:
    """Return a notebook with what its cells print and show, as text; `python -m tests.notebooks FILE` writes it."""
    notebook, names = json.loads(path.read_text(encoding="utf-8")), {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(cells, 1):
        body, printed, value = ast.parse("".join(cell["source"])).body, StringIO(), None
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        with redirect_stdout(printed):
            exec(compile(ast.Module(body, []), path.name, "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
        shown = []
        if printed.getvalue():
            text = printed.getvalue().splitlines(keepends=True)
            shown.append({"name": "stdout", "output_type": "stream", "text": text})
        if value is not None:
            data = {"text/plain": repr(value).splitlines(keepends=True)}
            shown.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
        cell |= {"execution_count": count, "outputs": shown}
    return notebook


if __name__ == "__main__":
    import sys

    for name in sys.argv[1:]:
        text = json.dumps(run_notebook(Path(name)), indent=1, ensure_ascii=False)
        Path(name).write_text(f"{text}\n", encoding="utf-8")
