"""Prompts and answers as a language model's tokenizer writes them, for generation and for training."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import cast

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from .prompts import Prompt

__all__ = ["PromptEncoder"]

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
