from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...common.errors import InputError
from ...common.installation import require
from ..inputs import check_texts, count_references
from ..sufficient_statistics import Scores, SufficientStatistics, divide
from ..words import split_words

VARIANTS = ("nltk", "1.5")
STAGES = ("exact", "stem", "wordnet")
_PARAMETERS = {"alpha": 0.9, "beta": 3.0, "gamma": 0.5}
# Of METEOR 1.5: alpha, beta, gamma and delta, and the weights of exact, stem, synonym and paraphrase matches, that the
# jar itself takes for English (Denkowski and Lavie 2014).
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75
_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])
_FIELDS = 23


def meteor(
    predictions: Iterable[str],
    references: Iterable[str | Sequence[str]],
    *,
    variant: str = "nltk",
    stages: Sequence[str] = STAGES,
    tokenize: str = "13a",
    jar: str | os.PathLike | None = None,
    normalize: bool = True,
) -> Scores:
    """METEOR: METEOR by nltk, or METEOR 1.5 by its authors' Java program; the result names the variant.

    Words of the prediction are aligned to words of a reference by form, then by stem, then by synonym. The score
    weighs recall more than precision and falls as the matches break into chunks. The code is nltk's
    (https://github.com/nltk/nltk), or the authors' (https://www.cs.cmu.edu/~alavie/METEOR/), which MultEval,
    coco-caption and nlg-eval use; one Java process aligns the whole corpus.

    Args:
        predictions: One text each; an empty text scores 0.
        references: For each prediction one text or a non-empty list of texts; the lists may differ in length. Of
            several the one with the best score counts.
        variant: `nltk` is METEOR as of 2007, averaged over the sentences, as `evaluate` and most Python code have it.
            `1.5` is the authors' Java program, with paraphrase matches, function words and English parameters, as
            captioning and translation papers have it; its score is that of the corpus, not a mean.
        stages: Of `nltk`: what counts as a match, a beginning of exact, stem, wordnet. Without WordNet the last one
            raises an error, since leaving it out would give another metric.
        tokenize: Of `nltk`: a tokenizer of sacrebleu, `none` for text that is tokenised already.
        jar: Of `1.5`: path to meteor-1.5.jar, with data/paraphrase-en.gz beside it; None for the one in pycocoevalcap.
        normalize: Of `1.5`: whether the program tokenises and lower-cases (its `-norm`) or only lower-cases.

    Returns:
        `score` (0 to 100), `variant`, `signature`.

    Raises:
        InputError: Input that cannot be scored, or something to install is missing; the message says which.
        FileNotFoundError: The jar does not exist.

    Examples:
        >>> metric = load_metric("meteor")
        >>> metric.compute(predictions=["a b c d"], references=["a b c d"], stages=("exact", "stem"))["score"]
        99.21875

    Limits:
        - Implementations differ by up to ten points: name the variant beside the score.
        - The WordNet stage of `nltk` needs WordNet: `python -m nltk.downloader wordnet`. Without it there is an error,
          never another metric under the same name.
        - nltk looks synonyms up by the stems of the words left over (`automobil`), so its WordNet stage finds fewer
          than one would think. Others report its scores, so this is kept.
        - `1.5` needs Java and the extra `meteor`; reading its paraphrase table takes some ten
          seconds and up to 2 GB.

    Source: Lavie and Agarwal 2007 (`nltk`); Denkowski and Lavie 2014 (`1.5`).
    """
    predictions, references = check_texts(predictions, references)
    if variant not in VARIANTS:
        raise InputError(f"unknown variant {variant!r}; available: {', '.join(VARIANTS)}")
    if variant == "nltk":
        found = _score_by_nltk(predictions, references, stages=stages, tokenize=tokenize)
    else:
        found = _score_by_jar(predictions, references, jar=jar, normalize=normalize)
    return Scores((found,), {"score": found.score, "variant": variant, "signature": found.signature})


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


def _score_by_nltk(
    predictions: list[str], references: list[list[str]], *, stages: Sequence[str], tokenize: str
) -> SufficientStatistics:
    """The mean over the sentences of the score with the best reference."""
    outputs = split_words(predictions, tokenize=tokenize)
    expected = iter(split_words(chain.from_iterable(references), tokenize=tokenize))
    check_stages(stages)
    from nltk.corpus import wordnet
    from nltk.stem.porter import PorterStemmer
    from nltk.translate.meteor_score import meteor_score

    # They remember, since the words of a corpus repeat; a stage that is left out finds nothing.
    remember = lru_cache(maxsize=100_000)
    stem = remember(PorterStemmer().stem) if "stem" in stages else str
    synsets: Callable[[str], list] = remember(wordnet.synsets) if "wordnet" in stages else lambda word: []
    options = {"stemmer": SimpleNamespace(stem=stem), "wordnet": SimpleNamespace(synsets=synsets), **_PARAMETERS}
    scores = [
        meteor_score([next(expected) for _ in texts], output, **options)
        for output, texts in zip(outputs, references, strict=True)
    ]
    parameters = "|".join(f"{name}:{value:g}" for name, value in _PARAMETERS.items())
    signature = f"nrefs:{count_references(references)}|variant:nltk|stages:{'+'.join(stages)}|case:lc|tok:{tokenize}"
    signature += f"|{parameters}|version:nltk-{version('nltk')}"
    return SufficientStatistics.from_sentence_scores("meteor", scores, signature, scale=100)


def _score_by_jar(
    predictions: list[str], references: list[list[str]], *, jar: str | os.PathLike | None, normalize: bool
) -> SufficientStatistics:
    """Statistics of METEOR 1.5 for English: one run of the Java program aligns the whole corpus."""
    lines = [
        " ||| ".join(["SCORE", *map(_flatten, texts), _flatten(prediction)])
        for prediction, texts in zip(predictions, references, strict=True)
    ]
    output = _run_jar(_find_jar(jar), lines, normalize)
    rows = np.array([[float(field) for field in line.split()] for line in output])
    signature = f"nrefs:{count_references(references)}|variant:1.5|lang:en|task:rank"
    signature += f"|stages:exact+stem+synonym+paraphrase|norm:{'yes' if normalize else 'no'}"
    return SufficientStatistics("meteor", rows, _score_of_sums, signature)


def _flatten(text: str) -> str:
    # A line is a sentence, and bars separate the sentences.
    return " ".join(text.replace("|||", " ").split())


def _find_jar(jar: str | os.PathLike | None) -> Path:
    if shutil.which("java") is None:
        raise InputError("METEOR 1.5 needs Java; install a Java runtime, so that `java` is found")
    if jar is None:
        require("pycocoevalcap", "meteor", "METEOR 1.5", package="meteor-1.5.jar")
        package: Any = find_spec("pycocoevalcap")  # which `require` has found
        jar = Path(package.submodule_search_locations[0]) / "meteor" / "meteor-1.5.jar"
    if not Path(jar).is_file():
        raise FileNotFoundError(f"there is no METEOR jar at {jar}")
    return Path(jar).resolve()


def _run_jar(jar: Path, lines: list[str], normalize: bool) -> list[str]:
    """The jar's answer to each line. It finds its paraphrase table by its own place."""
    command = ["java", "-Xmx2G", "-Dfile.encoding=UTF-8", "-jar", str(jar), "-", "-", "-stdio", "-l", "en"]
    command += ["-norm"] if normalize else ["-lower"]
    done = subprocess.run(
        command, input="\n".join(lines) + "\n", capture_output=True, encoding="utf-8", cwd=jar.parent, check=False
    )
    output = done.stdout.splitlines()
    if done.returncode != 0 or len(output) != len(lines) or any(len(line.split()) != _FIELDS for line in output):
        raise RuntimeError(
            f"METEOR gave {len(output)} answers to {len(lines)} sentences (exit code {done.returncode}): "
            f"{done.stderr.strip()[-500:]}"
        )
    return output


def _score_of_sums(sums: np.ndarray) -> np.ndarray:
    """METEOR from sums `(..., 23)` of the jar's figures.

    These are the lengths of both sides and their function words; for each kind of match the content and the function
    words, of both sides in turn; then chunks and matched words of both sides.

    Source: Denkowski and Lavie 2014.
    """
    matches = sums[..., 4:20].reshape(*sums.shape[:-1], 4, 4)
    test, reference = (
        divide(
            _DELTA * (matches[..., side] @ _WEIGHTS) + (1 - _DELTA) * (matches[..., side + 2] @ _WEIGHTS),
            _DELTA * (sums[..., side] - sums[..., side + 2]) + (1 - _DELTA) * sums[..., side + 2],
        )
        for side in (0, 1)
    )
    mean = divide(test * reference, _ALPHA * test + (1 - _ALPHA) * reference)
    chunks, matched = sums[..., 20], sums[..., 21:23].sum(axis=-1)
    unbroken = (chunks == 1) & (sums[..., 21] == sums[..., 0]) & (sums[..., 22] == sums[..., 1])
    fragmentation = np.where(unbroken, 0, divide(2 * chunks, matched))
    return 100 * mean * (1 - _GAMMA * fragmentation**_BETA)
