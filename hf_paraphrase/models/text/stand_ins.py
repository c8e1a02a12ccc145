"""Near signs in place of those that a tokenizer spells in bytes or replaces, which are put back into the outputs."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

from transformers import PreTrainedTokenizerBase

# The parts of an emoji, such as ❤️ and 👩‍🔬, are one sign.
WORD_OR_SIGN = re.compile(r"\w+|[\u2190-\u2bff\u200d\ufe0f\U0001f000-\U0001faff]+|[^\w\s]")
# What canonical decomposition does not take apart, and signs. µm is read as mm and kΩ as kW, since models copy units.
NEAR = str.maketrans(
    dict(zip("ÐðĐđıŁłØøµμΩ×£¥€₹‘’“”«»‐‑–—−", 'DdDdiLlOommWx$$$$\'\'""""-----', strict=True))
    | {"Æ": "Ae", "æ": "ae", "Œ": "Oe", "œ": "oe", "ß": "ss", "Þ": "Th", "þ": "th"}
)
QUOTES = ("“”", "«»")
# For words, emoji and currencies (the Unicode categories) without a near sign: models copy these marks as they stand.
MARKS = "*#"
MARKED = ("L", "N", "So", "Sc")
DIGITS = "0123456789"


def find_stand_ins(tokenizer: PreTrainedTokenizerBase, text: str) -> dict[str, str]:
    """Find what is to stand for the words and signs of a text that a tokenizer spells in bytes or replaces by others.

    A small model copies bytes badly, so it reads Zoë as Zoe, £20 as $20, m² as m2. Where letters are near to none that
    the tokenizer knows (Привет), for an emoji, and where the text has the near word too, a mark stands in: `*`, and
    `#` for another. Others and signs of mathematics, such as ≤, which a model might drop unseen, have no stand-in.

    Args:
        tokenizer: Any; one without pieces for bytes is left alone.
        text: The text.

    Returns:
        Words and signs of the text, in composed form (NFC), by what stands for them.
    """
    if text.isascii() or tokenizer.convert_tokens_to_ids("<0xC3>") in (None, tokenizer.unk_token_id):
        return {}
    words = dict.fromkeys(WORD_OR_SIGN.findall(unicodedata.normalize("NFC", text)))
    near = {word: _fold(word) for word in words if not word.isascii() and not _is_read_whole(tokenizer, word)}
    for quotes in QUOTES:
        if near.keys() >= set(quotes):
            near[quotes] = near.pop(quotes[0])
            del near[quotes[1]]
    taken = Counter(map(str.lower, words)) + Counter(map(str.lower, near.values()))
    found = {
        other: word
        for word, other in near.items()
        if WORD_OR_SIGN.fullmatch(other) and taken[other.lower()] == 1 and _is_read_whole(tokenizer, other)
    }
    left = [word for word in near if word not in found.values() and unicodedata.category(word[0]).startswith(MARKED)]
    marks = (mark for mark in MARKS if mark not in text and _is_read_whole(tokenizer, mark))
    return found | dict(zip(marks, left, strict=False))


def put_stand_ins(text: str, stand_ins: Mapping[str, str]) -> str:
    """Put what `find_stand_ins` found into its text, or into another."""
    if not stand_ins:
        return text
    others = {word: other for other, word in stand_ins.items()}
    for quotes in QUOTES:
        others |= dict.fromkeys(quotes, others[quotes]) if quotes in others else {}
    return WORD_OR_SIGN.sub(lambda match: others.get(match[0], match[0]), unicodedata.normalize("NFC", text))


def put_back(text: str, stand_ins: Mapping[str, str]) -> str:
    """Put the words and signs themselves into an output, also where a sentence begins with one."""
    if not stand_ins:
        return text
    words = {_capitalize(other): _capitalize(word) for other, word in stand_ins.items()} | dict(stand_ins)

    def restore(match: re.Match[str]) -> str:
        word, unit = words.get(match[0], match[0]), match[0].lstrip(DIGITS)
        if unit in words and word == match[0]:  # 20mg, which the text has as 20 µg
            word = f"{match[0].removesuffix(unit)} {words[unit]}".lstrip()
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        if word in QUOTES:
            is_closing = before.isalnum() or before in tuple(".,;:!?…)")
            return word[is_closing]
        # The text's minus sign or dash is not the hyphen of a word that the output has.
        return match[0] if match[0] == "-" and before.isalpha() and after.isalpha() else word

    return WORD_OR_SIGN.sub(restore, text)


def _fold(word: str) -> str:
    """The nearest word without diacritics."""
    parts = unicodedata.normalize("NFKD", word.translate(NEAR))
    return "".join(character for character in parts if not unicodedata.combining(character))


def _is_read_whole(tokenizer: PreTrainedTokenizerBase, word: str) -> bool:
    """Whether a tokenizer makes pieces of the word's own letters and signs."""
    pieces = tokenizer.tokenize(word)
    read = "".join(pieces).replace("▁", "")
    return not any(piece.startswith("<0x") for piece in pieces) and read.casefold() == word.casefold()


def _capitalize(word: str) -> str:
    return word[:1].upper() + word[1:]
