"""Tries an installed package out, as it lies in an environment with nothing but what pip brought along.

Every module is imported, and every command is run: to its end, or to the one line that says what it lacks. Run it with
the environment's own Python, in an empty folder.
"""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import traceback
from pathlib import Path

PAIRS = [(f"how can i learn {thing} ?", f"what is a way to learn {thing} ?") for thing in "abcdefghijklmnopqrst"]
NOTES = "# Notes\n\nHow can I learn a? How can I learn b?\n"
FILES = [part for split in ("train", "validation", "test") for part in ("--data-files", f"{split}=pairs.tsv")]
TINY = ["--max_steps", "3", "--max_train_samples", "20", "--max_eval_samples", "4", "--train_batch_size", "5"]
TINY += ["--hidden_size", "16", "--eval_steps", "3"]
RECORDS = ["--output-dir", "run/evaluation", "--max-samples", "4"]
COMPARED = ["--metrics", "bleu,pinc", "--max-samples", "4", "--n-trials", "10"]
OUTPUTS = "run/evaluation/predictions-test-beam2.jsonl"
SYSTEMS = ["--system", f"a={OUTPUTS}", "--system", f"b={OUTPUTS}"]

# The command lines of each command, and what they have to end in: 0, or words of the line that says what is missing.
STORY: list[tuple[str, list[str], str | None]] = [
    ("env", [], None),
    ("recipes", [], None),
    ("datasets list", [], None),
    ("datasets info", ["synthetic_questions"], None),
    ("datasets preview", ["synthetic_questions"], None),
    ("paraphrase", ["The meeting was moved to Thursday because the room was taken."], None),
    ("paraphrase-document", ["notes.md", "--output", "new.md"], None),
    ("train", ["--recipe", "fset-synthetic", "--dataset", "pairs", *FILES, *TINY, "--output-dir", "run"], None),
    ("info", ["run"], None),
    ("evaluate", ["run", *RECORDS, "--num-beams", "2"], None),
    ("push", ["run", "--dry-run"], None),
    ("paraphrase", ["run", "how can i learn a ?", "-n", "2", "--keep", "none", "--return-rejected"], None),
    ("paraphrase-document", ["--model", "run", "notes.md", "--output", "new.md"], None),
    ("score", ["--predictions", OUTPUTS], None),
    ("compare", ["a=run", "--dataset", "pairs", *FILES, *COMPARED, "--output-dir", "table"], None),
    ("rating make", [*SYSTEMS, "--num-sources", "4", "--output-dir", "forms"], None),
    ("rating read", ["forms/key.json", "none.csv"], "none.csv"),
    ("explain edit", ["run", "how can i learn a ?", "--output", "edit.html"], None),
    ("mine", ["texts.txt", "--output", "mined", "--encoder", "jaccard", "--min-score", "0.5"], None),
    # What these need is not in every installation.
    ("explain curves", ["run", "--output", "curves.png"], "hf-paraphrase[plots]"),
    (
        "augment",
        ["pairs.tsv", "--model", "run", "--column", "source", "--output", "out"],
        "hf-paraphrase[augmentation]",
    ),
    (
        "distill",
        ["pairs.tsv", "--column", "source", "--teacher", "run", "--recipe", "residual-lstm-synthetic"]
        + ["--output-dir", "student"],
        "hf-paraphrase[augmentation]",
    ),
    ("demo", ["run"], "hf-paraphrase[demo]"),
    ("serve", ["run"], "hf-paraphrase[serve]"),
    ("space", ["run", "--output", "space"], "hf-paraphrase[demo]"),
    ("explain map", ["run", "--output-dir", "maps"], "hf-paraphrase[plots]"),
    (
        "explain match heatmap",
        ["run", "--text", "a", "--text-pair", "b", "--output", "unit.png"],
        "hf-paraphrase[plots]",
    ),
    (
        "compare",
        ["a=run", "--dataset", "synthetic_questions", "--encoder", "none", "--output-dir", "out"],
        "hf-paraphrase[metrics]",
    ),
    # These are for other models, or for people with a token of the Hub.
    ("push", ["run", "--repo-id", "you/run"], "hf auth login"),
    ("push", ["diverse_beam", "--repo-id", "you/diverse-beam"], "hf auth login"),
    ("push", ["pinc", "--repo-id", "you/pinc"], "hf-paraphrase[demo]"),
    ("explain match pairs", ["run", "--dataset", "synthetic_questions"], "cannot label or score pairs"),
    ("explain documents", ["run", "notes.md"], "hierarchical_autoencoder"),
    ("paraphrase", ["run", "a text", "--decoding", "noise"], "a model that embeds sentences"),
    ("retriever train", ["--data-dir", "none", "--output-dir", "out"], "none"),
    ("reproduce", ["none", "--output-dir", "out"], "none"),
]


def find_commands() -> set[str]:
    """Every command of the installed package that is not a group."""
    import typer

    from hf_paraphrase.cli.app import app

    def walk(command, words: list[str]):
        inner = getattr(command, "commands", {})
        return {" ".join(words)} if not inner else set().union(*(walk(inner[name], [*words, name]) for name in inner))

    return walk(typer.main.get_command(app), [])


def import_everything() -> list[str]:
    """Import every module; what is said of those that need more than the package and what it requires is no matter."""
    import hf_paraphrase

    mistakes = []
    for module in pkgutil.walk_packages(hf_paraphrase.__path__, "hf_paraphrase."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name.partition(".")[0] == "hf_paraphrase":
                mistakes.append(traceback.format_exc())
        except SystemExit:  # `python -m hf_paraphrase`
            pass
    return mistakes


def run(name: str, args: list[str], lack: str | None) -> str | None:
    """Run a command line; what went wrong, if anything."""
    command = [str(Path(sys.executable).with_name("hf-paraphrase")), *name.split(), *args]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    lines = done.stderr.splitlines() or [""]
    is_good = done.returncode == 0 if lack is None else done.returncode == 2 and lack in lines[-1]
    shown = f"exit code {done.returncode}: {lines[-1]}"
    print("ok  " if is_good else "FAIL", name, "" if lack is None else f"({lines[-1]})", flush=True)
    return None if is_good else f"{' '.join(command)}: {shown}"


def main() -> None:
    Path("pairs.tsv").write_text("source\ttarget\n" + "".join(f"{one}\t{other}\n" for one, other in PAIRS))
    Path("texts.txt").write_text("".join(f"{one}\n" for pair in PAIRS for one in pair))
    Path("notes.md").write_text(NOTES)
    mistakes = import_everything()
    mistakes += [f"{name} is in no smoke test" for name in find_commands() - {name for name, _, _ in STORY}]
    mistakes += filter(None, (run(*step) for step in STORY))
    if mistakes:
        sys.exit("\n".join(mistakes))


if __name__ == "__main__":
    main()
