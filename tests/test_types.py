"""The check of types: what it makes of mypy's output. mypy itself runs in `.ci/run`."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECK = runpy.run_path(str(ROOT / ".ci" / "check_types.py"))
OUTPUT = """\
hf_paraphrase/a.py:3: error: Incompatible return value type  [return-value]
hf_paraphrase/a.py:3: note: a hint
hf_paraphrase/a.py:9: error: "None" not callable  [misc]
hf_paraphrase/b.py:1: error: "x" has no attribute "y"  [attr-defined]
Found 3 errors in 2 files (checked 2 source files)
"""


def test_errors_are_counted_by_module() -> None:
    assert CHECK["count_errors"](OUTPUT) == {"hf_paraphrase/a.py": 2, "hf_paraphrase/b.py": 1}
    assert not CHECK["count_errors"]("Success: no issues found in 2 source files\n")


def test_more_errors_and_fewer_errors_are_told_with_what_to_do() -> None:
    errors = Counter({"a.py": 2, "b.py": 1})
    assert CHECK["find_changes"](errors, errors) == []
    assert CHECK["find_changes"](errors, Counter({"a.py": 1, "b.py": 1})) == [
        "a.py: type errors 2, in .ci/types.txt 1: mend the new ones"
    ]
    assert CHECK["find_changes"](errors, Counter({"a.py": 2, "b.py": 1, "c.py": 4})) == [
        "c.py: type errors 0, in .ci/types.txt 4: run `python .ci/check_types.py --lower`"
    ]


def test_the_baseline_is_as_the_check_writes_it_and_has_no_module_that_is_gone() -> None:
    text = (ROOT / ".ci" / "types.txt").read_text(encoding="utf-8")
    baseline = CHECK["read_baseline"](text)
    assert CHECK["write_baseline"](baseline) == text
    assert all((ROOT / module).is_file() for module in baseline)


def test_continuous_integration_checks_types() -> None:
    assert ".ci/check_types.py" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
