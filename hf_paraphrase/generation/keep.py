"""What a paraphrase must neither lose nor invent: names, numbers and the like, found by rules."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping

from ..datasets.sentences import split_by_rules
from ..errors import InputError

__all__ = ["KEPT", "check_keep", "find_change", "find_kept", "split_into_words"]

WORD = re.compile(r"[^\W_]+")
# Digits of any script, superscripts, fractions, Roman and circled numbers.
DIGIT = r"[\d²³¹¼-¾⁰-⁹₀-₉⅐-↉①-⒛⓪-⓿]"
SIGN = r"(?:(?<![\w)\]])[-−])?"
NUMBER = re.compile(rf"{SIGN}{DIGIT}+(?:[.,:/'’\u00a0\u202f]{DIGIT}+)*")
THOUSANDS = re.compile(r"(?<![\d.])(\d{1,3})((?:([,'’\u00a0\u202f])\d{3})(?:\3\d{3})*)(?!\d)")
URL = re.compile(r"(?:(?:https?|ftp)://|www\.)[^\s<>\"“”«»`]+", re.IGNORECASE)
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
CODE = re.compile(r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)", re.DOTALL)
QUOTE = re.compile(
    r"(?<![\w\"])\"([^\"]+)\"(?!\w)|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»|»([^«]+)«|‹([^›]+)›|「([^」]+)」|『([^』]+)』"
    r"|(?<!\w)‘((?:[^’]|’(?=\w))+)’"
)


def _find_numbers(text: str) -> Iterable[str]:
    text = "".join(_plain_digit(character) for character in text)
    for number in NUMBER.findall(text):
        yield THOUSANDS.sub(lambda found: re.sub(r"\D", "", found[0]), number.replace("−", "-"))


def _plain_digit(character: str) -> str:
    return str(unicodedata.decimal(character)) if character.isdecimal() else character


def _find_urls(text: str) -> Iterable[str]:
    for url in URL.findall(text):
        stripped = url.rstrip(".,;:!?'’*_")
        while stripped.endswith(")") and stripped.count(")") > stripped.count("("):
            stripped = stripped[:-1].rstrip(".,;:!?'’*_")
        yield stripped


def _find_addresses(text: str) -> Iterable[str]:
    return (address.strip(".") for address in ADDRESS.findall(text))


def _find_code(text: str) -> Iterable[str]:
    return (found["code"].strip() for found in CODE.finditer(text))


def _find_quotes(text: str) -> Iterable[str]:
    for groups in QUOTE.findall(text):
        words = " ".join("".join(groups).split()).rstrip(".,;")
        if words:
            yield words


def _find_names(text: str) -> Iterable[str]:
    words = [split_into_words(sentence) for sentence in split_by_rules(text)]
    cased = [word for sentence in words for word in sentence if word.lower() != word.upper()]
    if len(cased) > 1 and not any(word.islower() for word in cased):
        return  # in a headline, or in a text all in capitals, they tell nothing
    for sentence in words:
        for place, word in enumerate(sentence):
            shown = word[1:] if place == 0 else word
            if shown != shown.lower() and word != "I":
                yield word


def split_into_words(text: str) -> list[str]:
    """The words of a text, runs of letters and digits, in order."""
    return WORD.findall(unicodedata.normalize("NFC", text))


KEPT: Mapping[str, Callable[[str], Iterable[str]]] = {
    "names": _find_names,
    "numbers": _find_numbers,
    "urls": _find_urls,
    "addresses": _find_addresses,
    "code": _find_code,
    "quotes": _find_quotes,
}


def check_keep(keep: Iterable[str]) -> tuple[str, ...]:
    """Make a tuple of the kinds of what is kept.

    Raises:
        InputError: There is no such kind.
    """
    kinds = (keep,) if isinstance(keep, str) or not isinstance(keep, Iterable) else tuple(keep)
    for kind in kinds:
        if not isinstance(kind, str) or kind not in KEPT:
            raise InputError(f"`keep` may name {', '.join(KEPT)}, not {kind!r}")
    return kinds


def find_kept(text: str, kind: str) -> list[str]:
    """What of one kind stands in a text, each once, in order.

    Names are words with a capital letter, but for one that only begins a sentence, and but for I; where no word of
    several is in lower case, there are none. Acronyms and iPhone are names, and so is any German noun. Numbers are
    written in digits of any script, and equal with and without separators of thousands (but for full stops and
    spaces): three is none. Addresses are those of e-mail. Code stands between backticks, quoted text between double
    quotes, guillemets, or single ones that curl.

    Args:
        text: Any text.
        kind: A key of `KEPT`.
    """
    return list(dict.fromkeys(KEPT[kind](unicodedata.normalize("NFC", text))))


def find_change(source: str, candidate: str, keep: Iterable[str], *, ignore_case: bool = False) -> str | None:
    """Say what a candidate loses or invents, the first such thing; None where it does neither.

    A name is lost where its word stands nowhere in the candidate, and invented where it stands nowhere in the source:
    at the beginning of a sentence too, where nobody can tell that it is one. That a name now stands for something else
    is not seen; nor, in text without capitals, is one that is invented.

    Args:
        source: The text.
        candidate: Its paraphrase.
        keep: Keys of `KEPT`.
        ignore_case: Whether Stockholm may become stockholm, as a model that writes lower case only has it.
    """
    fold = str.casefold if ignore_case else str
    for kind in keep:
        before, after = ({fold(part): part for part in find_kept(text, kind)} for text in (source, candidate))
        there_before, there_after = before.keys(), after.keys()
        if kind == "names":
            there_before, there_after = (
                {fold(word) for word in split_into_words(text)} for text in (source, candidate)
            )
        lost = [part for key, part in before.items() if key not in there_after]
        invented = [part for key, part in after.items() if key not in there_before]
        if lost or invented:
            return f"loses {lost[0]!r} ({kind})" if lost else f"invents {invented[0]!r} ({kind})"
    return None
