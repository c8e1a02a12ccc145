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


@given(TEXTS, TEXTS, st.lists(TEXTS, max_size=3))
def test_what_is_not_marked_is_the_same_in_both(source: str, candidate: str, others: list[str]) -> None:
    shown = [
        re.sub('<span class="others">.*?</span>|</?span[^>]*>', "", page, flags=re.DOTALL)
        for page in format_changes(source, candidate, others)
    ]
    assert [html.unescape(re.sub("</?(ins|del)>", "", page)) for page in shown] == [source, candidate]
    left, right = (html.unescape(re.sub("<(ins|del)>.*?</(ins|del)>", " ", page, flags=re.DOTALL)) for page in shown)
    words = [[word.casefold() for word in TOKEN.findall(text)] for text in (left, right)]
    assert words[0] == words[1]


def test_words_show_what_other_rewordings_say() -> None:
    others = ["I can run <b>", "I can run quickly", "I can go fast", "something else altogether , which is longer"]
    _, after = format_changes("I ran fast", "I can run fast", others)
    assert re.findall(r'<span class="word"[^>]*>(.*?)<span class="others"> \[(.*?)\]</span></span>', after) == [
        ("<ins>run</ins>", "go"),
        ("fast", "&lt;b&gt; · quickly"),
    ]
