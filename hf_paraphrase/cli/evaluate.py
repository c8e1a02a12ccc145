"""The commands that score a model or outputs, and those by which people do. Heavy imports are inside them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from ..common.errors import InputError
from ..common.fields import option
from ..common.files import write_text
from .corpus import Corpus, SplitOptions, find_training_config, pick_split
from .options import (
    PROMPT_HELP,
    ChoiceOptions,
    IntervalOptions,
    MetricOptions,
    ModelOptions,
    ReadingOptions,
    SearchOptions,
    metrics_option,
)
from .terminal import echo
from .verbs import Verb, verb

if TYPE_CHECKING:
    from ..evaluation.results import Results
    from ..metrics.score_table import ScoreRow


class ParaphraserOptions(SearchOptions, MetricOptions, ChoiceOptions):
    """What only a paraphraser is evaluated by."""

    num_neighbors: list[int] = option(
        "Retrieved pairs a row (FSET); repeatable.  [default: 1]", factory=lambda: [1], least=1
    )
    choose: bool = option("Choose outputs as `paraphrase` does, by scores and thresholds.", False)
    decoding: Literal["beam", "diverse_beam", "dips", "sample"] = option("Decoding method.", "beam")
    temperature: float | None = option("Temperature of --decoding sample.", None)
    num_return_sequences: int = option(
        "Outputs per row. The likeliest is scored; with FSET, a random one.", 1, least=1
    )
    group_by: str | None = option("Column by whose values to score separately, such as in_train.", None)
    replace_unknown: bool = option("Replace unknown words with the source words the model attended to.", False)
    prompt: str | None = option(PROMPT_HELP, None)
    restore_surface: bool = option("Restore ordinary case and spacing in outputs.", False)


class MatcherOptions(Verb):
    """What only a matcher is evaluated by."""

    threshold_split: str = option("Split that chooses the threshold of F1.", "validation")


class LanguageModelOptions(Verb):
    """What only a language model is evaluated by."""

    objective: Literal["next_sentence", "autoencode"] | None = option(
        "What is predicted.  [default: what the model has learnt]", None
    )


@verb("evaluate")
class Evaluate(LanguageModelOptions, MatcherOptions, ParaphraserOptions, IntervalOptions, SplitOptions, ModelOptions):
    """Score a model next to baselines and the paper.

    \b
    hf-paraphrase evaluate runs/first --output-dir runs/first/evaluation
    hf-paraphrase evaluate runs/first --choose --metrics ibleu,pinc
    hf-paraphrase evaluate runs/first --metrics bleu,ter,rouge
    hf-paraphrase evaluate facebook/bart-base --dataset mscoco --data-dir data/mscoco --num-beams 1 --max-samples 500
    hf-paraphrase evaluate runs/first --decoding dips --num-beams 3 --num-return-sequences 3
    hf-paraphrase evaluate runs/first --decoding sample --temperature 0.5 --num-candidates 20 --select mbr
    hf-paraphrase evaluate runs/first --replace-unknown --restore-surface
    hf-paraphrase evaluate runs/twitter --data-dir data/twitter_url --output-dir runs/twitter/evaluation
    hf-paraphrase evaluate runs/hierarchical --data-dir data/hotel_reviews
    hf-paraphrase evaluate runs/sarah-lm --data-dir data/gutenberg --objective autoencode

    The kind of model decides what is measured: a paraphraser's outputs are scored by --metrics; a matcher labels pairs
    or ranks candidates; an autoencoder writes documents again; a language model predicts sentences, in nits per
    character. Scores have 95% intervals.
    """

    sections = {"paraphraser": ParaphraserOptions, "matcher": MatcherOptions, "language model": LanguageModelOptions}

    num_beams: list[int] | None = option(
        "Beam width; repeatable.  [default: 5 and 10; an autoencoder's 1, greedy]", None, least=1
    )
    batch_size: int | None = option("Batch size, in rows.  [default: 64; for documents 32]", None, least=1)
    output_dir: Path | None = option("Where the outputs and results.json go.", None)

    def run(self) -> Results:
        """Evaluate, and return what results.json holds."""
        from ..evaluation.kinds import EVALUATORS, find_kind

        corpus = self.find_corpus_of(self.model)
        trained_by = find_training_config(self.model)
        kind = find_kind(self.model, trained_by, self.trust_remote_code)
        self.refuse_options_of_others(kind, self.model)
        if kind == "paraphraser":
            options = self._paraphraser_options(corpus)
        elif kind == "matcher":
            splits = corpus.load()
            rows = self.take(pick_split(splits, self.split))
            options = {"dataset": rows, "validation": splits.get(self.threshold_split)}
        elif kind == "autoencoder":
            width, *others = self.num_beams or [1]
            if others:
                raise InputError(f"--num-beams: an autoencoder is evaluated with one width, not {1 + len(others)}")
            options = {"dataset": self.take(corpus.load(self.split)), "num_beams": width}
        else:
            if self.sample_seed is not None:
                raise InputError("--sample-seed: the examples of a language model are evenly spaced")
            learnt = getattr(trained_by, "objective", "next_sentence")
            options = {"dataset": corpus.load(self.split), "objective": self.objective or learnt}
        return self.call(EVALUATORS[kind], tokenizer=None, data=self.describe(corpus), **options)

    def show(self, results: Results) -> None:
        from ..evaluation.kinds import FORMATS

        echo(FORMATS[results.kind](results))

    def _paraphraser_options(self, corpus: Corpus) -> dict[str, Any]:
        metric_options = self.metric_options()
        if self.temperature is not None and self.decoding != "sample":
            raise InputError("--temperature is an option of --decoding sample")
        found = self.search_options(self.decoding, self.num_beams or ([10] if self.choose else [5, 10]))
        found |= {} if self.decoding == "beam" else {"decoding": self.decoding}
        for name in ("temperature", "max_new_tokens"):
            found |= {} if getattr(self, name) is None else {name: getattr(self, name)}
        return {"dataset": self.take(corpus.load(self.split)), "metric_options": metric_options, **found}


@verb("score")
class ScoreFiles(ReadingOptions, IntervalOptions, MetricOptions):
    """Score files of outputs; compare two systems.

    \b
    hf-paraphrase score --predictions runs/first/evaluation/predictions-test-beam5.jsonl --metrics bleu,ter,rouge
    hf-paraphrase score --predictions ours.txt --references refs1.txt --references refs2.txt --against theirs.txt
    hf-paraphrase score --predictions paraphrases.jsonl --references test.csv --metrics bleu,pinc

    A .jsonl file has an object a line, a .csv or .tsv file columns that its first line names; they are read by name:
    prediction (or the first of paraphrases, as `paraphrase --json` writes them), references, reference or target, and
    source. Any other file has a text a line.

    Scores have 95% intervals; with --against, p-values say whether the systems differ by more than chance. Case is
    ignored unless --cased is given, as in `evaluate`: most models here write lower case only, which references with
    capitals would make look worse than it is. The signatures say which, as case:lc or case:mixed.
    """

    predictions: list[Path] = option("Outputs, as .jsonl, .csv, .tsv or lines of text; repeat it for several runs.")
    references: list[Path] = option("References; repeatable.  [default: those beside the predictions]", factory=list)
    sources: Path | None = option("Sources, for pinc and ibleu.  [default: those beside the predictions]", None)
    metrics: list[str] = metrics_option("bleu", "ter")
    against: list[Path] = option(
        "Outputs of another system to compare with; repeat it for several runs.", factory=list
    )
    n_trials: int = option("Shuffles for the p-values.", 1000, least=2)
    as_json: bool = option("Print JSON instead of the table.", False, flag="--json")
    as_csv: bool = option("Print CSV instead of the table.", False, flag="--csv")

    def run(self) -> list[dict[str, Any]]:
        """Score, and return the rows of the table."""
        from ..metrics.score_files import read_scored_texts
        from ..metrics.score_table import score_systems

        options = self.metric_options()
        beside = (self.references, self.sources, self.errors)
        return self.call(
            score_systems,
            texts=read_scored_texts(self.predictions, *beside),
            against=read_scored_texts(self.against, *beside) if self.against else None,
            options=options,
        )

    def show(self, rows: list[ScoreRow]) -> None:
        from ..metrics.score_table import format_as_csv, format_as_json, format_rows

        if self.as_json or self.as_csv:
            echo((format_as_json if self.as_json else format_as_csv)(rows))
        else:
            echo(format_rows(rows, emphasise=partial(typer.style, bold=True)))


def _parse_systems(label: str, values: list[str]) -> dict[str, str]:
    """The file of each system's outputs by its name."""
    files = {}
    for value in values:
        name, _, path = value.partition("=")
        if not (name and path) or name in files:
            raise InputError(f"{label} takes NAME=FILE, each name once, got {value!r}")
        files[name] = path
    return files


@verb("rating make")
class MakeForms(Verb):
    """Write forms on which people judge paraphrases.

    \b
    hf-paraphrase rating make --system FSET=runs/fset/evaluation/predictions-test-beam5-neighbors3.jsonl \\
        --system DiPS=runs/transformer/evaluation/predictions-test-dips5.jsonl --output-dir forms

    Send `ratings.html` and `preference.html` to the raters: each is one file that opens in a browser, without network,
    and hands its answers out as CSV. Keep `key.json`, which maps texts to systems, for `rating read`. The forms are
    those of Kazemnejad et al. 2020, section 4.5.
    """

    system: dict[str, str] = option(
        "A system's predictions-*.jsonl, as `evaluate` writes it; repeatable.",
        metavar="NAME=FILE",
        read=_parse_systems,
        many=True,
    )
    output_dir: Path = option("Where the forms and the key go.")
    num_sources: int = option("Sources to draw.", 100, least=1)
    num_outputs: int = option("Outputs of a system for a source, at most.", 3, least=1)
    seed: int = option("Of the draw and the order.", 0)

    def run(self) -> str:
        from ..rating import AnswerKey, make_rating_forms, read_outputs

        systems = {name: read_outputs(path) for name, path in self.system.items()}
        paths = self.call(make_rating_forms, systems=systems)
        lines = [f"{name}: {path}" for name, path in paths.items()]
        if equal := len(AnswerKey.load(paths["key"]).equal):
            lines.append(f"{equal} pairs of equal outputs are not asked about: they count as ties")
        return "\n".join(lines)


@verb("rating read")
class ReadForms(Verb):
    """Sum up what people answered: ratings, preferences, agreement.

    \b
    hf-paraphrase rating read forms/key.json answers/*.csv --output forms/results.json

    Mean ratings, and how often each system was preferred, with Cohen's kappa: table 3 and figure 5 of Kazemnejad et
    al. 2020.
    """

    key: Path = option("The key.json that was written with the forms.", positional=True)
    answers: list[Path] = option("CSV files of the raters, of either form.", positional=True)
    output: Path | None = option("JSON file of the results.", None)

    def run(self) -> dict[str, Any]:
        """Summarise the answers, and return the content of the JSON file."""
        from ..rating import AnswerKey, read_answers, summarise_answers

        answer_key = AnswerKey.load(self.key)
        results = summarise_answers(read_answers(self.answers, answer_key), answer_key)
        if self.output is not None:
            write_text(self.output, json.dumps(results, indent=2, ensure_ascii=False) + "\n")
        return results

    def show(self, results: dict[str, Any]) -> None:
        from ..rating import format_rating_results

        echo(format_rating_results(results))
