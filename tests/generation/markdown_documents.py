"""Markdown documents to try what rewrites documents on: composed from a seed, and nasty ones written by hand."""

from __future__ import annotations

import random
import textwrap

SUBJECTS = [
    "The old ferry",
    "A patient gardener",
    "Our neighbour's cat",
    "Nobody in Uppsala",
    "The night train",
    "She",
]
VERBS = ["carried", "counted", "painted", "forgot", "looked after", "asked for", "sold", "measured"]
OBJECTS = [
    "seven lanterns",
    "a box of letters",
    "the narrow bridge",
    "two kilos of plums",
    "an empty house",
    "Érik's map",
]
TAILS = ["before the rain came", "on the way to Malmö", "while the others slept", "for 3.5 hours", "again", "in No. 7"]
ENDS = [".", ".", ".", "!", "?", "…"]

SPANS = [
    "`a  b. C`",
    "``x ` y``",
    "[a link](https://example.org/a_b?c=d. 'Its title')",
    "[Two of them. In one link!](<u v>)",
    "[by name][ref]",
    "[ref]",
    "![a picture. Of it](p.png)",
    "<https://example.org/x>",
    "https://example.org/y_z_w?q=*1*",
    "ann@example.org",
    "*leaning*",
    "**Bold words. More of them.**",
    "***both***",
    "~~struck out~~",
    "_under `code` score_",
    "<b>markup</b>",
    "<br/>",
    "<!-- a remark. Here -->",
    "&amp;",
    "\\*",
    "$a_1 * b_2$",
    "\\(x * y\\)",
    "[^note]",
    "{{ value }}",
    ":smile:",
]
CODE = ["x = 1  ", "", "    return *y*", "# no heading. Really none.", "> no quote here at all."]


def make_document(seed: int) -> str:
    """A document of all constructs, nested, with line ends and byte order mark by chance."""
    rng = random.Random(seed)
    lines = ["---", "title: A day. Or two of them.", "tags: [x, y]", "---", ""] * (rng.random() < 0.2)
    lines += _blocks(rng, depth=0)
    lines += ["", "[ref]: https://example.org/ref 'A title. Of it'", "", "[^note]: " + _sentence(rng)]
    newline = rng.choice(["\n", "\n", "\r\n", "\r"])
    return "\ufeff" * (rng.random() < 0.1) + newline.join(lines) + newline * rng.randint(0, 2)


def _blocks(rng: random.Random, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(rng.randint(1, 7 if depth == 0 else 3)):
        kinds = [_paragraph] * 4 + [_heading, _table, _fence, _indented, _html, _math, _rule, _terms]
        if depth < 3:
            kinds += [_quote, _quote, _list, _list, _list]
        make = rng.choice(kinds)
        lines += [*make(rng, depth), *[""] * rng.randint(1, 2)]
    return lines[:-1]


def _sentence(rng: random.Random) -> str:
    words = " ".join(rng.choice(part) for part in (SUBJECTS, VERBS, OBJECTS, TAILS)).split(" ")
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        words.insert(rng.randint(1, len(words)), rng.choice(SPANS))
    return " ".join(words) + rng.choice(ENDS)


def _paragraph(rng: random.Random, depth: int) -> list[str]:
    text = " ".join(_sentence(rng) for _ in range(rng.randint(1, 5)))
    width = rng.choice([30, 60, 80, 10_000])
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    # A wrapped line may start like another block; spaces and tabs may stand at its end, two of them a hard break.
    lines = [lines[0], *(line if line[0].isalpha() else "so " + line for line in lines[1:])]
    lines = [line + rng.choice(["", "", "", " ", "  ", "\t", "\\"]) for line in lines]
    return [rng.choice(["", "", "", "  "]) + line for line in lines]


def _heading(rng: random.Random, depth: int) -> list[str]:
    title = _sentence(rng)
    return rng.choice([[f"## {title}"], [f"# {title} #"], [title.lstrip("-="), "-----"], [title.lstrip("-="), "==="]])


def _table(rng: random.Random, depth: int) -> list[str]:
    rows = [f"| {rng.choice(SUBJECTS)} has this cell.\t| `a\\|b` and three words |" for _ in range(rng.randint(0, 3))]
    return ["| The first column. | Second |  ", "|:--|--:|", *rows]


def _fence(rng: random.Random, depth: int) -> list[str]:
    mark = rng.choice(["```", "~~~~"])
    return [f"{mark}python", *rng.sample(CODE, rng.randint(1, 4)), mark]


def _indented(rng: random.Random, depth: int) -> list[str]:
    return ["<!-- ends a list. -->", "", "    def f():", "", "    \treturn None  # This is no prose at all."]


def _html(rng: random.Random, depth: int) -> list[str]:
    return rng.choice(
        [
            ["<div class='x'>", "This is no prose here. None.", "</div>"],
            ["<details>", "<summary>Some summary of it.</summary>", "", _sentence(rng), "", "</details>"],
            ["<pre>", "It goes on.", "", "After a blank line too.", "</pre>"],
        ]
    )


def _math(rng: random.Random, depth: int) -> list[str]:
    return rng.choice([["$$", "a = b", "+ c - d * e_1 * f", "$$"], ["\\[", "x", "= y", "\\]"], ["$$ a * b * c $$"]])


def _rule(rng: random.Random, depth: int) -> list[str]:
    return [rng.choice(["***", "- - -", "___"])]


def _terms(rng: random.Random, depth: int) -> list[str]:
    return rng.choice([["A term of three words", ": " + _sentence(rng)], ["::: note", _sentence(rng), ":::"]])


def _quote(rng: random.Random, depth: int) -> list[str]:
    alert = ["[!NOTE]"] * (rng.random() < 0.2)
    mark = rng.choice(["> ", ">", ">  "])
    lines = [(mark + line).rstrip(" ") if not line else mark + line for line in [*alert, *_blocks(rng, depth + 1)]]
    lazy = [rng.choice(SUBJECTS) + " goes on lazily."] * (rng.random() < 0.3)
    return lines + lazy


def _list(rng: random.Random, depth: int) -> list[str]:
    lines: list[str] = []
    mark = rng.choice(["- ", "* ", "+  ", "1. ", "7) ", "-\t"])
    indent = "\t" if mark == "-\t" else " " * len(mark)
    is_task = rng.random() < 0.3
    for _ in range(rng.randint(1, 3)):
        first, *rest = _blocks(rng, depth + 1) if rng.random() < 0.4 and not is_task else _paragraph(rng, depth)
        box = rng.choice(["[ ] ", "[x] "]) if is_task else ""
        lines += [mark + box + first.lstrip()]
        lines += [indent + line if line else line for line in rest]
        lines += [""] * rng.randint(0, 1)
    return lines


NASTY = [
    "",
    "\n",
    " \t ",
    "\ufeff",
    "\ufeff\r\n",
    "No line end after these words",
    "\r\rOld line ends stand here.\rTwo lines of them here.\r",
    "Mixed line ends stand\r\nin these four lines.\nAnd they stay\ras they are.",
    "---\nNot closed front matter is here.\n",
    "---\n\nA rule is above these words.\n\n---\n",
    "+++\ntitle = 'No prose is here. None.'\n+++\nThere is prose below it.\n",
    '[a]: /u\n"All of this could be a title. Really" it could.\n',
    "[a]: /u\n'Nor is this one'\nA paragraph follows at once. It has [a] link.\n",
    "> quoted words stand here\nlazy ones follow here. And\n> they are quoted again here.\n",
    "> quoted words `stand here\nlazy` ones follow here and\n> they are quoted again here.\n",
    "> quoted words stand here\n2. is no list here, and it goes on.\n",
    "A long line of words\n    # is no heading at all here.\n",
    "-\n\n  Not in an item. Or is it not?\n",
    "- a tight item of words\n- another tight item here\n\n  with a second paragraph in it.\n",
    "1. one of the items\n   1. two of the items\n      > three of the items\n      > goes on for long.\n",
    "- [ ] a task to do\n- [x] a task that is done.\n- [ ]no task at all here\n",
    "Some text stands here | and there\nMore text stands here | and there\n",
    "Some text stands here\n|---|---|\n",
    "a | b\n--|--\nThis cell has words. | And this one.\nSo has this row.\n\nProse follows after it.\n",
    "Words with a break  \nbetween two lines here.  \nAnd with another one\\\nbetween its lines.\n",
    "Words with an unclosed *emphasis stand here. And **here too. So `does code.\n",
    "Words with a *mark here. And one* there that closes it.\n",
    "This is *one long. Span of emphasis* in the text. Next sentence of this.\n",
    "Is 2 * 3 * 4 the same as 4 * 3 * 2? It is, in all of *these* fields.\n",
    "snake_case_words and __init__ stand here. And 5 > 4 < 6 too.\n",
    "It costs $5 here and $6 there. The set $\\{x * y\\}$ has $n$ members.\n",
    "$$\na\n\nThis is prose after no math.\n$$\n",
    "$$ a\n- b $$\n\nThere is prose after math.\n",
    "The sum is\n\\begin{align}\na * b &= c * d\n\\end{align}\nas everybody here knows.\n",
    "Hello there, dear {{ user.name }}, how are you? {% if x %}Nothing is here.{% endif %}\n",
    "{: .class}\nThis line has a class of words.\n",
    "!!! note\n    Indented words of a note.\n",
    "Term of three words\n: Its definition has words.\n~ Another definition of it here.\n",
    "Apple of the garden:\n  - red ones are sweet\n\n  - green ones are sour.\n",
    "<div>\nNo prose in here.\n\nProse between these tags of HTML.\n\n</div>\n",
    "<span>Some words in here</span> are kept together. <kbd>Ctrl</kbd> is a key of mine.\n",
    "<span\nclass='x'>Words in a tag</span> that is broken over lines. It stays.\n",
    "A [link over\ntwo lines](u) of a paragraph stays as it is. So does `code\nover them` too, here.\n",
    "> A [link over\n> two lines](u) of a quote stays as it is. So does `code\n>   over them` too, here.\n",
    "- A [link over\n  two lines](u) of an item stays as it is. And now for more.\n",
    "An autolink <ann@example.org> and www.example.org. See (https://example.org/a_(b)). Then more.\n",
    "Mr. Smith met Dr. No in the U.S. Virgin Islands, e.g. in St. Croix. Then he left.\n",
    '"What are you doing?" he asked. "Nothing at all," she said... and left.\n',
    "It was great here.We will return soon!He said so.\n",
    "\u00a0\nWords under a hard space are here.\n\u3000\n",
    "Words\u2028with odd\x0bwhite\x0cspace\u00a0inside them.\x85And more of them here.\n",
    "Words with a \0 in them stand here. And more of them.\n",
    "\tindented code is this line.\n\n \tand so is this one.\n",
    "- \tan item with a tab\n\tand a second line of it.\n",
    ">\ta quote with a tab\n>\tand a second line of it.\n",
    "Setext heading of words\n  and a second line of it.\n===\nA paragraph follows it here.\n",
    "Words before a rule are here\n***\nWords after a rule are here\n",
    "Words before a fence are here.\n```\ncode that is not closed\n",
    "> ```\n> code in a quote.\nProse after the quote stands here.\n",
    "- ```\n  code in an item.\n  ```\n  Prose after the code is here.\n",
    "1986\\. What a great year it was. I was there.\n",
    "\\# No heading at all is here. \\[No link](u) either.\n",
    "Copyright &copy; 2020 by &quot;them&quot; all. AT&T is no entity here.\n",
    '[![picture. Of it](p.png)](u "its title. Yes") stands before these words.\n',
    "![alt *text*. More][ref] stands here for all of us.\n\n[ref]: <p q.png>\n",
    "Footnotes[^1] stand here in text.[^2] And so on it goes.\n\n[^1]: A note it is.\n    More code.\n\n[^2]: one\n",
    "* * *\n\n*\n\n+ plus is a list of one\n",
    "> > > deep quotes with words\n> > and lazy words here\n> and more of them here.\n",
    "a" * 300 + " is a very long word. " + "It is followed by more words\nthan one line. " * 3,
    ("> " * 30) + "very deep quote of words",
    "[" * 50 + "these are brackets in a row" + "]" * 50,
    "*" * 50 + "these are stars in a row" + "*" * 50,
]

# What documents are made of, in any order; no more than a few make sense together.
ATOMS = ["word", "Hello", "the", "cat.", "Really?", "of the", "and one", "étè", "e.g.", "Mr.", "…", '"', "'", "(", ")"]
ATOMS += ["\n", "\n", "\n\n", "\r\n", "\r", "\t", "    ", "  ", "  \n", "\\\n", "\u00a0", "\x0b", "\u2028", "\0"]
ATOMS += [
    "> ",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "2) ",
    "# ",
    "```",
    "~~~",
    "---",
    "===",
    "***",
    "|",
    "|-|-|",
    "a | b\n--|--\n",
]
ATOMS += ["\n> ", "\n- ", "\n  ", "\n1. ", "[a]: /u\n", '\n[b]: /u\n"x" y', "[a]", "[", "](u)", "](", "!", "![i](u)"]
ATOMS += ["*", "_", "**", "`", "``", "~~", "\\", "&amp;", "&", "<div>", "</div>", "<b>", "</b>", "<!--", "-->"]
ATOMS += [
    "http://a.b/c",
    "me@x.org",
    "<http://x.y>",
    "[^1]",
    "[^1]: ",
    "[ ] ",
    "[x]",
    "{{ x }}",
    "{% y %}",
    ": ",
    ":::",
]
ATOMS += ["$", "$$", "\\(", "\\)", ":smile:"]
