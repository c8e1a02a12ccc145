from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import datasets

from ..errors import InputError

__all__ = ["CorpusBuilder", "CorpusConfig", "ParaphraseBuilder", "seeded_order"]


class CorpusConfig(datasets.BuilderConfig):
    """The arguments of a corpus: subclasses add them as fields whose defaults give their types."""

    @classmethod
    def arguments(cls) -> dict[str, Any]:
        """The arguments of this corpus and their defaults."""
        inherited = {field.name for field in fields(datasets.BuilderConfig)}
        return {field.name: field.default for field in fields(cls) if field.name not in inherited}

    def check(self) -> None:
        """Refuse values of the wrong type or that make no sense.

        A method, not `__post_init__`: builders set arguments on a copy of a named configuration.

        Raises:
            InputError: With the argument's name.
        """
        for name, default in self.arguments().items():
            value = getattr(self, name)
            if type(value) is not type(default):
                raise InputError(f"`{name}` must be of type {type(default).__name__}, not {value!r}")

    def at_least(self, least: int, *names: str) -> None:
        """Refuse arguments below `least`.

        Raises:
            InputError: With the argument's name.
        """
        for name in names:
            if getattr(self, name) < least:
                raise InputError(f"`{name}` must be at least {least}, not {getattr(self, name)}")


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
    def state_of(cls, data_dir: Path | None) -> str:
        """A digest of this package's readers and of what the corpus's files hold, for the name of its cache."""
        paths = sorted(Path(__file__).parent.glob("*.py"))
        if data_dir is not None:
            paths += [data_dir / name for name in cls.files if (data_dir / name).is_file()]
        digest = hashlib.sha256()
        for path in paths:
            with path.open("rb") as file:
                digest.update(f"{path.name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\0".encode())
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


def seeded_order(items: Iterable[Any], *seed: Any) -> list[Any]:
    """Shuffle different items: the order depends on the seed and the items alone, on every machine and Python."""
    return sorted(items, key=lambda item: hashlib.sha256("\0".join(map(str, (*seed, item))).encode()).digest())
