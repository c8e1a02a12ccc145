"""Where a pipeline gets the pairs that a model edits by: from its caller, or from the retriever of the checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from transformers import PreTrainedModel

__all__ = ["TextWithPair", "check_pairs", "find_pairs", "load_retriever"]

Pair = tuple[str, str]


class TextWithPair(NamedTuple):
    """A text to edit as `retrieved_source` became `retrieved_target`."""

    text: str
    retrieved_source: str
    retrieved_target: str


def load_retriever(model: PreTrainedModel, trust_remote_code: bool = False, **hub: Any) -> Any:
    """Load the retriever that was saved with a checkpoint, in its subfolder `retriever`.

    Args:
        model: Of that checkpoint.
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

    Args:
        retriever: Finds them.
        texts: The texts.
        num_neighbors: Pairs for each.
        exclude_sentences: For each text sentences that its pairs must not have, as `retrieve` takes them.
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
