from __future__ import annotations

from pathlib import Path

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.protected_text import KEPT, check_keep, find_change, find_kept, parse_keep

FOUND = [
    ("names", "Where can I buy a cheap keyboard in Stockholm?", ["Stockholm"]),
    ("names", "Paris is nice. Rome is nicer, says Mr. Smith of St. Louis.", ["Mr", "Smith", "St", "Louis"]),
    ("names", "a layer of 5 µm has 10 kΩ", ["µm", "kΩ"]),
    ("names", "NASA and McDonald bought an iPhone, and so did I.", ["NASA", "McDonald", "iPhone"]),
    ("names", "Écoles à Zürich et cafe\u0301s in Ko\u0308ln", ["Zürich", "Köln"]),
    ("names", "we saw O'Brien and Jean-Luc", ["O", "Brien", "Jean", "Luc"]),
    ("names", "он живёт в Москве с ǅemal", ["Москве", "ǅemal"]),
    ("names", "我 爱 Paris", ["Paris"]),
    (
        "names",
        "Maria Lindholm arrived. J. Smith left, and so did A. Lee.",
        ["Maria", "Lindholm", "J", "Smith", "A", "Lee"],
    ),
    (
        "names",
        "Mr. Smith, J.K. Rowling and I left. I. Newton stayed.",
        ["Mr", "Smith", "J", "K", "Rowling", "I", "Newton"],
    ),
    ("names", "Jean-Luc came. O'Brien left. Al-Jazeera knew.", ["Jean", "Luc", "O", "Brien", "Al", "Jazeera"]),
    ("names", "Maria and Anna came. Ola, Bo and Eva left.", ["Maria", "Anna", "Ola", "Bo", "Eva"]),
    ("names", "Maria’s brother left. It's Bo. Today's bus is late.", ["Maria", "Bo"]),
    ("names", "Stockholm is cold, but I love Stockholm.", ["Stockholm"]),
    ("names", "Visit Rome. In Oslo it rains. However, Ann came. Luckily, Bo left.", ["Rome", "Oslo", "Ann", "Bo"]),
    ("names", "Will Ann come? Will Smith did.", ["Ann", "Will", "Smith"]),
    ("names", "Maria arrived. So I left.", []),
    ("names", "How To Cook Rice", []),
    ("names", "HOW DO I COOK", []),
    ("names", "", []),
    ("numbers", "It cost $1,000,000.50 or 12'000 at 12:30 on 24/7", ["1000000.50", "12000", "12:30", "24/7"]),
    ("numbers", "1,00 is not 100, nor is 1.000 or 10 000", ["1,00", "100", "1.000", "10", "000"]),
    ("numbers", "from 2010-2015 at −5 and -5.", ["2010-2015", "-5"]),
    (
        "numbers",
        "on 2023-05-12, 2010–2015, v1.2.3, +49 555-1234",
        ["2023-05-12", "2010-2015", "1.2.3", "49", "555-1234"],
    ),
    ("numbers", "1,00,000 or 100000, .5 or 0.5, -.5", ["100000", "0.5", "-0.5"]),
    (
        "placeholders",
        "Hi {name}, {{ user.id }} has %d of %(all)s: ${x}, <%= y %>, %.2f",
        ["{name}", "{{ user.id }}", "%d", "%(all)s", "${x}", "<%= y %>", "%.2f"],
    ),
    ("placeholders", "%1$s, %ld and %@ of ${user name}", ["%1$s", "%ld", "%@", "${user name}"]),
    ("placeholders", "100% sure, 5 % discount, { a b }", []),
    ("mentions", "@Ann and #MeToo by @a_b.c, not me@x.org nor #1 nor a#b", ["@Ann", "#MeToo", "@a_b.c"]),
    ("terms", "https://x.org/a&b, www.x.org/C++ and {AT&T} of Node.js", ["Node.js"]),
    ("numbers", "5 of https://x.org/2023/05, a7@x.org and %1$s in 2020", ["5", "2020"]),
    ("urls", "on example.com, x.io/a-b_(c) and a.b.org/x?y=1.", ["example.com", "x.io/a-b_(c)", "a.b.org/x?y=1"]),
    ("urls", "me@example.com, e.g./i.e., and/or, Node.js, end.Then 1.5kg/m", []),
    ("terms", "C++ and C# on .NET with Node.js at AT&T; C", ["C++", "C#", ".NET", "Node.js", "AT&T"]),
    ("numbers", "½ of 10² is not 102, and ٣٤ is ３４ but Ⅷ", ["½", "10²", "102", "34", "Ⅷ"]),
    ("numbers", "covid19 for 3rd B2B, three times", ["19", "3", "2"]),
    ("numbers", "三 is a word, 一二 too", []),
    ("urls", "see (https://a.org/wiki/Foo_(bar)), or www.x.org.", ["https://a.org/wiki/Foo_(bar)", "www.x.org"]),
    ("urls", "HTTP://X.org/?a=b&c=d#e, «ftp://a.b/ü»", ["HTTP://X.org/?a=b&c=d#e", "ftp://a.b/ü"]),
    ("urls", "http and ftp are protocols", []),
    ("addresses", "Mail a.b+c@d-e.co.uk, or 'ö@ü.de'.", ["a.b+c@d-e.co.uk", "ö@ü.de"]),
    ("addresses", "me @ home, a@b", []),
    ("code", "run `x = 1`, ``a`b`` and `` ` ``; not `this", ["x = 1", "a`b", "`"]),
    ("quotes", 'He said “Hello,” «oui», „ja“, 「はい」 and "x  y".', ["Hello", "oui", "ja", "はい", "x y"]),
    ("quotes", "‘it’s me’ but don’t, won't, 'no'", ["it’s me"]),
    ("quotes", '"" and 5" of it', []),
]


@pytest.mark.parametrize(("kind", "text", "expected"), FOUND)
def test_what_is_found(kind: str, text: str, expected: list[str]) -> None:
    assert find_kept(text, kind) == expected


CHANGES = [
    # Names move to the beginning of a sentence and back.
    ("I live in Paris.", "Paris is where I live.", "names", None),
    ("Paris is where I live.", "I live in Paris.", "names", None),
    ("I live in Paris.", "I live in Rome.", "names", "loses 'Paris' (names)"),
    ("I live in town.", "I live in Rome.", "names", "invents 'Rome' (names)"),
    ("I live in Paris.", "I live in paris.", "names", "loses 'Paris' (names)"),
    ("Maria Lindholm arrived.", "Mary Lindholm arrived.", "names", "loses 'Maria' (names)"),
    ("Maria Lindholm arrived.", "Lindholm arrived.", "names", "loses 'Maria' (names)"),
    ("Lindholm arrived.", "Maria Lindholm arrived.", "names", "invents 'Maria' (names)"),
    ("J. Smith arrived.", "K. Smith arrived.", "names", "loses 'J' (names)"),
    ("Maria and Anna came.", "Mary and Anna came.", "names", "loses 'Maria' (names)"),
    ("Maria's brother came.", "Mary's brother came.", "names", "loses 'Maria' (names)"),
    ("Stockholm is cold, as Stockholm is.", "It is cold, as Oslo is.", "names", "loses 'Stockholm' (names)"),
    ("Visit Rome.", "See Rome.", "names", None),
    ("Many Swedes like it.", "It is liked by many Swedes.", "names", None),
    ("President Obama came.", "Obama, the president, came.", "names", None),
    ("cafe\u0301s in Ko\u0308ln", "Köln has cafés", "names", None),
    ("It costs 1,000 euros.", "You pay 1000 euros.", "numbers", None),
    ("It costs 1000 euros.", "You pay 100 euros.", "numbers", "loses '1000' (numbers)"),
    ("It costs much.", "You pay 100 euros.", "numbers", "invents '100' (numbers)"),
    ("At −5 degrees", "It has -5 degrees", "numbers", None),
    ("At 5 degrees", "It has -5 degrees", "numbers", "loses '5' (numbers)"),
    ("٣ cats", "3 cats", "numbers", None),
    ("on 2023-05-12", "on 2023-12-05", "numbers", "loses '2023-05-12' (numbers)"),
    ("call 555-1234", "call 1234-555", "numbers", "loses '555-1234' (numbers)"),
    ("from 5 to 10", "from 10 to 5", "numbers", "changes the order of 5, 10 (numbers)"),
    ("5 eggs and 5 cups", "5 eggs and cups", "numbers", "loses '5' (numbers)"),
    ("5 eggs and cups", "5 eggs and 5 cups", "numbers", "invents '5' (numbers)"),
    ("It is .5 of it", "Of it, 0.5", "numbers", None),
    ("call 555\u20111234", "dial 555-1234", "numbers", None),
    ("%s of %d", "of %d the %s", "placeholders", "changes the order of %s, %d (placeholders)"),
    ("{} in {language}", "In {language}, {}", "placeholders", None),
    ("%1$s of %2$s", "of %2$s the %1$s", "placeholders", None),
    ("In 2020 see https://x.org/5", "See https://x.org/5 in 2020", "numbers", None),
    ("1,00,000 people", "100000 persons", "numbers", None),
    ("Choose {language}", "Choose a language", "placeholders", "loses '{language}' (placeholders)"),
    ("%s and %s", "%s", "placeholders", "loses '%s' (placeholders)"),
    ("I met @Ann.", "I met Ann.", "mentions", "loses '@Ann' (mentions)"),
    ("#MeToo is a hashtag", "MeToo is a hashtag", "mentions", "loses '#MeToo' (mentions)"),
    ("I write C++", "I write C", "terms", "loses 'C++' (terms)"),
    ("See www.a.org.", "Look at www.a.org", "urls", None),
    ("See www.a.org/A.", "Look at www.a.org/a", "urls", "loses 'www.a.org/A' (urls)"),
    ("Mail a@b.de.", "Write to c@b.de.", "addresses", "loses 'a@b.de' (addresses)"),
    ("Run `ls -l`.", "Call `ls -l`!", "code", None),
    ("Run `ls -l`.", "Call `ls  -l`!", "code", "loses 'ls -l' (code)"),
    ("He said “yes”.", '"Yes," said he.', "quotes", "loses 'yes' (quotes)"),
    ("He said “yes.”", '"yes," said he.', "quotes", None),
    ("", "", "names", None),
]


@pytest.mark.parametrize(("source", "candidate", "kind", "reason"), CHANGES)
def test_what_is_lost_or_invented(source: str, candidate: str, kind: str, reason: str | None) -> None:
    assert find_change(source, candidate, [kind]) == reason
    others = [other for other in KEPT if other != kind]
    assert reason is None or find_change(source, candidate, [*others, kind]) is not None
    assert find_change(source, candidate, []) is None


@pytest.mark.parametrize(
    ("source", "candidate", "kind"),
    [
        ("I live in Paris.", "paris is where i live", "names"),
        ("STRASSE in Köln", "straße in köln", "names"),
        ("See www.a.org/A.", "look at www.a.org/a", "urls"),
        ("He said “Yes”.", '"yes" said he', "quotes"),
    ],
)
def test_case_may_be_ignored(source: str, candidate: str, kind: str) -> None:
    assert find_change(source, candidate, [kind]) is not None or kind == "names"
    assert find_change(source, candidate, [kind], ignore_case=True) is None
    assert find_change("We live in Rome.", candidate, ["names"], ignore_case=True) == "loses 'Rome' (names)"


def test_kinds_are_checked() -> None:
    assert check_keep("names") == ("names",) and check_keep(()) == ()
    assert check_keep(["names", "umbrella"]) == ("names", "umbrella")
    for entry in ("number", "NUMBERS"):
        with pytest.raises(InputError, match=f"'{entry}' is near to the kind 'numbers'"):
            check_keep(["names", entry])
    for entry in ("", " ", '""', 3, None):
        with pytest.raises(InputError, match="words of your own, not"):
            check_keep([entry])


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        ("Umbrella or no umbrella, use C+.", None),
        ("An umbrella, use C+.", "loses 'umbrella' (umbrella)"),
        ("Umbrellas or an umbrella, C+.", "loses 'umbrella' (umbrella)"),
        ("Umbrella, umbrella, umbrella and C+.", "invents 'umbrella' (umbrella)"),
        ("Umbrella or no umbrella, use C.", "loses 'C+' (C+)"),
    ],
)
def test_words_of_the_caller(candidate: str, reason: str | None) -> None:
    keep = check_keep(["umbrella", "C+"])
    assert find_change("An umbrella is an umbrella, see C+.", candidate, keep) == reason


def test_words_that_kinds_are_called_by() -> None:
    keep = check_keep(parse_keep('"number","numbers","names, addresses" , urls'))
    assert keep == ("number", "numbers", "names, addresses", "urls")
    assert find_change("A number, or numbers", "A digit, or numbers", keep) == "loses 'number' (number)"
    assert find_change("A number, or numbers", "A number, or digits", keep) == "loses 'numbers' (numbers)"
    assert find_change("names, addresses of 5", "names of 6", keep) == "loses 'names, addresses' (names, addresses)"
    assert find_change("Number 5 in Oslo", "Number 6 in Rome", keep) is None
    assert find_change("2 numbers and 3 numbers", "3 numbers and 2 numbers", check_keep(['"numbers"'])) is None
    assert check_keep(check_keep(['"numbers"'])) == ("numbers",) and parse_keep("none") == []


def test_a_file_of_terms(tmp_path: Path) -> None:
    path = tmp_path / "terms.txt"
    path.write_text("\ufeffumbrella\r\n\n  names \nNew  Age", encoding="utf-8")
    assert check_keep(path) == check_keep([path]) == ("umbrella", "names", "New  Age")
    keep = check_keep(["numbers", path])
    assert find_change("An umbrella for 5", "A parasol for 5", keep) == "loses 'umbrella' (umbrella)"
    assert find_change("Ann names it", "Bo names it", keep) is None
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="terms.txt has no line with text"):
        check_keep([path])


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        ("Angela Merkel fuhr mit einem BMW nach Hause.", None),
        ("Mit dem BMW kam Angela Merkel zu ihrer Wohnung.", None),
        ("Angela Müller fuhr mit einem BMW nach Hause.", "loses 'Merkel' (names)"),
        ("Angela Merkel fuhr mit einem Auto nach Hause.", "loses 'BMW' (names)"),
        ("Angela Merkel fuhr mit einem BMW zu Olaf Scholz.", "invents 'Olaf' (names)"),
    ],
)
def test_german_nouns_are_no_names(candidate: str, reason: str | None) -> None:
    source = "Gestern fuhr Angela Merkel mit ihrem BMW in das Haus."
    assert find_change(source, candidate, check_keep(["names"], "de-AT")) == reason
    assert find_change(source, candidate, check_keep(["names"])) is not None


def test_names_need_capital_letters() -> None:
    with pytest.raises(InputError, match="capital letters, which 'zh-TW' does not have: leave `names` out"):
        check_keep(["names"], "zh-TW")
    assert check_keep(['"names"', "numbers"], "ja") == ("names", "numbers")


def test_no_placeholder_changes_its_case() -> None:
    reason = "loses '{Name}' (placeholders)"
    assert find_change("Hi {Name}", "hi {name}", ["placeholders"], ignore_case=True) == reason
