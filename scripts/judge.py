"""Calibrates the released model as a judge of meaning, and compares it with other judges.

python scripts/judge.py fit hf_paraphrase/released/paraphraser_en_small held-out.jsonl
python scripts/judge.py compare held-out.jsonl twitter=labelled.tsv --encoder all-MiniLM-L6-v2 --output judges.json

`fit` writes the fields `judge` and `own_text` of the config in the folder, whose weights `scripts/pack.py` wrote. It
reads every other pair of the held-out file, a JSON object with source and target a line; `compare` measures on the
others, made to say something else by small edits, and on files with first text, second text and 0 or 1 a line.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path

from judging.judges import LabelledPair, compare_judges, fit_judge, fit_own_text, make_pairs

from hf_paraphrase.common.files import write_json, write_text
from hf_paraphrase.generation.judges import load_adequacy
from hf_paraphrase.generation.loading import load_paraphraser
from hf_paraphrase.generation.writers import ModelWriter
from hf_paraphrase.released.packing import unpack

OTHER_TEXTS = Path(__file__).parents[1] / "model_cards" / "paraphraser-en-small" / "other-texts.tsv"
PAIRS, ORDINARY = 400, 300


def read_pairs(path: Path, half: int) -> list[tuple[str, str]]:
    """Read every other pair, from the first or the second on, at most `PAIRS`."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines()[half::2])
    return [(row["source"], row["target"]) for row in rows][:PAIRS]


def fit(folder: Path, held_out: Path) -> None:
    """Calibrate the packed model in a folder."""
    with tempfile.TemporaryDirectory() as temporary:
        unpack(folder, Path(temporary) / "model")
        writer = ModelWriter(*load_paraphraser(Path(temporary) / "model", device="cpu"))
    pairs = read_pairs(held_out, 0)
    with OTHER_TEXTS.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        other = [row["text"] for row in rows if row["kind"] in ("language", "code")]
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["judge"] = fit_judge(writer, make_pairs(pairs))
    # People type in lower case too.
    ordinary = [source.lower() if place % 3 == 2 else source for place, (source, _) in enumerate(pairs[:ORDINARY])]
    config["own_text"] = fit_own_text(writer, ordinary, other)
    write_text(path, json.dumps(config, indent=2, sort_keys=True) + "\n")
    print(json.dumps({name: config[name] for name in ("judge", "own_text")}, indent=2))


def compare(held_out: Path, labelled: list[str], encoder: str | None, output: Path | None) -> None:
    """Print, and write if asked to, the areas under the curve of all judges."""
    writer = ModelWriter(*load_paraphraser(device="cpu"))
    judges = {name: load_adequacy(name, writer) for name in ("open", "round_trip", "jaccard")}
    if encoder is not None:
        judges["embedding"] = load_adequacy("embedding", writer, encoder=encoder)
    tables = {"edited": compare_judges(judges, make_pairs(read_pairs(held_out, 1), seed=1))}
    for entry in labelled:
        name, _, path = entry.partition("=")
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        pairs = [LabelledPair("same" if label == "1" else "other", *texts) for *texts, label in rows]
        tables[name] = compare_judges(judges, pairs)
    print(json.dumps(tables, indent=2))
    if output is not None:
        write_json(output, tables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    fitting = commands.add_parser("fit")
    fitting.add_argument("folder", type=Path)
    fitting.add_argument("held_out", type=Path)
    comparing = commands.add_parser("compare")
    comparing.add_argument("held_out", type=Path)
    comparing.add_argument("labelled", nargs="*")
    comparing.add_argument("--encoder")
    comparing.add_argument("--output", type=Path)
    arguments = vars(parser.parse_args())
    {"fit": fit, "compare": compare}[arguments.pop("command")](**arguments)
