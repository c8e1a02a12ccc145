from __future__ import annotations

import ast
import hashlib
import inspect
import os
from collections.abc import Iterable, Iterator
from dataclasses import Field, dataclass, fields
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from ..common.errors import InputError
from ..common.fields import check_fields, option
from ..common.files import state_of_file
from . import addresses
from .addresses import DOWNLOADS, RELEASES, Release, download_release
from .corpus_reader import CorpusReader

TEXT = datasets.Value("string")


@dataclass
class CorpusConfig(datasets.BuilderConfig):
    """The arguments of a corpus: subclasses add an `option` for each, whose help stands in the corpus's card."""

    max_bad_fraction: float = option(
        "The share of damaged lines that is left out with a warning; a larger one is an error.", 0.01, least=0, most=1
    )

    @classmethod
    def arguments(cls) -> dict[str, Field]:
        """The arguments of this corpus, by name."""
        inherited = {field.name for field in fields(datasets.BuilderConfig)}
        return {field.name: field for field in fields(cls) if field.name not in inherited}

    def check(self) -> None:
        """Refuse values of the wrong type or that make no sense, with an InputError that has the argument's name.

        A method, not `__post_init__`: builders set arguments on a copy of a named configuration.
        """
        check_fields(self, self.arguments().values())


def check_order(config: CorpusConfig, least: str, most: str) -> None:
    """Refuse two arguments, by name, of which the one that bounds from below exceeds the other; None is no bound."""
    low, high = getattr(config, least), getattr(config, most)
    if high is not None and low > high:
        raise InputError(f"`{least}` must not exceed `{most}`: {low} > {high}")


class CorpusBuilder(datasets.ArrowBasedBuilder):
    """A corpus read from its published files; what these are and how to get them says its card, `cards/NAME.md`."""

    VERSION = datasets.Version("1.0.0")
    # Its name in `load_dataset`; classes without a name are base classes.
    corpus_name: ClassVar[str] = ""
    # File names or glob patterns, relative to `data_dir`, that the corpus is read from; what these files hold decides
    # the cache folder.
    files: ClassVar[tuple[str, ...]] = ()
    # For errors: what is expected in the folder, if the names do not say it, and where a person gets it.
    expected: ClassVar[str] = ""
    origin: ClassVar[str] = ""
    # For the dataset card: the licence and the task categories, as the Hub spells them.
    licence_id: ClassVar[str] = "other"
    tasks: ClassVar[tuple[str, ...]] = ()
    # Whether it reads a user's own files: then nobody knows its language, and no data set on the Hub has its name.
    private: ClassVar[bool] = False
    # Text columns that may be empty.
    may_be_blank: ClassVar[tuple[str, ...]] = ()
    # How many rows are held in memory before they are written.
    rows_at_once: ClassVar[int] = 10_000

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if configurations := vars(cls).get("BUILDER_CONFIGS"):  # the first is the default
            cls.BUILDER_CONFIG_CLASS, cls.DEFAULT_CONFIG_NAME = type(configurations[0]), configurations[0].name

    def features(self) -> datasets.Features:
        """The columns of all splits, with their types."""
        raise NotImplementedError

    def columns(self, split: str) -> list[str] | None:
        """The columns of a split, where splits differ; a builder of datasets has the same ones for all."""
        return None

    def release(self) -> Release | None:
        """Where the files can be downloaded, by this configuration's arguments; None where nothing is known of it."""
        return RELEASES.get(self.corpus_name)

    @property
    def downloads(self) -> bool:
        """Whether the files come from the published address, because no folder was given."""
        release = self.release()
        return self.config.data_dir is None and release is not None and bool(release.files)

    def fetch(self) -> Path:
        """Download the published files, if that was not done before, and return their folder; raises InputError, which
        says how a person gets them, where they are not given out openly or out of reach."""
        release = self.release()
        message = f"`data_dir` is missing: the folder with the files of {self.name}; {self.layout()}"
        if release is not None and release.on_request:
            raise InputError(f"{message}. They cannot be downloaded: {release.on_request}")
        if release is None or not self.downloads:
            raise InputError(message)
        try:
            return download_release(self.corpus_name, release, self.files, self._cache_downloaded_dir)
        except InputError as error:
            copy = f". A copy of the rows on the Hub: {release.copy}" if release.copy else ""
            raise InputError(f"{error}. {message}{copy}") from error

    @property
    def data_dir(self) -> Path:
        """The folder with the files: the given one, or the download; raises as `fetch`, or FileNotFoundError."""
        if self.config.data_dir is None:
            return self.fetch()
        path = Path(self.config.data_dir)
        if not path.is_dir():
            raise FileNotFoundError(f"`data_dir`: there is no folder {path}; {self.layout()}")
        return path

    def layout(self) -> str:
        """The files expected in `data_dir`, and where to get them."""
        return f"{self.expected or 'expected in it: ' + ', '.join(self.files)}; {self.origin}"

    def check_files(self) -> None:
        """Look for the files before anything is read; the FileNotFoundError shows the expected layout."""
        if self.files and self.config.data_dir is not None and not self.paths(self.data_dir):
            raise FileNotFoundError(f"{self.data_dir} holds no such file ({self._there()} there); {self.layout()}")

    def _there(self) -> str:
        return ", ".join(sorted(path.name for path in self.data_dir.iterdir())[:8]) or "nothing"

    def find(self, *names: str) -> Path:
        """Return the first of these files that is in `data_dir`, or raise FileNotFoundError, which shows the
        layout."""
        for name in names:
            if (self.data_dir / name).is_file():
                return self.data_dir / name
        raise FileNotFoundError(f"{self.data_dir / names[0]} is missing ({self._there()} there); {self.layout()}")

    def reader(self, unit: str = "lines") -> CorpusReader:
        """A reader for text files, to use as a context over all that are read for one split or for all; `unit` is what
        is counted."""
        return CorpusReader(self.config.max_bad_fraction, self.layout(), unit)

    @classmethod
    def paths(cls, data_dir: Path) -> list[Path]:
        """The files in a folder that this corpus is read from, in an order that depends on their names alone."""
        return sorted({path for name in cls.files for path in data_dir.glob(name) if path.is_file()})

    @classmethod
    def state_of(cls, data_dir: Path | None) -> str:
        """A digest of the builder's code with all that it imports, and of the corpus's files, to name its cache."""
        package = __name__.partition(".")[0]
        bases = [base for base in cls.__mro__ if base.__module__.startswith(f"{package}.")]
        code = _find_code([Path(inspect.getfile(base)) for base in bases])
        published = f"{os.environ.get(DOWNLOADS, '')}\0{RELEASES.get(cls.corpus_name)}"
        digest = hashlib.sha256(published.encode() if data_dir is None else b"")
        # Some modules have data beside them.
        code |= {data for path in code if (data := path.with_suffix(".yaml")).is_file()}
        for path in (*sorted(code), *(() if data_dir is None else cls.paths(data_dir))):
            digest.update(f"{path.name}\0{state_of_file(path)}\0".encode())
        return digest.hexdigest()[:32]

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(description=inspect.getdoc(type(self)), features=self.features())

    def parts(self) -> dict[str, dict[str, Any]]:
        """For each split the arguments of `generate_rows`; a list is the shards of several processes."""
        raise NotImplementedError

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        return [datasets.SplitGenerator(name=split, gen_kwargs=part) for split, part in self.parts().items()]

    def _generate_tables(self, *args: Any, **kwargs: Any) -> Iterator[tuple[int, pa.Table]]:
        # Whole tables go through datasets several times as fast as single rows.
        schema = self.info.features.arrow_schema
        rows = self._whole_rows(self.generate_rows(*args, **kwargs))
        batches = iter(lambda: list(islice(rows, self.rows_at_once)), [])
        yield from enumerate(pa.Table.from_pylist(batch, schema=schema) for batch in batches)

    def _whole_rows(self, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Leave out rows that lack a text, as damaged lines are left out: with a warning, or an error if many do."""
        with self.reader(unit="rows") as reader:
            for number, row in enumerate(rows, 1):
                reader.lines_read += 1
                blank = [name for name, value in row.items() if is_blank(value) and name not in self.may_be_blank]
                if blank:
                    reader.reject(Path(self.name), number, f"has no text in {blank[0]}")
                else:
                    yield row

    def generate_rows(self, *args: Any, **kwargs: Any) -> Iterator[dict[str, Any]]:
        """Yield the rows of a split."""
        raise NotImplementedError

    def _prepare_split_single(self, *args: Any, **kwargs: Any) -> Iterator[tuple[int, bool, Any]]:
        # Unwrapped here and not by the caller, since the cause would not come back from another process.
        try:
            yield from super()._prepare_split_single(*args, **kwargs)
        except datasets.exceptions.DatasetGenerationError as error:
            if isinstance(error.__cause__, (InputError, OSError)):
                raise error.__cause__ from None
            raise


class ParaphraseBuilder(CorpusBuilder):
    """A corpus of paraphrases: `source` and `target` to learn from, `source` and `references` to test on."""

    tasks: ClassVar[tuple[str, ...]] = ("text-generation",)

    def features(self) -> datasets.Features:
        return datasets.Features({"source": TEXT, "target": TEXT, "references": datasets.List(TEXT)})

    def columns(self, split: str) -> list[str] | None:
        return ["source", "references"] if split == "test" else ["source", "target"]


def is_blank(value: Any) -> bool:
    """Whether a text is missing: blank, an empty list, or a list with a blank text."""
    if isinstance(value, list):
        return not value or any(map(is_blank, value))
    return isinstance(value, str) and not value.strip()


def seeded_order(items: Iterable[Any], *seed: Any) -> list[Any]:
    """Shuffle different items: the order depends on the seed and the items alone, on every machine and Python."""
    return sorted(items, key=lambda item: hashlib.sha256("\0".join(map(str, (*seed, item))).encode()).digest())


def _find_code(modules: list[Path]) -> set[Path]:
    """Modules of this package and those that they import, but for the addresses, where each corpus has its own."""
    found: set[Path] = set()
    while modules:
        module = modules.pop()
        if module not in found and module != Path(addresses.__file__):
            found.add(module)
            modules += _find_imports(module)
    return found


@cache
def _find_imports(module: Path) -> tuple[Path, ...]:
    """The modules of this package that a module imports, anywhere in it."""
    places = []
    for node in ast.walk(ast.parse(module.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = module.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            places += [place, *(place / alias.name for alias in node.names)]
    return tuple(file for place in places if (file := place.with_suffix(".py")).is_file())
