from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import datasets

from ..common.errors import InputError
from ..common.fields import check_known
from ..common.files import use_writable_folders
from .builder import CorpusBuilder
from .hub_or_files import is_hub_or_files, load_hub_or_files
from .table_files import as_data_files, split_files

DataFiles = str | os.PathLike | Sequence[str | os.PathLike] | Mapping[str, Any]


def list_datasets() -> list[str]:
    """The names that `load_dataset` takes."""
    return sorted(_builders())


def load_dataset(
    path: str | os.PathLike,
    name: str | None = None,
    data_dir: str | os.PathLike | None = None,
    split: str | None = None,
    data_files: DataFiles | None = None,
    num_proc: int | None = None,
    streaming: bool = False,
    columns: Mapping[str, str] | None = None,
    **builder_kwargs: Any,
) -> datasets.DatasetDict | datasets.Dataset | datasets.IterableDatasetDict | datasets.IterableDataset:
    """Read a corpus from its published files, or whatever `datasets.load_dataset` reads.

    The rows are kept in the cache of datasets; they are made anew when the files, the arguments or this package's
    reader change.

    Args:
        path: A corpus, one of `list_datasets()`; or a repository of the Hub (`owner/name`), a file of
            rows (`text_tables`), a folder of such files, or one that `save_to_disk` wrote.
        name: A configuration of the corpus, where it has several.
        data_dir: The folder with the corpus's files. Without one they are downloaded, where their address is open
            (`datasets.addresses`), into the cache of datasets.
        split: One split only, such as `train`, `test` or `train[:100]`.
        data_files: The files of the corpora `pairs` and `groups`: a path or glob pattern, several, or those of each
            split. Relative paths start at `data_dir`, where one is given.
        num_proc: Processes to read with, where a corpus comes in several files.
        streaming: Make the rows while they are read, and keep none of them.
        columns: For a dataset from outside the list: the columns to keep, by the names to give them:
            `{"source": "question1", "target": "question2"}`, `sentence1`, `sentence2` and `label`, or `text` and
            `label`.
        builder_kwargs: Fields of the corpus's configuration, such as `seed`; of a dataset from outside the list,
            arguments of `datasets.load_dataset`, such as `revision`.

    Returns:
        All splits, or the one asked for. Where a dataset from outside the list has no `validation` or `test`, they are
        made of training rows that share no text with the others (not of streamed ones).

    Raises:
        InputError: Unknown arguments, listing the valid ones; or damaged files, with the place and the problem.
        FileNotFoundError: A folder or file is missing; the message says which files are expected and where to get
            them.
    """
    path = os.fspath(path)
    use_writable_folders(datasets.config, "HF_DATASETS_CACHE", "DOWNLOADED_DATASETS_PATH")
    if path not in list_datasets() and is_hub_or_files(path):
        places = {"name": name, "data_dir": data_dir, "data_files": data_files, "num_proc": num_proc}
        splits = load_hub_or_files(path, columns=columns, streaming=streaming, **places, **builder_kwargs)
        return splits if split is None else _take(splits, split, path)
    if columns is not None:
        raise InputError(f"`columns` is only for datasets from outside this package; {path} has its own")
    builder = make_builder(path, name, data_dir, data_files, **builder_kwargs)
    if streaming:
        splits = {key: _select_columns(builder, key, rows) for key, rows in builder.as_streaming_dataset().items()}
        return datasets.IterableDatasetDict(splits) if split is None else _take(splits, split, path)
    if builder.downloads and not Path(builder.cache_dir).is_dir():
        builder.fetch()  # here, for its progress is worth showing
    with no_progress_bars():
        # The split sizes come from the generated rows: there is nothing to verify them against.
        builder.download_and_prepare(verification_mode="no_checks", num_proc=num_proc)
    # datasets refuses to read a split without rows, such as one whose size was set to 0.
    splits = [key for key, info in builder.info.splits.items() if info.num_examples]
    if not splits:
        raise InputError(f"no row is left of the files of {path}; {builder.layout()}")
    if split is None:
        return datasets.DatasetDict({key: _select_columns(builder, key, builder.as_dataset(key)) for key in splits})
    check_known([split.partition("[")[0]], splits, path, "split")
    return _select_columns(builder, split, builder.as_dataset(split))


def find_builder(path: str) -> type[CorpusBuilder]:
    """The builder class of a corpus; raises InputError where there is none."""
    check_known([path], list_datasets(), "`path`", "corpus")
    return _builders()[path]


def is_published(path: str | None) -> bool:
    """Whether this names a published corpus (all are in English) and not a user's own data."""
    return path is not None and path in list_datasets() and not find_builder(path).private


def make_builder(
    path: str,
    name: str | None = None,
    data_dir: str | os.PathLike | None = None,
    data_files: DataFiles | None = None,
    **builder_kwargs: Any,
) -> CorpusBuilder:
    """Make a corpus's builder, whose `as_streaming_dataset` gives the rows without writing them anywhere.

    The arguments are those of `load_dataset`.
    """
    builder_class = find_builder(path)
    if name is not None:
        check_known([name], builder_class.builder_configs, path, "configuration")
    check_known(builder_kwargs, builder_class.BUILDER_CONFIG_CLASS.arguments(), path, "argument")
    if data_files is not None and not builder_class.private:
        own = " and ".join(f"`{name}`" for name, found in sorted(_builders().items()) if found.private)
        raise InputError(f"`data_files` is for the corpora {own}; {path} is read from the folder `data_dir`")
    folder = None if data_dir is None else Path(data_dir).expanduser().absolute()
    builder = builder_class(
        dataset_name=path,
        config_name=name,
        data_dir=None if folder is None else str(folder),
        data_files=None if data_files is None else as_data_files(split_files(data_files, folder or Path())),
        hash=builder_class.state_of(folder),
        **builder_kwargs,
    )
    builder.config.check()
    builder.check_files()
    return builder


@cache
def _builders() -> dict[str, type[CorpusBuilder]]:
    """The builders in this package, by their declared names."""
    package = importlib.import_module(__package__)
    modules = [importlib.import_module(f".{module.name}", __package__) for module in iter_modules(package.__path__)]
    classes = [value for module in modules for value in vars(module).values() if inspect.isclass(value)]
    return {found.corpus_name: found for found in classes if issubclass(found, CorpusBuilder) and found.corpus_name}


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Let datasets show no progress bars."""
    shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()


def _select_columns(builder: CorpusBuilder, split: str, rows: Any) -> Any:
    columns = builder.columns(split.partition("[")[0])
    return rows if columns is None else rows.select_columns(columns)


def _take(splits: Mapping[str, Any], split: str, path: str) -> datasets.Dataset | datasets.IterableDataset:
    """One split of several, or a part of it, such as `train[:100]`."""
    name, part, _ = split.partition("[")
    check_known([name], splits, path, "split")
    rows = splits[name]
    if not part:
        return rows
    if isinstance(rows, datasets.IterableDataset):
        raise InputError(f"`split`: of a streamed split no part can be named, as {split} does; use `take`")
    (place,) = datasets.ReadInstruction.from_spec(split).to_absolute({name: len(rows)})
    return rows.select(range(place.from_, place.to))
