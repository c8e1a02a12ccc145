from __future__ import annotations

from hf_paraphrase.common.docstrings import Docstring, read_docstring


def described(text: str, *, way: str = "Args: in a line") -> None:
    """Do what is
    said.

    More of it: in two
    lines.

    And more.

    Args:
        text: What is
            said: aloud.
        way: How.

    Returns:
        Nothing,
            indented.

    Source: Somebody 2020,
    section 3.
    """


def test_the_parts_are_found():
    docstring = read_docstring(described)
    assert docstring.summary == "Do what is said."
    assert docstring.details == "More of it: in two\nlines.\n\nAnd more."
    assert docstring.sections == {
        "Args": "text: What is\n    said: aloud.\nway: How.",
        "Returns": "Nothing,\n    indented.",
        "Source": "Somebody 2020,\nsection 3.",
    }
    assert docstring.arguments == {"text": "What is said: aloud.", "way": "How."}


def test_what_is_not_there_is_empty():
    def bare() -> None: ...

    assert read_docstring(bare) == Docstring("", "", {})
    assert read_docstring(bare).arguments == {}
