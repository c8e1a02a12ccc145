"""A Space of the Hub that runs the demo of a model: its files, and how they get there."""

from __future__ import annotations

import os
from pathlib import Path

from ..common.files import copy_file, write_text
from ..common.installation import find_public_requirement
from ..hub.checkpoint import read_checkpoint
from ..hub.files import find_files
from ..hub.metric_space import make_front_matter
from ..released import RELEASED

# Path in the Space of a model that was a local folder.
FOLDER = "model"
APP = """from hf_paraphrase.serving.demo import launch_demo

launch_demo({model!r})
"""


def write_space(model: str | os.PathLike, folder: Path, package: str | None = None) -> None:
    """Write the files of a Space.

    Args:
        model: A Hub repository, which the Space loads when it starts, or a checkpoint folder, which it then holds; or
            the name of the released model, which comes with the package that the Space installs.
        folder: Where to write; files of the same names are replaced.
        package: What pip installs in the Space; None for this package, from its own source, with the demo's
            dependencies.

    Raises:
        InputError: The folder holds no whole checkpoint, or pip cannot install this package elsewhere.
        FileNotFoundError: The folder or repository does not exist.
    """
    checkpoint = read_checkpoint(model)
    is_here = Path(model).is_dir()
    files = find_files(Path(model)) if is_here else {}
    for name, source in files.items():
        target = folder / FOLDER / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_file(source, target)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "app.py", APP.format(model=FOLDER if is_here else str(model)))
    write_text(folder / "requirements.txt", f"{package or find_public_requirement('demo')}\n")
    models = {} if is_here or str(model) == RELEASED else {"models": [str(model)]}
    front = make_front_matter(checkpoint.name.rpartition("/")[2], "✍️", **models, tags=["paraphrase"])
    card = f"{front}\nPeople try the model `{checkpoint.name}` out here. Made by `hf-paraphrase space`.\n"
    write_text(folder / "README.md", card)
