"""Checks types with mypy: each module has as many errors as `.ci/types.txt` says, whose numbers can only shrink.

python .ci/check_types.py            # the check
python .ci/check_types.py --lower    # write down the smaller numbers
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

BASELINE = Path(__file__).with_name("types.txt")
ERROR = re.compile(r"(?P<module>\S+?\.py):\d+: error: ")


def count_errors(output: str) -> Counter[str]:
    """The errors of each module in what mypy prints."""
    return Counter(found["module"] for line in output.splitlines() if (found := ERROR.match(line)))


def read_baseline(text: str) -> Counter[str]:
    """The errors of each module, a number and a path a line."""
    return Counter({module: int(number) for number, module in map(str.split, text.splitlines())})


def write_baseline(errors: Counter[str]) -> str:
    """What `read_baseline` reads."""
    return "".join(f"{number} {module}\n" for module, number in sorted(errors.items()) if number)


def find_changes(errors: Counter[str], baseline: Counter[str]) -> list[str]:
    """A line for each module with another number of errors, which says what to do."""
    return [
        f"{module}: type errors {errors[module]}, in .ci/types.txt {baseline[module]}: "
        + ("mend the new ones" if errors[module] > baseline[module] else "run `python .ci/check_types.py --lower`")
        for module in sorted(errors | baseline)
        if errors[module] != baseline[module]
    ]


if __name__ == "__main__":
    root = BASELINE.parents[1]
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=root, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stdout + done.stderr)
    found, known = count_errors(done.stdout), read_baseline(BASELINE.read_text(encoding="utf-8"))
    if sys.argv[1:] == ["--lower"]:
        known &= found
        BASELINE.write_text(write_baseline(known), encoding="utf-8")
    if changes := find_changes(found, known):
        grown = tuple(f"{module}:" for module in found if found[module] > known[module])
        sys.exit("\n".join([*(line for line in done.stdout.splitlines() if line.startswith(grown)), *changes]))
    print(f"types: {found.total()} errors, all in .ci/types.txt")
