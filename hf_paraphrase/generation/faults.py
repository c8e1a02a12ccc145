"""What shows, without a model, that a candidate is not a whole sentence, or more than its source."""

from __future__ import annotations

from ..datasets.sentences import split_by_rules

# Quotation marks are counted together, for a paraphrase may write “yes” for "yes"; backticks enclose code.
QUOTATION_MARKS = '"“”„‟«»「」『』'
BRACKETS = ("()", "[]", "{}", "（）")


def find_fault(source: str, candidate: str) -> str | None:
    """Describe a formal fault of a candidate; None if nothing is.

    A model that stops too late continues after the paraphrase: it opens a quotation or adds a sentence. A
    sentence that is merely divided in two, and gets no longer by it, passes.

    Args:
        source: The text; of marks that it leaves open itself, nothing is asked.
    """
    open_before = _find_open(source)
    for mark in _find_open(candidate):
        if mark not in open_before:
            return f"leaves {mark!r} unpaired"
    is_longer = len(candidate.split()) > len(source.split())
    if is_longer and len(split_by_rules(candidate)) > len(split_by_rules(source)):
        return "adds a sentence"
    return None


def _find_open(text: str) -> list[str]:
    """The marks that come in pairs, each by its first, which a text has too many or too few of."""
    odd = [marks[0] for marks in (QUOTATION_MARKS, "`") if sum(map(text.count, marks)) % 2]
    return odd + [pair[0] for pair in BRACKETS if text.count(pair[0]) != text.count(pair[1])]
