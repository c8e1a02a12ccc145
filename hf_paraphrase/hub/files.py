"""Which files of a training run make the repository on the Hub."""

from __future__ import annotations

import os
from collections.abc import Collection
from fnmatch import fnmatch
from pathlib import Path

from transformers.dynamic_module_utils import get_relative_import_files

from ..common.errors import InputError
from ..common.files import check_links, read_json_object
from ..models.bundle import bundle

# What the code of this package that repositories carry needs, as pyproject.toml has it.
REQUIREMENTS = "torch>=2.13\ntransformers>=5.24\n"

WEIGHTS = ("model*.safetensors", "model*.safetensors.index.json")
# How a language model is asked.
PROMPT_FILES = ("chat_template.jinja", "additional_chat_templates/*.jinja", "prompt.yaml")
# Everything else that is read by transformers or by a person; a run's checkpoints, logs and outputs stay at home.
OTHERS = (
    "config.json",
    "generation_config.json",
    "tokenizer*.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    *PROMPT_FILES,
    "training_summary.json",
    "learning_curves.png",
    "recipe/*.json",
    "recipe/*.yaml",
    "evaluation/results-*.json",
    "retriever/**/*",
)
# A push removes old files of these kinds, which would otherwise be read instead of the new ones.
REPLACED = (*WEIGHTS, *PROMPT_FILES, "retriever/*", "evaluation/results-*.json")


def read_template(name: str) -> str:
    """The text of a file in `templates`, whose fields in braces `str.format` fills."""
    return Path(__file__).with_name("templates").joinpath(name).read_text(encoding="utf-8")


def find_files(folder: Path) -> dict[str, Path]:
    """The files to upload of a checkpoint, such as the output folder of a training, by their paths in the repository.

    Raises:
        FileNotFoundError: There is no such folder.
        InputError: It holds no whole checkpoint, or leads out of itself; the message says what is missing or where.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no checkpoint folder {folder}")
    check_links(folder)
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} holds no config.json: it is not a checkpoint, or its training has not finished")
    if not any(path for pattern in WEIGHTS for path in folder.glob(pattern)):
        raise InputError(f"{folder} holds no weights as model.safetensors; save the model with `save_pretrained`")
    if not (folder / "tokenizer_config.json").is_file():
        raise InputError(f"{folder} holds a model but no tokenizer; save one there with `save_pretrained`")
    paths = [path for pattern in (*WEIGHTS, *OTHERS) for path in folder.glob(pattern) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path for path in sorted([*paths, *_find_code(folder)])}


def _find_code(folder: Path) -> list[Path]:
    """The modules that a checkpoint names as its own (`auto_map`, `custom_pipelines`), and those that they import."""
    modules = set()
    for name in ("config.json", "tokenizer_config.json"):
        path = folder / name
        modules |= {_find_module(path, one) for one in _list_references(path)} if path.is_file() else set()
    try:
        imported = {Path(file) for path in modules for file in get_relative_import_files(path)}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the code in {folder} cannot be read: {error}") from error
    for path in imported:
        if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(folder)):
            raise InputError(f"the code in {folder} imports {path}, which is not in it")
    return sorted(modules | imported)


def _list_references(path: Path) -> list[str]:
    """The classes that a config file names as the checkpoint's own."""
    config = read_json_object(path)
    try:
        references = [*(config.get("auto_map") or {}).values()]
        references += [pipeline["impl"] for pipeline in (config.get("custom_pipelines") or {}).values()]
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: `auto_map` or `custom_pipelines` is malformed") from error
    # A tokenizer has two classes, of which either may be null; `repository--` stands before code elsewhere.
    flat = [one for reference in references for one in (reference if isinstance(reference, list) else [reference])]
    return [one for one in flat if one is not None and "--" not in str(one)]


def _find_module(config: Path, reference: str) -> Path:
    """The file of a class `module.Class`, in the folder of its config."""
    module = str(reference).partition(".")[0]
    if not module.isidentifier():
        raise InputError(f"{config} names the code {reference!r}, which is not a class of a module beside it")
    path = config.parent / f"{module}.py"
    if not path.is_file():
        raise InputError(f"{path} is missing, which a config file there names; save the model anew")
    return path


def is_ours(path: str) -> bool:
    """Whether a push replaces or removes a file of the repository."""
    return any(fnmatch(path, pattern) for pattern in REPLACED)


def find_handler(files: Collection[str], writes: bool) -> dict[str, Path | bytes]:
    """Files that an Inference Endpoint needs besides a checkpoint: `handler.py` and what it imports.

    Args:
        files: Those of the checkpoint, which may have brought the pipeline itself.
        writes: Whether its model writes texts, and so needs the pipeline.
    """
    modules = bundle("search.pipeline_text2text") if writes and "search.py" not in files else {}
    own: dict[str, Path | bytes] = {
        "handler.py": Path(__file__).with_name("handler.py"),
        "requirements.txt": REQUIREMENTS.encode(),
    }
    return {**{name: text.encode() for name, text in modules.items()}, **own}
