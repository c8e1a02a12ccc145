"""The tasks of a served model: paraphrasing, matching pairs and embedding, one batch at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from transformers import PreTrainedTokenizerBase, pipeline

from ..analysis.document_vectors import embed_documents
from ..checkpoints.pretrained import read_config
from ..common.errors import InputError
from ..generation.loading import load_pair_model, names_language_model
from ..generation.paraphrase_table import ParaphrasedTexts, Paraphrases
from ..generation.paraphraser import Paraphraser
from ..models.layers.portable import can
from ..retrieval.encoders import AutoModelEncoder, load_encoder

Options = tuple[tuple[str, Any], ...]


class Embedding(NamedTuple):
    """The vector of a text, and how many tokens the text has for the model."""

    vector: list[float]
    num_tokens: int


@dataclass(frozen=True)
class ServedModel:
    """A loaded model with its tasks; None for unsupported ones. Each takes a batch, and gives a result for each.

    Args:
        name: Folder or Hub repository.
        paraphrase: From texts and options of `Paraphraser`, as a tuple of pairs, to the paraphrases of each.
        match: From pairs of texts to the label and score of each, as `pipeline("text-classification", top_k=None)`.
        embed: From texts to embeddings.
    """

    name: str
    paraphrase: Callable[[Sequence[str], Options], list[Paraphrases]] | None = None
    match: Callable[[Sequence[tuple[str, str]], None], list[list[dict[str, Any]]]] | None = None
    embed: Callable[[Sequence[str], None], list[Embedding]] | None = None

    @property
    def tasks(self) -> list[str]:
        """What it can do."""
        return [task for task in ("paraphrase", "match", "embed") if getattr(self, task) is not None]


def load_served_model(
    path: str | os.PathLike, max_batch: int = 32, trust_remote_code: bool = False, **loading: Any
) -> ServedModel:
    """Load a model to be served.

    Sequence-to-sequence and causal language models paraphrase, classifiers match, and all other models embed, as do
    sequence-to-sequence models with sentence or document vectors.

    Args:
        path: A checkpoint folder or Hub repository.
        max_batch: Texts that it will be asked for at a time.
        trust_remote_code: Run the checkpoint's own code, and read pickled weights.
        loading: `dtype`, `prompt` and `backend` of a model that paraphrases, as `Paraphraser.from_pretrained` takes
            them.

    Raises:
        InputError: The folder holds no model that can be loaded, or one that takes no precision.
        FileNotFoundError: There is no such checkpoint.
    """
    name = os.fspath(path)
    is_told = any(loading.get(option) for option in ("backend", "prompt"))
    writes = is_told or name.endswith(".gguf") or names_language_model(path)
    config = {} if writes else read_config(path)
    kinds = config.get("architectures") or [""]
    matches = any("ForSequenceClassification" in kind for kind in kinds)
    is_encoder = not config.get("is_encoder_decoder") or all(kind.endswith("EncoderModel") for kind in kinds)
    if config and (matches or is_encoder) and loading.get("dtype") is not None:
        raise InputError("dtype is the precision of models that paraphrase; this one matches or embeds")
    if matches:
        model, tokenizer = load_pair_model(path, trust_remote_code=trust_remote_code)
        options: dict[str, Any] = {"model": model, "tokenizer": tokenizer, "batch_size": max_batch}
        pipe = pipeline("text-classification", **options, trust_remote_code=False)

        def match(pairs: Sequence[tuple[str, str]], options: None = None) -> list[list[dict[str, Any]]]:
            return pipe([{"text": text, "text_pair": pair} for text, pair in pairs], top_k=None, truncation=True)

        return ServedModel(name, match=match)
    if config and is_encoder:
        encoder = load_encoder(path, batch_size=max_batch, trust_remote_code=trust_remote_code)
        tokenizer = encoder.tokenizer if isinstance(encoder, AutoModelEncoder) else encoder.model.tokenizer
        return ServedModel(name, embed=_make_embedder(encoder, tokenizer))
    paraphraser = Paraphraser.from_pretrained(path, trust_remote_code=trust_remote_code, **loading)
    return serve_paraphraser(name, paraphraser, max_batch)


def serve_paraphraser(name: str, paraphraser: Paraphraser, max_batch: int = 32) -> ServedModel:
    """The tasks of a loaded paraphraser, which is asked for at most `max_batch` texts at a time."""

    def paraphrase(texts: Sequence[str], options: Options) -> list[Paraphrases]:
        return cast(ParaphrasedTexts, paraphraser(list(texts), batch_size=max_batch, **dict(options)))

    return ServedModel(name, paraphrase, embed=_find_embedder(paraphraser, max_batch))


def _find_embedder(paraphraser: Paraphraser, max_batch: int) -> Callable[[Sequence[str], None], list] | None:
    """What embeds texts by a paraphraser's model; None where it has no vectors of texts."""
    model: Any = paraphraser.model
    tokenizer = paraphraser.tokenizer
    if model is None:  # behind an address
        return None
    if can(model.config, "embeds_sentences"):
        return _make_embedder(lambda texts: model.sentence_embeddings(texts, tokenizer, max_batch), tokenizer)
    if can(model.config, "rewrites_documents"):
        return _make_embedder(lambda texts: embed_documents(model, tokenizer, texts, max_batch), tokenizer)
    return None


def _make_embedder(
    encode: Callable[[list[str]], Any], tokenizer: PreTrainedTokenizerBase
) -> Callable[[Sequence[str], None], list]:
    def embed(texts: Sequence[str], options: None = None) -> list[Embedding]:
        vectors = encode(list(texts)).tolist()
        lengths = map(len, tokenizer(list(texts), verbose=False)["input_ids"])
        return [Embedding(*both) for both in zip(vectors, lengths, strict=True)]

    return embed
