"""The few rules of English that the slots of `synthetic_questions` need."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["FORMS"]

PLURALS = {
    "deer": "deer",
    "goldfish": "goldfish",
    "goose": "geese",
    "mouse": "mice",
    "sheep": "sheep",
    "wolf": "wolves",
}
SINGULARS_IN_S = {"couscous", "hummus"}
DOUBLING = {"get", "knit", "run", "skip", "stop", "swim"}


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0].lower() in "aeiou" else f"a {noun}"


def _plural(noun: str) -> str:
    if noun in PLURALS:
        return PLURALS[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def _gerund(phrase: str) -> str:
    verb, space, rest = phrase.partition(" ")
    if verb.endswith("ie"):
        stem = f"{verb[:-2]}y"
    elif verb.endswith("e"):
        stem = verb[:-1]
    else:
        stem = verb + verb[-1] if verb in DOUBLING else verb
    return f"{stem}ing{space}{rest}"


def _is_plural(noun: str) -> bool:
    return noun.endswith("s") and noun not in SINGULARS_IN_S


# What the part of a field behind its colon does to the word.
FORMS: dict[str | None, Callable[[str], str]] = {
    None: str,
    "a": _with_article,
    "s": _plural,
    "ing": _gerund,
    "is": lambda noun: f"are {noun}" if _is_plural(noun) else f"is {noun}",
    "does": lambda noun: f"do {noun}" if _is_plural(noun) else f"does {noun}",
    "it": lambda noun: "them" if _is_plural(noun) else "it",
}
