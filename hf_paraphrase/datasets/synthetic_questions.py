from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..common.errors import InputError
from ..common.fields import option, read_yaml
from .builder import CorpusConfig, ParaphraseBuilder

Choose = Callable[[Sequence[str]], str]
# A frame and the word in each of its fields.
Meaning = tuple[str, dict[str, str]]

FIELD = re.compile(r"\{(\w+)(?::(\w+))?\}")
CHOICE = re.compile(r"\[([^\]]*)\]")
# So many draws in a row without a new row, and the grammar is taken to be used up.
PATIENCE = 5000
GRAMMAR = read_yaml(Path(__file__).with_suffix(".yaml"))
PHRASES = GRAMMAR["phrases"]
FRAMES = {name: templates.splitlines() for name, templates in GRAMMAR["frames"].items()}
SLOTS = {kind: [word.strip() for word in words.split(",")] for kind, words in GRAMMAR["slots"].items()}
SLOTS["subject"] = [*SLOTS["language"], *SLOTS["programming"], *SLOTS.pop("science")]
NAMES = list(FRAMES)

PLURALS = {"goose": "geese", "mouse": "mice", "wolf": "wolves"}
PLURALS |= {noun: noun for noun in ("deer", "goldfish", "sheep")}
SINGULARS_IN_S = {"couscous", "hummus"}
DOUBLING = {"get", "knit", "run", "skip", "stop", "swim"}


@dataclass
class SyntheticQuestionsConfig(CorpusConfig):
    """How many questions to make."""

    seed: int = option("Decides everything that is drawn.", 42)
    train_size: int = option("Pairs to train on, all different.", 60_000, least=0)
    validation_size: int = option("Pairs to validate on.", 1000, least=0)
    test_size: int = option("Questions to test on, each with its references.", 1000, least=0)


class SyntheticQuestionsBuilder(ParaphraseBuilder):
    """Questions and their paraphrases from a small grammar of this package; needs no file."""

    corpus_name = "synthetic_questions"
    licence_id = "apache-2.0"
    BUILDER_CONFIGS = [SyntheticQuestionsConfig(name="default", description="60,000 pairs to train on.")]

    def parts(self) -> dict[str, dict[str, Any]]:
        return {split: {"split": split} for split in ("train", "validation", "test")}

    def generate_rows(self, split: str) -> Iterator[dict[str, Any]]:
        size = getattr(self.config, f"{split}_size")
        seed = self.config.seed
        choose = _chooser(f"{seed} {split}")
        seen: set[Any] = set()
        failures = 0
        while len(seen) < size:
            meaning = _draw_meaning(choose)
            key, row = _make_row(meaning, choose, split) if split_of(meaning, seed) == split else (None, None)
            if row is None or key in seen:
                failures += 1
                if failures == PATIENCE:
                    raise InputError(f"`{split}_size` is {size}, but the grammar has about {len(seen)} different rows")
                continue
            failures = 0
            yield row
            seen.add(key)


def split_of(meaning: Meaning, seed: int) -> str:
    """The split that a meaning belongs to: `test` and `validation` get a tenth each, `train` the rest."""
    frame, words = meaning
    digest = hashlib.sha256("\0".join([str(seed), frame, *words.values()]).encode()).digest()
    return {0: "test", 1: "validation"}.get(int.from_bytes(digest[:4]) % 10, "train")


def word_meaning(meaning: Meaning, template: str, choose: Choose) -> str:
    """Ask for a meaning by one of its templates, each choice in it left to `choose`."""
    template = CHOICE.sub(lambda match: choose(_alternatives(match[1])), template)
    text = FIELD.sub(lambda match: FORMS[match[2]](choose(meaning[1][match[1]].split("|"))), template)
    return text[0].upper() + text[1:]


def _draw_meaning(choose: Choose) -> Meaning:
    frame = choose(NAMES)
    words: dict[str, str] = {}
    for kind, fields in _fields(frame).items():
        drawn: list[str] = []
        while len(drawn) < len(fields):
            word = choose(SLOTS[kind])
            if word not in drawn:
                drawn.append(word)
        words.update(zip(fields, sorted(drawn) if frame in GRAMMAR["symmetric"] else drawn, strict=True))
    return frame, words


def _make_row(meaning: Meaning, choose: Choose, split: str) -> tuple[Hashable, dict[str, Any]]:
    """A row, and what tells it from others: to test on, all the ways to ask; else two of them."""
    templates = FRAMES[meaning[0]]
    first = choose(templates)
    others = [template for template in templates if template is not first]
    others = others if split == "test" else [choose(others)]
    source, *targets = [word_meaning(meaning, template, choose) for template in (first, *others)]
    if split == "test":
        return repr(meaning), {"source": source, "references": targets}
    return frozenset((source, *targets)), {"source": source, "target": targets[0]}


def _chooser(seed: str) -> Choose:
    # Of all of a generator's methods, only `random` promises the same numbers in every version of Python.
    uniform = random.Random(seed).random
    return lambda items: items[int(uniform() * len(items))]


@cache
def _fields(frame: str) -> dict[str, list[str]]:
    fields = sorted({match[1] for template in FRAMES[frame] for match in FIELD.finditer(template)})
    kinds: dict[str, list[str]] = {}
    for field in fields:
        kinds.setdefault(field.rstrip("12"), []).append(field)
    return kinds


@cache
def _alternatives(choice: str) -> list[str]:
    return (choice if "|" in choice else PHRASES[choice]).split("|")


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
    "a": lambda noun: f"an {noun}" if noun[0].lower() in "aeiou" else f"a {noun}",
    "s": _plural,
    "ing": _gerund,
    "is": lambda noun: f"are {noun}" if _is_plural(noun) else f"is {noun}",
    "does": lambda noun: f"do {noun}" if _is_plural(noun) else f"does {noun}",
    "it": lambda noun: "them" if _is_plural(noun) else "it",
}
