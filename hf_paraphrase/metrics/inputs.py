from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import InputError

__all__ = ["check_texts"]


def check_texts(
    predictions: Iterable[str], references: Iterable[str | Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """Check the input of a text metric and bring it into one form.

    Args:
        predictions: One text each; an empty text is a prediction like any other.
        references: For each prediction one text or a non-empty list of texts; the lists may differ in length.

    Returns:
        The predictions and, for each of them, a list of references.

    Raises:
        InputError: Nothing to score, different lengths, or an entry of another type; the message names the index.
    """
    predictions, references = _as_list("predictions", predictions), _as_list("references", references)
    if len(predictions) != len(references):
        raise InputError(
            f"{len(predictions)} predictions but {len(references)} references; give one entry of references for each "
            "prediction (a list where there are several)"
        )
    if not predictions:
        raise InputError("predictions is empty: there is nothing to score")
    for index, text in enumerate(predictions):
        _check_text(f"predictions[{index}]", text)
    return predictions, [_check_references(index, entry) for index, entry in enumerate(references)]


def _as_list(name: str, texts: Iterable) -> list:
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise InputError(f"{name} must be a list, got {type(texts).__name__}")
    return list(texts)


def _check_references(index: int, entry: str | Sequence[str]) -> list[str]:
    texts = [entry] if isinstance(entry, str) else entry
    if not isinstance(texts, Sequence) or isinstance(texts, bytes):
        raise InputError(f"references[{index}] must be a text or a list of texts, got {type(texts).__name__}")
    if not texts:
        raise InputError(f"references[{index}] is an empty list; give at least one reference")
    for position, text in enumerate(texts):
        _check_text(f"references[{index}][{position}]", text)
    return list(texts)


def _check_text(name: str, text: str) -> None:
    if not isinstance(text, str):
        raise InputError(f"{name} must be a text, got {type(text).__name__}")
