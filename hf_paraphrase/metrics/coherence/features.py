from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib.util import find_spec

from ...errors import InputError

__all__ = ["choose_features"]

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

# Pronouns, articles, conjunctions, prepositions, auxiliaries, and adverbs that carry no topic.
_FUNCTION_WORDS = """
a about above after again against all also am among an and another any anybody anyone anything are aren't around as
at be because been before being below between both but by can can't cannot could couldn't did didn't do does
doesn't doing don't down during each either else ever every everybody everyone everything few for from further had
hadn't has hasn't have haven't having he her here hers herself him himself his how however i i'd i'll i'm i've if
in into is isn't it it's its itself just less many may me might mine more most much must my myself neither never no
nobody none nor not nothing now of off on once one only onto or other others our ours ourselves out over own per
quite rather really same shall she should shouldn't since so some somebody someone something still such than that
that's the their theirs them themselves then there there's these they this those though through thus to too toward
towards under until up upon us very was wasn't we we'd we'll we're we've were weren't what when where whether which
while who whom whose why will with within without won't would wouldn't yet you you'd you'll you're you've your
yours yourself yourselves
"""
_NO_TOPIC = frozenset(_FUNCTION_WORDS.split())


def choose_features(
    tagger: str | Callable[[str], Iterable[str]] | None,
) -> tuple[Callable[[str], Iterable[str]], str]:
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
