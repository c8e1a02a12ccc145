"""Loads `handler.py` and calls it, as Inference Endpoints do.

Run as a script it makes sure that the package cannot be imported, and prints the answers to all requests.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any


def ask(folder: str, requests: list[dict[str, Any]]) -> list[Any]:
    """What the handler in a folder answers; of what it refuses, why."""
    spec = importlib.util.spec_from_file_location("handler.EndpointHandler", Path(folder) / "handler.py")
    sys.path.insert(0, folder)
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        handler = module.EndpointHandler(folder)
        answers = []
        for request in requests:
            try:
                answers.append(json.loads(json.dumps(handler(request))))
            except ValueError as error:
                answers.append(str(error))
        return answers
    finally:
        sys.path.remove(folder)


if __name__ == "__main__":
    known = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name == "hf_paraphrase" else known(name, *rest)
    sys.modules["hf_paraphrase"] = None
    print(json.dumps([ask(folder, requests) for folder, requests in json.loads(sys.argv[1])]))
