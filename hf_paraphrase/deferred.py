"""Registration that waits for transformers.

Registering imports transformers and torch, which takes seconds, and means nothing until somebody uses transformers.
So the later of the two imports does it: `import hf_paraphrase` where transformers is there already, else that of
transformers itself, as soon as it is whole. What uses neither, such as `hf-paraphrase --help`, waits for neither.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["register_with_transformers"]


def register_with_transformers() -> None:
    """Register the package's architectures now if transformers is imported, and else when it is."""
    if "transformers" in sys.modules:
        register_all()
    else:
        sys.meta_path.insert(0, TransformersFinder())


def register_all() -> None:
    """Import what registers everything; while it is being imported, this does nothing, and it goes on by itself."""
    importlib.import_module(".registration", __package__)


class TransformersFinder(MetaPathFinder):
    """Finds transformers as the other finders do, and adds to its loader what follows on the import.

    The parent package is imported before any of its modules, so that nothing of transformers is half imported then.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "transformers":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                sys.meta_path.remove(self)
                register_all()

            spec.loader.exec_module = load_and_register
        return spec
