from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from sacrebleu.metrics import BLEU

from ...errors import InputError
from ...installation import require
from ..sufficient_statistics import SufficientStatistics

__all__ = ["STAGES", "check_stages", "nltk_meteor"]

STAGES = ("exact", "stem", "wordnet")
_PARAMETERS = {"alpha": 0.9, "beta": 3.0, "gamma": 0.5}


def nltk_meteor(
    predictions: list[str], references: list[list[str]], *, stages: Sequence[str], tokenize: str
) -> SufficientStatistics:
    """Statistics of nltk's METEOR: the mean over the sentences of the score with the best reference."""
    if tokenize not in BLEU.TOKENIZERS:
        raise InputError(f"unknown tokenize {tokenize!r}; available: {', '.join(BLEU.TOKENIZERS)}")
    check_stages(stages)
    options = {"stemmer": _Stems("stem" in stages), "wordnet": _Synonyms("wordnet" in stages), **_PARAMETERS}
    from nltk.translate.meteor_score import meteor_score

    split = _Words(tokenize)
    scores = [
        meteor_score([split(text) for text in texts], split(prediction), **options)
        for prediction, texts in zip(predictions, references, strict=True)
    ]
    counts = {len(texts) for texts in references}
    signature = "|".join(
        [
            f"nrefs:{counts.pop() if len(counts) == 1 else 'var'}",
            "variant:nltk",
            f"stages:{'+'.join(stages)}",
            "case:lc",
            f"tok:{tokenize}",
            *(f"{name}:{value:g}" for name, value in _PARAMETERS.items()),
            f"version:nltk-{version('nltk')}",
        ]
    )
    return SufficientStatistics.from_sentence_scores("meteor", scores, signature, scale=100)


def check_stages(stages: Sequence[str], argument: str = "stages") -> None:
    """Refuse stages that METEOR does not have, or that cannot run here.

    Args:
        stages: A beginning of `STAGES`.
        argument: Their name, for the message.

    Raises:
        InputError: Invalid stages, or nltk or WordNet is missing.
    """
    if tuple(stages) not in {STAGES[:1], STAGES[:2], STAGES}:
        raise InputError(f"{argument} must be a beginning of {','.join(STAGES)}, got {','.join(stages)}")
    require("nltk", "metrics", "meteor")
    if "wordnet" not in stages:
        return
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError:
        raise InputError(
            "meteor's stage `wordnet` needs WordNet, which nltk does not find; get it with `python -m nltk.downloader "
            "wordnet` (or point NLTK_DATA at a folder that holds corpora/wordnet), or leave the stage out, with "
            f"{argument} {','.join(STAGES[:2])}, and say so beside the score"
        ) from None


class _Words:
    def __init__(self, tokenize: str):
        self._tokenizer = BLEU(tokenize=tokenize, force=True).tokenizer

    def __call__(self, text: str) -> list[str]:
        return self._tokenizer(text.rstrip()).split()


class _Stems:
    """What nltk calls a stemmer: Porter's, or none; it remembers, since the words of a corpus repeat."""

    def __init__(self, wanted: bool):
        from nltk.stem.porter import PorterStemmer

        self.stem = lru_cache(maxsize=100_000)(PorterStemmer().stem) if wanted else str


class _Synonyms:
    """What nltk calls a WordNet reader: WordNet, or no synonyms at all; it remembers."""

    def __init__(self, wanted: bool):
        self.synsets = lru_cache(maxsize=100_000)(self._look_up) if wanted else self._find_none

    @staticmethod
    def _look_up(word: str) -> list[Any]:
        from nltk.corpus import wordnet

        return wordnet.synsets(word)

    @staticmethod
    def _find_none(word: str) -> list[Any]:
        return []
