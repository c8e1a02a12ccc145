"""Where sentences start and end, in English and other languages."""

from __future__ import annotations

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.prose import WINDOW, check_language, find_sentence_ranges


@pytest.mark.parametrize(
    "sentences",
    [
        ["It rained.[1]", "She left."],
        ["It rained.[1][2]", "She left."],
        ["He took vitamin C.", "Doctors agreed."],
        ["See Tab. 2.", "It shows all."],
        ["See Fig. 3 and Eq. 4 there.", "Then go on."],
        ["Yahoo! to the rescue of users.", "It came late."],
        ["Il a dit « Bonjour. Ça va ? » et partit.", "Fin de l'histoire."],
        ["Dr. Smith met Mr. O'Neill at 5 p.m.", "They left."],
        ["I work at Apple Inc. in the U.S. and like it."],
        ["She said no.", "I agreed."],
        ["He asked (was it wise?) and left.", "Nobody knew."],
        ["It ended …", "Then it began."],
        ["The price is 3.50 euros.", "That is a lot!", "Is it?"],
        ["Er kam z. B. am 3. Mai an.", "Dann ging er."],
    ],
)
def test_sentences_with_spaces(sentences):
    language = "de" if sentences[0].startswith("Er") else "en"
    text = "  " + " ".join(sentences) + " "
    assert [text[start:end] for start, end in find_sentence_ranges(text, language)] == sentences


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("zh", ["你好。", "我是学生。", "他走了！"]),
        ("ja", ["今日は雨です。", "「行く。」と言った。", "明日は晴れです。"]),
        ("en", ["你好。", "我是学生。", "他走了！"]),
    ],
)
def test_sentences_without_spaces(language, sentences):
    text = "".join(sentences)
    assert [text[start:end] for start, end in find_sentence_ranges(text, language)] == sentences


def test_hindi():
    sentences = ["यह एक वाक्य है।", "यह दूसरा है।"]
    text = " ".join(sentences)
    assert [text[start:end] for start, end in find_sentence_ranges(text, "hi")] == sentences


def test_nothing_visible_is_lost_in_long_text():
    text = 'He said "it is so. ' + "It rained all day long (as ever). " * (3 * WINDOW // 30)
    found = find_sentence_ranges(text)
    assert "".join(text[start:end] for start, end in found).replace(" ", "") == text.replace(" ", "")
    assert all(end <= start for (_, end), (start, _) in zip(found, found[1:], strict=False))


@pytest.mark.parametrize("language", ["", "english language", 3, None])
def test_what_is_no_language(language):
    with pytest.raises(InputError, match="`language`"):
        check_language(language)
