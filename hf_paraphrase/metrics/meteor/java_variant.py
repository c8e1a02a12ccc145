from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...installation import require
from ..sufficient_statistics import SufficientStatistics, divide

__all__ = ["java_meteor"]

# Alpha, beta, gamma and delta, and the weights of exact, stem, synonym and paraphrase matches, that the jar itself
# takes for English (Denkowski and Lavie 2014).
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75
_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])
_FIELDS = 23


def java_meteor(
    predictions: list[str], references: list[list[str]], *, jar: str | os.PathLike | None, normalize: bool
) -> SufficientStatistics:
    """Statistics of METEOR 1.5 for English: one run of the Java program aligns the whole corpus."""
    lines = [
        " ||| ".join(["SCORE", *map(_flatten, texts), _flatten(prediction)])
        for prediction, texts in zip(predictions, references, strict=True)
    ]
    output = _run_jar(_find_jar(jar), lines, normalize)
    rows = np.array([[float(field) for field in line.split()] for line in output])
    counts = {len(texts) for texts in references}
    signature = "|".join(
        [
            f"nrefs:{counts.pop() if len(counts) == 1 else 'var'}",
            "variant:1.5",
            "lang:en",
            "task:rank",
            "stages:exact+stem+synonym+paraphrase",
            f"norm:{'yes' if normalize else 'no'}",
        ]
    )
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
