"""Small edits that change the meaning of an English sentence, to test judges of meaning."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import cast

from hf_paraphrase.datasets.pair_filter import NUMBER, NUMBER_WORDS, ComparedSentence

Draw = random.Random
CONTRACTED = {"can't": "can", "won't": "will", "shan't": "shall", "cannot": "can"}
NEGATION = re.compile(r"\b(?:cannot|\w+n['’]t)\b| not\b| never\b", re.IGNORECASE)
AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|could|should|must|may|might|do|does|did)\b(?! not\b)"
)
SWAPPED = "I you|me you|my your|he she|his her|him her|himself herself|we they|us them|our their|it they"
ANTONYMS = """
    good bad|big small|large small|high low|old new|old young|hot cold|warm cold|early late|first last|more less
    many few|most least|always never|before after|up down|in out|open closed|open close|start stop|begin end
    win lose|buy sell|love hate|like dislike|true false|right wrong|right left|easy difficult|easy hard
    strong weak|rich poor|long short|fast slow|light dark|black white|day night|man woman|men women|boy girl
    son daughter|brother sister|mother father|husband wife|king queen|inside outside|above below|over under
    with without|near far|same different|full empty|happy sad|clean dirty|safe dangerous|increase decrease
    rise fall|rose fell|remember forget|accept refuse|allow forbid|arrive leave|give take|gave took|came went
    come go|push pull|best worst|better worse|everyone nobody|everything nothing|all none|possible impossible
    alive dead|life death|war peace|north south|east west|friend enemy|yesterday tomorrow|often rarely
    today yesterday|increase reduce|success failure|positive negative|public private
"""
# Where a sentence can lose what follows.
JOINT = re.compile(
    r",? (?=(?:and|but|because|although|when|while|before|after|if|which|who|so|since|until|for) )|[,;] "
)
END = re.compile(r"[.!?]*[\"”’']*$")
CONTENT = re.compile(r"\b[a-z]{4,}\b")


def _both_ways(pairs: str) -> dict[str, list[str]]:
    """What each word of `a b|c d` may become."""
    found: dict[str, list[str]] = {}
    for pair in re.split(r"[|\n]", pairs.strip()):
        first, second = pair.split()
        found.setdefault(first, []).append(second)
        found.setdefault(second, []).append(first)
    return found


OTHER_PERSON, OPPOSITE = _both_ways(SWAPPED), _both_ways(ANTONYMS)


class MeaningEditor:
    """Edits sentences of a corpus with names and words from its other sentences.

    Args:
        texts: The corpus.
    """

    def __init__(self, texts: Sequence[str]):
        names: dict[str, None] = {}
        words: dict[str, dict[str, None]] = {}
        for text in texts:
            names.update(dict.fromkeys(match[0] for match in _find_names(text)))
            for word in CONTENT.findall(text):
                words.setdefault(word[-2:], {})[word] = None
        self.names = list(names)
        self.words = {ending: list(group) for ending, group in words.items()}

    def edit(self, kind: str, text: str, draw: Draw) -> str | None:
        """Edit a sentence.

        Args:
            kind: A key of `EDITS`.
            text: The sentence, in English.
            draw: Chooses the place and the replacement.

        Returns:
            The new sentence; None where this one has nothing of the kind.
        """
        edited = EDITS[kind](self, text, draw)
        return None if edited is None or edited.lower() == text.lower() else edited

    def negation(self, text: str, draw: Draw) -> str | None:
        """Take a negation away, or put one in."""
        if found := NEGATION.search(text):
            word = found[0].replace("’", "'")
            plain = CONTRACTED.get(word.lower(), word[:-3] if word.endswith("n't") else "")
            return text[: found.start()] + plain + text[found.end() :]
        found = AUXILIARY.search(text)
        return None if found is None else f"{text[: found.end()]} not{text[found.end() :]}"

    def number(self, text: str, draw: Draw) -> str | None:
        """Put another number in the place of one."""
        words = [match for match in re.finditer(r"[a-z]+", text) if match[0] in NUMBER_WORDS]
        matches = [*NUMBER.finditer(text), *words]
        if not matches:
            return None
        found = draw.choice(matches)
        if found in words:
            other = draw.choice([word for word in NUMBER_WORDS if word != found[0]])
        else:
            other = re.sub(r"\d", lambda digit: draw.choice("123456789".replace(digit[0], "")), found[0], count=1)
        return _replace(text, found, other)

    def name(self, text: str, draw: Draw) -> str | None:
        """Replace a name with one from another sentence."""
        matches = _find_names(text)
        return _replace(text, draw.choice(matches), draw.choice(self.names)) if matches else None

    def person(self, text: str, draw: Draw) -> str | None:
        """Put another person in the place of a pronoun."""
        return _swap(text, OTHER_PERSON, draw)

    def antonym(self, text: str, draw: Draw) -> str | None:
        """Put a word of the opposite meaning in the place of one."""
        return _swap(text, OPPOSITE, draw)

    def clause(self, text: str, draw: Draw) -> str | None:
        """Leave out what follows, or precedes, a comma or a conjunction."""
        end = cast(re.Match[str], END.search(text))  # the end of a text at the latest
        body = text[: end.start()]
        parts = [(body[: found.start()], body[found.end() :]) for found in JOINT.finditer(body)]
        parts = [pair for pair in parts if min(len(part.split()) for part in pair) >= 3]
        if not parts:
            return None
        first, second = draw.choice(parts)
        return (first if len(first) >= len(second) else second[0].upper() + second[1:]) + end[0]

    def word(self, text: str, draw: Draw) -> str | None:
        """Replace a word with one of the same ending from another sentence."""
        matches = [found for found in CONTENT.finditer(text) if len(self.words.get(found[0][-2:], ())) > 1]
        if not matches:
            return None
        found = draw.choice(matches)
        return _replace(text, found, draw.choice(self.words[found[0][-2:]]))


EDITS: dict[str, Callable[[MeaningEditor, str, Draw], str | None]] = {
    "negation": MeaningEditor.negation,
    "number": MeaningEditor.number,
    "name": MeaningEditor.name,
    "person": MeaningEditor.person,
    "antonym": MeaningEditor.antonym,
    "clause": MeaningEditor.clause,
    "word": MeaningEditor.word,
}


def _find_names(text: str) -> list[re.Match[str]]:
    names = ComparedSentence(text).names
    return [found for found in re.finditer(r"\b[A-Z]\w+", text) if found[0].lower() in names and found.start() > 0]


def _swap(text: str, others: dict[str, list[str]], draw: Draw) -> str | None:
    """Put another word in the place of one that has some, with its capital."""
    matches = [found for found in re.finditer(r"\w+(?!['’])\b", text) if _key(found[0]) in others]
    if not matches:
        return None
    found = draw.choice(matches)
    other = draw.choice(others[_key(found[0])])
    return _replace(text, found, other[0].upper() + other[1:] if found.start() == 0 else other)


def _key(word: str) -> str:
    return word if word == "I" else word.lower()


def _replace(text: str, found: re.Match[str], other: str) -> str:
    return text[: found.start()] + other + text[found.end() :]
