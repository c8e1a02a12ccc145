"""Texts that a model should not paraphrase: in another script or language, code, lists and single words."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .paraphrase_choice import normal_form
from .writers import ModelWriter

# Separators of list entries, and ends of sentences.
SEPARATOR = re.compile(r"\s*(?:[,;|/•*\n]|(?:^|\s)-\s|(?:^|\s)(?:\d+|[a-z])[.)]\s)\s*")
SENTENCE_END = re.compile(r"[.!?…][\"”’')]*\s*$")
# Most English sentences have some of these.
COMMON = """
    a an the and or but of to in on at for with from by into about as than is are was were be been has have had
    do does did not no it its this that these there what which who how why when where i you he she we they my
    your his her our their me him us them can could will would should must if because so all more some
"""
COMMON_WORDS, WORD = frozenset(COMMON.split()), re.compile(r"([^\W_]+)(?:['’][^\W_]+)?")
REFUSAL = "the model does not paraphrase {}"
LETTER, LATIN = re.compile(r"[^\W\d_]"), re.compile(r"[A-Za-z\u00aa-\u024f\u1e00-\u1eff]")


def text_features(writer: ModelWriter, texts: Sequence[str], batch_size: int) -> np.ndarray:
    """Compute the features that separate text a model was trained on from other text, `(texts, 3)`.

    They are the mean log-probability of a text's tokens given the text itself, its characters a token, and the share
    of its words that are among the most common ones of English.
    """
    if not texts:
        return np.zeros((0, 3))
    log_probs = writer.token_log_probs(texts, texts, batch_size)
    rows = []
    for text, one in zip(texts, log_probs, strict=True):
        words = WORD.findall(text.lower())
        common = sum(word in COMMON_WORDS for word in words) / max(len(words), 1)
        rows.append([np.mean(one), len(text) / max(len(one) - 1, 1), common])  # the last token is the end mark
    return np.array(rows)


class OwnText:
    """Finds texts that are not of the kind a model was trained on.

    Args:
        writer: Runs the model. Where its config has a field `own_text`, that holds the `weights` of the three features
            of `text_features` and a `bias`; a weighted sum below 0 means another language or code. Without the field
            nothing is refused.
    """

    def __init__(self, writer: ModelWriter):
        self.limits = getattr(getattr(writer.model, "config", None), "own_text", None)
        if self.limits is not None:
            self.writer = ModelWriter(writer.model, writer.tokenizer, prefix=writer.prefix)

    def find_refusals(self, texts: Sequence[str], batch_size: int) -> list[str | None]:
        """Say of each text why the model should not paraphrase it; None where it may, and of a blank text."""
        if self.limits is None:
            return [None] * len(texts)
        refusals = [find_foreign_form(text) for text in texts]
        left = [place for place, text in enumerate(texts) if refusals[place] is None and normal_form(text)]
        features = text_features(self.writer, [texts[place] for place in left], batch_size)
        scores = features @ np.array(self.limits["weights"]) + self.limits["bias"]
        for place, score in zip(left, scores, strict=True):
            if score < 0:
                refusals[place] = REFUSAL.format("other languages or code")
        return refusals


def find_foreign_form(text: str) -> str | None:
    """Say whether a text is in another script than Latin, one word or a list; None for any other and a blank one."""
    letters = LETTER.findall(text)
    if sum(LATIN.match(letter) is not None for letter in letters) < len(letters) / 2:
        return REFUSAL.format("other scripts")
    if sum(bool(normal_form(word)) for word in text.split()) == 1:
        return REFUSAL.format("single words")
    entries = [entry for entry in SEPARATOR.split(text) if entry]
    if len(entries) > 2 and not SENTENCE_END.search(text) and all(len(entry.split()) < 3 for entry in entries):
        return REFUSAL.format("lists")
    return None
