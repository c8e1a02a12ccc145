from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_paraphrase.analysis.word_diff import TOKEN, format_changes

PARTS = ["a", "B", "b", "can't", "<b>", "?", "x-y", "&", " ", "\n"]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=12).map(" ".join)


@pytest.mark.parametrize(
    ("source", "candidate", "before", "after"),
    [
        ("How can I run?", "how can I run ?", "How can I run?", "how can I run ?"),
        ("How can I run fast?", "What is a way to run fast?", "<del>How can I</del> run fast?", None),
        ("I ran", "I ran <i>", "I ran", "I ran <ins>&lt;i&gt;</ins>"),
        ("can't stop", "can stop", "<del>can&#x27;t</del> stop", "<ins>can</ins> stop"),
        ("", "new words", "", "<ins>new words</ins>"),
    ],
)
def test_words_are_marked(source: str, candidate: str, before: str, after: str | None) -> None:
    found = format_changes(source, candidate)
    assert found[0] == before and (after is None or found[1] == after)


@given(TEXTS, TEXTS)
def test_what_is_not_marked_is_the_same_in_both(source: str, candidate: str) -> None:
    shown = format_changes(source, candidate)
    assert [html.unescape(re.sub("</?(ins|del)>", "", page)) for page in shown] == [source, candidate]
    left, right = (html.unescape(re.sub("<(ins|del)>.*?</(ins|del)>", " ", page, flags=re.DOTALL)) for page in shown)
    words = [[word.casefold() for word in TOKEN.findall(text)] for text in (left, right)]
    assert words[0] == words[1]
