from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets.sentences import sentence_splitter, split_by_rules


# A bar stands where a sentence ends.
@pytest.mark.parametrize(
    "marked",
    [
        "He came.|She left!|Why?|Nobody knew…|Well?!|End",
        # Titles, initials and abbreviations.
        "Mr. Smith met Dr. No in St. Louis.|Mrs. Brown did not.",
        "W. W. Jacobs wrote it.|J. R. R. Tolkien did not.",
        "They came at 5 p.m. sharp.|They left at 6 a.m.|The door was open.",
        "It is in the U.S. Virgin Islands.|He likes the U.S.|It is large.",
        "Towels, soap, etc. were there.|Towels, soap, etc.|We had it all.",
        "Fruit, e.g. Apples of Italy, i.e. red ones.",
        "So did I.|The end.",
        "See No. 5 of Vol. II, pp. 3 to 9.|She said no.|I did not.",
        "Jones, Jr. and Sons Ltd. of London came.",
        # Numbers.
        "It cost 3.50 dollars, or 1,000.5 in all.|Cheap.",
        "It was in 1990.|Then came 1991.",
        "1. Go there.|2. Come back.",
        # Quotes and brackets.
        '"What?" he said.|"No!"|I was there.',
        '"I saw him."|"Did you?" asked Bill.|"Yes."',
        "He said 'Stop.'|Then he left.",
        "“Who?”|“He.”|(And so on.)|It was (in fact!) fine.",
        "\u2018Never!\u2019 cried she.|\u2018Why?\u2019",
        # Ellipses.
        "Wait... what?|We waited...|Nothing came.",
        "one . . . two . . .|Three.",
        # Careless text.
        "great hotel!!!|we loved it.|will be back",
        "The room was small.|We liked it.|It is near.|At www.hotel.com too.",
        # Tokenised text.
        "He went home .|She stayed .|Mr. Jones left .",
        'He said , " It is late . "|Then " Go ! " he cried .|" Why ? "',
        "He paid 3 @.@ 5 dollars .|It was 1 @,@ 000 .",
    ],
)
def test_where_sentences_end(marked):
    assert split_by_rules(marked.replace("|", " ")) == marked.split("|")


def test_missing_white_space_after_a_sentence():
    assert split_by_rules("It was great.We will return!He said so.") == [
        "It was great.",
        "We will return!",
        "He said so.",
    ]
    assert split_by_rules("Try hotel.com or Hotel.Com or U.S.A now") == ["Try hotel.com or Hotel.Com or U.S.A now"]


def test_white_space():
    assert split_by_rules("One\n two.\tThree\r\nfour") == ["One two.", "Three four"]
    assert split_by_rules("A HEADING\n\n \nThe text") == ["A HEADING", "The text"]
    assert split_by_rules("") == split_by_rules(" \n\n ") == []


@given(st.text(st.sampled_from("aA.!?…\"' )(”\n5,Mr"), max_size=60) | st.text(max_size=40))
def test_nothing_visible_is_lost(text):
    sentences = split_by_rules(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence and sentence == " ".join(sentence.split()) for sentence in sentences)


@pytest.mark.parametrize("unit", [".", ". ", '. "', "a. ", "5. ", "Mr. ", "aa.A", 'A. " ', ".((", "\n \n"])
def test_time_grows_with_the_length_alone(unit):
    def seconds(count: int) -> float:
        start = time.process_time()
        split_by_rules(unit * count + "x")
        return time.process_time() - start

    # Quadratic time would be 400 times as long.
    assert seconds(40_000) < 100 * max(seconds(2000), 0.001)


def test_rules_are_a_splitter_and_other_names_are_refused():
    assert sentence_splitter("rules") is split_by_rules
    with pytest.raises(InputError, match="`splitter` must be one of 'rules', 'punkt', not 'spacy'"):
        sentence_splitter("spacy")


def test_punkt_without_nltk(monkeypatch):
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs NLTK; .*: pip install 'hf-paraphrase\[punkt\]'.*splitter=\"rules\""):
        sentence_splitter("punkt")


def test_punkt_without_its_data(monkeypatch):
    data = pytest.importorskip("nltk.data")
    monkeypatch.setattr(data, "path", [])
    with pytest.raises(InputError, match='nltk.downloader punkt_tab.*splitter="rules"'):
        sentence_splitter("punkt")


def test_punkt_with_data(monkeypatch, tmp_path):
    data = pytest.importorskip("nltk.data")
    folder = tmp_path / "tokenizers" / "punkt_tab" / "english"
    folder.mkdir(parents=True)
    for name, content in {
        "abbrev_types.txt": "zyx\n",
        "collocations.tab": "",
        "sent_starters.txt": "",
        "ortho_context.tab": "",
    }.items():
        (folder / name).write_text(content, encoding="utf-8")
    monkeypatch.setattr(data, "path", [str(tmp_path)])
    assert sentence_splitter("punkt")("The Zyx. Company\n paid. Then it left.") == [
        "The Zyx. Company paid.",
        "Then it left.",
    ]
