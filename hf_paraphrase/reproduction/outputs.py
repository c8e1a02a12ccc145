"""The outputs behind a table in one compressed file, and recomputing the table from them."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..common.files import whole_file
from ..evaluation.scoring import Scoring
from ..papers.table import Table
from .copy_proof import JUDGED
from .tables import MeasuredTable, ScoredMeasurement, outputs_folder, score_outputs
from .trainings import list_runs

__all__ = ["pack_outputs", "recompute"]


def pack_outputs(table: Table, measured: Sequence[MeasuredTable], path: Path) -> None:
    """Write the outputs of all trainings, with what judges found, into a file that is the same whenever they are."""
    runs = [run for row in measured[0].rows for run in row.runs]
    folders = dict.fromkeys(outputs_folder(table, one.measurement, run) for one in measured for run in runs)
    root = runs[0].folder.parents[1]
    with whole_file(path) as temporary, tarfile.open(temporary, "w:xz", preset=9) as archive:
        kept = (file for folder in folders for file in (*folder.glob("*.jsonl"), *folder.glob(JUDGED)))
        for file in sorted(kept):
            member = tarfile.TarInfo(file.relative_to(root).as_posix())
            member.size = file.stat().st_size
            with file.open("rb") as content:
                archive.addfile(member, content)


def recompute(
    table: Table, settings: str, seeds: Sequence[int], path: Path, scoring: Scoring
) -> list[ScoredMeasurement]:
    """Compute the scores and verdicts of a table's measurements, made by these settings and seeds, from what
    `pack_outputs` wrote; no model and no corpus is needed."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
        runs = list_runs(table.choose(settings), Path(folder), seeds)
        return [score_outputs(table, measurement, runs, scoring) for measurement in table.measurements]
