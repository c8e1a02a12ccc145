from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hf_paraphrase.models.text.surface import drop_invisible, restore_surface

SIGNS = list("'\".,;:!?()[]-–%$#/&`…’“”\n") + ["...", "``", "''", "'s", "n't", " ", "  ", "\xa0"]
TEXT = "i a is the what i'm e.g mr iPhone paris Paris PARIS new New York us US 1 000 5 ß ǆ é İ ı ŉ ნ stockholm"
WORDS = TEXT.split()
# Tokens with a space between them, without any, and any text at all.
ODD = (
    st.lists(st.sampled_from(SIGNS + WORDS), max_size=15).map(" ".join)
    | st.lists(st.sampled_from(SIGNS + WORDS), max_size=20).map("".join)
    | st.text(max_size=30)
)
ORDINARY = [
    "Where can I buy a cheap keyboard in Stockholm?",
    'He said "no parking" (or "stop") - twice. Then 1,000.5 people left at 4:30 p.m. for the U.S. embassy.',
    "What's the dogs' favourite toy? It's Rex's; don't ask... I've no idea: 20% of $5!",
    "Well-known and/or so-called e-mail at example.com costs 5. See mr.smith@example.com, node_modules and .net too.",
    "Is C++ or C# better? Ask Dr. Who, e.g. on Mondays :-) or not ;)",
    "iPhone sales fell – by 3:1 – in Q3. eBay's didn't.",
    'A pipe of 5" beside one of 6" is 1.5 times as wide.',
    "Jag bor i Stockholm och arbetar i Göteborg.",
    "“Curly”, she said. ‘Why?’",
    "How are you?\nI am well.\n\n- [ ] to do\n- [x] done",
    "東京はどこですか？",
    "The letter 's' and the boys' t-shirt, rock 'n' roll.",
    "",
    "   ",
]


@pytest.mark.parametrize("text", ORDINARY)
@pytest.mark.parametrize("source", ["", "itself", "Does IBM sell keyboards in New York?"], ids=repr)
def test_ordinary_text_stays(text, source):
    assert restore_surface(text, text if source == "itself" else source) == text.strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what ' s the best way ?", "What's the best way?"),
        ("what 's the best way ? do n't ask , i ' ll go .", "What's the best way? Don't ask, I'll go."),
        ('he said " hello there " , then " bye " .', 'He said "hello there", then "bye".'),
        ("' hello ' , she said", "'Hello', she said"),
        ("` ` if so ' ' , what ?", '"If so", what?'),
        ("`` if so '' , what ?", '"If so", what?'),
        ("“ if so ” , what ?", "“If so”, what?"),
        ("1 , 000 . 5 people ( mostly men ) came at 4 : 30", "1,000.5 people (mostly men) came at 4:30"),
        ("in 1990 . 2 years later , 300 men", "In 1990. 2 years later, 300 men"),
        ("wait . . . what ?", "Wait... what?"),
        ("it costs $ 5 , # 1 is 20 % off ; ok : yes !", "It costs $5, #1 is 20% off; ok: yes!"),
        ("the dogs ' toys", "The dogs' toys"),
        ("is it so ? ! yes . no", "Is it so?! Yes. No"),
        ("should i go ? am i ( i . e . we ) late", "Should I go? Am I (i. e. we) late"),
        ("yes - or no", "Yes - or no"),
    ],
)
def test_tokens_become_text(text, expected):
    assert restore_surface(text) == expected


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("how do i get to stockholm ?", "How can I travel to Stockholm?", "How do I get to Stockholm?"),
        ("the us and ibm", "Does IBM work in the US?", "The US and IBM"),
        ("new york is big . is it new ?", "New York is a large city", "New York is big. Is it new?"),
        ("why is new york so big ?", "New York is a large city", "Why is New York so big?"),
        # A capital that comes from the beginning of a sentence, or from a title, tells nothing.
        ("the best way", "Best way? Where is it", "The best way"),
        ("the way to learn python", "How Do I Learn Python", "The way to learn python"),
        ("what is the way", "WHAT IS THE WAY", "What is the way"),
        # Nor does a word that stands there in two ways.
        ("an apple", "Does Apple sell an apple?", "An apple"),
        ("iphone sales . ebay too", "Do iPhone and eBay sell?", "iPhone sales. eBay too"),
        ("a well - known e - mail , yes - no", "The Well-known e-mail", "A Well-known e-mail, yes - no"),
        (
            "at 4 p . m . on 24 / 12 in the u . s .",
            "On 24/12, at 4 p.m., in the U.S.",
            "At 4 p.m. on 24/12 in the U.S.",
        ),
        ("mr. gibbs said no", "Yes, Mr. Gibbs did", "Mr. Gibbs said no"),
        ("what 's it", "Plan S is", "What's it"),
        ("who is in the beatles", "Who plays in The Beatles?", "Who is in the Beatles"),
        # Who writes capitals, but not that of i, has another word i.
        ("jag bor i stockholm", "Jag arbetar i Stockholm", "Jag bor i Stockholm"),
        ("Stockholm is where ? tell me", "Where is Stockholm?", "Stockholm is where? tell me"),
    ],
)
def test_words_get_the_case_that_they_have_in_the_source(text, source, expected):
    assert restore_surface(text, source) == expected


@given(text=ODD, source=ODD)
@example("b2b . a", "")
@example("`` ` ` a ' ' ''", "")
@example("i 'm", "I")
def test_twice_is_as_good_as_once_and_no_letter_changes(text, source):
    once = restore_surface(text, source)
    assert restore_surface(once, source) == once
    assert letters(once) == letters(text)
    signs = str.maketrans("", "", "`'\"")
    assert re.sub(r"\s", "", once.casefold()).translate(signs) == re.sub(r"\s", "", text.casefold()).translate(signs)


def letters(text: str) -> list[str]:
    return [character for character in text.casefold() if character.isalnum()]


@given(st.lists(st.sampled_from(ORDINARY[:3] + ORDINARY[5:6]), min_size=1, max_size=4))
def test_lower_cased_tokens_come_back(sentences):
    """Words in lower case with a space around every sign, as many word-level models write them."""
    for text in sentences:
        if '"' not in text and "–" not in text and "..." not in text:
            spaced = " ".join(re.findall(r"\w+|[^\w\s]", text.lower()))
            assert restore_surface(spaced, text) == text


def test_a_long_text_takes_no_long_time():
    text = "' " * 2_000 + "a , " * 2_000 + '" ' * 2_000 + "x-" * 2_000
    assert letters(restore_surface(text, text)) == letters(text)


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("i met o ' neill .", "Have you met O'Neill?", "I met O'Neill."),
        ("d ’ angelo sings", "It is D’Angelo who sings", "D’Angelo sings"),
        ("she works at l'oréal", "Her employer is L'Oréal", "She works at L'Oréal"),
        ("do you know c + + ?", "Have you learnt C++?", "Do you know C++?"),
        ("i write c # code", "My code is in C#", "I write C# code"),
        ("they used # metoo", "It was #MeToo that they used", "They used #MeToo"),
        ("ask @ ann now", "Now ask @Ann", "Ask @Ann now"),
        ("it's ann's", "That is Ann's, it's said", "It's Ann's"),
    ],
)
def test_names_with_signs(text, source, expected):
    assert restore_surface(text, source) == expected
    assert restore_surface(expected, source) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Stock\u00adholm", "Stockholm"),
        ("\ufeffA\u2060B\u200b \u202aC\u202c", "AB C"),
        ("\U0001f469\u200d\U0001f4bb and \U0001f3f3\ufe0f\u200d\U0001f308", None),
        ("\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e007f", None),
        ("क\u094d\u200dष and می\u200cخواهم", None),
        ("a\u200db", "ab"),
        ("\u06001", None),
        ("plain", None),
    ],
)
def test_what_nobody_sees_is_dropped(text, expected):
    assert drop_invisible(text) == (text if expected is None else expected)
