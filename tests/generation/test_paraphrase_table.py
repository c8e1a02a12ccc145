"""What a terminal and a notebook show of paraphrases."""

from __future__ import annotations

import pickle
import re

import pytest

from hf_paraphrase import Paraphrase, Paraphraser
from hf_paraphrase.generation.paraphrase_table import ParaphrasedTexts, Paraphrases
from tests.models.tiny import tiny_t5, word_tokenizer

from .paraphrasers import make_paraphraser

ONE = Paraphrases([Paraphrase("A <b> & c.", 0.78256, 0.8, 0.83, 0.3)], "a <i> b")
REJECTED = Paraphrases([*ONE, Paraphrase("Much longer. " * 20, reason="has 1 & 2")], "a <i> b")
NONE = Paraphrases(source="nothing")
REFUSED = Paraphrases(source="nothing", refusal="the model <b>")


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")


def test_a_terminal_shows_short_lines() -> None:
    header = "score  adequacy  fluency  novelty  text"
    assert repr(ONE) == f"{header}\n 0.78      0.80     0.83     0.30  A <b> & c."
    assert (
        repr(REJECTED).splitlines()[2]
        == f"{'    -         -        -        -  [has 1 & 2] ' + 'Much longer. ' * 20:.59}…"
    )
    assert (repr(NONE), repr(REFUSED)) == ("(no paraphrase)", "(no paraphrase: the model <b>)")
    assert repr(ParaphrasedTexts([ONE, NONE])) == f"a <i> b\n{ONE!r}\n\nnothing\n(no paraphrase)"
    assert repr(ParaphrasedTexts([NONE] * 500)).count("nothing") == 10
    assert repr(ParaphrasedTexts([NONE] * 500)).endswith("\n\n… and 490 more texts")
    assert repr(ONE[0]) == "Paraphrase('A <b> & c.', score=0.78, adequacy=0.80, fluency=0.83, novelty=0.30)"
    assert repr(REJECTED[1]).endswith("', reason='has 1 & 2')")


def test_a_notebook_shows_a_table() -> None:
    html = ONE._repr_html_()
    assert re.findall("<th>(.*?)</th>", html) == ["text", "score", "adequacy", "fluency", "novelty"]
    assert re.findall("<td>(.*?)</td>", html) == ["A &lt;b&gt; &amp; c.", "0.78", "0.80", "0.83", "0.30"]
    assert "<th>rejected because it</th>" in REJECTED._repr_html_() and "has 1 &amp; 2" in REJECTED._repr_html_()
    html = ParaphrasedTexts([REJECTED, NONE] * 6)._repr_html_()
    assert html.count('<td rowspan="2">a &lt;i&gt; b</td>') == html.count('<td rowspan="1">nothing</td>') == 5
    assert html.count("(no paraphrase)") == 5 and html.endswith("<p>… and 2 more texts</p>")
    assert "(no paraphrase: the model &lt;b&gt;)" in REFUSED._repr_html_()


def test_they_are_lists() -> None:
    assert [ONE[0]] == ONE and ParaphrasedTexts([ONE, NONE]) == [ONE, NONE]
    again = pickle.loads(pickle.dumps(ParaphrasedTexts([ONE, REFUSED])))
    assert again == [ONE, NONE] and again[0].source == "a <i> b" and isinstance(again, ParaphrasedTexts)
    assert again[1].refusal == REFUSED.refusal


def test_every_call_returns_them() -> None:
    paraphraser = make_paraphraser("bart")
    texts = ["how do i learn ?", ""]
    assert paraphraser(texts[0]).source == texts[0]
    assert (
        [group.source for group in paraphraser(texts)] == [group.source for group in paraphraser(iter(texts))] == texts
    )
    assert isinstance(paraphraser(texts), ParaphrasedTexts)


def test_a_paraphraser_names_its_model() -> None:
    assert repr(Paraphraser()) == "Paraphraser('paraphraser-en-small', 12,786,527 parameters, cpu)"
    assert re.fullmatch(
        r"Paraphraser\('T5For\w+', [\d,]+ parameters, cpu\)", repr(Paraphraser(tiny_t5(), word_tokenizer()))
    )
