"""A retriever as a folder: `pairs.parquet`, `index.faiss` where there are vectors, `vectors.f16` where they are kept
beside codes, and `retriever_config.json`.

Its encoder is in the subfolder `encoder`: a config that named one elsewhere would choose which files are opened.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, cast

from ..common.errors import InputError
from ..common.files import hash_file, read_json_object, write_directory
from .encoders import EncoderLike, load_encoder
from .jaccard import JaccardIndex
from .pairs import COMPARED, PairMemory
from .vector_index import ExactVectors, VectorIndex

PAIRS_FILE, INDEX_FILE, VECTORS_FILE, CONFIG_FILE = FILES = (
    "pairs.parquet",
    "index.faiss",
    "vectors.f16",
    "retriever_config.json",
)
JACCARD, ENCODER_FOLDER = "jaccard", "encoder"
# What the config calls an encoder in that folder.
ENCLOSED = f"./{ENCODER_FOLDER}"
# Tolerance of a sentence's score against itself, for vectors from another machine or precision.
TOLERANCE = 0.01


@dataclass(frozen=True)
class RetrieverConfig:
    """What `retriever_config.json` says."""

    # "jaccard", or "./encoder" for one that is enclosed; None for a function, which is not saved. Any other name
    # records the origin of the encoder, and is opened only if trusted.
    encoder: str | None
    count: int  # pairs
    dimension: int | None  # the size of a vector; None without vectors
    index: str | None  # what `faiss.index_factory` took
    search_parameters: str | None  # what `faiss.ParameterSpace` takes
    vectors_checksum: str | None  # a hash of the vectors
    checksums: dict[str, str]  # the SHA-256 of every file, by its name
    # What the first sentence finds at best, which is less than 1 where vectors are kept as codes, or are the means of
    # two.
    first_score: float = 1.0
    compare: str = "source"  # "source" or "pair": what texts are compared with


def save_pairs_and_index(folder: Path, pairs: PairMemory, index: JaccardIndex | VectorIndex, compare: str) -> None:
    """Write a retriever atomically, replacing an existing one; raises InputError for one without pairs, and
    FileExistsError for a folder that holds something else."""
    if not len(pairs):
        raise InputError("nothing to save: the retriever has no pairs")
    if folder.exists():
        others = sorted({path.name for path in folder.iterdir()} - {*FILES, ENCODER_FOLDER})
        if others:
            raise FileExistsError(f"{folder} holds other files, such as {others[0]}: choose a folder of its own")

    def write(folder: Path) -> None:
        pairs.write(folder / PAIRS_FILE)
        vectors = index if isinstance(index, VectorIndex) else None
        if vectors is not None:
            vectors.write(folder / INDEX_FILE)
        if vectors is not None and vectors.exact is not None:
            vectors.exact.write(folder / VECTORS_FILE)
        checksums = {path.name: hash_file(path) for path in sorted(folder.iterdir())}
        if vectors is None:
            config = RetrieverConfig(JACCARD, len(pairs), None, None, None, None, checksums, compare=compare)
        else:
            name = vectors.encoder.name
            if vectors.encoder.is_portable:
                cast(Any, vectors.encoder).save_pretrained(folder / ENCODER_FOLDER)
                name = ENCLOSED
            of_index = vectors.dimension, vectors.description, vectors.search_parameters, vectors.checksum
            config = RetrieverConfig(name, len(pairs), *of_index, checksums, _score_first(pairs, vectors), compare)
        (folder / CONFIG_FILE).write_text(json.dumps(asdict(config), indent=2) + "\n", encoding="utf-8")

    write_directory(folder, write)


def load_pairs_and_index(
    folder: Path, given: EncoderLike | None, trust_remote_code: bool = False, **encoder_kwargs: Any
) -> tuple[PairMemory, JaccardIndex | VectorIndex, str]:
    """Read a retriever, with its pairs and index; raises FileNotFoundError where a file is missing, and InputError
    where the files are damaged or do not fit together."""
    config = _read_config(folder / CONFIG_FILE)
    for name, checksum in config.checksums.items():
        path = folder / name
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing; save the retriever again, or download all of it")
        if hash_file(path) != checksum:
            raise InputError(f"{path} is not the file that {CONFIG_FILE} is about: its SHA-256 differs")
    pairs = PairMemory.read(folder / PAIRS_FILE)
    _check(folder / PAIRS_FILE, "pairs", len(pairs), config.count)
    if config.encoder == JACCARD:
        if given not in (None, JACCARD):
            raise InputError(f"`encoder`: {folder} was made with 'jaccard', not with {given!r}")
        tokens = JaccardIndex()
        tokens.add(pairs.read_compared(config.compare), len(pairs))
        return pairs, tokens, config.compare
    chosen = _choose_encoder(folder, config, given, trust_remote_code)
    encoder = load_encoder(chosen, trust_remote_code=trust_remote_code, **encoder_kwargs)
    checksum = cast(str, config.vectors_checksum)
    index = VectorIndex.read(folder / INDEX_FILE, checksum, encoder, config.index, config.search_parameters)
    _check(folder / INDEX_FILE, "vectors", len(index), config.count)
    _check(folder / INDEX_FILE, "numbers a vector", index.dimension, config.dimension)
    if VECTORS_FILE in config.checksums:
        index.exact = ExactVectors(cast(int, index.dimension), folder / VECTORS_FILE)
        _check(folder / VECTORS_FILE, "vectors", index.exact.count, config.count)
    # The nearest vector to the first sentence is its own, unless another encoder made it.
    if _score_first(pairs, index) < config.first_score - TOLERANCE:
        made_with = config.encoder or "a function"
        raise InputError(f"`encoder`: {folder} is from {made_with}, whose vectors differ from those of {chosen!r}")
    return pairs, index, config.compare


def _choose_encoder(
    folder: Path, config: RetrieverConfig, given: EncoderLike | None, trust_remote_code: bool
) -> EncoderLike:
    """The user's encoder, or the enclosed one; nothing else that the config names is opened."""
    if given == JACCARD:
        raise InputError(f"`encoder`: {folder} was made with {config.encoder or 'a function'}, not with 'jaccard'")
    if given:
        return given
    if config.encoder is None:
        raise InputError(f"{folder} was made with a function as its encoder: pass it, `from_pretrained(…, encoder=…)`")
    if config.encoder == ENCLOSED:
        return folder / ENCODER_FOLDER
    if not trust_remote_code:
        raise InputError(
            f"{folder} names the encoder {config.encoder}, which does not lie in it and is not opened unasked: if you "
            f"trust it, pass it, `from_pretrained(…, encoder={config.encoder!r})`, or --trust-remote-code"
        )
    return config.encoder


def _score_first(pairs: PairMemory, index: VectorIndex) -> float:
    (first, *_), *_ = pairs[[0]]
    scores, _ = index.search([first], 1)
    return float(scores[0, 0])


def _read_config(path: Path) -> RetrieverConfig:
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} holds no retriever: there is no {path.name}")
    names = [field.name for field in fields(RetrieverConfig) if field.default is MISSING]
    try:
        values = read_json_object(path)
        score = float(values.get("first_score", RetrieverConfig.first_score))
        compare = values.get("compare", RetrieverConfig.compare)
        config = RetrieverConfig(**{name: values[name] for name in names}, first_score=score, compare=compare)
        files = {PAIRS_FILE} if config.encoder == JACCARD else {PAIRS_FILE, INDEX_FILE}
        if set(config.checksums) - {VECTORS_FILE} != files:
            raise ValueError(f"checksums must be those of {' and '.join(sorted(files))}")
        if compare not in COMPARED:
            raise ValueError(f"compare must be {' or '.join(COMPARED)}, not {compare}")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged: {error}; save the retriever again") from error
    return config


def _check(path: Path, what: str, found: int | None, expected: int | None) -> None:
    if found != expected:
        raise InputError(f"{path} has {found} {what}, but {CONFIG_FILE} says {expected}: they do not go together")
