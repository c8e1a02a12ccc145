"""A process of its own that does what it is told in lines of JSON, with `HF_ENDPOINT` as it was when it started.

`{"args": [...]}` runs the command line, `{"code": "..."}` Python whose `result` is handed back. Waits are only noted.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time

from hf_paraphrase.cli.app import main
from hf_paraphrase.common import installation


def run(order: dict, waits: list[float]) -> dict:
    waits.clear()
    os.environ.pop("HF_TOKEN", None)
    os.environ.update(order["env"])
    output, errors, status, names = io.StringIO(), io.StringIO(), 0, {"result": None}
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            if "args" in order:
                main(order["args"])
            else:
                exec(order["code"], names)
        except SystemExit as stop:
            status = stop.code or 0
        except Exception as error:
            status, names["result"] = 1, f"{type(error).__name__}: {error}"
    answer = {"status": status, "output": output.getvalue(), "errors": errors.getvalue()}
    return answer | {"result": names["result"], "waits": list(waits)}


if __name__ == "__main__":
    waits: list[float] = []
    time.sleep = waits.append
    installation._read_origin = dict  # as from an index, wherever the package came from
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line), waits)), file=answers, flush=True)
