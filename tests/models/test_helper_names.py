from __future__ import annotations

import re
from pathlib import Path

import pytest

import hf_paraphrase.models

FOLDER = Path(hf_paraphrase.models.__file__).parent
MODULES = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py")}
FAMILIES = sorted(name.removeprefix("modeling_") for name in MODULES if name.startswith("modeling_"))
HELPERS = sorted(
    name for name in MODULES if not re.match("__init__|configuration_|modeling_|pipeline_|tokenization_", name)
)


def find_siblings(name: str) -> set[str]:
    """A module and all that it imports, as they are copied to the Hub together."""
    found, waiting = set(), [name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += re.findall(r"^\s*from \.(\w+) import", MODULES[name], flags=re.MULTILINE)
    return found


SIBLINGS = {family: find_siblings(f"modeling_{family}") for family in FAMILIES}


@pytest.mark.parametrize("helper", HELPERS)
def test_a_helper_of_one_family_alone_bears_its_name(helper):
    users = [family for family in FAMILIES if helper in SIBLINGS[family]]
    named = [family for family in FAMILIES if helper.startswith(f"{family}_")]
    assert named == (users if len(users) == 1 else [])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_s_module_fits_into_five_hundred_lines(family):
    assert len(MODULES[f"modeling_{family}"].splitlines()) <= 500
