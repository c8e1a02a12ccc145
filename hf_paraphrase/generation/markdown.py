"""The prose of a Markdown document and the markup inside it, as ranges in the source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, cast

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from .prose import HARD_BREAK, Markup, Passage, Range, find_lines, replace_ranges

FRONT_MATTER = {"---": ("---", "..."), "+++": ("+++",)}
DISPLAY_MATH = {"$$": "$$", "\\[": "\\]"}
# Markup inside sentences that CommonMark lacks: math, tags of templates, notes, citations, links of wikis, pictograms.
# No pattern looks past the next character that could open it, so that time grows with the length alone.
FOREIGN_SPAN = re.compile(
    r"""\$\$[^$]++\$\$ | \$(?![\s$])[^$]*+(?<!\s)\$(?!\d) | \\\((?:(?!\\[()]).)++\\\) | \\\[(?:(?!\\[\[\]]).)++\\\]
    | \\begin\{(?P<name>\w+\*?)\}(?:(?!\\begin\{).)*?\\end\{(?P=name)\}
    | \{\{[^{}]*+\}\} | \{%[^{}]*+%\} | \{[:.\#][^{}]*+\} | \{[A-Za-z_][\w.]*+\}
    | \[[\^@][^\[\]]++\](?!\() | !?\[\[[^\[\]]++\]\](?!\()
    | (?<!\w):[a-z0-9_+-]{1,40}:(?!\w) | (?<!\w):[a-z][\w-]*+\[[^\[\]]*+\](?:\{[^{}]*+\})?
    | ==(?![\s=])[^=]*+== | %%[^%]*+%%
    | (?<=\w)(?:~[^\s~]{1,40}~|\^[^\s^]{1,40}\^)\w* | (?<![\w@.])@[A-Za-z][\w:.#$%&+?~/-]*\w
    | <[A-Z][\w.]*(?:[^<>]*+)/?> | </[A-Z][\w.]*+>""",
    re.VERBOSE | re.DOTALL,
)
# Addresses without any markup, which many readers make links.
ADDRESS = re.compile(
    r"(?:https?|ftp)://[^\s<>]+|(?<![\w.+-])(?:www\.[^\s<>]+|[\w.+-]++@[\w-]+(?:\.[\w-]+)+)", re.IGNORECASE
)
# What marks lines of prose in dialects of Markdown: boxes of tasks, notes, terms; or whole lines that are not prose.
LINE_MARKER = re.compile(
    r"""^(?: \[[ xX]\](?=\s) | \[\^[^\]\s]+\]: | [:~](?=[ \t]) | \[![A-Za-z]+\][^\n]*
    | \*\[[^\]\n]+\]:[^\n]* | ::\w+[^\n]* | \.\.[ ]\w[\w-]*::[^\n]*
    | (?:import|export)[ ][^\n]*[;"')}]$ | export[ ](?:const|let|var|function|class|default)[ ][^\n]*
    | \{\{[%<][^{}\n]*[%>]\}\}$
    | (?: ::: | !!! | \?\?\? | \+\+\+ | \{[:%] | \\(?:begin|end)\{ )[^\n]* )""",
    re.VERBOSE | re.MULTILINE,
)
TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][\w-]*)[^>]*>")
DELIMITERS = {f"{kind}_{end}" for kind in ("em", "strong", "s") for end in ("open", "close")}
OPAQUE = {"code_inline", "html_inline", "image", "link_open"}
PARAGRAPH = ["paragraph_open", "inline", "paragraph_close"]

# Kinds of markup; where two overlap, the whole is of the higher one.
BREAK, SPAN, MARKER = range(3)


class MarkdownDocument:
    """A document in Markdown: CommonMark with tables and struck-out text, and what other dialects add to prose.

    Its prose are paragraphs, the `passages`, in lists and quotes too. Headings, tables, code, HTML, front matter,
    display math, link definitions and their markers are not prose. `has_markup` tells whether there is anything except
    paragraphs without markup, and indented lines.
    """

    def __init__(self, text: str):
        lines = find_lines(text)
        sources = [text[start:end] for start, end in lines]
        front = _count_front_matter(sources)
        self._environment: dict[str, Any] = {}
        # Blank lines in its place keep the other line numbers.
        tokens = PARSER.parse("\n".join([*[""] * front, *sources[front:]]), self._environment)
        self.passages: list[Passage] = []
        after_definition = None
        for token, inner in pairwise(tokens):
            if token.type == "definition":
                _, after_definition = _lines_of(token)
            # What follows a definition at once could become its title.
            elif token.type == "paragraph_open" and _lines_of(token)[0] != after_definition:
                first, end = _lines_of(token)
                places = _place_lines(lines[first:end], sources[first:end], inner.content.split("\n"))
                self.passages += [Passage(text, places, first + 1, self.read_markup)] if places else []
        kinds = {token.type for token in tokens} - {*PARAGRAPH, "code_block"}
        self.has_markup = bool(kinds or front) or any(map(_has_markup, self.passages))

    def read_markup(self, content: str) -> Markup:
        """Find the markup in a paragraph, or in a sentence that will be placed in one."""
        found, opaque = self._parse_inline(content)
        # Neither math nor an address starts in code, HTML, a link or an image.
        open_content = replace_ranges(content, [(start, end, "Q" * (end - start)) for start, end in opaque])
        found += [(SPAN, *match.span()) for match in FOREIGN_SPAN.finditer(open_content)]
        for match in ADDRESS.finditer(open_content):
            address = match[0].rstrip(".,;:!?'\"*_~]" + ("" if "(" in match[0] else ")"))
            found.append((SPAN, match.start(), match.start() + len(address)))
        found += [(MARKER, *match.span()) for match in LINE_MARKER.finditer(content)]
        spans, others, hidden = [], [], []
        for kind, start, end in _merge(found):
            piece = content[start:end]
            if kind == SPAN:
                spans.append((start, end))
                mask = _mask(piece, content[start - 1 : start])
            else:
                others.append(piece)
                # A blank line ends a sentence.
                mask = (HARD_BREAK if kind == BREAK else "\n") * len(piece)
            hidden.append((start, end, mask))
        return Markup(replace_ranges(content, hidden), spans, others)

    def is_paragraph(self, content: str) -> bool:
        """Whether a text is a single paragraph."""
        return [token.type for token in PARSER.parse(content)] == PARAGRAPH

    def _parse_inline(self, content: str) -> tuple[list[tuple[int, int, int]], list[Range]]:
        """The markup of CommonMark by its kind, nested pieces too; and which of it holds no markup."""
        state = _RecordingState(content, PARSER, self._environment, [])
        PARSER.inline.tokenize(state)
        for resolve_delimiters in PARSER.inline.ruler2.getRules(""):
            resolve_delimiters(state)
        found, opaque = [], []
        depth = opened = 0
        open_tags: dict[str, list[int]] = {}
        for (start, first), (end, stop) in pairwise([*state.steps, (len(content), len(state.tokens))]):
            tokens = state.tokens[first:stop]
            kinds = {token.type for token in tokens} - {"text", "softbreak"}
            if not kinds:
                continue
            if kinds <= DELIMITERS:
                opened = opened if depth else start
                depth += sum(token.nesting for token in tokens)
                found += [] if depth else [(SPAN, opened, end)]
                continue
            found.append((BREAK if "hardbreak" in kinds else SPAN, start, end))
            opaque += [(start, end)] if kinds & OPAQUE else []
            if "html_inline" in kinds and (tag := TAG.fullmatch(content, start, end)):
                places = open_tags.setdefault(tag["name"].lower(), [])
                if not tag["close"]:
                    places.append(start)
                elif places:
                    found.append((SPAN, places.pop(), end))
        return found, opaque


class _RecordingState(StateInline):
    """Inline parsing that notes where each of its steps starts, since tokens do not know their places."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        # Place in the source, and number of tokens before.
        self.steps: list[tuple[int, int]] = []


def _record_step(state: StateInline, silent: bool) -> bool:
    # What stands inside a link has a level; what stands inside an image has a state of its own.
    if not silent and state.level == 0 and isinstance(state, _RecordingState):
        state.steps.append((state.pos, len(state.tokens)))
    return False


def _parse_display_math(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    opening = _line(state, start)[:2]
    closing = DISPLAY_MATH.get(opening)
    if closing is None or state.is_code_block(start) or closing in _line(state, start)[2:]:
        return False
    for number in range(start + 1, end):
        line = _line(state, number)
        # TeX allows no blank line there.
        if not line or state.sCount[number] < state.blkIndent:
            return False
        if opening in line or closing in line:
            if line.endswith(closing) and not silent:
                state.line = number + 1
                state.push("display_math", "", 0).map = [start, state.line]
            return line.endswith(closing)
    return False


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()


def _lines_of(token: Token) -> tuple[int, int]:
    """The first line of a block, and the one behind its last; inline tokens have none."""
    first, end = cast(list[int], token.map)
    return first, end


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"inline_definitions": True}).enable(["table", "strikethrough"])
    # Inline parsing is done here, where places are kept.
    parser.disable(["inline", "text_join", "fragments_join"])
    ends = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("fence", "display_math", _parse_display_math, {"alt": ends})
    parser.inline.ruler.before("text", "record_step", _record_step)
    return parser


PARSER = _make_parser()


def _count_front_matter(sources: Sequence[str]) -> int:
    closing = FRONT_MATTER.get(sources[0].rstrip(), ())
    # A rule is followed by a blank line.
    if closing and len(sources) > 1 and sources[1].strip():
        for number, source in enumerate(sources[1:], 2):
            if source.rstrip() in closing:
                return number
    return 0


def _place_lines(lines: Sequence[Range], sources: Sequence[str], contents: Sequence[str]) -> list[Range]:
    """Where the text of each line of a paragraph stands; nowhere if lines of odd white space were stripped."""
    if len(lines) != len(contents):
        return []
    shown = [len(content.strip()) for content in contents]
    starts = [
        start + len(source.rstrip()) - length for (start, _), source, length in zip(lines, sources, shown, strict=True)
    ]
    # The white space that ends a line may be a hard break, but for the last one.
    return list(zip(starts, [*(end for _, end in lines[:-1]), starts[-1] + shown[-1]], strict=True))


def _merge(found: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    merged: list[tuple[int, int, int]] = []
    for kind, start, end in sorted(found, key=lambda piece: piece[1:]):
        if merged and start < merged[-1][2]:
            other, start, other_end = merged.pop()
            kind, end = max(kind, other), max(end, other_end)
        merged.append((kind, start, end))
    return merged


def _mask(span: str, before: str) -> str:
    # A footnote number at the end of a sentence belongs to that sentence.
    if len(span) > 2 and before in tuple('.!?…"”’)]') and span[0] in "[<":
        return f"[{'1' * (len(span) - 2)}]"
    inner = span.rstrip("*_~")
    ends_sentence = inner != span and inner.rstrip("\"'”’)").endswith((".", "!", "?", "…"))
    return "Q" * (len(span) - 1) + ("." if ends_sentence else "Q")


def _has_markup(passage: Passage) -> bool:
    markup = passage.markup
    return bool(markup.others) or not all(ADDRESS.fullmatch(passage.content, *span) for span in markup.spans)
