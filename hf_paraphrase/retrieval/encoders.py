from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from transformers import AutoModel
from transformers.utils import cached_file

from ..checkpoints.pretrained import choose_device, load_model, load_tokenizer
from ..checkpoints.trust import check_checkpoint, check_files, trusting
from ..common.errors import InputError
from ..common.hub_access import describe_absence, use_cache_without_network
from ..common.installation import describe_installation, require
from ..models.text.encoded_inputs import source_limit

DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
# Before this release of sentence-transformers a local folder counted as trusted.
LEAST_SAFE = 6


# A folder or Hub repository, an encoder, or a function from a list of texts to an array of a vector for each.
EncoderLike: TypeAlias = str | os.PathLike | Callable[[list[str]], Any]


class SentenceEncoder:
    """What turns sentences into vectors.

    Args:
        function: Makes of a list of texts an array of a vector for each.

    Attributes:
        name: Its name in a saved retriever, from which `load_encoder` restores it; None where that cannot be.
        is_portable: Whether it can be saved: the encoder of an encoder-decoder loads with that only.
    """

    name: str | None = None
    is_portable = False

    def __init__(self, function: Callable[[list[str]], Any]):
        self.function = function

    def __call__(self, texts: list[str]) -> np.ndarray:
        """Return a vector of length 1 for each text, shape (texts, dimension), float32."""
        vectors = np.asarray(self.function(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise InputError(
                f"the encoder made an array of shape {vectors.shape} of {len(texts)} texts, not a vector each"
            )
        if not np.isfinite(vectors).all():
            raise InputError("the encoder made vectors that are not finite")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


class AutoModelEncoder(SentenceEncoder):
    """The mean of a transformer's last hidden states over the tokens of a text.

    Args:
        name: A folder or Hub repository with a model and its tokenizer; of an encoder-decoder the encoder is used.
        device: Where to run it; None for the GPU where there is one.
        batch_size: Batch size; texts of similar length share a batch.
        trust_remote_code: Let the repository's own code run.
        kwargs: Handed to `AutoModel.from_pretrained`, such as `revision`.
    """

    def __init__(
        self,
        name: str | os.PathLike,
        *,
        device: str | torch.device | None = None,
        batch_size: int = 64,
        trust_remote_code: bool = False,
        **kwargs: Any,
    ):
        self.name = os.fspath(name)
        self.batch_size = batch_size
        self.tokenizer = load_tokenizer(name, trust_remote_code)
        model = load_model(AutoModel, name, trust_remote_code, **kwargs).eval()
        self.model = model.get_encoder() if model.config.is_encoder_decoder else model
        self.model.to(choose_device(device))
        self.is_portable = not self.model.config.is_encoder_decoder
        if self.tokenizer.pad_token is None:
            raise InputError(f"the tokenizer of the encoder {name} has no padding token: set one and save it again")

    def save_pretrained(self, save_directory: str | os.PathLike) -> None:
        """Write the model and its tokenizer to a folder, for `AutoModelEncoder` to load."""
        self.model.save_pretrained(save_directory)
        self.tokenizer.save_pretrained(save_directory)

    @torch.inference_mode()
    def function(self, texts: list[str]) -> np.ndarray:
        """Return the mean state of each text, shape (texts, hidden_size), float32."""
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        vectors = np.zeros((len(texts), self.model.config.hidden_size), np.float32)
        for start in range(0, len(order), self.batch_size):
            places = order[start : start + self.batch_size]
            vectors[places] = self._encode([texts[place] for place in places])
        return vectors

    def _encode(self, texts: list[str]) -> np.ndarray:
        options = {"truncation": True, "max_length": source_limit(self.model, self.tokenizer)}
        inputs = self.tokenizer(texts, padding=True, return_tensors="pt", **options)
        if not inputs["attention_mask"].any():  # empty texts, of which some tokenizers make nothing at all
            return np.zeros((len(texts), self.model.config.hidden_size), np.float32)
        ids, mask = (inputs[name].to(self.model.device) for name in ("input_ids", "attention_mask"))
        states = self.model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        total = (states * mask.unsqueeze(-1)).sum(dim=1)
        return (total / mask.sum(dim=1, keepdim=True).clamp(min=1)).cpu().numpy()


class SentenceTransformerEncoder(SentenceEncoder):
    """A model of sentence-transformers; it needs the extra `retrieval`.

    Args:
        name: A folder or Hub repository.
        kwargs: Handed to `SentenceTransformer`; the others are those of `AutoModelEncoder`.
    """

    def __init__(
        self,
        name: str | os.PathLike,
        *,
        device: str | torch.device | None = None,
        batch_size: int = 64,
        trust_remote_code: bool = False,
        **kwargs: Any,
    ):
        otherwise, package = "encoder='jaccard' needs nothing", "sentence-transformers"
        require("sentence_transformers", "retrieval", f"the encoder {name}", otherwise, package)
        if not trust_remote_code:
            if Path(name).is_dir():
                _check_folder(Path(name))
            else:
                check_checkpoint(name)
            kwargs["model_kwargs"] = {"use_safetensors": True, **kwargs.get("model_kwargs", {})}
        from sentence_transformers import SentenceTransformer

        self.name, self.is_portable = os.fspath(name), True
        device = None if device is None else str(choose_device(device))
        with trusting(trust_remote_code):
            self.model = SentenceTransformer(self.name, device=device, trust_remote_code=trust_remote_code, **kwargs)
        super().__init__(partial(self.model.encode, batch_size=batch_size, show_progress_bar=False))

    def save_pretrained(self, save_directory: str | os.PathLike) -> None:
        """Write the model to a folder, for `SentenceTransformerEncoder` to load."""
        self.model.save_pretrained(os.fspath(save_directory), create_model_card=False)


def load_encoder(encoder: EncoderLike, *, trust_remote_code: bool = False, **kwargs: Any) -> SentenceEncoder:
    """Make an encoder of its name, or of a function.

    Args:
        encoder: A folder or Hub repository of sentence-transformers (one with a `modules.json`), one of any model that
            `AutoModel` loads, of which the mean over the tokens is taken, an encoder made before, or a function.
        trust_remote_code: Let the repository's own code run.
        kwargs: `device` and `batch_size`, for an encoder that is loaded here.

    Raises:
        InputError: It cannot be loaded here; the message says what to do.
    """
    if isinstance(encoder, SentenceEncoder):
        return encoder
    if callable(encoder):
        return SentenceEncoder(encoder)
    use_cache_without_network(encoder)
    encoder_class = SentenceTransformerEncoder if _has_modules(encoder) else AutoModelEncoder
    try:
        return encoder_class(encoder, trust_remote_code=trust_remote_code, **kwargs)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = str(error) if Path(encoder).is_dir() else describe_absence(encoder, "folder")
        raise InputError(
            f"the encoder {encoder} cannot be loaded: {reason}; a function, or 'jaccard', needs no model"
        ) from error


def _check_folder(folder: Path) -> None:
    """Refuse a folder that might run untrusted code, or read files outside it."""
    if int(version("sentence-transformers").partition(".")[0]) < LEAST_SAFE:
        raise InputError(
            f"{folder}: sentence-transformers below {LEAST_SAFE} runs the code of every folder that it loads; "
            f"{describe_installation('retrieval')} brings a newer one"
        )
    check_checkpoint(folder)
    for part in {file.parent for file in folder.rglob("*config.json")}:
        check_files(part)


def _has_modules(name: str | os.PathLike) -> bool:
    if Path(name).is_dir():
        return (Path(name) / "modules.json").is_file()
    if os.fspath(name).startswith("sentence-transformers/"):
        return True
    options = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
    try:
        return cached_file(os.fspath(name), "modules.json", **options) is not None
    except OSError:  # no such repository, which loading the model says better
        return False
