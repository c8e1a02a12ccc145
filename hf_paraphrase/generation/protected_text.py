"""What a paraphrase must neither lose nor invent: names, numbers and similar items, and the caller's own words."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise

from ..common.errors import InputError
from ..common.files import open_text
from ..datasets.sentences import STARTERS, split_by_rules
from ..models.text.surface import FUNCTION_WORDS
from .prose import check_language

WORD = re.compile(r"[^\W_]+")
OPENING_WORDS = """
    above across against along among anyone anything around ask behind below between beyond bring buy call check
    choose come compare consider dear despite don either everybody everyone everything finally find first follow
    former furthermore get give go hello help hence hey hi hopefully indeed inside instead join keep later learn
    leave let life look maybe meanwhile meet moreover near neither nevertheless next nobody none nor nothing off ok
    okay otherwise outside people per perhaps please read recently remember say second see send sometimes somebody
    someone something sorry speak still take teach tell than thank thanks therefore third though thus today
    tomorrow tonight try unless unlike use via visit wait watch well whereas within world would write yes yesterday
    yet
"""
# What begins a sentence and is not part of the name that follows.
OPENERS = FUNCTION_WORDS | STARTERS | set(OPENING_WORDS.split())
# Names too, but where they ask: "Will Ann come?"
ASKING = {"may", "will"}
# What joins the first word to the rest of a name, or to another name: Ann Lee, J. Lee, Al-Jazeera, Ann and Bo.
JOINT = re.compile(r"(?:\.? |[ .]?[-‐/&'’.] ?)(?:and |or )?|, (?:and |or )?")
# Digits of any script, superscripts, fractions, Roman and circled numbers.
DIGIT = r"[\d²³¹¼-¾⁰-⁹₀-₉⅐-↉①-⒛⓪-⓿]"
SIGN = r"(?:(?<![\w)\]])[-−])?"
# What is joined is one piece: a date, a telephone number, a version, a range.
NUMBER = re.compile(rf"{SIGN}(?:(?<![\w.])\.)?{DIGIT}+(?:[.,:/'’\u00a0\u202f‐‑‒–−-]{DIGIT}+)*")
THOUSANDS = re.compile(r"(?<![\d.])(\d{1,3})((?:([,'’\u00a0\u202f])\d{3})(?:\3\d{3})*)(?!\d)")
# 1,00,000 is a hundred thousand in India.
LAKHS = re.compile(r"(?<![\d.,])\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])")
# With or without its protocol: example.org, x.io/path.
URL = re.compile(
    r"(?:(?:https?|ftp)://|www\.)[^\s<>\"“”«»`]+"
    r"|(?<![\w@.:/-])(?:[a-z0-9][a-z0-9-]*\.)+(?:[a-z]{2,}/[^\s<>\"“”«»`]*|(?:com|edu|gov|info|net|org)\b(?![\w@-]))",
    re.IGNORECASE,
)
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# Of templates and formats: {name}, {{ name }}, ${name}, %s, %(name)d, <%= name %>, [[name]].
PLACEHOLDER = re.compile(
    r"\{\{[^{}]*\}\}|\{%[^{}]*%\}|[$#]\{[^{}]*\}|\{[^{}\s]*\}|<%[^<>%]*%>|\[\[[^\[\]]*\]\]"
    r"|%(?:\(\w+\)|\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:(?:ll?)?[diux]|[sfgcXr@])(?!\w)"
)
# Those without a name are filled in their order.
POSITIONAL = re.compile(r"\{\}|%(?!\(|\d+\$)")
MENTION = re.compile(r"(?<![\w@#.&/+-])[@#](?=\w*[^\W\d])\w+(?:[.-]\w+)*")
# Names with signs: C++, C#, .NET, Node.js, AT&T.
TERM = re.compile(
    r"(?<![\w@#])(?:[A-Za-z]\w{0,9}(?:\+\+|#)|\.NET\b|\w+(?:&\w+)+|[A-Z]\w+\.(?:js|io|ai|net|py)\b)(?![\w+#])"
)
CODE = re.compile(r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)", re.DOTALL)
QUOTE = re.compile(
    r"(?<![\w\"])\"([^\"]+)\"(?!\w)|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»|»([^«]+)«|‹([^›]+)›|「([^」]+)」|『([^』]+)』"
    r"|(?<!\w)‘((?:[^’]|’(?=\w))+)’"
)


@lru_cache(maxsize=256)
def _leave_out_wholes(text: str) -> str:
    """A text without the items that are kept whole, whose parts would match other kinds by chance."""
    for whole in (URL, ADDRESS, PLACEHOLDER):
        text = whole.sub(" ", text)
    return text


def _find_numbers(text: str) -> Iterable[str]:
    text = _leave_out_wholes(text)
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in text)
    for number in NUMBER.findall(text):
        number = re.sub("[‐‑‒–−]", "-", number)
        number = re.sub(r"^(-?)\.", r"\g<1>0.", LAKHS.sub(_digits_of, number))
        yield THOUSANDS.sub(_digits_of, number)


def _digits_of(found: re.Match[str]) -> str:
    return re.sub(r"\D", "", found[0])


def _find_urls(text: str) -> Iterable[str]:
    for url in URL.findall(text):
        stripped = url.rstrip(".,;:!?'’*_")
        while stripped.endswith(")") and stripped.count(")") > stripped.count("("):
            stripped = stripped[:-1].rstrip(".,;:!?'’*_")
        yield stripped


def _find_quotes(text: str) -> Iterable[str]:
    for groups in QUOTE.findall(text):
        words = " ".join("".join(groups).split()).rstrip(".,;")
        if words:
            yield words


def _find_names(text: str) -> Iterable[str]:
    cased = [word for word in split_into_words(text) if word.lower() != word.upper()]
    if len(cased) > 1 and not any(word.islower() for word in cased):
        return  # in a headline, or in a text all in capitals, they tell nothing
    for sentence in split_by_rules(text):
        for place, found in enumerate(WORD.finditer(sentence)):
            word = found[0]
            shown = word[1:] if place == 0 else word
            if (shown != shown.lower() and word != "I") or word[0] in "µμ":
                yield word
            elif place == 0 and word[0].isupper() and _begins_name(word, sentence[found.end() :]):
                yield FirstWord(word)


def _find_names_among_nouns(text: str) -> Iterable[str]:
    """Names where every noun has a capital: words with a capital inside (BMW, iPhone), and neighbours (Ann Lee)."""
    for sentence in split_by_rules(text):
        words = list(WORD.finditer(sentence))
        names = {place for place, found in enumerate(words) if found[0][1:] != found[0][1:].lower()}
        for place, (first, second) in enumerate(pairwise(words)):
            is_joined = sentence[first.end() : second.start()] in (" ", "-")
            if place > 0 and is_joined and first[0][0].isupper() and second[0][0].isupper():
                names |= {place, place + 1}
        yield from (words[place][0] for place in sorted(names))


def _begins_name(word: str, rest: str) -> bool:
    """Whether the first word of a sentence is a name: its initial, or before a possessive s or another name."""
    lower, is_initial = word.lower(), len(word) == 1 and rest.startswith(".")
    if lower in OPENERS and not is_initial or lower in ASKING and rest.rstrip().endswith("?"):
        return False
    if rest[:2] in ("'s", "’s") and not rest[2:3].isalnum():
        return True
    joint = JOINT.match(rest)
    if joint is None or (lower.endswith("ly") and rest.startswith(",")):  # Luckily, Ann came
        return False
    following = WORD.match(rest, joint.end())
    return following is not None and following[0][0].isupper() and following[0] != "I"


def split_into_words(text: str) -> list[str]:
    """The words of a text, runs of letters and digits, in order."""
    return WORD.findall(unicodedata.normalize("NFC", text))


KEPT: Mapping[str, Callable[[str], Iterable[str]]] = {
    "names": _find_names,
    "numbers": _find_numbers,
    "urls": _find_urls,
    "addresses": lambda text: (address.strip(".") for address in ADDRESS.findall(text)),
    "placeholders": PLACEHOLDER.findall,
    "mentions": MENTION.findall,
    "terms": lambda text: TERM.findall(_leave_out_wholes(text)),
    "code": lambda text: (found["code"].strip() for found in CODE.finditer(text)),
    "quotes": _find_quotes,
}


# What nobody can do without; code and quoted text are at times to be reworded.
DEFAULT_KEEP = ("names", "numbers", "urls", "addresses", "placeholders", "mentions", "terms")
# Of these, and of words of the caller's own, how many there are counts too.
COUNTED = ("numbers", "placeholders", "mentions", "words")


# Where every noun has a capital letter, and where no letter is one.
CAPITAL_NOUNS = frozenset(("de", "gsw", "lb", "nds"))
CASELESS_CODES = "am ar bn bo dv fa gu he hi ja kn ko km lo ml mr my ne or pa ps sd si ta te th ti ug ur yi zh"
CASELESS = frozenset(CASELESS_CODES.split())


class CapitalNouns(str):
    """The kind `names` where every noun has a capital letter."""


class FirstWord(str):
    """A name at the beginning of a sentence, which may well be a word in lower case elsewhere."""


class Word(str):
    """A word of the caller's own, even if a kind has the same name."""


def check_keep(keep: Iterable[str | os.PathLike] | os.PathLike, language: str = "en") -> tuple[str, ...]:
    """Make a tuple of the kinds to keep, with a `Word` for each of the caller's own words.

    Args:
        keep: Kinds, words, and paths of files with a word or term on each line.
        language: The code of the texts' language. In German, where every noun has a capital letter, only words with
            a capital inside (BMW) and capital words side by side (Angela Merkel) are names; a lone one, such as Köln,
            must be given as a word.

    Raises:
        InputError: An entry is not a text with words or signs, or looks like a misspelt kind; a file has no words; the
            language is no code, or names are asked for in one without capital letters.
    """
    check_language(language)
    entries = (keep,) if isinstance(keep, str) or not isinstance(keep, Iterable) else keep
    checked: list[str] = []
    for entry in entries:
        checked += _read_terms(entry) if isinstance(entry, os.PathLike) else [_check_entry(entry)]
    main = language.lower().partition("-")[0]
    if main in CASELESS and any(one == "names" and not isinstance(one, Word) for one in checked):
        raise InputError(
            f"`keep`: names are found by capital letters, which {language!r} does not have: leave `names` out, and "
            "give the names as words or in a file"
        )
    if main in CAPITAL_NOUNS:
        checked = [CapitalNouns(one) if one == "names" and not isinstance(one, Word) else one for one in checked]
    return tuple(checked)


def _read_terms(path: str | os.PathLike) -> list[str]:
    with open_text(path, encoding="utf-8-sig") as opened:
        terms: list[str] = [Word(line.strip()) for line in opened if line.strip()]
    if not terms:
        raise InputError(f"`keep`: {os.fspath(path)} has no line with text; it takes a word or term on each line")
    return terms


def _check_entry(entry: str) -> str:
    if not isinstance(entry, str) or not entry.strip(' "'):
        raise InputError(f"`keep` takes {', '.join(KEPT)}, and words of your own, not {entry!r}")
    if isinstance(entry, Word) or entry in KEPT:
        return entry
    if len(entry) > 2 and entry[0] == entry[-1] == '"':
        return Word(entry[1:-1])
    if near := get_close_matches(entry.lower(), KEPT, n=1, cutoff=0.8):
        raise InputError(
            f"`keep`: {entry!r} is near to the kind {near[0]!r}; it is one of {', '.join(KEPT)}, or, as a word, "
            f"'\"{entry}\"'"
        )
    return Word(entry)


def parse_keep(text: str) -> list[str]:
    """Parse a list of kinds and words, separated by commas outside double quotes; `none` keeps nothing."""
    return [] if text == "none" else [entry.strip() for entry in re.findall(r'(?:"[^"]*"|[^,])+', text)]


def find_kept(text: str, kind: str) -> list[str]:
    """The distinct items of a kind in a text, in order.

    Names are words with a capital letter, but for I; the first word of a sentence only before a possessive s or
    another name (Ann Lee; Mr. Lee; J. Lee; Ann and Bo), unless it is an ordinary one there (Visit Rome). A text
    without lower-case words has no names. Acronyms and iPhone are names, units with a sign (µm, kΩ) too, and so is any
    German noun (but see `check_keep`). Numbers are digits of any script; thousands separators other than full stops
    and spaces are ignored; number words such as "three" do not count. Joined digits, such as a date, are one number.
    Addresses are e-mail addresses. Placeholders are those of templates and format strings, mentions begin with @ or #,
    and terms are names with symbols, such as C++. Code is between backticks; quoted text between double quotes,
    guillemets or curly single quotes.

    Args:
        kind: A key of `KEPT`.
    """
    return list(dict.fromkeys(_find_all(text, kind)))


def _find_all(text: str, kind: str) -> list[str]:
    """All items of a kind, or occurrences of a caller's word, in a text, in order."""
    text = unicodedata.normalize("NFC", text)
    if isinstance(kind, CapitalNouns):
        return list(_find_names_among_nouns(text))
    return _find_word(text, unicodedata.normalize("NFC", kind)) if isinstance(kind, Word) else list(KEPT[kind](text))


# Of a text that is compared with each of its candidates. A kind and a word of the same letters differ in type.
@lru_cache(maxsize=256, typed=True)
def _find_once(text: str, kind: str) -> list[str]:
    return _find_all(text, kind)


def _find_word(text: str, word: str) -> list[str]:
    if word.casefold() not in text.casefold():
        return []  # soon said, of thousands of terms
    before, after = (r"(?<!\w)" if word[0].isalnum() else ""), (r"(?!\w)" if word[-1].isalnum() else "")
    return [word] * len(re.findall(before + re.escape(word) + after, text, re.IGNORECASE))


def find_change(source: str, candidate: str, keep: Iterable[str], *, ignore_case: bool = False) -> str | None:
    """Describe the first item that a candidate loses or invents; None where it does neither.

    A name is lost if its word is not in the candidate, and invented if it is not in the source.
    At the beginning of a sentence its case may change, and a lone word there is not a name. It does not notice when a
    name refers to something else, nor invented names in text without capitals. Numbers must come as often and in the
    same order: "from 5 to 10" is not "from 10 to 5". So must placeholders without a name; none may change its case.

    Args:
        keep: As `check_keep` returns it; words of the caller's own may change their case.
        ignore_case: Whether Stockholm may become stockholm, as a model that writes lower case only has it.
    """
    # İ in lower case is an i and a combining dot, which would end a word.
    source, candidate = (text.replace("İ", "I").replace("i\u0307", "i") for text in (source, candidate))
    for kind in keep:
        rule = "words" if isinstance(kind, Word) else kind
        fold = str.casefold if ignore_case and rule != "placeholders" else str
        before, after = _find_once(source, kind), _find_all(candidate, kind)
        if not before and not after:
            continue
        there_before, there_after = (Counter(map(fold, parts)) for parts in (before, after))
        if rule == "names":
            # Folded too, for first words.
            there_before, there_after = (
                Counter(form for word in split_into_words(text) for form in {fold(word), word.casefold()})
                for text in (source, candidate)
            )
        is_counted = rule in COUNTED
        lost = _find_missing(before, fold, there_after, is_counted)
        invented = _find_missing(after, fold, there_before, is_counted)
        if lost or invented:
            return f"loses {lost!r} ({kind})" if lost else f"invents {invented!r} ({kind})"
        if rule == "placeholders":
            before, after = (list(filter(POSITIONAL.match, parts)) for parts in (before, after))
        if rule in ("numbers", "placeholders") and before != after:
            return f"changes the order of {', '.join(before)} ({kind})"
    return None


def _find_missing(
    parts: Iterable[str], fold: Callable[[str], str], there: Counter[str], is_counted: bool
) -> str | None:
    """The first of some parts that is not there, or not as often."""
    met: Counter[str] = Counter()
    for part in parts:
        key = part.casefold() if isinstance(part, FirstWord) else fold(part)
        met[key] += 1
        if there[key] < (met[key] if is_counted else 1):
            return part
    return None
