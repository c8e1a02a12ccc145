"""The command `hf-paraphrase`. What is heavy is imported inside the commands."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import MISSING, Field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from .. import __version__
from ..errors import InputError
from .corpus import (
    DataDir,
    DataFiles,
    DatasetKwargs,
    DatasetName,
    EvaluatedCorpus,
    EvaluatedSplit,
    MaxSamples,
    SampleSeed,
    TrainedCorpus,
    choose_corpus,
    read_evaluated_corpus,
    take_rows,
)
from .datasets import app as datasets_app
from .explain import app as explain_app
from .hub import app as hub_app
from .hub import push_trained
from .matching import evaluate_matcher
from .options import (
    AllowOwnPair,
    Decoding,
    DiversityPenalty,
    ExcludeSource,
    Fidelity,
    Lowercase,
    MeteorStages,
    MeteorVariant,
    Metrics,
    NumBeamGroups,
    NumSamples,
    Tokenize,
    WordVectors,
    choose_metrics,
    parse_decoding,
)
from .recipes import recipes

__all__ = ["app", "main"]

app = typer.Typer(
    # Every option may be written with underscores, as in transformers, or with dashes.
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 119,
        "token_normalize_func": lambda name: name.replace("_", "-"),
    },
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
)
app.add_typer(datasets_app, name="datasets")
app.add_typer(explain_app, name="explain-match")
app.command()(recipes)
app.command()(evaluate_matcher)
app.add_typer(hub_app)


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        args: Arguments without the program's name; None for those of the process.

    Exits with 2 and one line on standard error for mistakes that the user can mend, and with 128 + the signal's
    number where training was interrupted.
    """
    from ..training.signals import TrainingInterrupted

    try:
        app(args, prog_name="hf-paraphrase")
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except TrainingInterrupted as interruption:
        print(interruption, file=sys.stderr)
        sys.exit(interruption.exit_code)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hf-paraphrase {__version__}")
        raise typer.Exit


@app.callback()
def _app(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train, evaluate and use paraphrase models.

    \b
    hf-paraphrase train --recipe residual-lstm-synthetic --output-dir runs/first
    hf-paraphrase evaluate runs/first --output-dir runs/first/evaluation
    hf-paraphrase paraphrase runs/first "How do I learn to cook?" --num-return-sequences 3
    hf-paraphrase score --predictions ours.txt --references refs.txt --against theirs.txt
    """


class _TrainCommand(TyperCommand):
    """Adds the recipe's fields to `--help`."""

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:
        from ..training.arguments import ParaphraseConfig

        super().format_help(ctx, formatter)
        types = get_type_hints(ParaphraseConfig)
        options = {parameter.name for parameter in self.params}
        others = [field for field in fields(ParaphraseConfig) if field.name not in options]
        with formatter.section("Fields of training.yaml (those of config.json and generation_config.json work too)"):
            formatter.write_dl([(f"--{field.name}", _describe_field(field, types[field.name])) for field in others])


def _describe_field(field: Field, kind: Any) -> str:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    notes = [" | ".join(get_args(kind))] if get_origin(kind) is Literal else []
    notes.append("required" if default is MISSING else f"default: {json.dumps(default)}")
    return f"{field.metadata['help']}  [{'; '.join(notes)}]"


@app.command(cls=_TrainCommand, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def train(
    ctx: typer.Context,
    recipe: Annotated[
        str, typer.Option(help="One of `hf-paraphrase recipes`, or a folder with files like those of one.")
    ],
    output_dir: Annotated[Path, typer.Option(help="Where the model, the checkpoints and the logs go.")],
    dataset: TrainedCorpus = None,
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run in the output folder.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the output folder.")] = False,
    push_to_hub: Annotated[bool, typer.Option("--push-to-hub", help="Share the trained model on the Hub.")] = False,
    hub_model_id: Annotated[
        str | None, typer.Option(help="The repository; by default the output folder's name, in your namespace.")
    ] = None,
    hub_private_repo: Annotated[bool, typer.Option("--hub-private-repo", help="Make a new one private.")] = False,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--search", metavar="FIELD=VALUE,…", help="Train with each value; repeatable, for all combinations."
        ),
    ] = None,
) -> None:
    """Train a model as a recipe says.

    \b
    hf-paraphrase train --recipe residual-lstm-mscoco --data-dir data/mscoco --output-dir runs/mscoco
    hf-paraphrase train --recipe residual-lstm-synthetic --output-dir runs/wide --hidden_size 512 --seed 7
    hf-paraphrase train --recipe residual-lstm-quora-small --output-dir runs/mine \\
        --dataset pairs --data-files mine.csv --dataset-kwargs source_column=question
    accelerate launch scripts/train_paraphraser.py --recipe residual-lstm-mscoco ...

    Any field of the recipe can be overridden: --field value. A push that fails leaves the trained model as it is; the
    command that it prints finishes it.
    """
    from ..training.launch import start_processes

    start_processes()
    from ..training.loop import train as run_training
    from ..training.recipe import load_recipe

    chosen = load_recipe(recipe).override(_parse_overrides(ctx.args))
    chosen, corpus = choose_corpus(chosen, dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    if grid and push_to_hub:
        raise InputError("--search trains several models; share the best one afterwards with: hf-paraphrase push DIR")
    repo_id = hub_model_id or output_dir.resolve().name
    if push_to_hub:
        from ..hub.push import check_access

        check_access(repo_id)
    if grid:
        from ..training.search import parse_grid, search

        for run in search(chosen, parse_grid(grid), output_dir, data_dir=corpus.data_dir)["runs"]:
            typer.echo(f"{run['cost']:.4f}  {run['folder']}")
        return
    run_training(chosen, output_dir, data_dir=corpus.data_dir, overwrite=overwrite, resume=resume)
    if push_to_hub:
        push_trained(output_dir, repo_id, hub_private_repo)


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="Checkpoint folder or Hub repository.")],
    dataset: EvaluatedCorpus = None,
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    split: EvaluatedSplit = "test",
    max_samples: MaxSamples = None,
    sample_seed: SampleSeed = None,
    num_beams: Annotated[
        list[int] | None, typer.Option(min=1, help="Beam width; repeatable.  [default: 5 and 10]")
    ] = None,
    max_new_tokens: Annotated[int | None, typer.Option(min=1, help="The longest output, in tokens.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences at once.")] = 64,
    metrics: Metrics = "bleu",
    lowercase: Lowercase = True,
    tokenize: Tokenize = "13a",
    word_vectors: WordVectors = None,
    meteor_variant: MeteorVariant = "nltk",
    meteor_stages: MeteorStages = "exact,stem,wordnet",
    num_neighbors: Annotated[
        list[int] | None, typer.Option(min=1, help="Retrieved pairs a row (FSET); repeatable.  [default: 1]")
    ] = None,
    allow_own_pair: AllowOwnPair = False,
    num_candidates: Annotated[int | None, typer.Option(min=1, help="Outputs to choose from.")] = None,
    select: Annotated[str, typer.Option(help="How: score, jaccard, embedding or matcher.")] = "score",
    matcher: Annotated[str | None, typer.Option(help="Model of sentence pairs that `--select matcher` asks.")] = None,
    decoding: Decoding = "beam",
    num_beam_groups: NumBeamGroups = None,
    diversity_penalty: DiversityPenalty = None,
    fidelity: Fidelity = None,
    exclude_source: ExcludeSource = None,
    num_return_sequences: Annotated[
        int, typer.Option(min=1, help="Outputs of each row, of which the likeliest is scored.")
    ] = 1,
    group_by: Annotated[str | None, typer.Option(help="Column whose values are scored apart, as in_train.")] = None,
    n_samples: NumSamples = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the intervals.")] = 12345,
    output_dir: Annotated[Path | None, typer.Option(help="Where the outputs and results.json go.")] = None,
) -> None:
    """Paraphrase a split and score it, with 95% intervals, baselines and the paper's row beside it.

    \b
    hf-paraphrase evaluate runs/first --output-dir runs/first/evaluation
    hf-paraphrase evaluate runs/first --metrics bleu,ter,rouge
    hf-paraphrase evaluate facebook/bart-base --dataset mscoco --data-dir data/mscoco --num-beams 1 --max-samples 500
    hf-paraphrase evaluate runs/first --decoding dips --num-beams 3 --num-return-sequences 3
    """
    from ..evaluation.paraphrases import evaluate_paraphraser, format_results

    chosen = choose_metrics(
        metrics,
        lowercase=lowercase,
        tokenize=tokenize,
        word_vectors=word_vectors,
        meteor_variant=meteor_variant,
        meteor_stages=meteor_stages,
    )
    decoding_options = parse_decoding(
        decoding,
        num_beams or [5, 10],
        num_beam_groups=num_beam_groups,
        diversity_penalty=diversity_penalty,
        fidelity=fidelity,
        exclude_source=exclude_source,
    )
    corpus = read_evaluated_corpus(model, dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    rows = take_rows(corpus.load(split), max_samples, sample_seed)
    results = evaluate_paraphraser(
        model,
        None,
        rows,
        num_beams=num_beams or [5, 10],
        batch_size=batch_size,
        metrics=chosen["metrics"],
        metric_options=chosen["options"],
        n_samples=n_samples,
        seed=seed,
        output_dir=output_dir,
        split=split,
        data=corpus.describe(max_samples=max_samples, sample_seed=sample_seed),
        num_neighbors=num_neighbors or [1],
        allow_own_pair=allow_own_pair,
        num_candidates=num_candidates,
        select=select,
        matcher=matcher,
        num_return_sequences=num_return_sequences,
        group_by=group_by,
        **decoding_options,
        **({} if max_new_tokens is None else {"max_new_tokens": max_new_tokens}),
    )
    typer.echo(format_results(results))


@app.command()
def paraphrase(
    model: Annotated[str, typer.Argument(help="Checkpoint folder or Hub repository.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines of standard input.")] = None,
    num_return_sequences: Annotated[int, typer.Option(min=1, help="Paraphrases of each text.")] = 1,
    num_beams: Annotated[
        int | None, typer.Option(min=1, help="Beam width; by default the model's, widened to what is asked for.")
    ] = None,
    do_sample: Annotated[bool, typer.Option("--do-sample", help="Sample in place of searching.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature.")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(min=1, help="The longest output, in tokens.")] = None,
    num_neighbors: Annotated[
        int | None, typer.Option(min=1, help="Retrieved pairs, each of which gives a paraphrase (FSET).")
    ] = None,
    num_candidates: Annotated[int | None, typer.Option(min=1, help="Outputs to choose one from.")] = None,
    select: Annotated[str | None, typer.Option(help="How: score, jaccard, embedding or matcher.")] = None,
    matcher: Annotated[str | None, typer.Option(help="Model of sentence pairs that `--select matcher` asks.")] = None,
    decoding: Decoding = "beam",
    num_beam_groups: NumBeamGroups = None,
    diversity_penalty: DiversityPenalty = None,
    fidelity: Fidelity = None,
    exclude_source: ExcludeSource = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts at once.")] = 16,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a text: source, paraphrases.")] = False,
) -> None:
    """Paraphrase texts, in their order, one output a line.

    \b
    hf-paraphrase paraphrase runs/first "How do I learn to cook?" --num-return-sequences 3
    hf-paraphrase paraphrase runs/first --do-sample --temperature 0.8 --json < questions.txt > paraphrases.jsonl
    hf-paraphrase paraphrase runs/first "How do I learn to cook?" --num-return-sequences 3 --decoding diverse_beam

    With several paraphrases of each text, the text itself comes before them and an empty line after them.
    """
    from transformers import pipeline

    from ..generation.engine import load_paraphraser

    loaded, tokenizer = load_paraphraser(model)
    pipe = pipeline("text2text-generation", model=loaded, tokenizer=tokenizer)
    if num_beams is None:
        usual = loaded.generation_config.num_beams or pipe.default_parameters["num_beams"]
        num_beams = 1 if do_sample else max(usual, num_return_sequences)
    if num_beams < num_return_sequences and not do_sample:
        raise InputError(f"--num-beams {num_beams} cannot return {num_return_sequences} paraphrases; widen it")
    if do_sample and decoding != "beam":
        raise InputError(f"--do-sample: {decoding} draws nothing at random")
    generate_kwargs = {
        "num_return_sequences": num_return_sequences,
        "num_beams": num_beams,
        "do_sample": do_sample,
        "temperature": temperature,
        "max_new_tokens": max_new_tokens,
        "num_neighbors": num_neighbors,
        "num_candidates": num_candidates,
        "select": select,
        "matcher": matcher,
        **parse_decoding(
            decoding,
            [num_beams],
            num_beam_groups=num_beam_groups,
            diversity_penalty=diversity_penalty,
            fidelity=fidelity,
            exclude_source=exclude_source,
        ),
    }
    generate_kwargs = {name: value for name, value in generate_kwargs.items() if value is not None}
    is_single = num_return_sequences == 1 and num_neighbors in (None, 1)
    sources = texts or [line.rstrip("\n") for line in sys.stdin]
    outputs = pipe((source for source in sources), batch_size=batch_size, **generate_kwargs)
    for source, output in zip(sources, outputs, strict=True):
        paraphrases = [entry["generated_text"] for entry in output]
        if as_json:
            typer.echo(json.dumps({"source": source, "paraphrases": paraphrases}, ensure_ascii=False))
        else:
            typer.echo("\n".join(paraphrases if is_single else [source, *paraphrases, ""]))


@app.command()
def curves(
    runs: Annotated[list[Path], typer.Argument(help="Output folders of `train`.")],
    output: Annotated[Path, typer.Option(help="The picture to write, for instance curves.png.")],
    fine_tuning: Annotated[
        bool, typer.Option("--fine-tuning", help="Of language models: nits per character, on the general set too.")
    ] = False,
) -> None:
    """Draw the learning curves of one or several runs: train and validation perplexity by epoch.

    \b
    hf-paraphrase curves runs/plain runs/residual --output curves.png
    hf-paraphrase curves runs/fine-tuned runs/from-scratch --fine-tuning --output curves.png
    """
    from ..training.curves import plot_learning_curves

    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("curves needs matplotlib; install it with: pip install 'hf-paraphrase[plots]'")
    if fine_tuning:
        from ..evaluation.language_models import plot_fine_tuning

        plot_fine_tuning({str(run): run for run in runs}, output)
    else:
        plot_learning_curves({str(run): run for run in runs}, output)


@app.command()
def score(
    predictions: Annotated[
        list[Path],
        typer.Option(help="Outputs, as .jsonl, .csv, .tsv or lines of text; repeat it for several runs."),
    ],
    references: Annotated[
        list[Path] | None,
        typer.Option(help="References; repeatable.  [default: those beside the predictions]"),
    ] = None,
    sources: Annotated[
        Path | None, typer.Option(help="Sources, for pinc and ibleu.  [default: those beside the predictions]")
    ] = None,
    metrics: Metrics = "bleu,ter",
    against: Annotated[
        list[Path] | None, typer.Option(help="Outputs of another system to compare with; repeat it for several runs.")
    ] = None,
    lowercase: Lowercase = True,
    tokenize: Tokenize = "13a",
    word_vectors: WordVectors = None,
    meteor_variant: MeteorVariant = "nltk",
    meteor_stages: MeteorStages = "exact,stem,wordnet",
    n_samples: NumSamples = 1000,
    n_trials: Annotated[int, typer.Option(min=2, help="Shuffles for the p-values.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of both.")] = 12345,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV in place of the table.")] = False,
) -> None:
    """Score outputs with 95% intervals, and say whether they differ from another system's by more than chance.

    \b
    hf-paraphrase score --predictions runs/first/evaluation/predictions-test-beam5.jsonl --metrics bleu,ter,rouge
    hf-paraphrase score --predictions ours.txt --references refs1.txt --references refs2.txt --against theirs.txt
    hf-paraphrase score --predictions paraphrases.jsonl --references test.csv --metrics bleu,pinc

    A .jsonl file has an object a line, a .csv or .tsv file columns that its first line names; they are read by name:
    prediction (or the first of paraphrases, as `paraphrase --json` writes them), references, reference or target, and
    source. Any other file has a text a line.

    Case is ignored unless --cased is given, as in `evaluate`: most models here write lower case only, which references
    with capitals would make look worse than it is. The signatures say which, as case:lc or case:mixed.
    """
    from ..metrics.score_files import read_scored_texts
    from ..metrics.score_table import format_as_csv, format_as_json, format_rows, score_systems

    chosen = choose_metrics(
        metrics,
        lowercase=lowercase,
        tokenize=tokenize,
        word_vectors=word_vectors,
        meteor_variant=meteor_variant,
        meteor_stages=meteor_stages,
    )
    rows = score_systems(
        read_scored_texts(predictions, references or (), sources),
        read_scored_texts(against, references or (), sources) if against else None,
        **chosen,
        n_samples=n_samples,
        n_trials=n_trials,
        seed=seed,
    )
    if as_json or as_csv:
        typer.echo((format_as_json if as_json else format_as_csv)(rows))
    else:
        typer.echo(format_rows(rows, emphasise=partial(typer.style, bold=True)))


def _parse_overrides(args: list[str]) -> dict[str, str]:
    """`["--learning-rate", "0.5", "--optim=sgd"]` -> `{"learning_rate": "0.5", "optim": "sgd"}`."""
    overrides, rest = {}, iter(args)
    for argument in rest:
        if not argument.startswith("--"):
            raise InputError(f"unexpected argument {argument!r}; override a field of the recipe with --field value")
        name, has_value, value = argument[2:].partition("=")
        if not has_value:
            value = next(rest, "--")
            if value.startswith("--"):
                raise InputError(f"--{name} needs a value, for instance --{name} true")
        overrides[name.replace("-", "_")] = value
    return overrides
