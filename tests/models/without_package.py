"""Running a saved checkpoint in a process that has transformers alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

# Loads a folder without this package, and saves it again.
WITHOUT_THE_PACKAGE = """
import json, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "hf_paraphrase":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from transformers import pipeline

folder, task, inputs, options = json.loads(sys.argv[1])
try:
    pipeline(task, model=folder, trust_remote_code=False)
except ValueError as error:
    refusal = str(error)
first = pipeline(task, model=folder, trust_remote_code=True)
first.save_pretrained("again")
second = pipeline(task, model="again", trust_remote_code=True)
print(json.dumps([refusal, *(pipe(inputs, batch_size=2, **options) for pipe in (first, second))]))
"""


def run_without_the_package(
    folder: str, task: str, inputs: list, workplace: Path, **options
) -> tuple[str, list, list]:
    """Run a folder's pipeline over inputs, in batches of two.

    Returns:
        What was said without `trust_remote_code`, what the pipeline gave, and what it gave after it had been saved to
        `workplace / "again"` and loaded from there.
    """
    result = subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT_THE_PACKAGE, json.dumps([folder, task, inputs, options])],
        cwd=workplace,
        env={**os.environ, "HF_HOME": str(workplace / "cache"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return tuple(json.loads(result.stdout))
