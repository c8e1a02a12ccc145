"""The lines of pip that errors, cards and Spaces show, by where the package came from."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from hf_paraphrase.common import installation
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.common.installation import describe_installation, find_public_requirement, require

READ_ORIGIN = installation._read_origin
GIT = {"url": "https://example.org/you/p.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
ADDRESS = "git+https://example.org/you/p.git@abc"
WHEEL = {"url": "https://example.org/p-1-py3-none-any.whl", "archive_info": {}}


@pytest.fixture
def came_from(monkeypatch):
    """Lets pip have recorded an origin."""

    def record(origin: dict | None) -> None:
        found = SimpleNamespace(read_text=lambda name: origin and json.dumps(origin))
        monkeypatch.setattr(installation, "distribution", lambda name: found)
        monkeypatch.setattr(installation, "_read_origin", READ_ORIGIN)

    return record


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, "pip install 'hf-paraphrase[demo]'"),
        (GIT, f"pip install 'hf-paraphrase[demo] @ {ADDRESS}'"),
        (GIT | {"subdirectory": "a/b"}, f"pip install 'hf-paraphrase[demo] @ {ADDRESS}#subdirectory=a/b'"),
        (WHEEL, f"pip install 'hf-paraphrase[demo] @ {WHEEL['url']}'"),
        ({"url": "file:///a%20b", "dir_info": {}}, "pip install 'hf-paraphrase[demo] @ file:///a%20b'"),
        ({"url": "file:///a%20b", "dir_info": {"editable": True}}, "pip install --editable '/a b[demo]'"),
    ],
)
def test_an_error_names_the_line_that_works_here(origin: dict | None, expected: str, came_from) -> None:
    came_from(origin)
    assert describe_installation("demo") == expected
    with pytest.raises(InputError) as caught:
        require("no_such_module", "demo", "the demo", "or leave it", "Gradio")
    assert str(caught.value) == f"the demo needs Gradio; install it with: {expected}; or leave it"
    require("json", "demo", "the demo")


@pytest.mark.parametrize("origin", [None, GIT, WHEEL])
def test_other_machines_install_it_from_where_it_came(origin: dict | None, came_from) -> None:
    came_from(origin)
    asked = Requirement(find_public_requirement("demo,metrics"))
    assert asked.name == "hf-paraphrase" and asked.extras == {"demo", "metrics"}
    assert (str(asked.specifier), asked.url) == {
        "None": (f"=={version('hf-paraphrase')}", None),
        str(GIT): ("", ADDRESS),
        str(WHEEL): ("", WHEEL["url"]),
    }[str(origin)]


def test_a_clone_knows_its_remote(came_from, tmp_path: Path, monkeypatch) -> None:
    came_from({"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    with pytest.raises(InputError, match=rf"cannot install hf_paraphrase from {tmp_path}.*--package 'hf-paraphrase\["):
        find_public_requirement("demo")
    for command in (["init", "-q"], ["remote", "add", "origin", "https://example.org/you/p.git"]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    assert find_public_requirement("demo") == "hf-paraphrase[demo] @ git+https://example.org/you/p.git"
    subprocess.run(["git", "-C", tmp_path, "remote", "set-url", "origin", "/srv/p.git"], check=True)
    with pytest.raises(InputError, match="cannot install"):
        find_public_requirement("demo")


def test_source_that_nobody_installed_is_a_clone(came_from, monkeypatch) -> None:
    came_from(None)

    def fail(name: str):
        raise PackageNotFoundError

    monkeypatch.setattr(installation, "distribution", fail)
    assert describe_installation("demo") == f"pip install --editable '{Path(__file__).parents[2]}[demo]'"
