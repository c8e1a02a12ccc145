"""Rare words that a model of sub-words copied wrongly, replaced by the source's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from transformers import PreTrainedTokenizerBase

LETTERS = re.compile(r"[^\W_]+")
# Least sub-words of a word that can have been copied wrongly, and of the wrong copy.
RARE, BROKEN = 2, 3
LIKE = 0.6  # of `difflib`


def mend_miscopied_words(tokenizer: PreTrainedTokenizerBase, text: str, source: Iterable[str]) -> str:
    """Replace words of many sub-words that are not in the source by the rare words of it that they resemble.

    "Duraimrugan" becomes "Duraimurugan" where the source has that word and the text has not. Inflections stay:
    neither word may begin with the other. A tokenizer of words mends nothing: each is one token.

    Args:
        tokenizer: The model's.
        text: An output.
        source: The words of its source.
    """
    ours, theirs = (list(dict.fromkeys(LETTERS.findall(words))) for words in (text, " ".join(source)))
    present, known = ({word.lower() for word in words} for words in (ours, theirs))
    invented = [word for word in ours if word.lower() not in known and len(tokenizer.tokenize(word)) >= BROKEN]
    if not invented:
        return text
    lost = [word for word in theirs if word.lower() not in present and len(tokenizer.tokenize(word)) >= RARE]
    for wrong in invented:
        for right in get_close_matches(wrong, lost, n=1, cutoff=LIKE):
            if not (wrong.startswith(right) or right.startswith(wrong)):
                lost.remove(right)
                text = re.sub(rf"(?<![^\W_]){wrong}(?![^\W_])", right, text)
    return text
