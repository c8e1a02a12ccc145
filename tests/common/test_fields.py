from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.common.fields import Options, check_type, option, parse_scalar, read_yaml
from hf_paraphrase.training.recipe import load_recipe


def multiply(levels: int) -> str:
    """Aliases that stand for ten times more values with every level."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels)]
    return "\n".join(lines)


BOMBS = {
    "aliases": (multiply(6), "aliases replaced by what they name, is .*HF_PARAPHRASE_MAX_YAML_NODES"),
    "merged aliases": (
        "a: &a {x: 1}\nb: &b {p: *a, q: *a}\nc: {<<: *b, r: [" + "*b, " * 30_000 + "]}",
        "HF_PARAPHRASE_MAX_YAML_NODES",
    ),
    "an alias of itself": ("a:\n  &a [*a]", "line 2: the anchor `a` contains itself"),
    "lists": ("[" * 5000 + "]" * 5000, "line 1: the depth of the nesting is 101, .*HF_PARAPHRASE_MAX_YAML_DEPTH"),
    "open lists": ("[" * 5000, "HF_PARAPHRASE_MAX_YAML_DEPTH"),
    "items": ("- " * 5000, "HF_PARAPHRASE_MAX_YAML_DEPTH"),
    "keys": ("? " * 5000, "HF_PARAPHRASE_MAX_YAML_DEPTH"),
    "digits": ("max_steps: " + "1" * 5000, "PYTHONINTMAXSTRDIGITS"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name, tmp_path):
    text, message = BOMBS[name]
    (tmp_path / "training.yaml").write_text(text)
    with pytest.raises(InputError, match=f"training.yaml: .*{message}"):
        read_yaml(tmp_path / "training.yaml")
    with pytest.raises(InputError, match="training.yaml"):
        load_recipe(tmp_path)
    with pytest.raises(InputError, match=message):
        parse_scalar(text)


def test_the_bounds_can_be_raised(monkeypatch):
    nested = "[" * 200 + "]" * 200
    monkeypatch.setenv("HF_PARAPHRASE_MAX_YAML_DEPTH", "200")
    assert parse_scalar(nested)[0][0]
    monkeypatch.setenv("HF_PARAPHRASE_MAX_YAML_DEPTH", "10000")
    with pytest.raises(InputError, match="nest too deeply for Python"):
        parse_scalar("[" * 9000 + "]" * 9000)
    monkeypatch.setenv("HF_PARAPHRASE_MAX_YAML_NODES", "20000000")
    assert len(parse_scalar(multiply(6))) == 6
    monkeypatch.setenv("HF_PARAPHRASE_MAX_YAML_NODES", "100")
    assert len(parse_scalar("- 1\n" * 99)) == 99
    with pytest.raises(InputError, match="is 101, above the limit of 100"):
        parse_scalar("- 1\n" * 100)


def test_ordinary_aliases_are_read():
    assert parse_scalar("a: &a [1, 2]\nb: *a\nc: &b 3\nd: [*b, *a]") == {
        "a": [1, 2],
        "b": [1, 2],
        "c": 3,
        "d": [3, [1, 2]],
    }
    assert parse_scalar("*nobody") == "*nobody"


def test_errors_quote_little_of_a_long_value():
    with pytest.raises(InputError) as caught:
        check_type("max_steps", ["x"] * 50_000, int)
    assert len(str(caught.value)) < 300


@dataclass(kw_only=True)
class Trip(Options):
    """Options of every kind that is checked."""

    to: Path = option("Where to.")
    days: list[int] = option("How long.", factory=list, least=1)
    share: float | None = option("Of the way.", None, above=0, most=1)


def test_options_are_checked_by_type_and_bounds():
    assert Trip(to="there", days=[1, 2], share=1) == Trip(to=Path("there"), days=[1, 2], share=1.0)
    for values, message in (
        ({"days": [1, 0]}, "`days` must be at least 1, not 0"),
        ({"share": 0}, "`share` must be greater than 0 and at most 1, not 0"),
        ({"share": float("nan")}, "`share` must be greater than 0"),
        ({"share": "half"}, "`share` must be float or null, not 'half'"),
        ({"to": 3}, "`to` must be Path, not 3"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            Trip(**{"to": "there", **values})
