"""Checks of the text2text pipeline's model, arguments, texts and pairs before it runs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, cast

from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

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

    A missing cell is an empty text.

    Raises:
        ValueError: A DataFrame lacks the column, another type has none, or an array has several columns.
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


COUNTS = {"num_beams", "num_return_sequences", "max_new_tokens", "max_length", "num_beam_groups"}
COUNTS |= {"num_candidates", "num_neighbors", "candidates_per_beam", "batch_size"}
# Whole numbers, of which 0 asks for nothing.
SWITCHED_COUNTS = {"top_k", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "min_new_tokens", "min_length"}
NUMBERS = {"top_p", "diversity_penalty", "fidelity"}
# Of which transformers takes no whole number.
PENALTIES = {"repetition_penalty", "encoder_repetition_penalty"}
# Which some decodings draw themselves, where it is a word.
DRAWN = {"temperature", "noise"}
TRUTHS = {"do_sample", "replace_unknown", "restore_surface", "return_tensors", "return_text", "return_retrieved"}
TEXTS = {"stop_sequence"}
TOKENS = {"eos_token_id", "pad_token_id", "bos_token_id", "decoder_start_token_id"}


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _are_tokens(value: Any) -> bool:
    return all(map(_is_whole, value if isinstance(value, list) and value else [value]))


# What is right for the arguments of each kind, and how errors put it.
CHECKS: tuple[tuple[Set[str], Callable[[Any], bool], str], ...] = (
    (COUNTS | SWITCHED_COUNTS, _is_whole, "must be a whole number"),
    (COUNTS, lambda value: value >= 1, "must be at least 1"),
    (SWITCHED_COUNTS, lambda value: value >= 0, "must be at least 0"),
    (PENALTIES, lambda value: isinstance(value, float) and value > 0, "must be a float above 0"),
    # Lengths to the power of more than that are not floats.
    ({"length_penalty"}, lambda value: _is_number(value) and abs(value) <= 100, "must be a number from -100 to 100"),
    (NUMBERS, _is_number, "must be a number"),
    (DRAWN, lambda value: isinstance(value, str) or _is_number(value), "must be a number"),
    (TRUTHS, lambda value: isinstance(value, bool), "must be True or False"),
    (TEXTS, lambda value: isinstance(value, str), "must be a text"),
    (TOKENS, _are_tokens, "must be the number of a token, or several"),
    ({"generation_config"}, lambda value: isinstance(value, GenerationConfig), "must be a GenerationConfig"),
)


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Raise ValueError for an argument of a pipeline or of `generate()` of the wrong type; None is always right."""
    for name, value in arguments.items():
        for names, is_right, expected in CHECKS:
            if value is not None and name in names and not is_right(value):
                raise ValueError(f"`{name}` {expected}, not {value!r:.100}")


def check_argument_names(names: Iterable[str], own: Iterable[str], model: PreTrainedModel) -> None:
    """Refuse misspelt arguments of `generate()`, by a ValueError with the closest names.

    Names unlike all known ones, the `own` and the model's, may belong to a custom search, and `generate()` decides.
    """
    known = COUNTS | SWITCHED_COUNTS | NUMBERS | PENALTIES | DRAWN | TRUTHS | TEXTS | TOKENS | {*own}
    known |= vars(GenerationConfig()).keys()
    if known.issuperset(names := [*names]):
        return
    for function in (model.generate, model.forward):
        known |= inspect.signature(cast(Callable, function)).parameters.keys()
    refuse_misspelt(names, known)


def refuse_misspelt(names: Iterable[str], known: Set[str]) -> None:
    """Raise a ValueError for the first name that is unknown but close to known ones, which its message lists."""
    for name in names:
        if name not in known and (close := get_close_matches(name, known, n=3, cutoff=0.8)):
            raise ValueError(f"unknown argument `{name}`; did you mean {' or '.join(f'`{one}`' for one in close)}?")


def plain_number(value: Any) -> Any:
    """Return a number of any type, such as NumPy's, as an int or a float; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


Pair = tuple[str, str]


class TextWithPair(NamedTuple):
    """A text to edit as `retrieved_source` became `retrieved_target`."""

    text: str
    retrieved_source: str
    retrieved_target: str


def load_retriever(model: PreTrainedModel, trust_remote_code: bool = False, **hub: Any) -> Any:
    """Load the retriever that was saved with a checkpoint, in its subfolder `retriever`.

    Args:
        trust_remote_code: Let the code of the retriever's encoder run.
        hub: Where it comes from: `revision`, `token`, `cache_dir`, `local_files_only`.

    Raises:
        ValueError: It cannot be used here; the message says what to do.
    """
    try:
        from hf_paraphrase.retrieval import ParaphraseRetriever
    except ImportError as error:
        raise ValueError(
            "finding a pair to edit by needs the package hf_paraphrase; without it, "
            "give one: `retrieved=[(sentence, its paraphrase)]`"
        ) from error
    name = cast(str, model.name_or_path)
    path, subfolder = Path(name), "retriever"
    if path.is_dir() and not (path / subfolder).is_dir():
        raise ValueError(
            f"'{path}' has no folder {subfolder}: save a `ParaphraseRetriever` there, pass `retriever=`, or give the "
            "pair: `retrieved=[(sentence, its paraphrase)]`"
        )
    return ParaphraseRetriever.from_pretrained(name, subfolder=subfolder, trust_remote_code=trust_remote_code, **hub)


def find_pairs(
    retriever: Any, texts: Sequence[str], num_neighbors: int, exclude_sentences: Sequence[Sequence[str]] | None = None
) -> list[list[Pair]]:
    """The nearest pairs of each text; a blank text, which no model is shown, has as many blank ones.

    `exclude_sentences` are, for each text, sentences that its pairs must not have, as `retrieve` takes them.
    """
    places = [place for place, text in enumerate(texts) if text.strip()]
    options = (
        {} if exclude_sentences is None else {"exclude_sentences": [exclude_sentences[place] for place in places]}
    )
    found = iter(retriever.retrieve([texts[place] for place in places], num_neighbors, **options))
    blank = [("", "")] * num_neighbors
    return [[(pair.source, pair.target) for pair in next(found)] if text.strip() else blank for text in texts]


def check_pairs(pairs: Any) -> list[tuple[str, str]]:
    """Raise ValueError unless these are pairs of texts with words."""
    if isinstance(pairs, Sequence) and not isinstance(pairs, str) and pairs:
        pairs = [
            tuple(pair) if isinstance(pair, Sequence) and not isinstance(pair, str) else (pair,) for pair in pairs
        ]
        if all(len(pair) == 2 and all(isinstance(text, str) and text.strip() for text in pair) for pair in pairs):
            return pairs
    raise ValueError("`retrieved` must be a list of pairs [(sentence, its paraphrase), …], all of them with text")
