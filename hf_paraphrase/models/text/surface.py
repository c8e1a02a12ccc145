"""The surface form of a text besides its words: capitals, and spaces around punctuation."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping
from itertools import zip_longest


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that have a capital where a sentence begins, or in a title, and are not names.
FUNCTION_WORDS = _words("""
    a about after all also am an and any are as at be because been before being best but by can could did do does
    during each ever every few for from had has have having he her here him his how i if in into is it its just like
    many me might more most much must my no not now of on once only or other our out over shall she should since so
    some such than that the their them then there these they this those through to too under until up very was we
    were what when where whether which while who whom whose why with without would you your
""")
# Words that distinguish English from languages in which i is a word.
ENGLISH_WORDS = _words("""
    and are can could did does have how should that the this was what when where which who why will with would you your
""")
# A full stop behind them ends no sentence.
ABBREVIATIONS = _words("approx co corp dr etc inc jr ltd mr mrs ms prof sr st vs")

# O'Neill is one word; it's, one and its ending.
WORD = re.compile(r"[^\W_]+(?:(?:[.&]|['’](?!(?:s|m|d|t|re|ve|ll)\b))[^\W_]+)*", re.IGNORECASE)
# The end of a sentence and what opens the next one; an ellipsis ends none.
SENTENCE_START = re.compile(r"(?:^|(?<!\.)[.!?]\s)\s*[(\[\"'“‘¿¡]*(?=[^\W\d_])")
CONTRACTED_I = re.compile(r"(?<![\w.'’&/(-])i(?=['’](?:m|ve|ll|d)\b)")
SMALL_I = re.compile(r"(?<![\w.'’&/(-])i(?=[\s,;:!?]|$|\.(?!\w))")
# What the source joins by something that is neither letter nor space: well-known, and/or, 1,000.5, don't, C++, @Ann.
JOINED = re.compile(r"[@#]?\w+(?:[^\w\s]+\w+)+|\w+(?:\+\+|#)(?!\w)|(?<!\w)[@#](?!\d+\b)\w+")
# An apostrophe with a space on both sides.
APOSTROPHE = re.compile(r"(?<!\S)['’](?!\S)")

# Contractions, and the quotation marks of the Penn Treebank: what apostrophes are before they are single quotes.
APOSTROPHES = (
    (re.compile(r"(?<=\w) (['’]) ?(s|m|d|t|re|ve|ll)(?![\w'’-])"), r"\1\2"),
    (re.compile(r"(?<=\w) (n['’]t)(?!\w)"), r"\1"),
    (re.compile(r"(?<!\S)` ?` (?=\S)"), '"'),
    (re.compile(r"(?<=\S) ' ?'(?!\S)"), '"'),
)
# Spaces that ordinary text does not have, identified by their neighbours: not those next to a smiley or before .net,
# for example.
SPACES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r" {2,}", " "),
        (r"^\s+|\s+$", ""),
        (r"(?<!\d)(\d{1,3}) , (?=\d{3}(?!\d))", r"\1,"),
        (r"(?<!\d)(\d{1,3}) \. (?=\d)", r"\1."),
        (r"(?<!\d)(\d\d?) : (?=\d\d(?!\d))", r"\1:"),
        (r"(?<![^\s(])([$£€]) (?=\d)|(?<=[\s(])(#) (?=\d)", r"\1\2"),
        (r"(?<=\d) %(?!\S)", "%"),
        (r"(?<![. ]) ?\. \. \.(?! ?\.)", "..."),
        (r"(?<=[^\s:;]) (\.{3}|[.,!?…]+)(?=\s|$|[)\]\"'”’])", r"\1"),
        (r"(?<=[^\s:;]) ([:;]+)(?!\S)", r"\1"),
        (r"(?<=[(\[]) (?=[^\s)\]])", ""),
        (r"(?<=[^\s(\[:;]) (?=[)\]])", ""),
        (r"(?<=“) (?=\S)|(?<=\S) (?=”)", ""),
    )
]


# Format characters that are seen: signs before numbers and verses in Arabic, Syriac and Kaithi.
SHOWN_FORMATS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
JOINERS = "\u200c\u200d"
# Letters of scripts in which joiners change the form of a word: Arabic, and those of India and its neighbours.
JOINED_SCRIPTS = re.compile("[\u0600-\u06ff\u0750-\u077f\u0900-\u0dff\u1000-\u109f\u1780-\u17ff]")


def drop_invisible(text: str) -> str:
    """Leave out what nobody sees: soft hyphens, byte order marks, word joiners, marks of direction.

    They split words for a tokenizer. Joiners stay within emoji and in words of scripts that need them, and so do the
    letters of flags.
    """
    if text.isascii():
        return text
    kept: list[str] = []
    for place, character in enumerate(text):
        is_seen = unicodedata.category(character) != "Cf" or character in SHOWN_FORMATS
        if is_seen or _belongs(character, "".join(kept[-1:]), text[place + 1 : place + 2]):
            kept.append(character)
    return "".join(kept)


def _belongs(character: str, before: str, after: str) -> bool:
    """Whether a format character belongs to its neighbours."""
    if character in JOINERS:
        return (_is_pictogram(before) and _is_pictogram(after)) or bool(JOINED_SCRIPTS.match(before))
    is_tag = "\U000e0020" <= character <= "\U000e007f"
    return is_tag and (before == "\U0001f3f4" or "\U000e0020" <= before <= "\U000e007f")


def _is_pictogram(character: str) -> bool:
    # Variation selectors and skin tones follow a pictogram.
    return bool(character) and (unicodedata.category(character) in ("So", "Sk") or character == "\ufe0f")


def restore_surface(text: str, source: str = "") -> str:
    """Give a text the capitals and the spaces of ordinary English text.

    The beginnings of sentences and the word I get their capitals, other words the case that they have inside the
    sentences of the source, if that is one. Punctuation, brackets, quotation marks, contractions and numbers lose the
    spaces that tokens have around them, and words those around what joins them in the source, a hyphen for instance.
    Nothing else changes: capitals stay, no letter is added or lost, ordinary text is unchanged, and the function is
    idempotent.

    Args:
        text: What a model wrote.
        source: The source, in its original case.
    """
    cases, joined = _read_cases(source), {word.lower() for word in JOINED.findall(source)}
    # A text that begins with a capital has its own later capitals.
    first, before = SENTENCE_START.match(text), None
    begun = first is not None and text[first.end()].isupper()
    # Each round takes spaces away or makes capitals, so one is the last.
    while text != before:
        before = text
        text = _restore_words(_restore_spaces(text, joined), cases)
        text = text if begun else _begin_sentences(text)
    return text


def _restore_spaces(text: str, joined: Collection[str]) -> str:
    for word in joined:
        spaced = " ?".join(re.escape(part) for part in re.findall(r"\w+|[^\w\s]", word))
        text = re.sub(rf"(?<!\w){spaced}(?!\w)", lambda match: match.group().replace(" ", ""), text, flags=re.I)
    for pattern, replacement in APOSTROPHES:
        text = pattern.sub(replacement, text)
    text = _close_single_quotes(_close_quotes(text))
    for pattern, replacement in SPACES:
        text = pattern.sub(replacement, text)
    return text


def _close_quotes(text: str) -> str:
    """Take the spaces from within straight quotation marks, where they open and close in turn."""
    parts = text.split('"')
    outside, inside = parts[::2], parts[1::2]
    opens = all(not part or part[-1] in " \n([“‘-—" for part in outside[:-1])
    closes = all(not part or not part[0].isalnum() for part in outside[1:])
    if len(parts) % 2 == 0 or not (opens and closes):
        return text
    parts[1::2] = [part.strip(" ") for part in inside]
    return '"'.join(parts)


def _close_single_quotes(text: str) -> str:
    """The same for those that have a space on both sides; one alone behind an s makes a possessive."""
    marks = list(APOSTROPHE.finditer(text))
    if len(marks) == 1 and text[: marks[0].start()].endswith(("s ", "S ")):
        return text[: marks[0].start() - 1] + text[marks[0].start() :]
    if len(marks) % 2:
        return text
    drop = {mark.end() if number % 2 == 0 else mark.start() - 1 for number, mark in enumerate(marks)}
    return "".join(character for place, character in enumerate(text) if place not in drop)


def _read_cases(source: str) -> dict[str, str]:
    """Lower-cased words with their capitalised form in the source, if it is consistent."""
    starts = {match.end() for match in SENTENCE_START.finditer(source) if _ends_sentence(source, match)}
    words = list(WORD.finditer(source))
    inner = [match.group() for match in words if match.start() not in starts]
    is_title = not any(word.islower() and word not in FUNCTION_WORDS for word in inner) and any(
        word.istitle() and word != "I" and word.lower() in FUNCTION_WORDS for word in inner
    )
    if source.isupper() or is_title:
        return {}
    forms = defaultdict(set)
    for match, following in zip_longest(words, words[1:]):
        word = match.group()
        if match.start() not in starts or word[1:] != word[1:].lower():
            forms[word.lower()].add(word)
        elif following is not None and following.group()[0].isupper() and word.lower() not in FUNCTION_WORDS:
            # The first word of a sentence has its capital from there, unless it begins a name: then only there.
            name = source[match.start() : following.end()]
            forms[name.lower()].add(name)
    cases = {word: next(iter(written)) for word, written in forms.items() if len(written) == 1}
    return {
        word: written
        for word, written in cases.items()
        if word != written and word not in FUNCTION_WORDS and written.casefold() == word.casefold()
    }


def _restore_words(text: str, cases: Mapping[str, str]) -> str:
    def restore_word(match: re.Match) -> str:
        behind_apostrophe = text[: match.start()].endswith(("'", "’")) and text[: match.start() - 1][-1:].isalnum()
        return match.group() if behind_apostrophe else cases.get(match.group(), match.group())

    for name in cases:
        if " " in name:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", cases[name], text)
    text = CONTRACTED_I.sub("I", WORD.sub(restore_word, text))
    if not ENGLISH_WORDS.isdisjoint(text.lower().split()):
        text = SMALL_I.sub("I", text)
    return text


def _begin_sentences(text: str) -> str:
    characters = list(text)
    for match in SENTENCE_START.finditer(text):
        word = text[match.end() :].split(maxsplit=1)[0].rstrip(".,;:!?…)]\"'”’")
        # No capital for iPhone, example.com, me@example.com and snake_case.
        is_word = word == word.lower() and re.fullmatch(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", word)
        if is_word and _ends_sentence(text, match):
            characters[match.end()] = _capital(text[match.end()])
    return "".join(characters)


def _ends_sentence(text: str, match: re.Match) -> bool:
    """Whether the full stop at the start of a match of `SENTENCE_START` ends a sentence, not an abbreviation."""
    if not text[match.start() : match.end()].startswith("."):
        return True
    last = (text[: match.start()].split() or [""])[-1].lstrip("([\"'“‘")
    return last.lower() not in ABBREVIATIONS and not re.fullmatch(r"(?:[^\W\d_]\.)*(?!I)[^\W\d_]", last)


def _capital(letter: str) -> str:
    title = letter.title()
    return title if len(title) == 1 and title.casefold() == letter.casefold() else letter
