from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import SupportsFloat, TypeVar

from ..common.errors import InputError

Number = TypeVar("Number", bound=float)


def check_texts(
    predictions: Iterable[str], references: Iterable[str | Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """Check the input of a text metric and bring it into one form: the predictions and, for each of them, a list of
    references.

    An empty text is a prediction like any other. Nothing to score, different lengths, or an entry of another type
    raise InputError, which names the index.
    """
    predictions, references = check_text_list("predictions", predictions), check_list("references", references)
    if len(predictions) != len(references):
        raise InputError(
            f"{len(predictions)} predictions but {len(references)} references; give one entry of references for each "
            "prediction (a list where there are several)"
        )
    return predictions, [_check_references(index, entry) for index, entry in enumerate(references)]


def check_sources(predictions: Iterable[str], sources: Iterable[str]) -> tuple[list[str], list[str]]:
    """Check texts and, for each of them, the text that it paraphrases; raises an InputError that names the index."""
    predictions, sources = check_text_list("predictions", predictions), check_text_list("sources", sources)
    check_lengths(predictions=predictions, sources=sources)
    return predictions, sources


def check_text_list(name: str, texts: Iterable[str]) -> list[str]:
    """A non-empty list of texts, or an InputError that names the index of the entry that is not text."""
    return _check_each(name, check_filled_list(name, texts))


def check_text_lists(name: str, lists: Iterable[Sequence[str]], *, minimum: int = 0) -> list[list[str]]:
    """A non-empty list of lists of texts, each of at least `minimum` texts, or an InputError that names the index."""
    lists = check_filled_list(name, lists)
    for index, texts in enumerate(lists):
        if isinstance(texts, (str, bytes)) or not isinstance(texts, Sequence):
            raise InputError(f"{name}[{index}] must be a list of texts, got {type(texts).__name__}")
        if len(texts) < minimum:
            raise InputError(f"{name}[{index}] has {len(texts)} texts; give at least {minimum}")
        _check_each(f"{name}[{index}]", texts)
    return [list(texts) for texts in lists]


def check_numbers(name: str, numbers: Iterable[Number]) -> list[Number]:
    """A non-empty list of finite numbers, or an InputError that names the index."""
    numbers = check_filled_list(name, numbers)
    for index, number in enumerate(numbers):
        if isinstance(number, (str, bytes)) or not isinstance(number, SupportsFloat):
            raise InputError(f"{name}[{index}] must be a number, got {type(number).__name__}")
        if not math.isfinite(number):
            raise InputError(f"{name}[{index}] is {number}; only finite numbers can be scored")
    return numbers


def check_losses(losses: Iterable[float], name: str, counts: Iterable[int]) -> tuple[list[float], list[int]]:
    """Summed losses and the counts they were summed over, none negative, or an InputError that names the index."""
    nats, units = check_numbers("losses", losses), check_numbers(name, counts)
    columns: dict[str, list] = {"losses": nats, name: units}
    check_lengths(**columns)
    for index, count in enumerate(units):
        if count < 0:
            raise InputError(f"{name}[{index}] is {count}; a count cannot be negative")
    if not sum(units):
        raise InputError(f"{name} are all 0: nothing to score")
    return nats, units


def check_lengths(**columns: Sequence) -> None:
    """Raise an InputError unless all columns have one length; it gives their names and lengths."""
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{len(column)} {name}" for name, column in columns.items())
        raise InputError(f"{lengths}; give one entry of each for every row")


def check_list(name: str, values: Iterable) -> list:
    """The values as a list, or an InputError where they are a single text or no collection at all."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list, got {type(values).__name__}")
    return list(values)


def check_filled_list(name: str, values: Iterable) -> list:
    """The same of values of which there must be one at least."""
    values = check_list(name, values)
    if not values:
        raise InputError(f"{name} is empty: nothing to score")
    return values


def count_references(references: Sequence[Sequence[str]]) -> str:
    """How many each text has, for a signature; `var` where the number differs."""
    counts = {len(texts) for texts in references}
    return str(counts.pop()) if len(counts) == 1 else "var"


def _check_references(index: int, entry: str | Sequence[str]) -> list[str]:
    texts = [entry] if isinstance(entry, str) else entry
    if not isinstance(texts, Sequence) or isinstance(texts, bytes):
        raise InputError(f"references[{index}] must be a text or a list of texts, got {type(texts).__name__}")
    if not texts:
        raise InputError(f"references[{index}] is an empty list; give at least one reference")
    return _check_each(f"references[{index}]", texts)


def _check_each(name: str, texts: Sequence[str]) -> list[str]:
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{name}[{index}] must be a text, got {type(text).__name__}")
    return list(texts)
