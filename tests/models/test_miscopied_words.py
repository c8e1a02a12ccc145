"""Rare words that were copied wrongly become the source's own."""

import pytest

from hf_paraphrase.models.text.unknown_words import mend_miscopied_words


class Syllables:
    """Two letters a sub-word; short words are one."""

    def tokenize(self, word):
        return [word] if len(word) < 6 else [word[place : place + 2] for place in range(0, len(word), 2)]


@pytest.mark.parametrize(
    ("source", "written", "mended"),
    [
        ("Duraimurugan met Agrippina.", "Agrippina saw Duraimrugan's son.", "Agrippina saw Duraimurugan's son."),
        ("The rachis was long.", "The horrachis was long: a horrachis.", "The rachis was long: a rachis."),
        (
            "Musharraf spoke of Musharraf.",
            "Musharaf and Musharraf spoke.",
            "Musharaf and Musharraf spoke.",
        ),  # not lost
        ("The entrepreneur resigned.", "The entrepreneurs resigned.", "The entrepreneurs resigned."),  # inflected
        ("The committee agreed.", "Everybody said yes.", "Everybody said yes."),  # resembles nothing
        ("A hat fell.", "A cat fell.", "A cat fell."),  # short words are known
        ("", "Duraimrugan", "Duraimrugan"),
    ],
)
def test_lost_words_take_the_place_of_what_resembles_them(source, written, mended):
    assert mend_miscopied_words(Syllables(), written, source.split()) == mended


def test_words_that_are_one_token_are_never_mended():
    class Words:
        def tokenize(self, word):
            return [word]

    assert mend_miscopied_words(Words(), "Duraimrugan", ["Duraimurugan"]) == "Duraimrugan"
