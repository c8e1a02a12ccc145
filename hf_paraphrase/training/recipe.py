from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub.errors import StrictDataclassError
from transformers import CONFIG_MAPPING, AutoConfig, GenerationConfig, PreTrainedConfig, PreTrainedTokenizerBase

from ..common.bounds import check_generation_sizes, check_model_sizes
from ..common.errors import InputError
from ..common.fields import check_known, check_type, parse_scalar, read_yaml
from ..common.files import read_json_object, write_text
from .arguments import CORPUS_FIELDS, TrainingConfig
from .tasks import TASKS

MODEL_FILE, GENERATION_FILE, TRAINING_FILE = "config.json", "generation_config.json", "training.yaml"
# An installed package has the recipes next to its code; the repository at top level.
FOLDERS = (Path(__file__).parents[1] / "hub_configs", Path(__file__).parents[2] / "hub_configs")
# GenerationConfig takes any value for these, and the mistake would show after the training.
COUNTS = ("max_length", "max_new_tokens", "num_beams", "num_return_sequences")
# A file with one of these was saved by transformers, which also writes fields that no class declares.
SAVED_MARKS = {"architectures", "transformers_version", "_from_model_config"}
VARIANTS = re.compile(r"^variants:", re.MULTILINE)
SPECIAL_TOKENS = ("pad_token_id", "bos_token_id", "eos_token_id")
# Fields that recipes of earlier runs have, with the one value that is still trained by.
FORMER_FIELDS = {"torch_compile": False, "torch_compile_backend": "inductor"}


@dataclass(frozen=True)
class Recipe:
    """A recipe: model, training and generation settings from the three files of a folder, which gives its name.

    `vocab_size` in `model_config` is the maximum for a tokenizer trained for it.
    """

    name: str
    model_config: dict[str, Any]
    generation_config: dict[str, Any]
    training: TrainingConfig

    def override(self, values: Mapping[str, Any]) -> Recipe:
        """Return a recipe with other fields: of the training, else the model, else the generation configuration.

        Args:
            values: Fields and values; a string is read as YAML, as it comes from a command line.

        Raises:
            InputError: For a field that the recipe cannot have, or a value that does not fit.
        """
        values = {name: parse_scalar(value) if isinstance(value, str) else value for name, value in values.items()}
        inherited = (self.model_config, self.generation_config, asdict(self.training))
        source = f"override of recipe {self.name}"
        model, generation, training = _override(inherited, values, source)
        return Recipe(self.name, model, generation, read_training(training, source))

    def make_config(self, tokenizer: PreTrainedTokenizerBase | None = None) -> PreTrainedConfig:
        """The recipe's model configuration; with a tokenizer, that of the model to train.

        Missing fields come from the checkpoint `pretrained`; without one, special tokens and vocabulary size come from
        the tokenizer. A pretrained model keeps its vocabulary with its own tokenizer.

        Raises:
            InputError: The checkpoint does not exist, or is of another architecture.
        """
        own, name = self.model_config, self.training.pretrained
        if tokenizer is None:
            return _make_config(own)
        if name is not None:
            found = _read_pretrained_config(name)
            if found["model_type"] != own["model_type"]:
                wrong = f"its `model_type` is {found['model_type']}, not {own['model_type']}"
                raise InputError(f"`pretrained`: {name} cannot be loaded as this recipe's model: {wrong}")
            fields = found | {field: value for field, value in own.items() if field != "vocab_size"}
            return _make_config(fields, None if self.training.tokenizer is None else len(tokenizer))
        tokens = {name: getattr(tokenizer, name) for name in SPECIAL_TOKENS}
        fields = {name: token for name, token in tokens.items() if token is not None} | own
        config = _make_config(fields, len(tokenizer))
        if config.is_encoder_decoder and "decoder_start_token_id" not in fields:
            config.decoder_start_token_id = fields.get("bos_token_id", config.pad_token_id)
        return config

    def make_generation_config(self, base: GenerationConfig | None = None) -> GenerationConfig:
        """The generation configuration of trained models: the recipe's fields over those of `base`."""
        fields = {name: value for name, value in self.generation_config.items() if name not in SAVED_MARKS}
        if base is None:
            return GenerationConfig(**fields)
        return GenerationConfig(**base.to_diff_dict() | fields)

    def save(self, directory: Path) -> None:
        """Write the three files, from which `load_recipe` makes an equal recipe."""
        directory.mkdir(parents=True, exist_ok=True)
        write_text(directory / MODEL_FILE, json.dumps(self.model_config, indent=2) + "\n")
        write_text(directory / GENERATION_FILE, json.dumps(self.generation_config, indent=2) + "\n")
        write_text(directory / TRAINING_FILE, yaml.safe_dump(asdict(self.training), sort_keys=False))


def load_recipe(name_or_path: str | os.PathLike) -> Recipe:
    """Read a recipe, including the one that it extends, and check every field.

    Args:
        name_or_path: A folder with `config.json`, `generation_config.json` and `training.yaml`, or the name of a
            recipe that comes with the package. Where `training.yaml` has a line `extends: NAME`, which names a recipe
            beside it or one of the package, the folder holds what differs from that recipe: of each file the fields
            that do, and no file of which none does. A `config.json` of another `model_type` is not merged. A recipe
            with `pretrained` needs only `training.yaml`: the checkpoint fills in the rest. `variants` in
            `training.yaml` has further recipes by name, each with the fields, of any of the files, in which it differs
            from that of the folder.

    Raises:
        FileNotFoundError: The folder or a file is missing; the message lists the existing ones.
        InputError: For a name that no recipe has, recipes that extend each other in a circle, or a field that is
            unknown or has a wrong value, with file, field and what it should be.
    """
    folder = find_recipe(name_or_path)
    model, generation, training = _read_files(folder, ())
    return Recipe(folder.resolve().name, model, generation, read_training(training, str(folder / TRAINING_FILE)))


def trace_recipe(name_or_path: str | os.PathLike) -> dict[str, dict[str, tuple[Any, str]]]:
    """The fields of a recipe by file, as it has them in the end: each with its value and the recipe that states it.

    A field that no file states has its default and isn't listed.
    """
    folder = find_recipe(name_or_path)
    resolved = dict(zip((MODEL_FILE, GENERATION_FILE, TRAINING_FILE), _read_files(folder, ()), strict=True))
    line = [folder]
    while parent := _parent_of(line[-1], tuple(line[:-1])):
        line.append(parent)
    traced: dict[str, dict[str, tuple[Any, str]]] = {}
    for file, values in resolved.items():
        stated = [(one.resolve().name, _stated_in(one, file)) for one in line]
        # The nearest recipe that states a field decides; what none states, such as the type of a checkpoint, is found.
        traced[file] = {
            name: (value, next((recipe for recipe, own in stated if name in own), "found"))
            for name, value in values.items()
        }
    return traced


def _parent_of(path: Path, children: tuple[Path, ...]) -> Path | None:
    if not path.is_dir():
        return path.parent
    name = read_yaml(path / TRAINING_FILE).get("extends")
    return None if name is None else _find_parent(name, path, children)


def _stated_in(path: Path, file: str) -> Mapping[str, Any]:
    """The fields of a recipe's file; of a variant, those of all files."""
    if not path.is_dir():
        return _variants(path.parent / TRAINING_FILE)[path.name]
    if not (path / file).is_file():
        return {}
    return (read_yaml if file == TRAINING_FILE else read_json_object)(path / file)


def find_recipe(name_or_path: str | os.PathLike) -> Path:
    """The folder of a recipe: a folder that exists, or else the recipe of this name that comes with the package.

    That of a variant is its name behind the folder whose `variants` it is among.

    Raises:
        FileNotFoundError: For a path of which there is no folder; the message lists the recipes beside it.
        InputError: For a name that no recipe has; the message has the closest ones.
    """
    path = Path(name_or_path)
    if path.is_dir() or path.name in _variants(path.parent / TRAINING_FILE):
        return path
    if path.name == str(path):
        shipped = list_recipes()
        check_known([path.name], shipped, f"{path} is not a folder", "recipe")
        return shipped[path.name]
    beside = _recipes_in(path.parent)
    if path.name in beside:
        return beside[path.name]
    there = ", ".join(beside) or "no recipes"
    raise FileNotFoundError(f"no recipe {path}; {path.parent} has: {there}; `hf-paraphrase recipes` lists more")


def list_recipes() -> dict[str, Path]:
    """The recipes that come with the package: name -> folder as `find_recipe` has it, in alphabetical order."""
    return _recipes_in(next(folder for folder in FOLDERS if folder.is_dir()))


def _recipes_in(folder: Path) -> dict[str, Path]:
    files = list(folder.glob(f"*/{TRAINING_FILE}"))
    found = {name: file.parent / name for file in files for name in _variants(file)}
    return dict(sorted((found | {file.parent.name: file.parent for file in files}).items()))


def _variants(file: Path) -> dict[str, dict[str, Any]]:
    """The fields of each variant in a `training.yaml`, by name."""
    if not file.is_file() or not VARIANTS.search(file.read_text(encoding="utf-8", errors="replace")):
        return {}
    variants = read_yaml(file)["variants"]
    try:
        check_type("variants", variants, dict[str, dict])
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    return variants


def _read_files(folder: Path, children: tuple[Path, ...]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The fields of the three files, merged over those of the extended recipe.

    Args:
        children: The folders that led here by their `extends`.
    """
    if not folder.is_dir():
        file = folder.parent / TRAINING_FILE
        inherited = _read_files(folder.parent, (*children, folder))
        return _override(inherited, _variants(file)[folder.name], f"{file}: variant {folder.name}")
    model_file, generation_file, training_file = (
        folder / name for name in (MODEL_FILE, GENERATION_FILE, TRAINING_FILE)
    )
    _check_there(training_file)
    training = read_yaml(training_file)
    if not isinstance(training, dict):
        raise InputError(f"{training_file} must hold lines such as `dataset: mscoco`")
    training.pop("variants", None)
    if "extends" in training:
        parent = _find_parent(training.pop("extends"), folder, children)
        model, generation, extended = _read_files(parent, (*children, folder))
    else:
        model, generation, extended = {}, {}, {}
        if training.get("pretrained") is None:
            _check_there(model_file)
            _check_there(generation_file)
        elif not model_file.is_file():
            found = str(_read_pretrained_config(training["pretrained"])["model_type"])
            check_known([found], CONFIG_MAPPING.keys(), f"`pretrained`: {training['pretrained']}", "model_type")
            model = {"model_type": found}
    if model_file.is_file():
        own = read_json_object(model_file)
        same = own.get("model_type", model.get("model_type")) == model.get("model_type")
        model = check_model_config(model | own if same else own, str(model_file))
    if generation_file.is_file():
        generation = check_generation_config(generation | read_json_object(generation_file), str(generation_file))
    training = _overlay(extended, training)
    read_training(training, str(training_file))  # here, for a mistake is told of the file that has it
    return model, generation, training


def _override(
    inherited: tuple[dict[str, Any], dict[str, Any], dict[str, Any]], values: Mapping[str, Any], source: str
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Other fields of the three files: each of the training, else the model, else the generation configuration."""
    model, generation, training = inherited
    config_class = TASKS[training.get("task", TrainingConfig.task)].config_class
    of_training, of_model = {field.name for field in fields(config_class)}, _model_fields(model)
    check_known(values, {*of_training, *of_model, *_generation_fields()}, source)
    own = {name: value for name, value in values.items() if name in of_training}
    others = {name: value for name, value in values.items() if name not in of_training}
    model = check_model_config(model | {name: others[name] for name in others.keys() & of_model}, source)
    generation = generation | {name: others[name] for name in others.keys() - of_model}
    training = _overlay(training, own)
    read_training(training, source)
    return model, check_generation_config(generation, source), training


def _overlay(inherited: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Fields of `training.yaml` over inherited ones; a mixture replaces a single corpus, and the other way round."""
    if own.get("mixture"):
        replaced = dict.fromkeys(CORPUS_FIELDS[:2]) | {"dataset_kwargs": {}}
    else:
        replaced = {"mixture": []} if own.get("dataset") else {}
    return inherited | {name: value for name, value in replaced.items() if name in inherited} | own


def _find_parent(name: Any, folder: Path, children: tuple[Path, ...]) -> Path:
    source = f"{folder / TRAINING_FILE}: `extends`"
    known = list_recipes() | _recipes_in(folder.parent)
    check_known([str(name)], known, source, "recipe")
    line = [path.resolve() for path in (*children, folder, known[name])]
    if line[-1] in line[:-1]:
        circle = line[line.index(line[-1]) :]
        raise InputError(f"{source} goes round in a circle: {' <- '.join(path.name for path in circle)}")
    return known[name]


def _check_there(file: Path) -> None:
    if not file.is_file():
        there = sorted(other.name for other in file.parent.iterdir())
        raise FileNotFoundError(f"recipe {file.parent} lacks {file.name}; it has: {', '.join(there) or 'no files'}")


def read_training(values: dict[str, Any], source: str) -> TrainingConfig:
    """Read the fields of `training.yaml` for its task."""
    task = values.get("task", TrainingConfig.task)
    check_known([task], TASKS, source, "task")
    values = {
        name: value for name, value in values.items() if name not in FORMER_FIELDS or FORMER_FIELDS[name] != value
    }
    return TASKS[task].config_class.from_dict(values, source)


def check_model_config(values: dict[str, Any], source: str) -> dict[str, Any]:
    """Refuse fields that the configuration class of `values["model_type"]` would silently keep or fail on."""
    if "model_type" not in values:
        raise InputError(f"{source}: the field `model_type` is missing; name the architecture, such as residual_lstm")
    check_known([values["model_type"]], CONFIG_MAPPING.keys(), source, "model_type")
    _check_fields(values, {"model_type", *_model_fields(values)}, source)
    check_model_sizes(values, source)
    try:
        _make_config(values)
    except StrictDataclassError as error:
        raise InputError(f"{source}: {error.__cause__}") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"{source}: {error}") from error
    return values


def check_generation_config(values: dict[str, Any], source: str) -> dict[str, Any]:
    """Refuse what `GenerationConfig` does not know."""
    _check_fields(values, _generation_fields(), source)
    check_generation_sizes(values, source)
    try:
        for name in values.keys() & set(COUNTS):
            check_type(name, values[name], int | None)
        GenerationConfig(**values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{source}: {error}") from error
    return values


def _check_fields(values: dict[str, Any], known: set[str], source: str) -> None:
    if not values.keys() & SAVED_MARKS:
        check_known(values, known, source)


def _model_fields(values: dict[str, Any]) -> set[str]:
    config_class = CONFIG_MAPPING[values["model_type"]]
    return {field.name for field in fields(config_class)} | set(config_class.attribute_map)


def _generation_fields() -> set[str]:
    return {name for name in vars(GenerationConfig()) if not name.startswith("_")}


def _make_config(fields: dict[str, Any], vocab_size: int | None = None) -> PreTrainedConfig:
    # The configuration of a pair of models may take those of both apart, which belong to the recipe.
    fields = deepcopy(fields)
    if vocab_size is None:
        return AutoConfig.for_model(**fields)
    config = AutoConfig.for_model(**fields | {"vocab_size": vocab_size})
    # Of a pair of models, each has a vocabulary of its own.
    for name in config.sub_configs:
        getattr(config, name).vocab_size = vocab_size
    return config


def _read_pretrained_config(name: str) -> dict[str, Any]:
    try:
        values, _ = PreTrainedConfig.get_config_dict(name)
    except OSError as error:
        raise InputError(f"`pretrained`: {name} cannot be loaded as this recipe's model: {error}") from error
    return {"model_type": None, **values}
