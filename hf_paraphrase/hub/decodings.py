"""Decodings as repositories of the Hub, which `generate(custom_generate=…)` loads for anybody's model."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from huggingface_hub import ModelCardData

from ..common.docstrings import read_docstring
from ..models.bundle import bundle
from ..models.search.dips import dips
from ..models.search.diverse_beam_search import diverse_beam_search
from .files import REQUIREMENTS, read_template

FOLDER = "custom_generate/"
SHARED: dict[str, Callable] = {"diverse_beam": diverse_beam_search, "dips": dips}
PAPERS = {
    "diverse_beam": "Vijayakumar et al. 2016, *Diverse Beam Search: Decoding Diverse Solutions from Neural Sequence "
    "Models*, https://arxiv.org/abs/1610.02424",
    "dips": "Kumar et al. 2019, *Submodular Optimization-based Diverse Paraphrasing and its Effectiveness in Data "
    "Augmentation*, https://aclanthology.org/N19-1363",
}
GENERATE = read_template("generate.txt")
CARD = read_template("decoding_card.md")


def make_decoding(name: str) -> dict[str, bytes]:
    """The files of a decoding's repository, "diverse_beam" or "dips", but for its card, by their paths."""
    function = SHARED[name]
    files = bundle(f"search.{function.__module__.rpartition('.')[2]}")
    files |= {"generate.py": GENERATE.format(function=function.__name__), "requirements.txt": REQUIREMENTS}
    return {FOLDER + path: text.encode() for path, text in files.items()}


def make_decoding_card(name: str, repo_id: str) -> str:
    """The card of a decoding's repository, described by the function's docstring."""
    function = SHARED[name]
    docstring = read_docstring(function)
    described = docstring.arguments
    rows = [
        f"| `{one.name}` | `{one.default}` | {described[one.name]} |"
        for one in inspect.signature(function).parameters.values()
        if one.default is not one.empty
    ]
    tags = ["custom_generate", "paraphrase", "hf_paraphrase", name]
    metadata = ModelCardData(library_name="transformers", license="apache-2.0", tags=tags)
    return CARD.format(
        metadata=metadata.to_yaml(),
        title=repo_id.rpartition("/")[2],
        summary=docstring.summary.partition(": `generate(")[0] + ".",
        repo_id=repo_id,
        arguments="\n".join(rows),
        details=docstring.details,
        function=function.__name__,
        paper=PAPERS[name],
    )
