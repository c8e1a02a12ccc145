"""Prompts: what is checked on loading, what a model is told, and how its answers are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.prompts import Prompt, load_prompt

SOURCE = "How do I learn to cook?"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("system: Rewrite.", "`user` is missing"),
        ("user: Rewrite this.", "`user` has no {text}"),
        ("user: 'Rewrite {text} in {language}.'", "`user` has {language}"),
        ("user: 'Rewrite{strength}: {text}'", "`strength` says nothing"),
        ("user: 'Rewrite{keep}: {text}'", "`keep` says nothing"),
        ("user: '{text}'\nkeep: Keep all.", "`keep` has no {words}"),
        ("user: '{text}'\nstrength: {2: freely}", "levels are numbers from 0 to 1, not 2"),
        ("user: '{text}'\nexample: []", "did you mean examples?"),
        ("user: '{text}'\nexamples: [{text: a}]", "`examples`, number 1"),
        ("user: '{text}'\nread: [emoji]", "`read` must be"),
        ("user: 3", "`user` must be str"),
        ("- user", "must hold fields"),
        ("user: [", "is not valid YAML"),
    ],
)
def test_a_prompt_is_checked_on_loading(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "prompt.yaml"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        load_prompt(path)
    assert str(path) in str(caught.value) and message in str(caught.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InputError, match="no file nowhere.yaml"):
        load_prompt("nowhere.yaml")


def test_the_text_is_never_read_as_a_template() -> None:
    prompt = Prompt(user="Rewrite{strength}{keep}: {text}", strength={0: " a bit", 1: " freely"}, keep=" ({words})")
    filled = prompt.messages("a {keep} {text} b", 0.9, ["Ann", "3"])[-1]["content"]
    assert filled == "Rewrite freely (Ann, 3): a {keep} {text} b"
    assert prompt.messages("a", 0.2)[-1]["content"] == "Rewrite a bit: a"
    assert prompt.messages("a")[-1]["content"] == "Rewrite: a"


def test_the_default_is_a_chat_with_examples() -> None:
    prompt = load_prompt()
    roles = [message["role"] for message in prompt.messages(SOURCE)]
    assert roles == ["system", *["user", "assistant"] * len(prompt.examples), "user"] and prompt.examples
    assert prompt.continuation(SOURCE).endswith(f"Sentence: {SOURCE}\nParaphrase:")


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("How can I cook?", ["How can I cook?"]),
        ('  "How can I cook?" ', ["How can I cook?"]),
        ("“How can I cook?”", ["How can I cook?"]),
        ('"How" can I "cook"', ['"How" can I "cook"']),
        ("Here is a paraphrase: How can I cook?", ["How can I cook?"]),
        ('Sure! Here\'s one way to say it:\n\n"How can I cook?"', ["How can I cook?"]),
        ("Paraphrase: How can I cook?\n\nI changed two words.", ["How can I cook?"]),
        ("1. How can I cook?\n2) What makes a cook?\n", ["How can I cook?", "What makes a cook?"]),
        ("Here are two:\n- 'How can I cook?'\n- What makes a cook?", ["How can I cook?", "What makes a cook?"]),
        ("<think>A question.</think>\nHow can I cook?", ["How can I cook?"]),
        ("<think>A question without", [""]),
        ("Here I cook: how?", ["Here I cook: how?"]),
        ("", [""]),
    ],
)
def test_answers_are_read(answer: str, read: list[str]) -> None:
    assert load_prompt().read_answer(answer, SOURCE) == read


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ('"How do I cook?"', '"How can I cook?"'),
        ("Here is the plan: cook.", "Here is what we do: cook."),
        ("1. Cook.", "1. Make food."),
    ],
)
def test_what_the_source_has_too_stays(source: str, answer: str) -> None:
    assert load_prompt().read_answer(answer, source) == [answer]


def test_lines_of_a_text_with_several_stay() -> None:
    assert load_prompt().read_answer("a b\nc d", "x\ny") == ["a b c d"]
