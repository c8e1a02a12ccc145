from __future__ import annotations

import random
from collections import Counter
from html.parser import HTMLParser

import pytest

from hf_paraphrase.generation.documents import rewrite_document


def to_soup(sentences: list[str]) -> list[str]:
    return [sentence.replace("bread", "soup") for sentence in sentences]


def shuffle_words(sentences: list[str]) -> list[list[str]]:
    """Candidates in any order of words."""
    draw = random.Random(0)
    return [[" ".join(draw.sample(words := one.split(), len(words))) for _ in range(20)] for one in sentences]


PAGE = """<!DOCTYPE html>\r
<html><head><title>We bake bread today.</title><style>p { color: red }</style>
<script>var text = "We bake bread today.";</script></head>
<body><h1>How we bake bread</h1>
<p class=first>We bake <b class="x">good</b> bread &amp; cakes &mdash; it&rsquo;s fun.
We also   like
bread.<br>I eat bread<br/>every day.
<ul><li>Do you like bread?<li><a href="a?b=1&c=2">We like bread. So do you.</a></ul>
<pre>We bake bread today.</pre><table><tr><td>We bake bread today.</td></tr></table>
<p>Run <code>bake -n 1</code> to bake bread now. <span>All of this bread is <i>very</i> good.</span>
<p translate="no">We bake bread today.</p>
<div>I see bread<!-- bread --> in my house. <em>Note:</em> this bread is old. 1 < 2 is bread for all</div>
"""


def test_text_changes_and_the_rest_stays_byte_for_byte() -> None:
    expected = PAGE
    for old, new in [
        ("bread &amp; cakes", "soup &amp; cakes"),
        ("We also   like\nbread.", "We also like soup."),
        ("Do you like bread?", "Do you like soup?"),
        ("We like bread. So do you.", "We like soup. So do you."),
        ("to bake bread now", "to bake soup now"),
        ("All of this bread", "All of this soup"),
        ("this bread is old. 1 < 2 is bread", "this soup is old. 1 &lt; 2 is soup"),
    ]:
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    rewritten, changes = rewrite_document(PAGE, to_soup, "html")
    assert rewritten == expected
    left = {one.before: one.reason for one in changes if one.reason}
    assert left["I eat bread every day."] == "a hard line break stands in it"
    assert left["I see bread in my house."].startswith("markup without text")
    assert all(PAGE[one.start : one.end] for one in changes)
    assert {one.line for one in changes if "Do you like" in one.before} == {8}


@pytest.mark.parametrize("space", ["&nbsp;", "&thinsp;", "&#10;"])
def test_a_space_of_its_own_kind_is_not_every_space(space: str) -> None:
    rewritten, _ = rewrite_document(f"<p>We bake bread every{space}day now.</p>", to_soup, "html")
    assert rewritten == "<p>We bake soup every day now.</p>"


@pytest.mark.parametrize("head", ['<script src="a.js"/>', "<title/>", '<hr translate="no">', '<hr translate="no"/>'])
def test_an_element_without_an_end_hides_nothing(head: str) -> None:
    rewritten, _ = rewrite_document(f"{head}<p>We bake bread every day.</p>", to_soup, "html")
    assert rewritten == f"{head}<p>We bake soup every day.</p>"


@pytest.mark.parametrize(
    ("before", "answer", "after"),
    [
        ("We like <b>good</b> bread here.", "Here we like good bread.", "Here we like <b>good</b> bread."),
        ("We <i>really</i> like <b>good</b> bread.", "We like good bread, really now.", None),
        ("It&rsquo;s what we eat now.", "Now it’s our meal &co.", "Now it&rsquo;s our meal &amp;co."),
        ("We like <b>good </b>bread here.", "Here we like good bread.", "Here we like <b>good </b>bread."),
        ("We like <b>good</b> bread here.", "Here we like bread.", ""),
        ("We like <b>good</b> bread here.", "We like good, good bread.", ""),
        ("We like <b>good</b> bread here.", "We like goods here.", ""),
        ("<b>Note:</b> we like bread here.", "Note: here we eat.", "<b>Note:</b> here we eat."),
        ("<b>Note:</b> we like bread here.", "Here we eat.", ""),
    ],
)
def test_styles_stay_on_their_words(before: str, answer: str, after: str | None) -> None:
    if after is None:
        after = "We like <b>good</b> bread, <i>really</i> now."
    assert rewrite_document(f"<p>{before}", lambda _: [answer], "html")[0] == f"<p>{after or before}"


class Reader(HTMLParser):
    """Reads tags and words, the words of each element with it."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, str]] = []
        self.words: Counter[str] = Counter()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, str(attrs)))

    def handle_endtag(self, tag):
        self.tags.append((tag, "/"))

    def handle_data(self, data):
        self.words.update(data.split())


@pytest.mark.parametrize("seed", range(40))
def test_any_page_keeps_its_tags(seed: int) -> None:
    draw = random.Random(seed)
    pieces = ["bread ", "good ", "we like ", "Soup. ", "<b>", "</b>", "<i>old</i> ", "<p>", "</p>", "&amp; ", "<br>"]
    pieces += ["<a href='x'>this ", "here</a>. ", "<code>x y</code> ", "<h2>", "</h2>", "<img src=y> ", "Who is it? "]
    page = "".join(draw.choices(pieces, k=60))
    rewritten = rewrite_document(page, shuffle_words, "html")[0]
    before, after = Reader(page), Reader(rewritten)
    assert sorted(before.tags) == sorted(after.tags) and before.words == after.words
