from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

import hf_paraphrase.generation.prose as prose
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.documents import SentenceChange, rewrite_document
from hf_paraphrase.generation.markdown import PARSER, MarkdownDocument

from .markdown_documents import ATOMS, NASTY, make_document

DOCUMENTS = [*(make_document(seed) for seed in range(200)), *NASTY]
FORMATS = ("auto", "markdown", "plain")
# Reads structure as any reader does: nothing of what rewrites is in it.
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
CODE = {"code_inline", "html_inline"}

Rewrite = Callable[[list[str]], list[str | None]]


def read_structure(text: str) -> list[tuple]:
    """What a document holds but for the text of its paragraphs: blocks, and the markup in each, in any order."""
    structure: list[tuple] = []
    is_prose = False
    for token in READER.parse(text.removeprefix("\ufeff")):
        if token.type == "inline":
            pieces = Counter(_read_pieces(token.children or []))
            structure.append(tuple(sorted(pieces.items())) if is_prose else token.content)
        else:
            is_prose = token.type == "paragraph_open"
            structure.append((token.type, token.markup, token.info, token.hidden, token.content, str(token.attrs)))
    return structure


def _read_pieces(tokens: list[Token]) -> list[str]:
    """The outermost links, images, emphasis and so on of a paragraph as HTML."""
    pieces, piece = [], []
    for token in tokens:
        if piece or token.nesting or token.type in {*CODE, "image", "hardbreak", "text_special"}:
            piece.append(token)
        if piece and token.level == 0 and token.nesting <= 0:
            pieces.append(READER.renderer.render(piece, READER.options, {}))
            piece = []
    return pieces


def reverse_words(sentences: list[str]) -> list[str]:
    return [" ".join(reversed(sentence.split(" "))) for sentence in sentences]


def upper_case(sentences: list[str]) -> list[str]:
    return [sentence.upper() for sentence in sentences]


def lengthen(sentences: list[str]) -> list[str]:
    return [f"Once again and over and over and over {sentence}" for sentence in sentences]


def shorten(sentences: list[str]) -> list[str]:
    return [" ".join(sentence.split(" ")[::2]) for sentence in sentences]


class Spoiler:
    """Answers with markup that was not asked for, by a seed."""

    MARKUP = [
        *"*_`|$[\\-+<",
        "**",
        "```",
        "~~~",
        "$$",
        "# x",
        "- ",
        "1. ",
        "2. ",
        "> ",
        "[a]",
        "](u)",
        "&amp;",
        "<!--",
    ]
    MARKUP += [
        "<div>",
        "<b>",
        "===",
        "---",
        ": ",
        "[x] ",
        "[^1]:",
        "[b]: /u",
        "{% z",
        "\n",
        "\n\n",
        "    ",
        "http://q.w",
    ]

    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    def __call__(self, sentences: list[str]) -> list[str | None]:
        return [self.spoil(sentence) for sentence in sentences]

    def spoil(self, sentence: str) -> str | None:
        words = sentence.split(" ")
        for _ in range(self.rng.randint(0, 3)):
            words.insert(
                self.rng.choice([0, 0, self.rng.randint(0, len(words)), len(words)]), self.rng.choice(self.MARKUP)
            )
        words += ["tail"] * self.rng.choice([0, 0, 3, 20])
        return self.rng.choice([" ", " ", ""]).join(words)


def rewrite_to_one_word(sentences: list[str]) -> list[str]:
    return [f"Rewritten{number}." for number in range(len(sentences))]


def check_bytes(text: str, format: str) -> int:
    """Where each sentence becomes one word, every other character has to stand as it stood."""
    rewritten, changes = rewrite_document(text, rewrite_to_one_word, format)
    expected, done = "", 0
    changed = [change for change in changes if change.reason is None]
    for change in changed:
        assert 0 <= done <= change.start < change.end <= len(text)
        expected += text[done : change.start] + change.after
        done = change.end
    assert rewritten == expected + text[done:]
    return len(changed)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("rewrite", [lambda sentences: sentences, lambda sentences: [None] * len(sentences)])
def test_what_is_not_rewritten_stays_byte_for_byte(rewrite: Rewrite, format: str) -> None:
    for text in DOCUMENTS:
        assert rewrite_document(text, rewrite, format)[0] == text


@settings(deadline=None)
@given(st.text() | st.lists(st.sampled_from(ATOMS)).map("".join), st.sampled_from(FORMATS))
def test_any_text_stays_byte_for_byte(text: str, format: str) -> None:
    assert rewrite_document(text, lambda sentences: sentences, format)[0] == text
    check_bytes(text, format)


@pytest.mark.parametrize("format", FORMATS)
def test_around_new_sentences_every_byte_stays(format: str) -> None:
    assert sum(check_bytes(text, format) for text in DOCUMENTS) > 1000


@pytest.mark.parametrize("rewrite", [upper_case, reverse_words, lengthen, shorten])
def test_the_structure_stays(rewrite: Rewrite) -> None:
    changed = asked = 0
    for text in DOCUMENTS:
        rewritten, changes = rewrite_document(text, rewrite, "markdown")
        assert read_structure(rewritten) == read_structure(text), text
        changed += sum(change.reason is None for change in changes)
        asked += len(changes)
    assert changed > 0.3 * asked


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(ATOMS), max_size=60).map(" ".join), st.integers(0, 1000))
def test_no_answer_breaks_the_structure(text: str, seed: int) -> None:
    for rewrite in (Spoiler(seed), reverse_words, upper_case):
        assert read_structure(rewrite_document(text, rewrite, "markdown")[0]) == read_structure(text)


@pytest.mark.parametrize("seed", range(5))
def test_no_answer_breaks_the_structure_of_documents(seed: int) -> None:
    changed = 0
    for text in DOCUMENTS:
        rewritten, changes = rewrite_document(text, Spoiler(seed), "markdown")
        assert read_structure(rewritten) == read_structure(text), text
        changed += sum(change.reason is None for change in changes)
    assert changed > 100


def test_sentences_are_where_they_are_said_to_be() -> None:
    for text in DOCUMENTS:
        _, changes = rewrite_document(text, lambda sentences: sentences, "markdown")
        rewritten, _ = again = rewrite_document(text, lengthen, "markdown")
        _, after = rewrite_document(rewritten, lambda sentences: sentences, "markdown")
        lines = text.replace("\r\n", "\n\n").replace("\r", "\n")
        for change in changes:
            source = text[change.start : change.end]
            assert change.after is None and change.reason
            if "\n" not in source and "\r" not in source:
                assert source.split() == change.before.split()
            line = len(text[: change.start].replace("\r\n", "\n").replace("\r", "\n").split("\n"))
            assert change.line == line
        assert [change.before for change in after] == [change.after or change.before for change in again[1]], lines


def test_what_was_left_is_told_with_the_reason() -> None:
    text = (
        "# A title of words\n\nOne of the sentences stays. The other one of them goes. *This* has emphasis inside.\n"
        "Yes, really.\nA break stands  \nin this one.\n\n- and here is [a link](u)\n"
    )
    answers = {
        "One of the sentences stays.": None,
        "The other one of them goes.": "The other one has gone.",
        "*This* has emphasis inside.": "This has emphasis inside.",
        "and here is [a link](u)": "and here is [a link](u)",
    }
    rewritten, changes = rewrite_document(text, lambda sentences: [answers[sentence] for sentence in sentences])
    assert rewritten == text.replace("one of them goes", "one has gone")
    assert changes == [
        SentenceChange(3, 20, 47, "One of the sentences stays.", None, "no rewriting was given"),
        SentenceChange(3, 48, 75, "The other one of them goes.", "The other one has gone.", None),
        SentenceChange(3, 76, 103, "*This* has emphasis inside.", None, "its markup would change"),
        SentenceChange(4, 104, 116, "Yes, really.", None, "it has fewer than 3 words outside its markup"),
        SentenceChange(5, 117, 146, "A break stands in this one.", None, "a hard line break stands in it"),
        SentenceChange(8, 150, 173, "and here is [a link](u)", None, "its rewriting is the same"),
    ]


# The sentences that are asked for.
@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("# No title\n\nNor is this\n===\n", []),
        ("- one of these\n  is long.\n  1) two of them\n\n     not.\n", ["one of these is long.", "two of them"]),
        ("> quoted words `a\n> b` and\nlazy ones\n", ["quoted words `a b` and lazy ones"]),
        ("- [x] a task to do\n", ["a task to do"]),
        ("> [!WARNING]\n> Mind the wet floor.\n", ["Mind the wet floor."]),
        ("[^1]: A note of words.\n", ["A note of words."]),
        ("Term of three words\n: Its definition has words.\n", ["Term of three words", "Its definition has words."]),
        ("**One. And two.** Then come [three. Or](u) four.\n", ["Then come [three. Or](u) four."]),
        ("See **this thing here.** And then go on.\n", ["And then go on."]),
        ("See <b>it. Or that</b> and go. Then go home.", ["See <b>it. Or that</b> and go.", "Then go home."]),
        ("| a cell of words. |\n|---|\n| another cell of words. |\n", []),
        ("    code of three words\n\n```\nand more of it here\n```\n", []),
        ("---\na: one two three four\n---\nProse of four words.\n", ["Prose of four words."]),
        ("$$\none two three four\n- five six seven eight\n$$\n", []),
        ("It is $a. B$ that we see. Now see $5 or $6 more.", ["It is $a. B$ that we see.", "Now see $5 or $6 more."]),
        ("---\n\nProse between two rules.\n\n---\n", ["Prose between two rules."]),
        ("$$\nProse after no math.\n\nMore of it there.\n$$\n", ["$$ Prose after no math.", "More of it there."]),
        ("\ufeff# No sentence of words\n", []),
        ("`$a` is not the same as `$b` now.", ["`$a` is not the same as `$b` now."]),
        # `"In quotes."` would be the link's title there.
        ("[a]: /u\nThis line has words.\n\nSo has this one.\n", ["So has this one."]),
        ("[a]: /u 'one two three four'\n\nSee the link [a] here.\n", ["See the link [a] here."]),
    ],
)  # fmt: skip
def test_what_is_asked_for(text: str, sentences: list[str]) -> None:
    asked: list[str] = []
    rewrite_document(text, lambda given: asked.extend(given) or given, "markdown")
    assert asked == sentences


MARKUP = "its markup would change"
PARAGRAPH = "the markup of its paragraph would change"
UNEVEN = "its markup goes over lines that are joined in different ways"
LONG = "One two three four five six seven."


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        # On one line it stays on one line, however long.
        ("One two three. Four.\n", LONG, "One two three four five six seven. Four.\n"),
        # On several it is as wide as they were, and its neighbours keep their lines.
        ("One two three four\nfive six. Yes.\nNo.\n", LONG, "One two three four\nfive six seven. Yes.\nNo.\n"),
        ("One two three\nfour. Yes.\nNo.\n", LONG, "One two three\nfour five six\nseven. Yes.\nNo.\n"),
        ("No. One two three four\nfive six. Yes.\nNo.\n", "One two.", "No. One two. Yes.\nNo.\n"),
        # With the markers and line ends that stood between them.
        ("> - One two three\r\n>   four.\r\n", LONG, "> - One two three\r\n>   four five six\r\n>   seven.\r\n"),
        ("> One two three\nfour\n", LONG, "> One two three\nfour five six\nseven.\n"),
        # Never before what could be a marker.
        ("One two three\nfour\n", "One two three 1986. - six and", "One two three 1986. -\nsix and\n"),
        # Links over lines keep theirs.
        ("> It is [a link\n> of us](u) here.\n", "Here [a link of us](u) is.", "> Here [a link\n> of us](u) is.\n"),
        ("See [a b](u) and [a\nb](u) here.\n", "Look: [a b](u), [a b](u).", "Look: [a b](u), [a\nb](u).\n"),
        ("It is `a  b` of  them.\n", "They are of `a  b`  now.", "They are of `a  b` now.\n"),
        ("It is an old one.\n", " It is\nnew \r\n now. ", "It is new now.\n"),
    ],
)  # fmt: skip
def test_how_lines_are_broken(text: str, answer: str, expected: str) -> None:
    assert rewrite_document(text, lambda sentences: [answer] + sentences[1:], "markdown")[0] == expected


@pytest.mark.parametrize(
    ("text", "answer", "reason"),
    [
        ("It has `code` in it.", "It has code in it.", MARKUP),
        ("It has `code` in it.", "It has `code` in `code`.", MARKUP),
        ("It has [a link](u) here.", "It has [another link](u) here.", MARKUP),
        ("It has <b>no</b> more words.", "It has <b>some</b> more words.", MARKUP),
        ("It has no markup at all.", "It has *some* markup.", MARKUP),
        ("It has no markup at all.", "It is at https://example.org now.", MARKUP),
        ("It has no markup at all.", "[x] It has some markup.", MARKUP),
        ("It has no markup at all.", "- It has some markup.", "its rewriting starts like the marker of a block"),
        ("It has no markup at all.", "   \n ", "its rewriting is empty"),
        ("It has * in the text. Here is an*other of them.", "It has *in the text.", PARAGRAPH),
        ("It has no table.\n|---|---|", "It is | a table.", PARAGRAPH),
        ("> It is [a\nlink](u) on three\n> lines.", "It is on three lines [a link](u).", UNEVEN),
    ],
)
def test_answers_that_would_change_the_markup_are_refused(text: str, answer: str, reason: str) -> None:
    rewritten, changes = rewrite_document(text, lambda sentences: [answer] + [None] * (len(sentences) - 1), "markdown")
    assert rewritten == text
    assert changes[0].reason == reason


def test_the_first_candidate_that_fits_is_taken() -> None:
    candidates = [["It has `code` in it.", "It has code.", "Code: `code`.", "`code` it has."], []]
    text = "It has `code` in it. That is all of it."
    rewritten, changes = rewrite_document(text, lambda sentences: candidates, "markdown")
    assert rewritten == "Code: `code`. That is all of it."
    assert [change.reason for change in changes] == [None, "no rewriting was given"]
    _, changes = rewrite_document(text, lambda sentences: [["No code.", ""], None], "markdown")
    assert changes[0].reason == MARKUP


def test_all_sentences_of_a_document_are_asked_for_at_once() -> None:
    calls = []
    rewrite_document("\n\n".join(NASTY[:40]), lambda sentences: calls.append(len(sentences)) or sentences)
    assert len(calls) == 1 and calls[0] > 40
    rewrite_document("# Nothing to rewrite here\n", lambda sentences: pytest.fail("nothing to ask for"))


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("Plain words are these.\n\n    So are these indented words.\n", "plain"),
        ("Plain words are these, see https://example.org.\n", "plain"),
        ("Words with *emphasis* are these.\n\n    These indented words are code.\n", "markdown"),
        ("# A heading of words\n\n    These indented words are code.\n", "markdown"),
        ("---\na: b\n---\n\n    These indented words are code.\n", "markdown"),
        ("[a]: /u\n\n    These indented words are code.\n", "markdown"),
    ],
)
def test_the_format_is_found(text: str, format: str) -> None:
    assert rewrite_document(text, upper_case)[0] == rewrite_document(text, upper_case, format)[0]
    other = "plain" if format == "markdown" else "markdown"
    assert rewrite_document(text, upper_case)[0] != rewrite_document(text, upper_case, other)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((b"text", upper_case), "`text` must be a str, not bytes"),
        (("text", upper_case, "tex"), "`format` must be one of auto, .*markdown, .*subtitles.*, not 'tex'"),
        (("Some text of words.", lambda sentences: []), "`rewrite` returned 0 answers to 1 sentences"),
        (("Some text of words.", lambda sentences: [1]), "must return str, lists of str or None, not 1 for 'Some"),
    ],
)
def test_mistakes_are_told(arguments: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rewrite_document(*arguments)


REPEATED = [*NASTY, make_document(0), *(f"{atom} " * 20 for atom in ATOMS if atom not in ("\n", "\r"))]


def count_work(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """The calls of functions that rewriting takes, and the characters that parsers and splitter are handed."""
    calls = characters = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    def counted(function):
        def read(*arguments):
            nonlocal characters
            characters += sum(len(argument) for argument in arguments if isinstance(argument, str))
            return function(*arguments)

        return read

    with monkeypatch.context() as patched:
        patched.setattr(MarkdownDocument, "read_markup", counted(MarkdownDocument.read_markup))
        patched.setattr(PARSER, "parse", counted(PARSER.parse))
        patched.setattr(prose, "find_sentence_ranges", counted(prose.find_sentence_ranges))
        sys.setprofile(count)
        try:
            rewrite_document(text, lengthen, "markdown")
        finally:
            sys.setprofile(None)
    return calls, characters


@pytest.mark.parametrize("joint", ["\n\n", "\n", " "])
def test_work_grows_with_the_length_alone(joint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for unit in REPEATED:
        large = (unit + joint) * 12
        calls, _ = count_work((unit + joint) * 3, monkeypatch)
        more_calls, more_characters = count_work(large, monkeypatch)
        # Quadratic work would be 16 times as much.
        assert more_calls < 6 * calls + 2000, unit
        assert more_characters <= 12 * len(large) + 1000, unit


def leave_marks(sentences: list[str]) -> list[str]:
    """Rewrite the first word alone, so that all marks come back."""
    return [f"Indeed {sentence[0].lower()}{sentence[1:]}" for sentence in sentences]


def lose_marks(sentences: list[str]) -> list[str]:
    return ["It has lost all of its marks." for _ in sentences]


@pytest.mark.parametrize(
    "text",
    [
        "This is ==very important== for all of us.",
        "See ![[picture.png]] for the whole story here.",
        "See [[A page|the page]] for the whole story here.",
        "Water is H~2~O and it weighs much.",
        "The area is x^2^ and no more.",
        "The method of @lee2020 works well here.",
        "It works %% a comment %% in most of the cases.",
        "It is {{< shortcode >}} in the middle of it.",
        "It has {{ page.title }} in the middle of it.",
        "It has a <Chart data={x} /> in the middle of it.",
        "It has {props.name} in the middle of it.",
        'It has :abbr[HTML text]{title="x y"} in the middle of it.',
    ],
)
def test_marks_of_dialects_survive_or_the_sentence_is_left(text: str) -> None:
    assert rewrite_document(text, lose_marks, "markdown")[0] == text
    assert rewrite_document(text, leave_marks, "markdown")[0] == f"Indeed {text[0].lower()}{text[1:]}"


@pytest.mark.parametrize(
    "text",
    [
        "*[HTML]: Hyper Text Markup Language",
        "::youtube[My dog runs fast]{id=1}",
        ".. note:: This is a note.",
        "import Chart from './chart.js'",
        "export const meta = { title: 'Hello to all' }",
        "export const answer = 42 + 1",
        "{{% notice %}}\n- item\n{{% /notice %}}",
        "Roses are red\nViolets are blue\nSugar is sweet\nAnd so are you",
        "milk\neggs and bread\nfresh butter",
        "Tea with milk\nCoffee without any sugar\nA glass of water",
    ],
)
def test_lines_that_are_no_running_text_are_left(text: str) -> None:
    document = f"It has some prose.\n\n{text}\n\nIt has more prose.\n"
    asked: list[str] = []

    def note(sentences: list[str]) -> list[None]:
        asked.extend(sentences)
        return [None] * len(sentences)

    rewrite_document(document, note, "markdown")
    assert asked == ["It has some prose.", "It has more prose."]


def test_prose_between_marks_on_lines_of_their_own() -> None:
    text = "{{% notice %}}\nThis is a notice.\n{{% /notice %}}\n"
    assert rewrite_document(text, leave_marks, "markdown")[0] == text.replace("This", "Indeed this")


SUBTITLES = """WEBVTT - The title of it all.

NOTE This is a note of the author.

1
00:01.000 --> 00:04.000 align:start
<v Ann>It rained all day long.
We stayed at home.

00:05.000 --> 00:06.000
{\\an8}<i>She went to the shop.</i>

00:07.000 --> 00:08.000
and then she came
"""


def test_subtitles_keep_times_tags_and_parts_of_sentences() -> None:
    asked: list[str] = []

    def rewrite(sentences: list[str]) -> list[str]:
        asked.extend(sentences)
        return [sentence.replace("rained", "poured").replace("shop", "store") for sentence in sentences]

    rewritten = rewrite_document(SUBTITLES, rewrite, "subtitles")[0]
    assert rewritten == SUBTITLES.replace("rained", "poured").replace("shop", "store")
    assert len(asked) == 3 and asked[1] == "We stayed at home."
