"""Reading and sampling large corpora."""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from itertools import permutations
from pathlib import Path

from .timing import Row

# Lines of each of the large files.
CORPUS_LINES = 5_000_000


def write_large_corpora(folder: Path, lines: int) -> dict[str, str]:
    """Write a PPDB and a WikiAnswers file of so many lines; the separator of each, as far as csv can split by it."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(30_000)]
    features = "PPDB2.0Score=3.81 PPDB1.0Score=12.05 -logp(LHS|e1)=0.43 Abstract=0 CharCountDiff=2 GoogleNgramSim=0.12"
    with (folder / "ppdb-2.0-l-all").open("w") as file:
        for _ in range(lines):
            source, target = (" ".join(draw.choices(words, k=draw.randint(1, 4))) for _ in range(2))
            file.write(f"[NN] ||| {source} ||| {target} ||| {features} ||| 0-0 1-1 ||| Equivalence\n")
    with (folder / "word_alignments.txt").open("w") as file:
        # Clusters of four questions: twelve pairs.
        for _ in range(lines // 12):
            questions = [" ".join(draw.choices(words, k=draw.randint(5, 13))) for _ in range(4)]
            file.writelines(f"{one}\t{other}\t0-0 1-1 2-2\n" for one, other in permutations(questions, 2))
    return {"ppdb-2.0-l-all": "|", "word_alignments.txt": "\t"}


def fresh_read(statement: str, cache: Path) -> tuple[float, float]:
    """Seconds for a statement in a fresh process, and the MB that its memory peaked above that of the imports."""
    code = (
        "import datasets, hf_paraphrase.datasets, resource, time\n"
        "datasets.disable_progress_bars()\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        f"before, start = peak(), time.perf_counter()\n{statement}\n"
        "print(time.perf_counter() - start, peak() - before)"
    )
    environment = {**os.environ, "HF_DATASETS_CACHE": str(cache), "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
    shutil.rmtree(cache)
    elapsed, memory = map(float, done.stdout.split())
    return elapsed, memory


def benchmark_datasets(device: str, repeats: int) -> list[Row]:
    """Sampling PPDB and WikiAnswers against only reading the same file, by datasets' own text and csv builders."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, separator in write_large_corpora(folder, CORPUS_LINES).items():
            corpus = "ppdb" if file.startswith("ppdb") else "wikianswers"
            # csv takes a single character, which makes more columns of a PPDB line than there are.
            options = f"sep={separator!r}, quoting=3, header=None, names=[str(place) for place in range(16)]"
            statements = {
                corpus: f"hf_paraphrase.load_dataset({corpus!r}, data_dir={name!r})",
                "text": f"datasets.load_dataset('text', data_files={str(folder / file)!r})",
                "csv": f"datasets.load_dataset('csv', data_files={str(folder / file)!r}, {options})",
            }
            runs = [
                {kind: fresh_read(statement, folder / "cache") for kind, statement in statements.items()}
                for _ in range(repeats)
            ]
            medians = {
                kind: tuple(map(statistics.median, zip(*(run[kind] for run in runs), strict=True)))
                for kind in statements
            }
            elapsed, memory = medians.pop(corpus)
            for kind, (their_time, their_memory) in medians.items():
                ratio = statistics.median(run[kind][0] / run[corpus][0] for run in runs)
                speeds = (f"{CORPUS_LINES / taken:,.0f}" for taken in (elapsed, their_time))
                rows.append((f"{corpus}, lines/s", f"datasets, {kind}", *speeds, f"{ratio:.2f}"))
                peaks = (f"{memory:,.0f}", f"{their_memory:,.0f}")
                # Reading a file may need less than the imports before it, and so nothing more.
                ratio = memory / max(their_memory, 1)
                rows.append((f"{corpus}, peak MB", f"datasets, {kind}", *peaks, f"{ratio:.2f}"))
    return rows
