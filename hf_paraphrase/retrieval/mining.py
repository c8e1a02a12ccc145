from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm.auto import tqdm

from ..common.checks import whole_number
from ..common.errors import InputError
from ..common.installation import require
from ..common.progress import is_watched
from .encoders import DEFAULT_ENCODER, EncoderLike, load_encoder
from .jaccard import JaccardIndex

ENCODED_AT_ONCE, QUERIES_AT_ONCE, TEXTS_AT_ONCE = 2048, 1000, 100_000


class MinedPair(NamedTuple):
    """Two texts that an encoder finds alike.

    Args:
        score: Their similarity, at most 1.
        first: The position of the first one among the texts.
        second: The place of the other.
    """

    score: float
    first: int
    second: int


def mine_paraphrases(
    texts: Sequence[str],
    encoder: EncoderLike = DEFAULT_ENCODER,
    *,
    min_score: float = 0.8,
    max_score: float = 1.0,
    top_k: int = 10,
    max_pairs: int = 500_000,
    disable_tqdm: bool | None = None,
    **encoder_kwargs: Any,
) -> list[MinedPair]:
    """Find the pairs of texts that are most alike, each pair once.

    Every text is compared with every other one, by the search of sentence-transformers' paraphrase mining
    (`util.paraphrase_mining_embeddings`; Reimers and Gurevych 2019). Similarity is not meaning: a pair that differs in
    a negation or a number may score high, so look at some before training on them. Texts that differ in case and white
    space alone are not a pair.

    Args:
        texts: The texts.
        encoder: As `load_encoder` takes it, or "jaccard", which compares the sets of their tokens and needs no model.
        min_score: Less like pairs are left out.
        max_score: Maximum score; excludes near copies.
        top_k: The most alike texts to look at for each.
        max_pairs: Maximum number of pairs, best first.
        disable_tqdm: Show no progress; None shows it on terminals and in notebooks.
        encoder_kwargs: `device` and `batch_size`, for an encoder that is loaded here.

    Returns:
        The pairs, the most alike first.

    Raises:
        InputError: The encoder cannot be loaded, or a limit makes no sense.
    """
    if not -1 <= min_score <= max_score:
        raise InputError(f"`min_score` must be from -1 to `max_score`, not {min_score} (`max_score` is {max_score})")
    top_k, max_pairs = whole_number("top_k", top_k, 1), whole_number("max_pairs", max_pairs, 1)
    folded = [" ".join(text.casefold().split()) for text in texts]
    # Of equal texts the first speaks for all.
    places = list({text: place for place, text in reversed(list(enumerate(folded)))}.values())[::-1]
    kept = [texts[place] for place in places]
    find = _find_by_tokens if encoder == "jaccard" else _find_by_vectors
    disable_tqdm = not is_watched() if disable_tqdm is None else disable_tqdm
    found = find(kept, encoder, top_k, max_pairs, disable_tqdm, encoder_kwargs) if len(kept) > 1 else []
    ordered = sorted(found, key=lambda pair: (-pair.score, pair.first, pair.second))[:max_pairs]
    return [
        MinedPair(score, *sorted((places[first], places[second])))
        for score, first, second in ordered
        # An encoder's arithmetic may make a little more than 1 of equal vectors.
        if min_score <= score and (score <= max_score or max_score >= 1)
    ]


def _find_by_vectors(
    texts: list[str], encoder: Any, top_k: int, max_pairs: int, disable_tqdm: bool | None, kwargs: dict[str, Any]
) -> Iterator[MinedPair]:
    otherwise, package = "the encoder jaccard needs nothing", "sentence-transformers"
    require("sentence_transformers", "retrieval", "mining", otherwise, package)
    from sentence_transformers.util import paraphrase_mining_embeddings

    encode = load_encoder(encoder, **kwargs)
    chunks = [texts[start : start + ENCODED_AT_ONCE] for start in range(0, len(texts), ENCODED_AT_ONCE)]
    vectors = [encode(chunk) for chunk in tqdm(chunks, desc="encoding", disable=disable_tqdm)]
    rounds = ceil(len(texts) / QUERIES_AT_ONCE) * ceil(len(texts) / TEXTS_AT_ONCE)
    with tqdm(total=rounds, desc="mining", disable=disable_tqdm) as progress:

        def similarities(queries: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
            progress.update()
            # Vectors of encoders have the length 1.
            return queries @ others.T

        found = paraphrase_mining_embeddings(
            torch.from_numpy(np.concatenate(vectors)),
            query_chunk_size=QUERIES_AT_ONCE,
            corpus_chunk_size=TEXTS_AT_ONCE,
            max_pairs=max_pairs,
            top_k=top_k,
            score_function=similarities,
        )
    for score, first, second in found:
        yield MinedPair(score, int(first), int(second))


def _find_by_tokens(
    texts: list[str], encoder: Any, top_k: int, max_pairs: int, disable_tqdm: bool | None, kwargs: dict[str, Any]
) -> list[MinedPair]:
    index = JaccardIndex()
    index.add([texts], len(texts))
    found: dict[tuple[int, int], float] = {}
    for start in tqdm(range(0, len(texts), QUERIES_AT_ONCE), desc="mining", disable=disable_tqdm):
        scores, rows = index.search(texts[start : start + QUERIES_AT_ONCE], top_k + 1)
        for place, (alike, others) in enumerate(zip(scores.tolist(), rows.tolist(), strict=True), start):
            for score, other in zip(alike, others, strict=True):
                if other != place:
                    found[min(place, other), max(place, other)] = score
    return [MinedPair(score, *pair) for pair, score in found.items()]
