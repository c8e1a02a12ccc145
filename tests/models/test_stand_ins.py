"""Near signs in place of those that a tokenizer spells in bytes."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from hf_paraphrase.models.text.stand_ins import find_stand_ins, put_back, put_stand_ins

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789$'\"-.,/*#éП"


def make_tokenizer(with_bytes=True):
    pieces = [("<unk>", 0.0), *((letter, -1.0) for letter in "▁" + LETTERS)]
    if with_bytes:
        pieces += [(f"<0x{number:02X}>", -9.0) for number in range(256)]
    backend = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=with_bytes))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Zoë paid £20 in Malmö.", "Zoe paid $20 in Malmo."),
        ("It isn’t “naïve”, she said.", 'It isn\'t "naive", she said.'),
        ("Straße and Œuvre of 5 m²", "Strasse and Oeuvre of 5 m2"),
        ("Zoe\u0308 wrote", "Zoe wrote"),  # decomposed
        ("café", "café"),  # its letters have pieces
        ("Привет, Zoë", "*, Zoe"),  # nothing is near
        ("Köln is Koln", "* is Koln"),  # which is meant could not be told
        ("£20 or €25", "*20 or #25"),
        ("5 µm by 3 kΩ × 2", "5 mm by 3 kW x 2"),
        ("«No» and “yes” 👩‍🔬", "«No» and “yes” *"),  # one of them could not be told from the other
        ("We ❤️ x ≤ 5 * 3", "We # x ≤ 5 * 3"),
        ("plain", "plain"),
    ],
)
def test_texts_are_read_with_near_signs_and_get_their_own_back(tokenizer, text, read):
    stand_ins = find_stand_ins(tokenizer, text)
    assert put_stand_ins(text, stand_ins) == read
    composed = text.replace("e\u0308", "ë")
    assert put_back(read, stand_ins) == composed


def test_a_stand_in_is_put_back_wherever_the_output_has_it(tokenizer):
    stand_ins = find_stand_ins(tokenizer, "She said “no” to the naïve man near Malmö.")
    assert put_back('Naive men of Malmo\'s were told: "No." (Or "no"?)', stand_ins) == (
        "Naïve men of Malmö's were told: “No.” (Or “no”?)"
    )


def test_a_unit_is_put_back_behind_its_number(tokenizer):
    stand_ins = find_stand_ins(tokenizer, "Take 20 µg of 12ë.")
    assert put_back("Take 20mg or 20 mg of 12e.", stand_ins) == "Take 20 µg or 20 µg of 12ë."


def test_a_minus_sign_or_a_dash_is_no_hyphen(tokenizer):
    stand_ins = find_stand_ins(tokenizer, "It fell to −5 degrees.")
    assert put_back("The well-known -5 degrees: - and 1-2.", stand_ins) == "The well-known −5 degrees: − and 1−2."


def test_a_tokenizer_without_bytes_has_no_stand_ins():
    assert find_stand_ins(make_tokenizer(with_bytes=False), "Zoë paid £20.") == {}
