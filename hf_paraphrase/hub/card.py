"""The card of a model: all that a checkpoint and its results tell, in one page for a stranger."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jinja2
from huggingface_hub import ModelCard, ModelCardData

from .. import __version__
from ..datasets.card import describe_corpus
from ..datasets.loading import CORPORA, find_builder
from ..errors import InputError
from .checkpoint import Checkpoint
from .papers import ARCHITECTURE_NOTES, ArchitectureNotes
from .results import METRIC_TYPES, list_systems, make_eval_results

__all__ = ["CardContent", "is_edited", "make_card", "seal"]

# In an installed package the template lies beside this file, in a checkout where people look for cards.
TEMPLATES = (
    Path(__file__).with_name("model_card_template.md"),
    Path(__file__).parents[2] / "model_cards" / "model_card_template.md",
)
EXAMPLES = 10
SEAL = re.compile(r"\n<!-- written by hf_paraphrase, sha256 (\w+); an edited card is kept -->\n*\Z")


@dataclass(frozen=True)
class CardContent:
    """What the template `model_card_template.md` shows; texts are Markdown.

    Args:
        metadata: The YAML above the text.
        name: Of the model.
        repo_id: Where it is loaded from.
        notes: On the architecture.
        summary: What the model is, as one clause.
        size: Parameters and words.
        domain: What kind of text it knows, as a sentence.
        auto_class: What loads the model.
        task: Of `pipeline()`.
        variable: What the examples of use call the pipeline.
        call: Its arguments there.
        has_retriever: Whether a retriever comes with it.
        has_curves: Whether a picture of its learning curves does.
        corpus: Corpus, configuration, licence and sizes; None where it is not known.
        procedure: The course of the training, and every field of its recipe by file; None where it is not known.
        tables: A table of results for each split.
        examples: Rows of outputs; None where none were kept.
        failures: What is known to go wrong.
        environment: Device, hours, precision, software; None where it is not known.
        version: Of this package.
    """

    metadata: str
    name: str
    repo_id: str
    notes: ArchitectureNotes
    summary: str
    size: str
    domain: str
    auto_class: str
    task: str
    variable: str
    call: str
    has_retriever: bool
    has_curves: bool
    corpus: dict[str, str] | None
    procedure: dict[str, Any] | None
    tables: list[dict[str, Any]]
    examples: dict[str, Any] | None
    failures: list[str]
    environment: dict[str, str] | None
    version: str = __version__

    def render(self) -> str:
        """Fill the template."""
        path = next(path for path in TEMPLATES if path.is_file())
        environment = jinja2.Environment(
            trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
        )
        return environment.from_string(path.read_text(encoding="utf-8")).render(**vars(self))


def make_card(
    checkpoint: Checkpoint,
    repo_id: str | None = None,
    dataset_id: str | None = None,
    license: str | None = None,
) -> ModelCard:
    """Write the card of a checkpoint.

    Args:
        checkpoint: Read from its folder.
        repo_id: Its repository on the Hub; by default its name.
        dataset_id: Repository of the corpus on the Hub; by default the corpus's name here.
        license: Of the weights, as the Hub spells it; by default that of the corpus they were learnt from.

    Raises:
        InputError: No card can be written for models of this type.
    """
    if checkpoint.model_type not in ARCHITECTURE_NOTES:
        raise InputError(f"there is no text for models of type {checkpoint.model_type}; write a README.md beside it")
    notes, repo_id = ARCHITECTURE_NOTES[checkpoint.model_type], repo_id or checkpoint.name
    corpus = _corpus(checkpoint)
    examples = _examples(checkpoint)
    matches = "Classification" in checkpoint.auto_class
    content = CardContent(
        metadata=_metadata(checkpoint, repo_id, dataset_id, license).to_yaml(),
        name=repo_id.rpartition("/")[2],
        repo_id=repo_id,
        notes=notes,
        summary=notes.summarise(checkpoint.config),
        size=f"{checkpoint.num_parameters:,} parameters, {checkpoint.config['vocab_size']:,} words",
        domain=corpus["about"] if corpus else "Not recorded.",
        auto_class=checkpoint.auto_class,
        task="text-classification" if matches else "text2text-generation",
        variable="match" if matches else "rewrite",
        call=_call(checkpoint, matches),
        has_retriever=checkpoint.has_retriever,
        has_curves="learning_curves.png" in checkpoint.sizes,
        corpus=corpus,
        procedure=_procedure(checkpoint.summary) if checkpoint.summary else None,
        tables=[_table(results) for results in checkpoint.results.values()],
        examples=examples,
        failures=[*notes.failures, *_measured_failures(checkpoint)],
        environment=_environment(checkpoint.summary) if checkpoint.summary else None,
    )
    return ModelCard(seal(content.render()))


def seal(text: str) -> str:
    """Append a mark by which `is_edited` can tell whether the text was changed later."""
    text = text.rstrip("\n") + "\n"
    return f"{text}\n<!-- written by hf_paraphrase, sha256 {_digest(text)}; an edited card is kept -->\n"


def is_edited(text: str) -> bool:
    """Whether a card has a person's hand in it: it was changed, or never was written by `make_card`."""
    mark = SEAL.search(text)
    return mark is None or mark[1] != _digest(text[: mark.start()])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _metadata(checkpoint: Checkpoint, repo_id: str, dataset_id: str | None, license: str | None) -> ModelCardData:
    training = checkpoint.summary["recipe"]["training"] if checkpoint.summary else {}
    name = training.get("dataset")
    scored = {metric for results in checkpoint.results.values() for metric in list_systems(results)[0].scores}
    ranks = checkpoint.config.get("problem_type") == "ranking"
    tag = "text-ranking" if ranks else "text-classification"
    return ModelCardData(
        model_name=repo_id.rpartition("/")[2],
        language="en",
        license=license or (find_builder(name).licence_id if name in CORPORA else "other"),
        library_name="transformers",
        pipeline_tag=tag if "Classification" in checkpoint.auto_class else "text-generation",
        tags=["paraphrase", "hf_paraphrase", checkpoint.model_type]
        + ([] if "Classification" in checkpoint.auto_class else ["text2text-generation"]),
        datasets=[dataset_id or name] if name else None,
        metrics=sorted({METRIC_TYPES.get(metric, metric) for metric in scored}) or None,
        eval_results=make_eval_results(checkpoint, dataset_id) or None,
    )


def _corpus(checkpoint: Checkpoint) -> dict[str, str] | None:
    if checkpoint.summary is None:
        return None
    summary, training = checkpoint.summary, checkpoint.summary["recipe"]["training"]
    name = training["dataset"]
    sections = describe_corpus(find_builder(name)) if name in CORPORA else {}
    arguments = ", ".join(f"`{key}={value!r}`" for key, value in training["dataset_kwargs"].items())
    return {
        "name": name,
        "about": " ".join(sections.get("About", ["Not recorded."])[:1]),
        "configuration": training["dataset_name"] or "default",
        "arguments": f", {arguments}" if arguments else "",
        "licence": " ".join(sections.get("Licence", ["not recorded"])),
        "splits": "\n\n".join(sections.get("Splits", [])),
        "size": f"{summary['train_pairs']:,} training rows, {summary['validation_pairs']:,} to validate with",
    }


def _procedure(summary: dict[str, Any]) -> dict[str, Any]:
    best, recipe = summary["best"], summary["recipe"]
    figures = ", ".join(f"{name} {value:.4g}" for name, value in best.items() if name.startswith("eval_"))
    validations = len(summary["evaluations"])
    course = (
        f"{summary['steps']:,} steps; passes over the training rows: {summary['epochs']:.4g}. Of {validations} "
        f"{'validation' if validations == 1 else 'validations'} the best is what is here, after step "
        f"{best['step']:,}: {figures}."
    )
    files = {"training.yaml": "training", "config.json": "model_config", "generation_config.json": "generation_config"}
    # Where the corpus lay is nobody's business.
    fields = {
        file: {key: value for key, value in recipe[part].items() if key != "data_dir"} for file, part in files.items()
    }
    return {
        "course": course,
        "parameters": {
            file: {key: f"`{_cell(json.dumps(value))}`" for key, value in values.items()}
            for file, values in fields.items()
        },
    }


def _table(results: dict[str, Any]) -> dict[str, Any]:
    data, systems = results["data"], list_systems(results)
    metrics = list(systems[0].scores)

    def show(score: dict[str, Any] | None) -> str:
        if score is None:
            return "-"
        interval = f" ({score['low']:.2f} to {score['high']:.2f})" if "low" in score else ""
        return f"{score['score']:.2f}{interval}"

    signatures = {metric: score["signature"] for metric, score in systems[0].scores.items() if "signature" in score}
    return {
        "title": f"`{data['path']}`, split `{data['split']}`, {data['rows']:,} rows; in brackets 95% intervals.",
        "header": _row(["", *metrics]),
        "columns": len(metrics),
        "rows": [_row([system.label, *(show(system.scores.get(metric)) for metric in metrics)]) for system in systems],
        "perplexity": f"{results['perplexity']['perplexity']:.2f}" if "perplexity" in results else None,
        "paper": bool(results.get("paper")),
        "signatures": signatures,
    }


def _examples(checkpoint: Checkpoint) -> dict[str, Any] | None:
    for split, predictions in checkpoint.predictions.items():
        if predictions:
            rows = predictions[:EXAMPLES]
            beams = [entry["num_beams"] for entry in checkpoint.results[split].get("generation", [])]
            names = {"references": "first of the references"}
            return {
                "split": split,
                "decoding": f", beam {beams[0]}" if beams else "",
                "header": _row([names.get(column, column) for column in rows[0]]),
                "columns": len(rows[0]),
                "rows": [_row([_first(value) for value in row.values()]) for row in rows],
            }
    return None


def _measured_failures(checkpoint: Checkpoint) -> list[str]:
    """How often an output is empty, the source itself, or stammers, where there are outputs to count."""
    for split, predictions in checkpoint.predictions.items():
        pairs = [
            (row["source"].lower().split(), row["prediction"].lower().split())
            for row in predictions
            if {"source", "prediction"} <= row.keys()
        ]
        if pairs:
            total = len(pairs)
            copied = sum(source == output for source, output in pairs) / total
            empty = sum(not output for _, output in pairs) / total
            stammers = (
                sum(any(a == b for a, b in zip(output, output[1:], strict=False)) for _, output in pairs) / total
            )
            return [
                f"Of its {total:,} outputs for the split `{split}`, {copied:.1%} are the source itself, {empty:.1%} are "
                f"empty and {stammers:.1%} say a word twice in a row."
            ]
    return []


def _environment(summary: dict[str, Any]) -> dict[str, str]:
    found = summary["environment"]
    versions = ", ".join(f"{package} {version}" for package, version in found["versions"].items())
    processes = f"{summary['processes']} {'process' if summary['processes'] == 1 else 'processes'}"
    return {
        "device": f"{found['device']} ({found['device_name']}), {processes}, threads of each: {found['threads']}",
        "time": f"{summary['seconds'] / 3600:.2f} hours",
        "precision": summary["mixed_precision"] if summary["mixed_precision"] != "no" else "float32",
        "software": f"Python {found['python']}, {versions}",
        "ended": f"{found['date']}, code at commit {found['commit'] or 'unknown'}",
    }


def _call(checkpoint: Checkpoint, matches: bool) -> str:
    row = next((rows[0] for rows in checkpoint.predictions.values() if rows), {})
    if matches:
        texts = [value for value in row.values() if isinstance(value, str)][:2]
        first, second = texts if len(texts) == 2 else ("A dog runs.", "An animal moves.")
        return f'{{"text": {json.dumps(first, ensure_ascii=False)}, "text_pair": {json.dumps(second, ensure_ascii=False)}}}'
    return json.dumps(row.get("source", "How can I learn to cook?"), ensure_ascii=False)


def _first(value: Any) -> str:
    return str(value[0]) if isinstance(value, list) and value else str(value)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    """Text that Markdown shows in a table as it is: `<unk>` would vanish, a bar would end the cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
