"""Checks of the text2text pipeline before it runs a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

__all__ = [
    "check_each_text",
    "check_length",
    "check_model",
    "check_text",
    "check_tokenizer",
    "read_array",
    "warn_of_length",
]

logger = logging.get_logger(__name__)


def warn_of_length(length: int, model: PreTrainedModel) -> None:
    """Warn of a text that has more tokens than the model has positions; others a model reads at any length."""
    limit = getattr(model.config, "max_position_embeddings", None)
    if limit is not None and length > limit:
        logger.warning(
            f"a text has {length} tokens, but {type(model).__name__} has positions for {limit}: if reading it fails, "
            "`truncation=True` cuts it"
        )


def check_length(length: int, model: PreTrainedModel, error: IndexError) -> None:
    """Raise ValueError where the length of a text is what made the model fail."""
    limit = getattr(model.config, "max_position_embeddings", None)
    if limit is not None and length > limit:
        raise ValueError(
            f"the input has {length} tokens, but {type(model).__name__} has positions for {limit}: `truncation=True` "
            "cuts it"
        ) from error


def read_array(texts: Any, column: str | None = None) -> Any:
    """The texts of a pandas Series, a NumPy array or a column of a DataFrame as a list; anything else as it is.

    Args:
        texts: The argument passed as texts.
        column: Of a DataFrame, the column that holds them.

    Returns:
        A list, in which a missing cell is an empty text; or `texts`.

    Raises:
        ValueError: A DataFrame lacks the column, a column is given without a DataFrame, or an array has several
            columns.
    """
    if hasattr(texts, "columns") and hasattr(texts, "iloc"):
        columns = list(texts.columns)
        if column not in columns:
            asked = "say which column holds the texts" if column is None else f"there is no column {column!r}"
            raise ValueError(f"{asked}: `column=`, or pass `table[column]`; the DataFrame has {columns}")
        texts = texts[column]
    elif column is not None:
        raise ValueError(f"`column={column!r}` is for a DataFrame, not for a {type(texts).__name__}")
    if not hasattr(texts, "__array__"):
        return texts
    if len(shape := getattr(texts, "shape", (0,))) != 1:
        raise ValueError(f"an array of texts has one dimension, not the shape {tuple(shape)}")
    return ["" if _is_missing(text) else text for text in texts]


def _is_missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def check_each_text(texts: list[Any]) -> None:
    """Raise ValueError unless all are strings."""
    for index, text in enumerate(texts):
        check_text(text, f"input {index} of the list")


def check_text(text: Any, name: str) -> None:
    """Raise ValueError unless `text` is a string of characters."""
    if not isinstance(text, str):
        raise ValueError(
            f"{name} is of type {type(text).__name__}, not a string; pass a string, a list of strings, "
            "a `KeyDataset(dataset, column)` or a generator of strings"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} has half of a surrogate pair, which is not a character, at place {error.start + 1} of "
            f"{text!r:.100}: `text.encode('utf-8', 'replace').decode()` replaces it"
        ) from error


def check_model(model: PreTrainedModel) -> None:
    """Raise ValueError unless the model is an encoder-decoder that can generate."""
    if not (model.config.is_encoder_decoder and model.can_generate()):
        raise ValueError(
            f"text2text-generation needs an encoder-decoder model such as T5 or BART, but {type(model).__name__} is "
            'none; for a decoder-only model use `pipeline("text-generation")`'
        )


def check_tokenizer(tokenizer: PreTrainedTokenizerBase | None, model: PreTrainedModel) -> None:
    """Raise ValueError where there is no tokenizer, or one that `AutoTokenizer` made up for a folder without any."""
    fix = "save the one that the model was trained with there (`tokenizer.save_pretrained`), or pass `tokenizer=`"
    if tokenizer is None:
        raise ValueError(
            f"no tokenizer could be loaded from '{model.name_or_path}': {fix}. "
            "If there is one, `AutoTokenizer.from_pretrained` tells why it does not load"
        )
    # For an architecture that it knows, transformers 5 makes one with special tokens alone: every word is unknown.
    folder = Path(tokenizer.name_or_path or "not loaded from a folder")
    files = {"tokenizer_config.json", *tokenizer.vocab_files_names.values()}
    if folder.is_dir() and not any((folder / name).is_file() for name in files):
        raise ValueError(f"'{folder}' has no tokenizer: {fix}")
