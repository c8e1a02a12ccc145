"""From texts and a teacher to a small fast student: candidates, a corpus with a card, training, a table.

Sequence-level distillation (Kim and Rush 2016): the student learns the teacher's n-best paraphrases of each text that
pass a `Paraphraser`'s thresholds, or the likeliest of these.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from huggingface_hub import ModelCard
from xxhash import xxh3_64_intdigest

from .augmentation.run import CARD_FILE, Augmentation, make_augmentation_card, run_augmentation
from .common.errors import InputError
from .common.files import locked, read_lines, write_directory, write_lines, write_text
from .evaluation.results import format_table
from .generation.judges import Judged, RoundTrip
from .generation.loading import load_paraphraser
from .generation.paraphraser import Paraphraser
from .generation.prompts import load_prompt
from .generation.writers import ModelWriter
from .metrics.ibleu.scoring import ibleu
from .training.loop import train
from .training.recipe import Recipe, load_recipe

SETTINGS_FILE, TABLE_FILE, ROWS_FILE = "distillation.json", "table.md", "table.json"
# Options that decide which candidates pass, for the teacher and the compared models.
OF_THE_CHOICE = ("min_fluency", "min_novelty", "diversity", "keep", "seed", "batch_size", "max_new_tokens")
COLUMNS = {"adequacy": "adequacy", "pinc": "PINC", "ibleu": "iBLEU", "kept": "kept", "answered": "answered"}
COLUMNS |= {"texts_per_second": "texts a second"}


@dataclass(frozen=True, kw_only=True)
class Distillation:
    """The settings of a distillation that determine its result.

    Args:
        texts: The texts and the teacher.
        recipe: The student's.
        held_out: Share of the texts for validation, and the same share for the table.
        encoder: Whose cosine is the adequacy of the table; None for the round trip by the model of the package.
        most_tested: Texts in the table, at most.
        likeliest: Paraphrases of each text that are learnt, at most: those that the teacher gives the highest
            probability, a geometric mean over tokens; None for all that passed.
        teacher_licence: The teacher's licence and its terms for outputs; None for the licence in its card.
    """

    texts: Augmentation
    recipe: Recipe
    held_out: float = 0.05
    encoder: str | None = None
    most_tested: int = 1000
    likeliest: int | None = None
    teacher_licence: str | None = None

    def __post_init__(self):
        if self.likeliest is not None and self.texts.options.get("fluency"):
            raise InputError("`likeliest` asks the teacher how probable its paraphrases are: leave `fluency` out")


def distill(
    texts: str | os.PathLike,
    teacher: str | os.PathLike,
    recipe: str | os.PathLike | Recipe,
    output_dir: str | os.PathLike,
    *,
    column: str = "text",
    n: int = 3,
    tasks: int = 64,
    backend: str | None = None,
    prompt: str | os.PathLike | None = None,
    dtype: str | None = None,
    options: Mapping[str, Any] | None = None,
    asked: Mapping[str, Any] | None = None,
    **run_options: Any,
) -> list[dict[str, Any]] | None:
    """Distil a teacher that paraphrases into the small model of a recipe, as the command `distill` does.

    Args:
        texts: A file, a folder of files, a corpus of this package, or a repository of the Hub.
        teacher: A checkpoint folder, a .gguf file, a Hub repository, or a model's name behind the address `backend`.
        recipe: The student's: a name, a folder, or a recipe.
        output_dir: Output folder; the same call resumes there.
        column: Where the text is.
        n: Paraphrases of each text, at most.
        tasks: Number of the teacher's tasks; a killed task starts again.
        backend: What runs the teacher: "ctranslate2" or the address of a server.
        prompt: YAML file with the teacher's prompt.
        dtype: The teacher's precision, as in `Paraphraser.from_pretrained`.
        options: Further arguments of a `Paraphraser`'s call, such as `min_adequacy`.
        asked: Further fields of `Distillation`, such as `held_out` and `likeliest`.
        run_options: Further arguments of `run_distillation`, such as `baseline` and `workers`.

    Returns:
        The rows of the table; None where jobs were submitted that are not done.

    Raises:
        InputError: Something that the user can mend, such as another distillation in the same folder.
    """
    prompt = None if prompt is None else os.fspath(prompt)
    given: dict[str, Any] = {"backend": backend, "prompt": prompt, "dtype": dtype, "options": options or {}}
    wanted = Augmentation(input=os.fspath(texts), model=os.fspath(teacher), column=column, n=n, tasks=tasks, **given)
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    return run_distillation(Distillation(texts=wanted, recipe=recipe, **(asked or {})), output_dir, **run_options)


def run_distillation(
    asked: Distillation,
    output_dir: str | os.PathLike,
    *,
    baseline: bool = True,
    data_dir: str | os.PathLike | None = None,
    trust_remote_code: bool = False,
    **run_options: Any,
) -> list[dict[str, Any]] | None:
    """Run a distillation, or resume it.

    The folder gets `candidates/` (the teacher's paraphrases: see `run_augmentation`), `corpus/` (those that passed, as
    pairs, with a card), `test.jsonl`, `student/`, with `baseline` `undistilled/`, and the table.

    Args:
        asked: What is asked.
        output_dir: Where all of it goes.
        baseline: Also train the recipe without distillation.
        data_dir: Folder with the files of the recipe's own corpus, for the baseline.
        trust_remote_code: Run the code in the named checkpoints.
        run_options: Of `run_augmentation`: `workers`, `executor`, `executor_options`, `logging_dir`.

    Returns:
        The rows of the table; None where jobs were submitted that are not done.

    Raises:
        InputError: Something that the user can mend, such as another distillation in the same folder.
    """
    folder = Path(output_dir)
    with locked(folder):
        _begin(asked, folder)
        counts = run_augmentation(
            asked.texts, str(folder / "candidates"), trust_remote_code=trust_remote_code, **run_options
        )
        if counts is None:
            return None
        if not (folder / "corpus").is_dir():
            _write_corpus(asked, counts, folder)
        runs = {"student": _recipe_of_student(asked.recipe, folder / "corpus")}
        if baseline:
            runs["undistilled"] = asked.recipe
        for name, recipe in runs.items():
            if not (folder / name / "training_summary.json").is_file():
                own_data = data_dir if name == "undistilled" else None
                train(recipe, folder / name, data_dir=own_data, resume=True, trust_remote_code=trust_remote_code)
        return _make_table(asked, folder, list(runs), trust_remote_code)


def _begin(asked: Distillation, folder: Path) -> None:
    """Save the settings, or check that they have not changed."""
    # All that later stages depend on; the first and the training check their own.
    described = {name: getattr(asked, name) for name in ("held_out", "encoder", "most_tested", "likeliest")}
    path = folder / SETTINGS_FILE
    if not path.is_file():
        write_text(path, json.dumps(described, indent=2))
    before = json.loads(path.read_text(encoding="utf-8"))
    for name, value in described.items():
        if before.get(name) != value:
            raise InputError(
                f"{folder} was begun with {name} {before.get(name)!r}, not {value!r}; name another folder"
            )


def _write_corpus(asked: Distillation, counts: Counter[str], folder: Path) -> None:
    """Write the pairs that passed, those to test with apart, and a card.

    A text decides by itself on which side it is, so that no text is on two.
    """
    rows: dict[str, list[dict[str, Any]]] = {"train": [], "validation": [], "test": []}
    written = _read_candidates(asked, folder)
    for text, paraphrases in written.items():
        draw = xxh3_64_intdigest(" ".join(text.casefold().split()).encode()) / 2**64
        split = "test" if draw < asked.held_out else "validation" if draw < 2 * asked.held_out else "train"
        if split == "test":
            rows[split].append({"source": text, "references": list(dict.fromkeys(paraphrases))})
        else:
            targets = list(dict.fromkeys(paraphrases))[: asked.likeliest]
            rows[split] += [{"source": text, "target": one} for one in targets]
    if empty := [split for split, found in rows.items() if not found]:
        raise InputError(
            f"of {len(written):,} texts with a paraphrase none is left for the split {empty[0]}; give more texts, a "
            "larger part held out, or lower floors"
        )
    write_lines(folder / "test.jsonl", rows["test"])
    card = _make_card(asked, counts, {split: len(found) for split, found in rows.items()}, folder.name)

    def write(corpus: Path) -> None:
        for split in ("train", "validation"):
            write_lines(corpus / f"{split}.jsonl", rows[split])
        write_text(corpus / CARD_FILE, card)

    write_directory(folder / "corpus", write)


def _read_candidates(asked: Distillation, folder: Path) -> dict[str, list[str]]:
    """The paraphrases of each text that passed; with `likeliest` in the order of the teacher's probability."""
    text, found = asked.texts.column, []
    for file in sorted((folder / "candidates" / "data").glob("*.parquet")):
        rows = pq.read_table(file, columns=[text, "paraphrase", "fluency"]).to_pylist()
        found += [row for row in rows if row["paraphrase"] is not None]
    if asked.likeliest is not None:
        if any(row["fluency"] is None for row in found):
            raise InputError("`likeliest`: the server gives no log-probabilities of its answers; leave it out")
        found.sort(key=lambda row: -row["fluency"])
    written: dict[str, list[str]] = {}
    for row in found:
        written.setdefault(row[text], []).append(row["paraphrase"])
    return written


def _make_card(asked: Distillation, counts: Counter[str], sizes: Mapping[str, int], title: str) -> str:
    texts = asked.texts
    card = Path(texts.model) / CARD_FILE
    licence = asked.teacher_licence or (ModelCard.load(card).data.license if card.is_file() else None)
    licence = licence or "unknown: find out what it says of outputs before you share them"
    teacher = {"model": Path(texts.model).name if Path(texts.model).exists() else texts.model, "licence": licence}
    told = load_prompt(texts.prompt)
    sections = {
        "Splits": ("split", "rows", {name: f"{size:,}" for name, size in sizes.items()}),
        "Teacher": ("of the teacher", "is", teacher),
        "Selection": ("of each text", "are learnt", {"likeliest by the teacher": str(asked.likeliest or "all")}),
        "Prompt": ("part", "text", {"system": repr(told.system), "user": repr(told.user)}),
    }
    files = {split: f"{split}.jsonl" for split in ("train", "validation")}
    return make_augmentation_card(texts, counts, title, files, sections)


def _recipe_of_student(recipe: Recipe, corpus: Path) -> Recipe:
    """The recipe with its corpus replaced."""
    empty = dict.fromkeys(("dataset_name", "data_dir", "pairs_per_group", "filter_encoder", "min_cosine"))
    data: dict[str, Any] = {"dataset": str(corpus), "dataset_kwargs": {}, "mixture": [], **empty}
    return replace(recipe, training=replace(recipe.training, **data))


def _make_table(asked: Distillation, folder: Path, runs: Sequence[str], trust_remote_code: bool) -> list[dict]:
    """Paraphrase the same texts with all models; existing rows are reused."""
    tests = read_lines(folder / "test.jsonl")[: asked.most_tested]
    texts = asked.texts
    models = {"teacher": (texts.model, texts.loading)} | {name: (str(folder / name), {}) for name in runs}
    path = folder / ROWS_FILE
    rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    judge = {"adequacy": "embedding", "encoder": asked.encoder} if asked.encoder else {"adequacy": _make_judge()}
    chosen = {name: texts.options[name] for name in OF_THE_CHOICE if name in texts.options}
    for name, (model, options) in models.items():
        if any(row["model"] == name for row in rows):
            continue
        paraphraser = Paraphraser.from_pretrained(model, trust_remote_code=trust_remote_code, **options)
        own = {name: value for name, value in texts.options.items() if name == "decoding"} if name == "teacher" else {}
        rows.append({"model": name, **_measure(paraphraser, tests, {**judge, **chosen, **own, "min_adequacy": 0})})
        write_text(path, json.dumps(rows, indent=2))
    write_text(folder / TABLE_FILE, _format_table(rows, len(tests)))
    return rows


def _make_judge() -> Callable[[list[str], list[str]], list[float]]:
    """The round trip of the model that comes with the package: one judge for all."""
    judge = RoundTrip(ModelWriter(*load_paraphraser()))
    return lambda sources, candidates: judge(list(map(Judged, sources, candidates)), 16)


def _measure(
    paraphraser: Paraphraser, tests: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> dict[str, float]:
    """A model's first paraphrase of each text, or the text itself if there is none."""
    sources, references = ([row[column] for row in tests] for column in ("source", "references"))
    began = time.perf_counter()
    groups = list(paraphraser(sources, n=1, return_rejected=True, **options))
    seconds = time.perf_counter() - began
    reasons = [one.reason or "" for group in groups for one in group]
    changed = sum(reason.startswith(("loses", "invents", "changes")) for reason in reasons)
    chosen = [next((one for one in group if one.reason is None), None) for group in groups]
    answers = [one for one in chosen if one is not None]
    outputs = [source if one is None else one.text for source, one in zip(sources, chosen, strict=True)]
    return {
        "adequacy": sum(one.adequacy for one in answers) / max(len(answers), 1),
        "pinc": 100 * sum(one.novelty for one in answers) / len(tests),
        "ibleu": ibleu(outputs, references, sources, lowercase=True)["score"],
        "kept": 100 * (1 - changed / max(len(reasons), 1)),
        "answered": 100 * len(answers) / len(tests),
        "texts_per_second": len(tests) / seconds,
    }


def _format_table(rows: Sequence[Mapping[str, Any]], tested: int) -> str:
    digits = {name: 3 if name == "adequacy" else 1 for name in COLUMNS}
    cells = ([row["model"], *(f"{row[name]:.{digits[name]}f}" for name in COLUMNS)] for row in rows)
    note = (
        f"Of {tested:,} texts that no student was trained on. Adequacy is that of answered texts, by one judge for "
        "all; PINC and iBLEU are of all texts, where one without an answer stands as it is; the references of iBLEU "
        "are the teacher's. Kept: candidates in which no name, number or the like changed."
    )
    return "\n".join([note, "", *format_table(["model", *COLUMNS.values()], cells)]) + "\n"
