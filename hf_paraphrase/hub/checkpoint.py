"""Metadata of a checkpoint, in a folder or on the Hub, without loading its weights."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from huggingface_hub import HfApi, constants, hf_hub_download, parse_local_safetensors_file_metadata, snapshot_download
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, SafetensorsParsingError
from huggingface_hub.hf_api import RepoFile
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES

from ..common.errors import InputError
from ..common.files import check_links, read_json_object, read_lines
from ..common.hub_access import TransportError, describe_absence, use_cache_without_network
from ..evaluation.results import Results
from ..released import find_checkpoint

READINGS_FILE = "evaluation/readings.jsonl"
SEQ2SEQ_CLASSES = frozenset(MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES.values())


@dataclass(frozen=True)
class Checkpoint:
    """A trained model's files, read."""

    name: str  # of the folder or repository
    config: dict[str, Any]
    generation_config: dict[str, Any]  # empty if there is none
    tokenizer_config: dict[str, Any]  # empty if there is none
    sizes: dict[str, int]  # bytes of every file, by its path
    parameters: dict[str, int]  # numbers of weights, by their type
    summary: dict[str, Any] | None  # `training_summary.json`; None where the model was trained elsewhere
    results: dict[str, Results]  # the files `results-*.json`, by split
    predictions: dict[str, list[dict[str, Any]]]  # of each split the first decoding's outputs, by `evaluate`
    # What a reader made of paraphrases, `evaluation/readings.jsonl`: rows with `kind` and `source`, `paraphrase` (null
    # for none), and true or false for `means_same`, `reads_well` and `keeps_facts`.
    readings: tuple[dict[str, Any], ...] = ()

    @property
    def model_type(self) -> str:
        return self.config["model_type"]

    @property
    def num_parameters(self) -> int:
        return sum(self.parameters.values())

    @property
    def auto_class(self) -> str:
        """The Auto class that loads it with its head."""
        heads = [name for name in self.config.get("auto_map") or () if name.startswith("AutoModelFor")]
        if heads:
            return heads[0]
        architecture = next(iter(self.config.get("architectures") or ()), "")
        if architecture in SEQ2SEQ_CLASSES:  # not all of them end in `ForConditionalGeneration`
            return "AutoModelForSeq2SeqLM"
        return {
            "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
            "ForSequenceClassification": "AutoModelForSequenceClassification",
        }.get(f"For{architecture.rpartition('For')[2]}", "AutoModel")

    @property
    def has_retriever(self) -> bool:
        return any(path.startswith("retriever/") for path in self.sizes)


def read_checkpoint(where: str | os.PathLike, revision: str | None = None) -> Checkpoint:
    """Read everything except the weights; of these only the header.

    Args:
        where: A checkpoint folder, the name of a Hub repository, or that of the released model.
        revision: Branch, tag or commit of a repository.

    Raises:
        FileNotFoundError: It is neither a folder nor a repository within reach.
        InputError: It holds no checkpoint, or a file of it is damaged.
    """
    where = find_checkpoint(where)
    if Path(where).is_dir():
        check_links(Path(where))
        return _read(Path(where).resolve().name, *_open_folder(Path(where)))
    try:
        return _read(str(where), *_open_repository(str(where), revision))
    except (TransportError, LocalEntryNotFoundError, HFValidationError) as error:
        raise FileNotFoundError(describe_absence(where)) from error


# Sizes of all files, what gives a file's local path, and what counts the weights in a file by their type.
Opened = tuple[dict[str, int], Callable[[str], Path], Callable[[str], Mapping[Any, int]]]


def _open_folder(folder: Path) -> Opened:
    # A run's checkpoints are checkpoints of their own.
    paths = [path for path in folder.rglob("*") if path.is_file() and "checkpoints" not in path.parts]
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in sorted(paths)}
    return sizes, folder.joinpath, lambda name: parse_local_safetensors_file_metadata(folder / name).parameter_count


def _open_repository(repo_id: str, revision: str | None) -> Opened:
    use_cache_without_network(repo_id)
    if constants.is_offline_mode():
        return _open_folder(Path(snapshot_download(repo_id, revision=revision, local_files_only=True)))
    api = HfApi()
    entries = api.list_repo_tree(repo_id, recursive=True, revision=revision)
    sizes = {entry.path: entry.size for entry in entries if isinstance(entry, RepoFile)}
    read_header = partial(api.parse_safetensors_file_metadata, repo_id, revision=revision)
    return (
        sizes,
        lambda name: Path(hf_hub_download(repo_id, name, revision=revision)),
        lambda name: read_header(name).parameter_count,
    )


def _read(
    name: str, sizes: dict[str, int], open_file: Callable[[str], Path], count: Callable[[str], Mapping[Any, int]]
) -> Checkpoint:
    if "config.json" not in sizes:
        raise InputError(f"{name} holds no config.json: it is not a checkpoint, or its training has not finished")

    def read_json(path: str) -> dict[str, Any]:
        return read_json_object(open_file(path), f"{name}: {path}")

    parameters: dict[str, int] = {}
    for path in sizes:
        if path.startswith("model") and path.endswith(".safetensors"):
            try:
                counted = count(path)
            except TransportError:
                raise
            except (SafetensorsParsingError, OSError, ValueError) as error:
                raise InputError(f"{name}: {path} is damaged: {error}") from error
            for dtype, number in counted.items():
                parameters[dtype] = parameters.get(dtype, 0) + number
    results = {
        PurePosixPath(path).stem.removeprefix("results-"): Results.from_dict(read_json(path), f"{name}: {path}")
        for path in sizes
        if PurePosixPath(path).match("evaluation/results-*.json")
    }
    outputs = {split: f"evaluation/{found.entries[0].outputs}" for split, found in results.items()}
    return Checkpoint(
        name=name,
        config=_check_config(read_json("config.json"), f"{name}: config.json"),
        sizes=sizes,
        parameters=parameters,
        summary=read_json("training_summary.json") if "training_summary.json" in sizes else None,
        results=results,
        readings=tuple(read_lines(open_file(READINGS_FILE))) if READINGS_FILE in sizes else (),
        predictions={split: read_lines(open_file(path)) if path in sizes else [] for split, path in outputs.items()},
        **{
            part: read_json(f"{part}.json") if f"{part}.json" in sizes else {}
            for part in ("generation_config", "tokenizer_config")
        },
    )


def _check_config(config: dict[str, Any], source: str) -> dict[str, Any]:
    kinds = {"model_type": str, "architectures": list | None, "auto_map": dict | None, "vocab_size": int | None}
    for name, kind in kinds.items():
        if not isinstance(config.get(name), kind):
            raise InputError(f"{source}: `{name}` must not be {config.get(name)!r:.100}")
    if not all(isinstance(one, str) for one in config.get("architectures") or ()):
        raise InputError(f"{source}: `architectures` must name classes")
    return config
