"""Measures by which copying the source does not pay, from the kept outputs: equal novelty, and judges of meaning.

BLEU, ROUGE, METEOR and judges of meaning all reward a system for changing less. So some outputs of the more novel
systems are exchanged for copies of their sources, in expectation, until all are as novel as the least novel one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..common.files import read_json_object, read_lines, write_json
from ..generation.judges import Adequacy, load_adequacy
from ..generation.loading import load_paraphraser
from ..generation.writers import Judged, ModelWriter
from ..metrics.sufficient_statistics import SufficientStatistics, divide
from ..released import RELEASED

# The scores that claims are judged by beside the paper's own; the judges' where outputs were judged.
COPY_PROOF = ("ibleu", "bleu_4_equal_pinc", "open_equal_pinc", "cosine_equal_pinc")
JUDGED = "judged.json"
BATCH_SIZE = 32


def load_judges(encoder: Any = None, device: str | None = None) -> dict[str, tuple[Adequacy, str]]:
    """The judges by the names of their scores, each with its signature: `open`, by the released model, and with a
    sentence encoder `cosine`."""
    writer = ModelWriter(*load_paraphraser(device=device))
    judges = {"open": (load_adequacy("open", writer), RELEASED)}
    if encoder is not None:
        judges["cosine"] = (
            load_adequacy("embedding", writer, encoder=encoder),
            getattr(encoder, "__name__", str(encoder)),
        )
    return judges


def judge_outputs(folder: Path, judges: Mapping[str, tuple[Adequacy, str]]) -> None:
    """Write beside the outputs in a folder how judges score them and copies of their sources, unless it is there."""
    (outputs,) = folder.glob("*.jsonl")
    record = read_json_object(folder / JUDGED) if (folder / JUDGED).is_file() else {}
    missing = {name: one for name, one in judges.items() if record.get(name, {}).get("signature") != one[1]}
    if not missing:
        return
    rows = read_lines(outputs)
    sources = [row["source"] for row in rows]
    for name, (judge, signature) in missing.items():
        texts = {"outputs": [row["prediction"] for row in rows], "copies": sources}
        record[name] = {"signature": signature}
        record[name] |= {key: _judge(judge, sources, found) for key, found in texts.items()}
    write_json(folder / JUDGED, record)


def _judge(judge: Adequacy, sources: Sequence[str], texts: Sequence[str]) -> list[float]:
    """A number from 0 to 1 for each text; 0 for one without words."""
    asked = [row for row, pair in enumerate(zip(sources, texts, strict=True)) if all(map(str.strip, pair))]
    found = judge([Judged(sources[row], texts[row]) for row in asked], BATCH_SIZE)
    scores = np.zeros(len(sources))
    scores[asked] = found
    return scores.round(4).tolist()


def read_judged(folder: Path, of: str) -> dict[str, SufficientStatistics]:
    """The statistics of the judges' scores in a folder, `of` its "outputs" or of "copies"; none if it has none."""
    record = read_json_object(folder / JUDGED) if (folder / JUDGED).is_file() else {}
    return {
        name: SufficientStatistics.from_sentence_scores(name, found[of], found["signature"], scale=100)
        for name, found in record.items()
    }


def at_equal_novelty(
    outputs: SufficientStatistics, copies: SufficientStatistics, pinc: SufficientStatistics, novelty: float
) -> SufficientStatistics:
    """A score of outputs after so many were exchanged for copies of their sources that PINC, 0 to 100, falls to
    `novelty`.

    The share is the same for every row, and the sums are their expectations: nothing is drawn. A corpus of less
    novelty stays as it is.
    """
    widths = np.cumsum([outputs.rows.shape[1], copies.rows.shape[1]])

    def score_of_sums(sums: np.ndarray) -> np.ndarray:
        own, copied, new = np.split(sums, widths, axis=-1)
        share = np.clip(divide(np.asarray(novelty), pinc.score_of_sums(new)), 0, 1)[..., None]
        return outputs.score_of_sums(share * own + (1 - share) * copied)

    rows = np.hstack([outputs.rows, copies.rows, pinc.rows])
    signature = f"pinc:{novelty:.1f}|{outputs.signature}"
    name = f"{outputs.name}_equal_pinc"
    return replace(outputs, name=name, rows=rows, score_of_sums=score_of_sums, signature=signature)
