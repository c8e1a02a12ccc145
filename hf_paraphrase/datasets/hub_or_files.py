"""Datasets from outside this package: of the Hub, of files, of folders."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
from datasets.exceptions import DatasetGenerationError, DatasetNotFoundError
from datasets.packaged_modules.csv.csv import Csv, CsvConfig
from datasets.packaged_modules.json.json import Json, JsonConfig

from ..common.errors import InputError
from ..common.hub_access import describe_absence, use_cache_without_network
from ..common.text_tables import ENDINGS, table_kind
from .sampling import divide_linked, held_out_sizes
from .table_files import SPLITS, Splits, as_strings, read_table_files, split_files

logger = logging.getLogger(__name__)

# The readers of datasets, which take `data_files`, and the kinds of `text_tables`, which reads files in their place.
READERS = {"csv": "csv", "json": "json", "parquet": "parquet", "text": "txt", "arrow": None}
# What people call the split to validate with.
VALIDATION = ("validation", "valid", "val", "dev")
# Columns that hold the one text of a row, or two.
TEXTS = (("source", "target"), ("sentence1", "sentence2"), ("source",), ("query",), ("text",))
# The texts of which a row may have several.
LISTS = ("target", "references")
# Arguments of datasets' csv reader that change how lines become rows.
PANDAS = ("names", "header", "skiprows", "quoting", "encoding", "comment", "escapechar", "quotechar", "usecols")
# Where a split has to be made: most rows of it, the most that it takes, and the seed of the draw.
HELD_OUT, MOST_HELD_OUT, SEED = 1000, 0.1, 42


def is_hub_or_files(path: str) -> bool:
    """Whether a path that is not a built-in corpus names a repository (`owner/name`), a reader, a file or a folder."""
    return "/" in path or path in READERS or table_kind(path) is not None or Path(path).expanduser().exists()


def load_hub_or_files(
    path: str, *, columns: Mapping[str, str] | None = None, streaming: bool = False, **places: Any
) -> Splits:
    """Read what `datasets.load_dataset` reads, with the columns and splits of this package.

    Args:
        path: A repository of the Hub, `parquet`, `csv`, `json`, `text` or `arrow` with `data_files`, a file of a kind
            that `text_tables` reads, a glob pattern, a folder of such files, or one that `save_to_disk` wrote.
        columns: What the columns are to be called, and what they are called there; the others are left out.
        streaming: Read while it is used, keeping nothing; the splits are those that there are.
        places: `name`, a configuration; `data_dir`, a folder inside the repository or folder; `data_files` of the
            repository or of this machine, patterns too; of files on this machine `delimiter`; of others arguments of
            `datasets.load_dataset`, such as `revision`.

    Returns:
        The splits. Where there is no `validation` or `test`, a tenth of the training rows, at most 1,000, become it.
        No text of theirs stands in another split, since rows that share one are kept together, and the rows to test on
        have all targets of a source as `references`. A list of targets becomes several rows. Rows that lack a text are
        left out, and labels are classes.

    Raises:
        InputError: There is no such dataset or column, a cell holds no text, or an option is wrong.
    """
    splits = read_splits(path, columns=columns, streaming=streaming, **places)
    for split in VALIDATION[1:]:
        if split in splits and "validation" not in splits:
            splits["validation"] = splits.pop(split)
    if columns is not None:
        splits = type(splits)({split: _rename_columns(rows, columns, path) for split, rows in splits.items()})
    splits = type(splits)({split: _normalise(rows, path) for split, rows in splits.items()})
    if streaming:
        return splits
    whole = datasets.DatasetDict({split: _leave_out_gaps(rows, path) for split, rows in splits.items()})
    if not any(map(len, whole.values())):
        raise InputError(f"{path}: no row has all of its texts")
    if not any(map(_texts_of, whole.values())):
        names, there = ", ".join(" and ".join(kind) for kind in TEXTS), next(iter(whole.values())).column_names
        message = "%s: no column is named %s; `columns` renames those there are: %s"
        logger.warning(message, path, names, ", ".join(there))
    return _make_splits(_name_labels(whole))


def read_splits(
    path: str,
    name: str | None = None,
    data_dir: str | os.PathLike | None = None,
    data_files: Any = None,
    columns: Mapping[str, str] | None = None,
    streaming: bool = False,
    **options: Any,
) -> Splits:
    """Read the splits as they are; arguments and errors as `load_hub_or_files`."""
    place = Path(path).expanduser()
    if any((place / mark).is_file() for mark in ("dataset_dict.json", "state.json")):
        return _read_saved(place, streaming)
    there = columns if isinstance(columns, Mapping) else {}
    # Sorted, since the cache's key has them.
    texts = [there.get(text, text) for text in sorted({name for kind in TEXTS for name in kind} | set(LISTS))]
    lists = [there.get(text, text) for text in LISTS]
    files = _find_files(path, name, data_dir, data_files)
    if files is not None:
        kind = READERS.get(path)
        return read_table_files(files, texts, lists, kind, _take_delimiter(options, path), streaming)
    reader = str(place) if place.is_dir() else path
    options = {name: value for name, value in options.items() if value is not None}
    options |= {} if data_dir is None else {"data_dir": str(data_dir)}
    options |= {} if data_files is None else {"data_files": as_strings(data_files)}
    use_cache_without_network(reader)
    try:
        builder = datasets.load_dataset_builder(
            reader, name, **{key: options[key] for key in options if key != "num_proc"}
        )
        if _is_plain(builder, streaming):
            return _read_files(builder, texts, lists, streaming)
        return datasets.load_dataset(reader, name, streaming=streaming, **options)
    except InputError:
        raise
    except DatasetGenerationError as error:
        raise InputError(f"{path} cannot be read: {error.__cause__ or error}") from error
    except (OSError, ValueError, TypeError) as error:
        if isinstance(error, ConnectionError | DatasetNotFoundError) and not place.exists():
            raise InputError(describe_absence(path, "data set folder")) from error
        raise InputError(f"{path} cannot be read: {error}") from error


def _read_saved(place: Path, streaming: bool) -> Splits:
    saved = datasets.load_from_disk(str(place))
    saved = saved if isinstance(saved, datasets.DatasetDict) else datasets.DatasetDict(train=saved)
    if not streaming:
        return saved
    return datasets.IterableDatasetDict({split: rows.to_iterable_dataset() for split, rows in saved.items()})


def _find_files(path: str, name: str | None, data_dir: Any, data_files: Any) -> dict[str, list[Path]] | None:
    """The files of this machine that `text_tables` reads, by split; None for what datasets has to find or read."""
    place = Path(path).expanduser()
    if path in READERS and data_files is not None and not place.exists():
        is_remote = "://" in str(as_strings(data_files))
        return None if is_remote or READERS[path] is None else split_files(data_files)
    if place.is_dir():
        folder = place / (data_dir or "")
        is_described = name is not None or _has_configurations(place)
        if data_files is not None:
            return split_files(data_files, folder)
        arrow = not is_described and any(folder.rglob("*.arrow"))
        return None if is_described or arrow else split_files(folder)
    if place.is_file() and table_kind(place) is None and place.suffix != ".arrow":
        raise InputError(f"{path} ends in {place.suffix or 'nothing'}; readable are: {ENDINGS}")
    if place.suffix == ".arrow" and place.is_file():
        return None
    return split_files(place) if table_kind(path) is not None else None


def _has_configurations(folder: Path) -> bool:
    """Whether a card says which files make up which split."""
    card = folder / "README.md"
    return card.is_file() and bool(
        datasets.utils.metadata.MetadataConfigs.from_dataset_card_data(huggingface_hub.DatasetCard.load(card).data)
    )


def _take_delimiter(options: dict[str, Any], path: str) -> str | None:
    given = {name: value for name, value in options.items() if value is not None and name != "num_proc"}
    delimiter = given.pop("delimiter", given.pop("sep", None))
    if given:
        raise InputError(f"`{next(iter(given))}` is not an option of files such as {path}; there is: delimiter")
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise InputError(f"`delimiter` must be one character, not {delimiter!r}")
    return delimiter


def _is_plain(builder: datasets.DatasetBuilder, streaming: bool) -> bool:
    """Whether a repository holds csv files of which nothing but a delimiter has to be known; or, not to be streamed,
    JSON of which nothing more is said, such as types or the field that has the rows."""
    if isinstance(builder, Csv):
        plain, names = CsvConfig(), [*PANDAS]
    elif isinstance(builder, Json) and builder.info.features is None and not streaming:
        plain, names = JsonConfig(), ["field", "encoding"]
    else:
        return False
    return all(getattr(builder.config, name) == getattr(plain, name) for name in names)


def _read_files(builder: Csv | Json, texts: list[str], lists: list[str], streaming: bool) -> Splits:
    """Read files of a repository as those of this machine.

    pandas takes words such as `null` for missing cells; datasets makes times of texts such as 2020-05-12, and of two
    fields with one name takes the last.
    """
    manager = datasets.DownloadManager(dataset_name=builder.dataset_name)
    files = {
        str(split): list(map(Path, manager.download(list(urls)))) for split, urls in builder.config.data_files.items()
    }
    if isinstance(builder, Json):
        return read_table_files(files, texts, lists, "json", None, streaming)
    kind, delimiter = ("tsv", None) if builder.config.sep == "\t" else ("csv", builder.config.sep)
    return read_table_files(files, texts, lists, kind, None if delimiter == "," else delimiter, streaming)


def _rename_columns(rows: Any, columns: Mapping[str, str], path: str) -> Any:
    """Keep the columns of a split that a mapping from names here to names there has; raises InputError, which has
    those that there are, for another one."""
    if not isinstance(columns, Mapping) or not columns or len(set(columns.values())) < len(columns):
        raise InputError(f"`columns` gives each new name a column of its own, as in source=question1; not {columns!r}")
    there = rows.column_names or list(next(iter(rows), {}))
    for column in columns.values():
        if column not in there:
            raise InputError(f"`columns`: {path} has no column {column!r}; it has: {', '.join(there)}")
    kept = rows.select_columns(list(columns.values()))
    return kept.rename_columns({column: name for name, column in columns.items() if name != column})


def _normalise(rows: Any, path: str) -> Any:
    """Make several rows of a list of targets, and a list of a single reference; refuse other types."""
    features = rows.features or {}
    for name in {name for kind in TEXTS for name in kind} & set(features):
        kind = features[name]
        kind = kind.feature if name in LISTS and isinstance(kind, datasets.List | datasets.LargeList) else kind
        if getattr(kind, "dtype", None) not in ("string", "large_string", "null"):
            raise InputError(f"{path}: column `{name}` must hold text, not {features[name]}")
    text = datasets.Value("string")
    if isinstance(features.get("target"), datasets.List | datasets.LargeList):
        single = datasets.Features({**features, "target": text})
        rows = rows.map(_explode, batched=True, remove_columns=rows.column_names, features=single)
    if isinstance(features.get("references"), datasets.Value):
        listed = datasets.Features({**rows.features, "references": datasets.List(text)})
        wrap = {"input_columns": "references", "features": listed}
        rows = rows.map(lambda value: {"references": [value] if value and value.strip() else []}, **wrap)
    return rows


def _explode(batch: dict[str, list]) -> dict[str, list]:
    """A row for each target; a row without one stays, as one that lacks a text."""
    places = [(place, target) for place, targets in enumerate(batch["target"]) for target in targets or [None]]
    columns = {name: [values[place] for place, _ in places] for name, values in batch.items()}
    return {**columns, "target": [target for _, target in places]}


def _leave_out_gaps(rows: datasets.Dataset, path: str) -> datasets.Dataset:
    """Leave out rows of which a text is null or blank, or the label is not known, with a warning that counts them."""
    texts = _texts_of(rows)
    kept = rows.filter(lambda *row: all(text and text.strip() for text in row), input_columns=texts) if texts else rows
    if "references" in rows.features:
        kept = kept.filter(bool, input_columns="references")
    if "label" in rows.features:
        # Classes that are not known are -1 on the Hub.
        lowest = 0 if isinstance(rows.features["label"], datasets.ClassLabel) else float("-inf")
        kept = kept.filter(
            lambda label: label not in (None, "") and (isinstance(label, str) or label >= lowest),
            input_columns="label",
        )
    if len(kept) < len(rows):
        left_out = len(rows) - len(kept)
        logger.warning("%s: left out %d of %d rows, which lack a text or a label", path, left_out, len(rows))
    return kept


def _name_labels(splits: datasets.DatasetDict) -> datasets.DatasetDict:
    """Make classes of labels that are texts, numbers or truth values, the same for all splits; places stay numbers."""
    if any("label" not in rows.features or "query" in rows.features for rows in splits.values()):
        return splits
    if all(isinstance(rows.features["label"], datasets.ClassLabel) for rows in splits.values()):
        return splits
    names = sorted({str(label) for rows in splits.values() for label in rows.unique("label")})
    return datasets.DatasetDict({split: _encode_labels(rows, names) for split, rows in splits.items()})


def _encode_labels(rows: datasets.Dataset, names: list[str]) -> datasets.Dataset:
    features = datasets.Features({**rows.features, "label": datasets.ClassLabel(names=names)})
    return rows.map(lambda label: {"label": names.index(str(label))}, input_columns="label", features=features)


def _make_splits(splits: datasets.DatasetDict) -> datasets.DatasetDict:
    """Make what is missing of `validation` and `test` out of `train`, or of the only split whatever its name."""
    if len(splits) == 1 and not set(splits) & {"validation", "test"}:
        splits = datasets.DatasetDict(train=next(iter(splits.values())))
    missing = [split for split in ("validation", "test") if split not in splits]
    if missing and "train" in splits and _texts_of(splits["train"]):
        made = _divide(splits["train"], missing)
        if "test" in made and "target" in made["test"].features:
            made["test"] = _gather(made["test"])
        splits = datasets.DatasetDict({**splits, **made})
    order = sorted(splits, key=lambda split: SPLITS.index(split) if split in SPLITS else len(SPLITS))
    return datasets.DatasetDict({split: splits[split] for split in order if len(splits[split])})


def _divide(rows: datasets.Dataset, missing: list[str]) -> dict[str, datasets.Dataset]:
    """Draw rows for the missing splits; rows that share a text, directly or through others, stay together."""
    columns = [rows[name][:] for name in _texts_of(rows)]
    validation, test = (HELD_OUT if split in missing else 0 for split in ("validation", "test"))
    sizes = held_out_sizes(len(rows), validation, test, most=MOST_HELD_OUT * len(missing))
    places = divide_linked(list(zip(columns[0], columns[-1], strict=True)), *sizes, SEED)
    return {split: rows.select(places[split]) for split in ("train", *missing)}


def _gather(rows: datasets.Dataset) -> datasets.Dataset:
    references = rows.to_pandas().groupby("source", sort=False)["target"].agg(list)
    return datasets.Dataset.from_dict({"source": list(references.index), "references": list(references)})


def _texts_of(rows: datasets.Dataset) -> list[str]:
    """The columns that hold a row's one text or two."""
    kinds = (kind for kind in TEXTS if all(name in rows.features for name in kind))
    return list(next(kinds, ()))
