"""Resumable augmentation, from input to dataset card: counts, settings, and rejected candidates with reasons."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow.parquet as pq
from datasets import Features
from datatrove.io import DataFolder, get_datafolder
from datatrove.utils.logging import logger as datatrove_logger
from huggingface_hub import DatasetCardData
from huggingface_hub.constants import HF_HOME
from xxhash import xxh3_64_hexdigest

from .. import __version__
from ..common.errors import InputError
from ..common.files import check_links, locked
from ..generation.paraphraser import Paraphraser
from ..generation.prompts import load_prompt
from ..hub.push import create_repository
from ..released import find_checkpoint
from .executors import check_executor, make_executor
from .inputs import SOURCE_ID, digest, write_rows
from .outcomes import RowParaphraser, check_options
from .steps import (
    ParaphraseStep,
    RowReader,
    ShardWriter,
    clean_up,
    name_shard,
    read_counts,
    whole_in_folder,
    write_in_folder,
)

HUB = "hf://datasets/"
STATE, SETTINGS_FILE, ROWS_FILE, CARD_FILE = ".augment", "settings.json", "rows.parquet", "README.md"


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """The settings of an augmentation that determine its rows.

    Args:
        input: A file, a folder of files, a corpus of this package, or a repository of the Hub.
        model: A checkpoint folder or Hub repository.
        column: Where the text is.
        n: Paraphrases of each row, at most.
        keep_columns: The other columns to keep; None for all.
        split: Of a corpus or repository.
        tasks: Number of tasks; a killed task starts again.
        backend: Runs the model instead of `generate()`: "ctranslate2" or the address of a server.
        prompt: YAML file with the prompt of a language model.
        dtype: Precision of the model, as in `Paraphraser.from_pretrained`.
        options: Further arguments of a `Paraphraser`'s call.
    """

    input: str
    model: str
    column: str
    n: int = 3
    keep_columns: Sequence[str] | None = None
    split: str | None = None
    tasks: int = 64
    backend: str | None = None
    prompt: str | None = None
    dtype: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        check_options(self.options)

    @property
    def loading(self) -> dict[str, Any]:
        """How the model is loaded."""
        return {"backend": self.backend, "prompt": self.prompt, "dtype": self.dtype}

    def describe(self) -> dict[str, Any]:
        """All fields, with digests of the input and the model if they are local."""
        digests = {"input_digest": digest(self.input), "model_digest": digest(os.fspath(find_checkpoint(self.model)))}
        told = {"prompt": None if self.prompt is None else asdict(load_prompt(self.prompt))}
        return json.loads(json.dumps({**asdict(self), **told, **digests}))


def find_state(output: DataFolder) -> DataFolder:
    """Folder with the input rows and completion marks of an augmentation: in its output, or in the cache."""
    if output.is_local():
        return get_datafolder(output.resolve_paths(STATE))
    name = xxh3_64_hexdigest(output.resolve_paths("").encode())
    return get_datafolder(str(Path(HF_HOME) / "hf_paraphrase" / "augment" / name))


def run_augmentation(
    asked: Augmentation,
    output: str,
    *,
    workers: int = 1,
    executor: str = "local",
    executor_options: Mapping[str, Any] | None = None,
    logging_dir: str | None = None,
    trust_remote_code: bool = False,
) -> Counter[str] | None:
    """Run an augmentation, or resume it.

    Args:
        asked: What is asked.
        output: A folder, or where fsspec reaches, such as `hf://datasets/you/yours`: shards under `data`, and a card.
        workers: Tasks at a time.
        executor: "local", "slurm" or "ray".
        executor_options: Further arguments of datatrove's executor.
        logging_dir: Where what is read and what is done is noted; None for `.augment` in the output, or of one
            elsewhere a folder in the cache. All machines that take part have to reach it.
        trust_remote_code: Run the code in the named checkpoints.

    Returns:
        What became of the rows; None where jobs were submitted that are not done.

    Raises:
        InputError: Something that the user can mend, such as another run in the same folder.
        AugmentationError: Tasks could not be finished.
    """
    datatrove_logger.disable("datatrove")
    check_executor(executor, executor_options or {})
    if output.startswith(HUB):
        create_repository("/".join(output.removeprefix(HUB).split("/")[:2]), kind="dataset")
    folder = get_datafolder(output)
    _check_output(asked.input, folder)
    state = find_state(folder) if logging_dir is None else get_datafolder(logging_dir)
    with locked(Path(state.resolve_paths(""))) if state.is_local() else nullcontext():
        for place, name in ((folder, ""), (folder, "data"), (state, "")):
            clean_up(place, name)
        _begin(asked, folder, state, trust_remote_code)
        with state.open(ROWS_FILE, "rb") as file:
            parquet = pq.ParquetFile(file)
            rows, features = parquet.metadata.num_rows, Features.from_arrow_schema(parquet.schema_arrow)
        tasks = min(asked.tasks, rows)
        shards = [name_shard(rank, tasks) for rank in range(tasks)]
        _forget_lost_shards(folder, state, shards)
        loading = {"trust_remote_code": trust_remote_code, **asked.loading}
        pipeline = [
            RowReader(state, ROWS_FILE, asked.column),
            ParaphraseStep(asked.model, loading, n=asked.n, **asked.options),
            ShardWriter(folder, Features({name: kind for name, kind in features.items() if name != SOURCE_ID})),
        ]
        runner = make_executor(executor, pipeline, tasks, workers, state, executor_options)
        if runner.get_incomplete_ranks():
            runner.run()
        if runner.get_incomplete_ranks():
            return None
        counts = sum((read_counts(folder, shard) for shard in shards), Counter())
        write_in_folder(folder, CARD_FILE, make_augmentation_card(asked, counts, Path(output).name))
        return counts


def _begin(asked: Augmentation, output: DataFolder, state: DataFolder, trust_remote_code: bool = False) -> None:
    """Read the input and save the settings on the first run; later, check that they have not changed.

    InputError says that the output was begun with other settings, or is another's.
    """
    if not trust_remote_code and Path(asked.model).is_dir():
        check_links(Path(asked.model))  # before all of it is read
    described = asked.describe()
    if state.isfile(SETTINGS_FILE):
        with state.open(SETTINGS_FILE, "r") as file:
            before = json.load(file)
        changed = [name for name in described if described[name] != before.get(name)]
        if changed:
            raise InputError(_tell_change(output.resolve_paths(""), changed, before, described))
        return
    if output.isdir("data") and output.list_files("data"):
        raise InputError(f"{output.resolve_paths('data')} has files already, of another origin; give another --output")
    paraphraser = Paraphraser.from_pretrained(
        asked.model, trust_remote_code=trust_remote_code, device="cpu", **asked.loading
    )
    RowParaphraser(paraphraser, asked.n, **asked.options)  # which refuses options that cannot be
    with whole_in_folder(state, ROWS_FILE) as path:
        write_rows(path, asked.input, asked.column, asked.keep_columns, asked.split)
    # Written last: if the settings exist, so does everything else.
    write_in_folder(state, SETTINGS_FILE, json.dumps(described, indent=2, ensure_ascii=False))


def _check_output(source: str, output: DataFolder) -> None:
    """Refuse an output inside the input: it would change the input, and the run could not resume."""
    # A name of a corpus or repository may equal that of a folder that does not exist yet.
    if not Path(source).is_dir() or not output.is_local():
        return
    where = output.resolve_paths("")
    if Path(where).resolve().is_relative_to(Path(source).resolve()):
        raise InputError(f"--output {where} lies inside the input {source}, and would change it; name another")


def _forget_lost_shards(output: DataFolder, state: DataFolder, shards: Sequence[str]) -> None:
    """Mark tasks without a shard as not done."""
    there = set(output.list_files("data")) if output.isdir("data") else set()
    for rank, shard in enumerate(shards):
        mark = f"completions/{rank:05d}"
        if shard not in there and state.isfile(mark):
            state.rm(mark)


def _tell_change(where: str, changed: Sequence[str], before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    contents = {"input_digest": "the contents of the input", "model_digest": "the files of the model"}
    told = [
        f"{contents[name]} have changed" if name in contents else f"{name} {before.get(name)!r}, not {now[name]!r}"
        for name in changed
    ]
    return f"{where} was begun with other settings ({'; '.join(told)}); give another --output, or the settings of then"


def make_augmentation_card(
    asked: Augmentation,
    counts: Counter[str],
    title: str,
    files: Mapping[str, str] = MappingProxyType({"train": "data/train-*.parquet"}),
    sections: Mapping[str, tuple[str, str, dict[str, str]]] = MappingProxyType({}),
) -> str:
    """Write the card of the dataset `title`.

    Args:
        asked: What was asked.
        counts: What became of the rows.
        title: Name of the dataset.
        files: Those of each split.
        sections: Further ones: the heads of two columns, and their rows.
    """
    data_files = [{"split": split, "path": path} for split, path in files.items()]
    data = DatasetCardData(
        pretty_name=title,
        task_categories=["text-generation"],
        tags=["paraphrase", "synthetic", "hf_paraphrase"],
        configs=[{"config_name": "default", "data_files": data_files}],
    )
    settings: dict[str, Any] = {name: getattr(asked, name) for name in ("input", "model", "column", "n", "tasks")}
    for name in ("input", "model"):  # where things are on this machine is nobody else's
        settings[name] = Path(settings[name]).name if Path(settings[name]).exists() else settings[name]
    settings |= asked.options
    others = {name: getattr(asked, name) for name in ("keep_columns", "split", "backend")}
    settings |= {name: value for name, value in others.items() if value is not None}
    totals = {
        "source rows": counts["rows"],
        "paraphrases": counts["paraphrases"],
        "source rows with a paraphrase": counts["rows"] - counts["without"] - counts["failed"],
        "source rows of which no candidate passed": counts["without"],
        "source rows that failed": counts["failed"],
    }
    totals |= {kind: counts[kind] for kind in ("prompt tokens", "completion tokens") if counts[kind]}
    if counts["cut"]:
        totals["source rows longer than what the model reads (`max_source_length`)"] = counts["cut"]
    parts = [
        f"---\n{data}\n---",
        f"# {title}",
        f"Paraphrases of `{settings['input']}`, written by `{settings['model']}` with `hf-paraphrase augment` "
        f"(hf_paraphrase {__version__}). They are a model's, and nobody has checked them one by one.",
        "Each row is a paraphrase beside the columns of its source: `source_id` says where the source stands, `rank` "
        "is 1 for the best, and `score` puts `adequacy`, `fluency` and `novelty` into one. A source without a "
        "paraphrase has one row, whose `error` says why.",
        _section("Counts", "what", "number", {name: f"{value:,}" for name, value in totals.items()}),
        _section("Settings", "setting", "value", {name: f"`{value}`" for name, value in settings.items()}),
        _section("Rejected candidates", "reason", "candidates", _counted(counts, "rejected: ")),
    ]
    parts += [_section(name, *columns) for name, columns in sections.items()]
    if counts["failed"]:
        parts.append(_section("Failed rows", "error", "rows", _counted(counts, "failed: ")))
    return "\n\n".join(parts) + "\n"


def _counted(counts: Counter[str], kind: str) -> dict[str, str]:
    found = [(name.removeprefix(kind), value) for name, value in counts.items() if name.startswith(kind)]
    return {name: f"{value:,}" for name, value in sorted(found, key=lambda one: (-one[1], one[0]))}


def _section(title: str, left: str, right: str, rows: dict[str, str]) -> str:
    if not rows:
        return f"## {title}\n\nNone."
    lines = [f"| {name} | {value.replace('|', chr(92) + '|')} |" for name, value in rows.items()]
    return "\n".join([f"## {title}\n", f"| {left} | {right} |", "|---|---|", *lines])
