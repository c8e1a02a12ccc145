"""What untrusted checkpoints may not do: run code, ask to run it, or name files elsewhere.

`pretrained` asks this before it loads anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from ..common.errors import InputError
from ..common.files import check_links, read_json_object

# Arguments of `from_pretrained` that say which files are meant, of the model and of its configuration.
WHERE = ("revision", "subfolder", "token", "cache_dir", "local_files_only")
TRUST_HINT = "--trust-remote-code (in Python `trust_remote_code=True`)"
SAFE = ".safetensors"
# Fields that transformers notes for itself: it replaces them by the place that it loads from.
NOTED = {"name_or_path", "_name_or_path", "tokenizer_file", "special_tokens_map_file"}
# Fields with text, which may look like any path.
TEXTS = {"chat_template", "added_tokens_decoder"}

_is_trusted: ContextVar[bool] = ContextVar("is_trusted", default=False)


@contextmanager
def trusting(trust_remote_code: bool) -> Iterator[None]:
    """Answer transformers' question about code, where it asks in spite of being told, as the user did."""
    token = _is_trusted.set(trust_remote_code)
    try:
        yield
    finally:
        _is_trusted.reset(token)


def refuse_to_ask(prompt: object = "") -> str:
    """Replaces `input()`: standard input holds the user's texts, which must not be taken for answers."""
    if _is_trusted.get():
        return "y"
    raise InputError(f"a library asked a question, and standard input is for texts, not for answers: {prompt}")


def close_question() -> None:
    """Keep transformers from asking on standard input whether code may run, for the whole process.

    It asks wherever `trust_remote_code` was not handed on, such as for the configurations inside of a composite one.
    Without an answer it raises a ValueError that names `trust_remote_code`.
    """
    from transformers import dynamic_module_utils

    vars(dynamic_module_utils)["input"] = refuse_to_ask


def check_checkpoint(path: str | os.PathLike, gguf_file: str | None = None, **kwargs: Any) -> None:
    """Refuse a checkpoint whose files name code in a nested configuration, or files elsewhere.

    Args:
        path: A folder or Hub repository; missing ones are reported on loading.
        gguf_file: The name of a file in it that is loaded alone.
        kwargs: Further arguments of `from_pretrained`, such as `revision`.

    Raises:
        InputError: One does; the message names the file and the field.
    """
    if Path(path).is_dir():
        check_links(Path(path), gguf_file)
    check_files(path, **kwargs)


def check_files(path: str | os.PathLike, **kwargs: Any) -> None:
    """Like `check_checkpoint`, without the check of links: a subfolder's may lead to other parts of the checkpoint."""
    where = {name: kwargs[name] for name in WHERE if kwargs.get(name) is not None}
    if Path(path).is_dir():
        # Those of a variant, such as model.safetensors.index.fp16.json, too; the usual one is among CHECKS.
        for index in Path(path, where.get("subfolder", "")).glob("*.index*.json"):
            if index.name not in CHECKS:
                _check_shards(read_json_object(index), str(index))
    for name, check in CHECKS.items():
        if (file := find_file(path, name, **where)) is not None:
            check(read_json_object(file, f"{path}: {name}"), f"{path}: {name}")


def check_nested_code(config: dict[str, Any], source: str) -> None:
    """Refuse a configuration with an `auto_map` below its first level, or kernels of a repository: nobody is asked.

    transformers handles the top-level `auto_map` itself, with its own trust argument.

    Args:
        config: The content of a `config.json`.
        source: Its location, for errors.
    """
    for names, value in _walk(config):
        if names[-1] == "auto_map" and len(names) > 1 and value:
            raise InputError(
                f"{source}: `{'.'.join(names):.200}` names code of its own; read it, and if you trust it, "
                f"let it run by {TRUST_HINT}"
            )
        if any(name.endswith("_implementation") for name in names) and isinstance(value, str) and "/" in value:
            raise InputError(
                f"{source}: `{'.'.join(names):.200}` names a repository of kernels, {value!r:.100}, whose code would "
                f"run; if you trust it, let it run by {TRUST_HINT}"
            )


def _check_config(content: dict[str, Any], source: str) -> None:
    """Refuse nested code, and weights that are a pickle or elsewhere: transformers reads those that it names here."""
    check_nested_code(content, source)
    name = content.get("transformers_weights")
    if name is not None and not (_is_beside(name) and name.endswith((SAFE, f"{SAFE}.index.json"))):
        raise InputError(f"{source}: `transformers_weights` must name a {SAFE} file beside it, not {name!r:.100}")


def _check_shards(content: dict[str, Any], source: str) -> None:
    """Refuse an index of weights that names files elsewhere, which transformers would read, or passes a pickle off."""
    try:
        names, _ = set(content["weight_map"].values()), dict(content["metadata"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{source} is not an index of weights: {error!r:.100}") from error
    for name in names:
        if not _is_beside(name):
            raise InputError(f"{source} names the weights {name!r:.100}, which is not a file beside it")
        if f"{SAFE}.index" in Path(source).name and not name.endswith(SAFE):
            raise InputError(f"{source} names the weights {name!r:.100}, which is no {SAFE} file")


def _is_beside(name: Any) -> bool:
    return isinstance(name, str) and Path(name).name == name and name not in ("", "..")


def _check_special_tokens(content: dict[str, Any], source: str) -> None:
    """Refuse anything but a special token: transformers hands all fields to the tokenizer, files too."""
    for name in content:
        if not name.endswith(("_token", "_tokens")):
            raise InputError(f"{source}: `{name}` is not a special token; remove it")


def _check_tokenizer(content: dict[str, Any], source: str) -> None:
    """Refuse fields by which a tokenizer would open a file that is not the checkpoint's."""
    if content.get("init_inputs"):
        raise InputError(f"{source}: `init_inputs` must be empty: it is handed to the tokenizer unread")
    for names, value in _walk(content):
        if isinstance(value, str) and names[0] not in TEXTS and names[-1] not in NOTED:
            is_file = names[0] in ("vocab", "merges", "gguf_file") and len(names) == 1
            # A special token may look like a path, so only existing files count.
            if is_file or (("/" in value or os.sep in value) and _is_file(value)):
                raise InputError(f"{source}: `{'.'.join(names)}` names a file elsewhere: {value!r:.100}; remove it")


def _check_adapter(content: dict[str, Any], source: str) -> None:
    """Refuse an adapter whose base model is elsewhere on this machine; Hub repositories are allowed."""
    base = content.get("base_model_name_or_path")
    if isinstance(base, str) and os.path.exists(base):
        raise InputError(f"{source}: `base_model_name_or_path` names a folder elsewhere: {base!r:.100}")


CHECKS = {
    "config.json": _check_config,
    "model.safetensors.index.json": _check_shards,
    "generation_config.json": check_nested_code,
    "tokenizer_config.json": _check_tokenizer,
    "special_tokens_map.json": _check_special_tokens,
    "adapter_config.json": _check_adapter,
}


def _walk(value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All values inside of a JSON value, with the names that lead to each; without recursion, at any depth."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while waiting:
        names, inner = waiting.pop()
        if names:
            yield names, inner
        pairs = inner.items() if isinstance(inner, dict) else enumerate(inner) if isinstance(inner, list) else ()
        waiting += [((*names, str(name)), one) for name, one in pairs]


def _is_file(value: str) -> bool:
    try:
        return Path(value).expanduser().is_file()
    except (OSError, RuntimeError, ValueError):  # too long, of no user, or with a null character
        return False


def find_file(path: str | os.PathLike, name: str, **where: Any) -> Path | None:
    """A file of a checkpoint, out of the cache or the Hub where that is one; None where it has none."""
    if Path(path).is_dir():
        file = Path(path, where.get("subfolder", ""), name)
        return file if file.is_file() else None
    from transformers.utils import cached_file

    options = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
    try:
        found = cached_file(os.fspath(path), name, **options, **where)
    except (OSError, ValueError):  # no such repository, which loading says better
        return None
    return None if found is None else Path(found)
