from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ...common.errors import InputError
from ..inputs import check_lengths, check_text_lists
from ..sufficient_statistics import Scores, SufficientStatistics

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

# Pronouns, articles, conjunctions, prepositions, auxiliaries, and adverbs that carry no topic.
_NO_TOPIC = frozenset(Path(__file__).with_name("function_words.txt").read_text(encoding="utf-8").split())


def choose_features(tagger: str | Callable[[str], Iterable[str]] | None) -> tuple[Callable[[str], Iterable[str]], str]:
    """A function from a sentence to the words used for alignment, and its name in results."""
    if callable(tagger):
        return tagger, "words of the given tagger"
    if tagger not in (None, "nltk", "content"):
        raise InputError(f"unknown tagger {tagger!r}; available: nltk, content, or a function")
    if tagger == "content" or (tagger is None and not _nltk_can_tag()):
        return _content_words, "content words (no tagger)"
    if not _nltk_can_tag():
        raise InputError(
            "coherence with tagger='nltk' needs nltk and its tagger; get them with: pip install nltk && python -m "
            "nltk.downloader averaged_perceptron_tagger_eng, or pass tagger='content'"
        )
    return _verbs_and_nouns, "verbs and nouns (nltk)"


def _nltk_can_tag() -> bool:
    if find_spec("nltk") is None:
        return False
    from nltk.data import find

    try:
        find("taggers/averaged_perceptron_tagger_eng")
    except LookupError:
        return False
    return True


def _verbs_and_nouns(sentence: str) -> list[str]:
    from nltk import pos_tag

    return [word.lower() for word, tag in pos_tag(_WORD.findall(sentence)) if tag.startswith(("VB", "NN"))]


def _content_words(sentence: str) -> list[str]:
    words = (word.lower().replace("’", "'") for word in _WORD.findall(sentence))
    return [word for word in words if word not in _NO_TOPIC]


def coherence(
    predictions: Iterable[Sequence[str]],
    references: Iterable[Sequence[str]],
    *,
    tagger: str | Callable[[str], Iterable[str]] | None = None,
    seed: int = 12345,
) -> Scores:
    """Coherence: L, how far the sentences of an output are from the order of their originals; lower is better.

    Each sentence of an output is aligned to the sentence of the input with the best F1 over verbs and nouns; several
    may share one. One that shares none with any is aligned to an input sentence drawn at random. L is the mean over
    the pairs of output sentences of `|(j - i) - (j' - i')|`, where i' and j' are the positions that i and j are
    aligned to: 0 where the order is kept, 1.6 where two sentences are off by 1.6 places on average. The score is the
    mean of L over the documents.

    Args:
        predictions: For each document the output's sentences.
        references: For each document the input's sentences, one at least.
        tagger: What finds the verbs and nouns of a sentence: `nltk` (its perceptron tagger), `content` (words that are
            no function words, a stand-in that needs no model), or a function from a sentence to its verbs and nouns,
            for instance one that asks spaCy. None takes nltk where its tagger is installed, else `content`.
        seed: Random seed.

    Returns:
        `score` (nan where no document has a pair of sentences), `documents` (how many have one), `unaligned` (share
        of the output sentences that share no feature with the input, and were aligned at random), `sentences` (how
        many the outputs have), `features` (which words the alignment went by), `signature`.

    Raises:
        InputError: Input that cannot be scored, or a tagger that is not there; the message says what to do.

    Examples:
        >>> metric = load_metric("coherence")
        >>> metric.compute(predictions=[["cats sleep", "dogs run"]], references=[["dogs run", "cats sleep"]])["score"]
        2.0

    Limits:
        - Without a tagger the alignment uses all words except function words, and `features` says so. To get nltk's:
          `python -m nltk.downloader averaged_perceptron_tagger_eng`. For spaCy pass
          `lambda text: [t.lemma_ for t in nlp(text) if t.pos_ in ("VERB", "NOUN", "PROPN")]`.
        - An output sentence that shares no feature with the input costs coherence, since it is aligned at random, as
          in the paper: read `unaligned` beside the score.
        - An output of one sentence has no order: read `documents` beside the score.

    Source: Li et al. 2015, section 4.3 and equation 18. The paper leaves open what follows. Between input sentences of
    equal F1 the one nearest to the output sentence's own position is taken, so that a faithful copy scores 0 also
    where sentences repeat; two sentences without verbs and nouns have F1 1. Outputs of fewer than two sentences have
    no order to judge, and are left out.
    """
    predictions, references = check_documents(predictions, references)
    extract, features = choose_features(tagger)
    draw = np.random.default_rng(seed)
    moves, lost = [], []
    for output, original in zip(predictions, references, strict=True):
        alignment = _align([Counter(extract(text)) for text in output], [Counter(extract(text)) for text in original])
        lost.append(alignment.count(None))
        moves.append(
            [
                position - (int(draw.integers(len(original))) if aligned is None else aligned)
                for position, aligned in enumerate(alignment)
            ]
        )
    signature = f"features:{features}|align:best-f1|unaligned:random-{seed}"
    ratios: dict[str, tuple[list, list]] = {
        "coherence": (list(map(_disorder, moves)), [len(document) > 1 for document in moves]),
        "unaligned": (lost, list(map(len, predictions))),
    }
    order, unaligned = (
        SufficientStatistics.from_ratio(name, *ratio, signature, higher_is_better=False)
        for name, ratio in ratios.items()
    )
    scored = int(order.rows[:, 1].sum())
    result = {
        "score": order.score if scored else float("nan"),
        "documents": scored,
        "unaligned": unaligned.score,
        "sentences": int(unaligned.rows[:, 1].sum()),
        "features": features,
        "signature": signature,
    }
    return Scores((order, unaligned), result)


def check_documents(
    predictions: Iterable[Sequence[str]], references: Iterable[Sequence[str]]
) -> tuple[list[list[str]], list[list[str]]]:
    """Check the sentences of outputs, and of inputs, which have one at least."""
    predictions = check_text_lists("predictions", predictions)
    references = check_text_lists("references", references, minimum=1)
    check_lengths(predictions=predictions, references=references)
    return predictions, references


def _align(output: list[Counter[str]], original: list[Counter[str]]) -> list[int | None]:
    """For each output sentence the position of its original; None where none shares a feature."""
    alignment: list[int | None] = []
    for position, sentence in enumerate(output):
        scores = [_f1(sentence, candidate) for candidate in original]
        best = max(range(len(scores)), key=lambda index: (scores[index], -abs(index - position)))
        alignment.append(best if scores[best] > 0 else None)
    return alignment


def _f1(sentence: Counter[str], original: Counter[str]) -> float:
    total = sentence.total() + original.total()
    # Two without features, such as "!", are alike, so that a copy of them is not a sentence without a match.
    return 2 * (sentence & original).total() / total if total else 1.0


def _disorder(moves: list[int]) -> float:
    """L of an output, of how far each of its sentences moved; 0 where there is no pair of them."""
    # (j - i) - (j' - i') is the difference of how far the two sentences moved.
    places, count = np.array(moves), len(moves)
    return float(np.abs(places[:, None] - places).sum() / (count * (count - 1))) if count > 1 else 0.0
