"""The model card, built from a checkpoint and its results."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import jinja2
from huggingface_hub import ModelCard, ModelCardData

from .. import __version__
from ..datasets.loading import find_builder, is_published
from ..errors import InputError
from ..papers import find_paper
from ..registration import ARCHITECTURES
from . import card_sections as sections
from .checkpoint import Checkpoint
from .results import METRIC_TYPES, list_scores, make_eval_results

# In an installed package the template is next to this file; in a checkout it is in `model_cards`.
TEMPLATES = (
    Path(__file__).with_name("model_card_template.md"),
    Path(__file__).parents[2] / "model_cards" / "model_card_template.md",
)
SEAL = re.compile(r"\n<!-- written by hf_paraphrase, sha256 (\w+); an edited card is kept -->\n*\Z")


def make_card(
    checkpoint: Checkpoint,
    repo_id: str | None = None,
    dataset_id: str | None = None,
    license: str | None = None,
    language: str | None = None,
) -> ModelCard:
    """Write the card of a checkpoint.

    Args:
        checkpoint: Read from its folder.
        repo_id: Its repository on the Hub; by default its name.
        dataset_id: Repository of the corpus on the Hub; by default the corpus's name here, none for a user's own data.
        license: Licence of the weights, as the Hub spells it; by default the training corpus's.
        language: Code of the text's language; by default `en` for a published corpus, none for a user's own data.

    Raises:
        InputError: No card can be written for models of this type.
    """
    paper = find_paper(checkpoint.model_type)
    if paper is None:
        raise InputError(f"no card text for models of type {checkpoint.model_type}; write a README.md beside it")
    notes, repo_id = paper.architectures[checkpoint.model_type], repo_id or checkpoint.name
    summary, is_matcher = checkpoint.summary, "Classification" in checkpoint.auto_class
    corpus = sections.describe_training_data(summary) if summary else None
    language = language or ("en" if _published_corpora(checkpoint) else None)
    name = "English" if language == "en" else f"`{language}`"
    content = {
        "metadata": _metadata(checkpoint, repo_id, dataset_id, license, language).to_yaml(),
        "name": repo_id.rpartition("/")[2],
        "repo_id": repo_id,
        "paper": paper,
        "notes": notes,
        "summary": notes.summarise(checkpoint.config),
        "size": f"{checkpoint.num_parameters:,} parameters, {checkpoint.config['vocab_size']:,} words",
        "domain": corpus["about"] if corpus else "Not recorded.",
        "language": "The language is not recorded." if language is None else f"The language is {name}.",
        "auto_class": checkpoint.auto_class,
        "task": "text-classification" if is_matcher else "text2text-generation",
        "variable": "match" if is_matcher else "rewrite",
        "call": sections.show_call(checkpoint, is_matcher),
        # Code that runs it where this package is not installed.
        "has_code": any(row.model_type == checkpoint.model_type for row in ARCHITECTURES),
        "has_retriever": checkpoint.has_retriever,
        "has_curves": "learning_curves.png" in checkpoint.sizes,
        "corpus": corpus,
        "procedure": sections.describe_course(summary) if summary else None,
        "tables": [sections.show_results(results) for results in checkpoint.results.values()],
        "examples": sections.show_examples(checkpoint),
        "readings": sections.show_readings(checkpoint),
        "failures": [*notes.failures, *sections.measure_failures(checkpoint)],
        "environment": sections.describe_run(summary) if summary else None,
        "version": __version__,
    }
    path = next(path for path in TEMPLATES if path.is_file())
    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    return ModelCard(seal(environment.from_string(path.read_text(encoding="utf-8")).render(content)))


def seal(text: str) -> str:
    """Append a hash by which `is_edited` detects later changes."""
    text = text.rstrip("\n") + "\n"
    return f"{text}\n<!-- written by hf_paraphrase, sha256 {_digest(text)}; an edited card is kept -->\n"


def is_edited(text: str) -> bool:
    """Whether a card has a person's hand in it: it was changed, or never was written by `make_card`."""
    mark = SEAL.search(text)
    return mark is None or mark[1] != _digest(text[: mark.start()])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _published_corpora(checkpoint: Checkpoint) -> list[str]:
    """The published corpora that a model was trained on; none where a part of them is not published."""
    if not checkpoint.summary:
        return []
    mixture = checkpoint.summary.get("mixture") or [checkpoint.summary["recipe"]["training"]]
    corpora = list(dict.fromkeys(corpus["dataset"] for corpus in mixture))
    return corpora if all(map(is_published, corpora)) else []


def _metadata(
    checkpoint: Checkpoint, repo_id: str, dataset_id: str | None, license: str | None, language: str | None
) -> ModelCardData:
    corpora = _published_corpora(checkpoint)
    licences = {find_builder(corpus).licence_id for corpus in corpora}
    scored = {score.metric for results in checkpoint.results.values() for score in list_scores(results.entries[0])}
    tags = ["paraphrase", "hf_paraphrase", checkpoint.model_type]
    if "Classification" in checkpoint.auto_class:
        kind = "text-ranking" if checkpoint.config.get("problem_type") == "ranking" else "text-classification"
    else:
        kind, tags = "text-generation", [*tags, "text2text-generation"]
    results = make_eval_results(checkpoint, dataset_id)
    return ModelCardData(
        model_name=repo_id.rpartition("/")[2] if results else None,
        language=language,
        license=license or (licences.pop() if len(licences) == 1 else "other"),
        # Not transformers, whose snippet does not run on them: see model_cards/HUB_LIBRARY.md.
        library_name="hf_paraphrase",
        pipeline_tag=kind,
        tags=tags,
        datasets=([dataset_id] if dataset_id else corpora) or None,
        metrics=sorted({METRIC_TYPES.get(metric, metric) for metric in scored}) or None,
        eval_results=results or None,
    )
