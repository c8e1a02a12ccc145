from __future__ import annotations

from pathlib import Path

import pytest

import hf_paraphrase.models
from hf_paraphrase.models.bundle import SHARED_FOLDERS, family_modules, source_module

FOLDER = Path(hf_paraphrase.models.__file__).parent
FAMILIES = sorted(path.parent.name for path in FOLDER.glob("*/modeling_*.py"))
LAYERS = sorted(f"layers.{path.stem}" for path in FOLDER.glob("layers/*.py") if path.stem != "__init__")


def find_siblings(names: list[str]) -> set[str]:
    """Modules and all that they import, as they are bundled for the Hub together."""
    found, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += source_module(name).siblings.values()
    return found


SIBLINGS = {family: find_siblings(family_modules(family)) for family in FAMILIES}
OF_SEARCH = find_siblings(["search.pipeline_text2text"])


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_of_one_family_alone_stands_in_its_folder(layer):
    users = [family for family in FAMILIES if layer in SIBLINGS[family]]
    # The searches run models of others too.
    assert len(users) > 1 or layer in OF_SEARCH


def test_every_folder_is_a_family_or_shared():
    assert {path.parent.name for path in FOLDER.glob("*/*.py")} == {*FAMILIES, *SHARED_FOLDERS}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_s_module_fits_into_five_hundred_lines(family):
    assert len(source_module(f"{family}.modeling_{family}").lines) <= 500
