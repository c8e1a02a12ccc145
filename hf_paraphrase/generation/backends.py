"""Which writer runs a model: `generate()`, CTranslate2, a prompt, or a server elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import InputError
from ..models.layers.portable import can
from ..models.search.pipeline_checks import check_model, load_retriever
from ..models.text.encoded_inputs import read_prefix
from .ctranslate2_writers import CTranslate2LanguageModelWriter, CTranslate2Writer
from .language_model_writer import LanguageModelWriter
from .prompts import PROMPT_FILE, Prompt, load_prompt
from .server_writer import ServerWriter
from .writers import ModelWriter

if TYPE_CHECKING:
    from ..retrieval import ParaphraseRetriever


def load_writer(
    model: PreTrainedModel | str,
    tokenizer: PreTrainedTokenizerBase | None,
    *,
    retriever: ParaphraseRetriever | None = None,
    prefix: str | None = None,
    prompt: str | os.PathLike | Prompt | None = None,
    backend: str | None = None,
    compute_type: str = "int8",
    trust_remote_code: bool = False,
) -> ModelWriter:
    """Make the writer of a model; arguments as in `Paraphraser`.

    Raises:
        InputError: Unknown backend, a model that it cannot run, or an argument for another kind of model.
    """
    if isinstance(model, str):
        return ServerWriter(str(backend), model, load_prompt(prompt))
    if backend not in (None, "ctranslate2"):
        raise InputError(f"`backend` must be ctranslate2, or None for generate(), not {backend!r}")
    tokenizer = cast(PreTrainedTokenizerBase, tokenizer)
    if not model.config.is_encoder_decoder and model.can_generate():
        others = {"prefix": prefix, "retriever": retriever}
        if given := [name for name, value in others.items() if value is not None]:
            raise InputError(f"`{given[0]}` is for encoder-decoders; a {type(model).__name__} reads a `prompt`")
        own = Path(model.name_or_path or "") / PROMPT_FILE
        if prompt is None and model.name_or_path and own.is_file():
            prompt = own
        own_prompt = load_prompt(prompt)
        if backend is None:
            return LanguageModelWriter(model, tokenizer, own_prompt)
        return CTranslate2LanguageModelWriter(model, tokenizer, own_prompt, compute_type)
    check_model(model)
    if prompt is not None:
        raise InputError(f"`prompt` is for language models; a {type(model).__name__} reads the text itself")
    prefix = read_prefix(model.config) if prefix is None else prefix
    retriever = (retriever or load_retriever(model, trust_remote_code)) if can(model.config, "reads_pairs") else None
    if backend is None:
        return ModelWriter(model, tokenizer, retriever, prefix)
    return CTranslate2Writer(model, tokenizer, prefix, compute_type)
