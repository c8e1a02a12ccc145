from __future__ import annotations

import hashlib
import inspect
import random
from pathlib import Path
from typing import Any, ClassVar

import datasets

from ..errors import InputError

__all__ = ["CorpusBuilder", "CorpusConfig", "ParaphraseBuilder", "seeded"]


class CorpusConfig(datasets.BuilderConfig):
    """The arguments of a corpus."""

    def check(self) -> None:
        """Refuse values that make no sense.

        A method, not `__post_init__`: builders set arguments on a copy of a named configuration.

        Raises:
            InputError: With the argument's name.
        """


class CorpusBuilder(datasets.GeneratorBasedBuilder):
    """A corpus read from its published files, which its class docstring says how to get."""

    VERSION = datasets.Version("1.0.0")
    # File names, relative to `data_dir`, that the corpus is read from; what they hold decides the cache folder.
    files: ClassVar[tuple[str, ...]] = ()
    # Where a person gets these files, for errors.
    origin: ClassVar[str] = ""

    @classmethod
    def columns(cls, split: str) -> list[str] | None:
        """The columns of a split, where splits differ; a builder of datasets has the same ones for all."""
        return None

    @property
    def data_dir(self) -> Path:
        """The folder that holds the files.

        Raises:
            InputError: No folder was given.
            FileNotFoundError: There is no such folder.
        """
        if self.config.data_dir is None:
            raise InputError(f"`data_dir` is missing: the folder with the files of {self.name}; {self.layout()}")
        path = Path(self.config.data_dir)
        if not path.is_dir():
            raise FileNotFoundError(f"`data_dir`: there is no folder {path}; {self.layout()}")
        return path

    def layout(self) -> str:
        """What is expected in `data_dir`, and where to get it."""
        return f"expected in it: {', '.join(self.files)}; {self.origin}"

    def find(self, *names: str) -> Path:
        """Return the first of these files that exists in `data_dir`.

        Raises:
            FileNotFoundError: None of them does; the message shows the expected layout.
        """
        for name in names:
            if (self.data_dir / name).is_file():
                return self.data_dir / name
        there = ", ".join(sorted(path.name for path in self.data_dir.iterdir())[:8]) or "nothing"
        raise FileNotFoundError(f"{self.data_dir / names[0]} is missing ({there} there); {self.layout()}")

    @classmethod
    def state_of(cls, data_dir: str | Path | None) -> str:
        """A digest of this builder's code and of the state of the files it reads, for the name of its cache."""
        digest = hashlib.sha256()
        for base in cls.__mro__:
            if issubclass(base, CorpusBuilder):
                digest.update(Path(inspect.getfile(base)).read_bytes())
        for name in cls.files if data_dir is not None else ():
            path = Path(data_dir) / name
            if path.is_file():
                status = path.stat()
                digest.update(f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
        return digest.hexdigest()[:32]


class ParaphraseBuilder(CorpusBuilder):
    """A corpus of paraphrases: `source` and `target` to learn from, `source` and `references` to test on."""

    def _info(self) -> datasets.DatasetInfo:
        text = datasets.Value("string")
        features = datasets.Features({"source": text, "target": text, "references": datasets.List(text)})
        return datasets.DatasetInfo(description=inspect.getdoc(type(self)), features=features)

    @classmethod
    def columns(cls, split: str) -> list[str]:
        return ["source", "references"] if split == "test" else ["source", "target"]


def seeded(*parts: Any) -> random.Random:
    """A random generator that depends on `parts` alone, the same on every machine."""
    return random.Random("\0".join(map(str, parts)))
