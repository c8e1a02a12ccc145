"""The model card, and what `hf-paraphrase info` says, from a checkpoint and its results."""

from __future__ import annotations

import hashlib
import json
import re
from operator import eq
from pathlib import Path
from typing import Any

import jinja2
from huggingface_hub import ModelCard, ModelCardData

from .. import __version__
from ..common.errors import InputError
from ..datasets.card import describe_corpus
from ..datasets.loading import find_builder, is_published
from ..evaluation.results import Results, describe_retrieval
from ..metrics.pinc.scoring import pinc
from ..papers import find_paper
from ..registration import ARCHITECTURES
from .checkpoint import Checkpoint
from .results import METRIC_TYPES, format_score, label_entry, list_scores, make_eval_results

# In an installed package the template is next to this file; in a checkout it is in `model_cards`.
TEMPLATES = (
    Path(__file__).with_name("model_card_template.md"),
    Path(__file__).parents[2] / "model_cards" / "model_card_template.md",
)
SEAL = re.compile(r"\n<!-- written by hf_paraphrase, sha256 (\w+); an edited card is kept -->\n*\Z")
EXAMPLES = 10
# transformers' bookkeeping, and what other lines say.
NOTED = {"architectures", "auto_map", "custom_pipelines", "dtype", "model_type", "transformers_version"}
LEAST_NOVELTY = 0.3
# Name of unpublished corpora.
PRIVATE = "data that are not published"
# What goes in and comes out, in the rows of outputs of those who rewrite a text.
REWRITES = {"paraphrases": ("source", "prediction"), "documents": ("document", "output")}
RECIPE_FILES = {
    "training.yaml": "training",
    "config.json": "model_config",
    "generation_config.json": "generation_config",
}


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
    corpus = describe_training_data(summary) if summary else None
    language = language or ("en" if _published_corpora(checkpoint) else None)
    name = "English" if language == "en" else f"`{language}`"
    content = {
        "metadata": _metadata(checkpoint, repo_id, dataset_id, license, language).to_yaml(),
        "name": repo_id.rpartition("/")[2],
        "repo_id": repo_id,
        "paper": paper,
        "notes": notes,
        "summary": notes.summarise(checkpoint.config),
        "size": f"{checkpoint.num_parameters:,} parameters, {checkpoint.config['vocab_size']:,} tokens",
        "domain": corpus["about"] if corpus else "Not recorded.",
        "language": "The language is not recorded." if language is None else f"The language is {name}.",
        "auto_class": checkpoint.auto_class,
        "task": "text-classification" if is_matcher else "text2text-generation",
        "variable": "match" if is_matcher else "rewrite",
        "call": show_call(checkpoint, is_matcher),
        # Code that runs it where this package is not installed.
        "has_code": any(row.model_type == checkpoint.model_type for row in ARCHITECTURES),
        "has_retriever": checkpoint.has_retriever,
        "has_curves": "learning_curves.png" in checkpoint.sizes,
        "corpus": corpus,
        "procedure": describe_course(summary) if summary else None,
        "tables": [show_results(results) for results in checkpoint.results.values()],
        "examples": show_examples(checkpoint),
        "readings": show_readings(checkpoint),
        "failures": [*notes.failures, *measure_failures(checkpoint)],
        "environment": describe_run(summary) if summary else None,
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


def describe_training_data(summary: dict[str, Any]) -> dict[str, Any]:
    """Corpus, configuration, licence and sizes of the training data; for mixtures, `corpora` with a row for each."""
    training = summary["recipe"]["training"]
    size = f"{summary['train_pairs']:,} training rows, {summary['validation_pairs']:,} to validate with"
    if corpora := summary.get("mixture"):
        return {
            "name": f"a mixture of {len(corpora)}",
            "about": f"A mixture: {', '.join(corpus['name'] for corpus in corpora)}.",
            "licence": "that of each part, below",
            "splits": "",
            "size": size,
            "corpora": [
                _row(
                    [
                        corpus["name"],
                        f"{corpus['share']:.1%}",
                        f"{corpus['pairs_per_epoch']:,} of {corpus['train_pairs']:,}",
                        f"{corpus['validation_pairs']:,}",
                        corpus["licence"],
                    ]
                )
                for corpus in corpora
            ],
        }
    name = training["dataset"]
    published = is_published(name)
    sections = describe_corpus(find_builder(name)) if published else {}
    names = [f"`{name}`", f"configuration `{training['dataset_name'] or 'default'}`"] if published else [PRIVATE]
    arguments = [f"`{key}={value!r}`" for key, value in _without_places(training["dataset_kwargs"]).items()]
    return {
        "name": ", ".join(names + arguments),
        "about": sections.get("About", "Not recorded."),
        "licence": sections.get("Licence", "not recorded").replace("\n", " "),
        "splits": sections.get("Splits", ""),
        "size": size,
        "corpora": [],
    }


def describe_course(summary: dict[str, Any]) -> dict[str, Any]:
    """How a training went, and every field of its recipe by file."""
    best, validations = summary["best"], len(summary["evaluations"])
    figures = ", ".join(f"{name} {value:.4g}" for name, value in best.items() if name.startswith("eval_"))
    return {
        "course": (
            f"{summary['steps']:,} steps; passes over the training rows: {summary['epochs']:.4g}. Of {validations} "
            f"{'validation' if validations == 1 else 'validations'} the best is what is here, after step "
            f"{best['step']:,}: {figures}."
        ),
        "parameters": {
            file: {
                name: f"`{_cell(json.dumps(value))}`"
                for name, value in _without_places(summary["recipe"][part]).items()
            }
            for file, part in RECIPE_FILES.items()
        },
    }


def _without_places(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields without those that say where a corpus lay, which is nobody's business."""

    def clean(value: Any) -> Any:
        if isinstance(value, list):
            return [clean(item) for item in value]
        return _without_places(value) if isinstance(value, dict) else value

    return {name: clean(value) for name, value in fields.items() if name not in ("data_dir", "data_files")}


def show_results(results: Results) -> dict[str, Any]:
    """The table of a split: this model, the baselines and the paper's figures in rows, scores in columns."""
    data, own = results.data, results.of("model")
    corpus = f"`{data.path}`" if is_published(data.path) else PRIVATE
    signatures = {score.metric: score.signature for entry in own for score in list_scores(entry)}
    perplexity = own[0].perplexity
    drawn = "" if data.sample_seed is None else f", drawn with seed {data.sample_seed}"
    rows = []
    for entry in results.entries:
        scores = {score.metric: format_score(score) for score in list_scores(entry)}
        rows.append(_row([label_entry(entry), *(scores.get(metric, "-") for metric in signatures)]))
    return {
        "title": f"{corpus}, split `{data.split}`, {data.rows:,} rows{drawn}; in brackets 95% intervals.",
        "header": _row(["", *signatures]),
        "columns": len(signatures),
        "rows": rows,
        "notes": describe_retrieval(results),
        "perplexity": None if perplexity is None else f"{perplexity:.2f}",
        "paper": bool(results.of("paper")),
        "signatures": {metric: signature for metric, signature in signatures.items() if signature},
    }


def show_examples(checkpoint: Checkpoint) -> dict[str, Any] | None:
    """The first outputs that were kept, as rows of a table; None if there are none."""
    for split, predictions in checkpoint.predictions.items():
        if predictions:
            # Of several outputs a row the likeliest is shown.
            rows = [
                {name: value for name, value in row.items() if name != "predictions"} for row in predictions[:EXAMPLES]
            ]
            decoding = checkpoint.results[split].entries[0].decoding
            return {
                "split": split,
                "decoding": f", {decoding.search}" if decoding else "",
                "header": _row(["first reference" if column == "references" else column for column in rows[0]]),
                "columns": len(rows[0]),
                "rows": [_row([_first(value) for value in row.values()]) for row in rows],
            }
    return None


def show_readings(checkpoint: Checkpoint) -> dict[str, Any] | None:
    """The reader's verdicts, as a sentence and table rows; None where nobody has read."""
    if not (readings := checkpoint.readings):
        return None
    answers = [row["paraphrase"] or "" for row in readings]
    novelty = pinc(answers, [row["source"] for row in readings], lowercase=True).statistics["pinc"].rows[:, 0]
    differs = [value >= LEAST_NOVELTY for value in novelty]
    good = [row["means_same"] and row["reads_well"] and new for row, new in zip(readings, differs, strict=True)]
    changed = sum(bool(row["paraphrase"]) and not row["keeps_facts"] for row in readings)
    rows = []
    for row, new in zip(readings, differs, strict=True):
        verdicts = {"means the same": row["means_same"], "reads well": row["reads_well"], "differs": new}
        verdict = ", ".join(name for name, holds in verdicts.items() if holds) if row["paraphrase"] else ""
        rows.append(_row([row["kind"], row["source"], row["paraphrase"] or "-", verdict]))
    return {
        "summary": f"**Of {len(readings)} sentences, unselected, {sum(good)} have a first paraphrase that means the "
        f"same, reads well and differs (PINC of {LEAST_NOVELTY} or more).** {sum(map(bool, answers))} have a "
        f"paraphrase at all; {changed} of these change a name or a number.",
        "rows": rows,
    }


def measure_failures(checkpoint: Checkpoint) -> list[str]:
    """The rates of outputs that copy the source, are empty or repeat a word, if there are outputs."""
    for split, predictions in checkpoint.predictions.items():
        columns = REWRITES.get(checkpoint.results[split].kind)
        if predictions and columns:
            pairs = [[row[column].lower().split() for column in columns] for row in predictions]
            copied = sum(source == output for source, output in pairs) / len(pairs)
            empty = sum(not output for _, output in pairs) / len(pairs)
            stammers = sum(any(map(eq, output, output[1:])) for _, output in pairs) / len(pairs)
            return [
                f"Of its {len(pairs):,} outputs for the split `{split}`, {copied:.1%} are the source itself, "
                f"{empty:.1%} are empty and {stammers:.1%} say a word twice in a row."
            ]
    return []


def describe_run(summary: dict[str, Any]) -> dict[str, str]:
    """Device, hours, precision and software of a training."""
    found = summary["environment"]
    versions = ", ".join(f"{package} {version}" for package, version in found["versions"].items())
    processes = f"{summary['processes']} {'process' if summary['processes'] == 1 else 'processes'}"
    return {
        "device": f"{found['device']} ({found['device_name']}), {processes}, threads of each: {found['threads']}",
        "time": f"{summary['seconds'] / 3600:.2f} hours",
        "precision": "float32" if summary["mixed_precision"] == "no" else summary["mixed_precision"],
        "software": f"Python {found['python']}, {versions}",
        "started": f"{found['date']}, code at commit {found['commit'] or 'unknown'}",
    }


def show_call(checkpoint: Checkpoint, is_matcher: bool) -> str:
    """Input of the usage examples: the first evaluated row, if any."""
    split, row = next(((split, rows[0]) for split, rows in checkpoint.predictions.items() if rows), ("", {}))
    if is_matcher:
        pair = {"text": row.get("sentence1", "A dog runs."), "text_pair": row.get("sentence2", "An animal moves.")}
        return json.dumps(pair, ensure_ascii=False)
    text = row[REWRITES[checkpoint.results[split].kind][0]] if row else "How can I learn to cook?"
    return json.dumps(text, ensure_ascii=False)


def _first(value: Any) -> str:
    return str(value[0]) if isinstance(value, list) and value else str(value)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    """Text that Markdown shows in a table as it is: `<unk>` would vanish, a bar would end the cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def describe_checkpoint(checkpoint: Checkpoint) -> str:
    """The description of a checkpoint, as lines for a terminal."""
    own = {name: value for name, value in checkpoint.config.items() if name not in NOTED}
    try:
        training = [] if checkpoint.summary is None else _training(checkpoint.summary)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = f"training_summary.json was not written by a training: {error!r}"
        raise InputError(f"{checkpoint.name}: {problem}") from error
    sections = {
        checkpoint.name: _architecture(checkpoint),
        "configuration": [f"{name}: {json.dumps(value)}" for name, value in own.items()],
        "training": training,
        **{f"results, split {split}": _results(found) for split, found in checkpoint.results.items()},
    }
    return "\n\n".join(
        "\n".join([title, *(f"  {line}" for line in lines or ["not recorded"])]) for title, lines in sections.items()
    )


def _architecture(checkpoint: Checkpoint) -> list[str]:
    weights = ", ".join(f"{count:,} {dtype}" for dtype, count in checkpoint.parameters.items())
    code = sorted(path for path in checkpoint.sizes if path.endswith(".py") and "/" not in path)
    total = sum(size for path, size in checkpoint.sizes.items() if path.endswith(".safetensors"))
    return [
        f"architecture: {checkpoint.model_type}, {', '.join(checkpoint.config.get('architectures') or [])}",
        f"loaded by: {checkpoint.auto_class}",
        f"parameters: {checkpoint.num_parameters:,} ({weights}; {total / 2**20:,.1f} MiB)",
        f"words: {checkpoint.config.get('vocab_size') or 0:,}",
        f"own code: {', '.join(code) or 'none'}",
        f"retriever: {'yes' if checkpoint.has_retriever else 'no'}",
    ]


def _training(summary: dict[str, Any]) -> list[str]:
    training, found = summary["recipe"]["training"], summary["environment"]
    data = f"{training['dataset']}, configuration {training['dataset_name'] or 'default'}"
    if mixture := summary.get("mixture"):
        data = ", ".join(f"{corpus['share']:.1%} {corpus['name']} ({corpus['licence']})" for corpus in mixture)
    return [
        f"recipe: {summary['recipe']['name']}",
        f"data: {data}; {summary['train_pairs']:,} rows",
        f"steps: {summary['steps']:,}, {summary['epochs']:.4g} epochs, {summary['seconds'] / 3600:.2f} hours",
        "best: " + ", ".join(f"{name} {value:.5g}" for name, value in summary["best"].items() if name != "seconds"),
        f"on: {found['device']} ({found['device_name']}), {found['date']}, commit {found['commit'] or 'unknown'}",
    ]


def _results(found: Results) -> list[str]:
    lines = [f"{found.data.path or 'data'}, {found.data.rows:,} rows"]
    for entry in found.entries:
        figures = [f"{score.metric} {format_score(score)}" for score in list_scores(entry)]
        lines.append(f"{label_entry(entry)}: {', '.join(figures)}")
    return lines
