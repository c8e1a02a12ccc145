"""How a language model is asked for a paraphrase, and how its answer is read: a small YAML file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import yaml
from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from ..common.checks import is_number
from ..common.errors import InputError
from ..common.fields import Options, check_known, read_yaml
from ..common.files import write_text

# File name of the prompt that a model was trained with.
PROMPT_FILE = "prompt.yaml"
DEFAULT_PROMPT = Path(__file__).with_name(PROMPT_FILE)
PLACEHOLDER = re.compile(r"\{(\w*)\}")
# Reasoning models think first; without the end of the thought there is no answer.
THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
OPENING = (
    r"(?:sure|certainly|of course|okay|here(?: is|'s|’s| are)|(?:the )?(?:paraphrase|rewritten|rephrased|answer))"
)
PREAMBLE = re.compile(rf"\s*{OPENING}\b[^\n:]{{0,80}}:\s*", re.IGNORECASE)
ITEM = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*•])\s+(.+)$", re.MULTILINE)
QUOTES = (('"', '"'), ("“", "”"), ("«", "»"), ("'", "'"), ("‘", "’"), ("`", "`"))


@dataclass(frozen=True, kw_only=True)
class Prompt(Options):
    """A prompt for language models.

    Args:
        user: What asks for a paraphrase, with `{text}`, and where wanted `{strength}` and `{keep}`.
        system: The system message; may be empty.
        strength: The text for `{strength}`, by level from 0 to 1; the nearest level is used.
        keep: The text for `{keep}` if there are words to keep, with `{words}`.
        plain: What asks a model without a chat template, which continues it to the end of the line.
        examples: Texts with their paraphrases.
        read: What to strip from an answer: "thoughts", "preamble", "list" and "quotes".

    Raises:
        InputError: A field of the wrong type, or a placeholder that is missing or unknown.
    """

    user: str
    system: str = ""
    strength: dict[int | float, str] = field(default_factory=dict)
    keep: str = ""
    plain: str = "Sentence: {text}\nParaphrase:"
    examples: list[dict[str, str]] = field(default_factory=list)
    read: list[Literal["thoughts", "preamble", "list", "quotes"]] = field(
        default_factory=lambda: ["thoughts", "preamble", "list", "quotes"]
    )

    def __post_init__(self):
        super().__post_init__()
        for name, needed, known in (
            ("user", "text", {"text", "strength", "keep"}),
            ("plain", "text", {"text", "strength", "keep"}),
            ("keep", "words" if self.keep else "", {"words"}),
        ):
            found = set(PLACEHOLDER.findall(getattr(self, name)))
            if needed and needed not in found:
                raise InputError(f"`{name}` has no {{{needed}}}")
            if unknown := found - known:
                places = ", ".join(f"{{{one}}}" for one in sorted(known))
                raise InputError(f"`{name}` has {{{min(unknown)}}}; it may have {places}")
        for level in self.strength:
            if not is_number(level) or not 0 <= level <= 1:
                raise InputError(f"`strength`: levels are numbers from 0 to 1, not {level!r}")
        for name in ("strength", "keep"):
            if f"{{{name}}}" in self.user + self.plain and not getattr(self, name):
                raise InputError(f"`{name}` says nothing, but `user` or `plain` has {{{name}}}")
        for number, example in enumerate(self.examples, start=1):
            if example.keys() != {"text", "paraphrase"} or not all(map(str.strip, example.values())):
                raise InputError(f"`examples`, number {number}: `text` and `paraphrase` are needed, and nothing else")

    def messages(self, text: str, strength: float | None = None, kept: Sequence[str] = ()) -> list[dict[str, str]]:
        """The messages of a chat that asks to paraphrase a text so freely, with what of it is `kept` as it is."""
        turns = [{"role": "system", "content": self.system}] if self.system else []
        for example in self.examples:
            turns.append({"role": "user", "content": self._fill(self.user, example["text"], strength)})
            turns.append({"role": "assistant", "content": example["paraphrase"]})
        return [*turns, {"role": "user", "content": self._fill(self.user, text, strength, kept)}]

    def continuation(self, text: str, strength: float | None = None, kept: Sequence[str] = ()) -> str:
        """The text that a model without a chat template continues with a paraphrase and a line end."""
        parts = [self.system] if self.system else []
        for example in self.examples:
            parts.append(f"{self._fill(self.plain, example['text'], strength)} {example['paraphrase']}")
        return "\n\n".join([*parts, self._fill(self.plain, text, strength, kept)])

    def read_answer(self, answer: str, source: str) -> list[str]:
        """The paraphrases in a model's answer: one, or a list.

        Parts that the source has too stay, such as quotes around all of it. Of a text of one line one line is read.
        """
        if "thoughts" in self.read and "<think>" not in source:
            answer = THOUGHTS.sub("", answer)
        if "preamble" in self.read and not PREAMBLE.match(source):
            answer = PREAMBLE.sub("", answer, count=1) if PREAMBLE.match(answer) else answer
        answers = [answer.strip()]
        if "list" in self.read and not ITEM.search(source) and (items := ITEM.findall(answer)):
            answers = items
        if "\n" not in source.strip():
            answers = [one.strip().partition("\n")[0] for one in answers]
        if "quotes" in self.read:
            answers = [_unquote(one, source) for one in answers]
        return [" ".join(one.split()) for one in answers]

    def save(self, path: Path) -> None:
        """Write a file from which `load_prompt` makes an equal prompt."""
        write_text(path, yaml.safe_dump(asdict(self), sort_keys=False, allow_unicode=True))

    def _fill(self, template: str, text: str, strength: float | None, kept: Sequence[str] = ()) -> str:
        level = None
        if strength is not None and self.strength:
            level = min(self.strength, key=lambda level: abs(level - strength))
        values = {
            "text": text,
            "strength": "" if level is None else self.strength[level],
            "keep": self.keep.replace("{words}", ", ".join(kept)) if kept else "",
        }
        # All at once: what a text has in braces is text.
        return PLACEHOLDER.sub(lambda found: values[found[1]], template)


def load_prompt(prompt: str | os.PathLike | Prompt | None = None) -> Prompt:
    """Read a prompt from a YAML file with the fields of `Prompt`; None for the package's.

    Raises:
        InputError: The file is missing, or a field cannot be; the message names the file and the field.
    """
    if isinstance(prompt, Prompt):
        return prompt
    path = DEFAULT_PROMPT if prompt is None else Path(prompt)
    if not path.is_file():
        raise InputError(f"`prompt`: there is no file {path}")
    values: Any = read_yaml(path)
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold fields such as `user`, not {values!r:.100}")
    check_known(map(str, values), [one.name for one in fields(Prompt)], str(path))
    if "user" not in values:
        raise InputError(f"{path}: `user` is missing")
    try:
        return Prompt(**values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _unquote(answer: str, source: str) -> str:
    for before, after in QUOTES:
        is_quoted = len(answer) > 2 and answer.startswith(before) and answer.endswith(after)
        if is_quoted and not source.strip().startswith(before) and before not in answer[1:-1]:
            return answer[1:-1].strip()
    return answer


# A line break in any tokenizer's writing.
NEW_LINE = re.compile(r"\n|Ċ|<0x0A>")


class PromptEncoder:
    """Tokenizes prompts and answers of language models.

    Args:
        tokenizer: Of the model.
        prompt: The prompt: a chat if the tokenizer has a template, otherwise text to continue.

    Attributes:
        is_chat: Whether it is a chat.
        lines: The tokens with a line break, which end the answer of a model that continues a text.
        end: The token after an answer; None for a tokenizer without one.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt: Prompt):
        self.tokenizer, self.prompt = tokenizer, prompt
        self.is_chat = tokenizer.chat_template is not None
        lines = {i: token for token, i in tokenizer.get_vocab().items() if NEW_LINE.search(token)}
        self.lines = [] if self.is_chat else sorted(lines)
        # Among tokens with a line break, the one with the least other text.
        shortest = min(self.lines, key=lambda i: (len(lines[i]), i), default=tokenizer.eos_token_id)
        self.end = tokenizer.eos_token_id if self.is_chat else shortest

    def encode(self, text: str, strength: float | None = None, kept: Sequence[str] = ()) -> list[int]:
        """The tokens of the prompt for a text; arguments as in `Prompt.messages`."""
        for special in self.tokenizer.all_special_tokens:  # which are text in a text
            text = text.replace(special, f"{special[:1]} {special[1:]}")
        if not self.is_chat:
            ids = self.tokenizer(self.prompt.continuation(text, strength, kept), verbose=False)["input_ids"]
            return ids[:-1] if ids[-1] == self.tokenizer.eos_token_id else ids
        rendered = self._render(self.prompt.messages(text, strength, kept))
        return self.tokenizer(rendered, add_special_tokens=False, verbose=False)["input_ids"]

    def encode_answer(self, text: str) -> list[int]:
        """The tokens of an answer, its end included."""
        text = text if self.is_chat else f" {text}"
        ids = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids if self.end is None else [*ids, self.end]

    def _render(self, messages: list[dict[str, str]]) -> str:
        render = partial(self.tokenizer.apply_chat_template, tokenize=False, add_generation_prompt=True)
        try:
            return cast(str, render(messages))
        except TemplateError:
            if messages[0]["role"] != "system":
                raise
            # Some templates know no system message: it goes before the first request.
            system, first, *others = messages
            first = {**first, "content": f"{system['content']}\n\n{first['content']}"}
            return cast(str, render([first, *others]))
