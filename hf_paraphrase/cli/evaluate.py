"""The commands that score a model, each for its kind, or outputs. What is heavy is imported inside the commands."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

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
    find_training_config,
    pick_split,
    read_evaluated_corpus,
    take_rows,
)
from .options import (
    AllowOwnPair,
    Decoding,
    DiversityPenalty,
    Errors,
    ExcludeSource,
    Fidelity,
    Lowercase,
    Matcher,
    MeteorStages,
    MeteorVariant,
    Metrics,
    Model,
    NumBeamGroups,
    NumSamples,
    ReplaceUnknown,
    RestoreSurface,
    RougeTokenize,
    Select,
    Tokenize,
    TrustRemoteCode,
    WordVectors,
    check_ability,
    check_matplotlib,
    choose_metrics,
    parse_decoding,
)
from .terminal import echo

__all__ = ["app"]

app = typer.Typer()


@app.command()
def evaluate(
    model: Model,
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
    rouge_tokenize: RougeTokenize = "ascii",
    num_neighbors: Annotated[
        list[int] | None, typer.Option(min=1, help="Retrieved pairs a row (FSET); repeatable.  [default: 1]")
    ] = None,
    allow_own_pair: AllowOwnPair = False,
    num_candidates: Annotated[int | None, typer.Option(min=1, help="Outputs to choose from.")] = None,
    select: Select = "score",
    matcher: Matcher = None,
    decoding: Decoding = "beam",
    temperature: Annotated[float | None, typer.Option(help="Of --decoding sample.")] = None,
    num_beam_groups: NumBeamGroups = None,
    diversity_penalty: DiversityPenalty = None,
    fidelity: Fidelity = None,
    exclude_source: ExcludeSource = None,
    num_return_sequences: Annotated[
        int, typer.Option(min=1, help="Outputs of each row; the likeliest is scored, with FSET one drawn of them.")
    ] = 1,
    group_by: Annotated[str | None, typer.Option(help="Column whose values are scored apart, as in_train.")] = None,
    replace_unknown: ReplaceUnknown = False,
    restore_surface: RestoreSurface = False,
    n_samples: NumSamples = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the intervals.")] = 12345,
    output_dir: Annotated[Path | None, typer.Option(help="Where the outputs and results.json go.")] = None,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Paraphrase a split and score it, with 95% intervals, baselines and the paper's row beside it.

    \b
    hf-paraphrase evaluate runs/first --output-dir runs/first/evaluation
    hf-paraphrase evaluate runs/first --metrics bleu,ter,rouge
    hf-paraphrase evaluate facebook/bart-base --dataset mscoco --data-dir data/mscoco --num-beams 1 --max-samples 500
    hf-paraphrase evaluate runs/first --decoding dips --num-beams 3 --num-return-sequences 3
    hf-paraphrase evaluate runs/first --decoding sample --temperature 0.5 --num-candidates 20 --select mbr
    hf-paraphrase evaluate runs/first --replace-unknown --restore-surface

    Models of other kinds have commands of their own: evaluate-matcher, evaluate-autoencoder, evaluate-language-model.
    """
    from ..evaluation.paraphrases import evaluate_paraphraser, format_results

    chosen = choose_metrics(
        metrics,
        lowercase=lowercase,
        tokenize=tokenize,
        word_vectors=word_vectors,
        meteor_variant=meteor_variant,
        meteor_stages=meteor_stages,
        rouge_tokenize=rouge_tokenize,
    )
    decoding_options = parse_decoding(
        "beam" if decoding == "sample" else decoding,
        num_beams or [5, 10],
        num_beam_groups=num_beam_groups,
        diversity_penalty=diversity_penalty,
        fidelity=fidelity,
        exclude_source=exclude_source,
    )
    decoding_options |= _parse_sampling(decoding, temperature)
    corpus = read_evaluated_corpus(model, dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    rows = take_rows(corpus.load(split), max_samples, sample_seed)
    results = evaluate_paraphraser(
        model,
        None,
        rows,
        num_beams=num_beams,
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
        replace_unknown=replace_unknown,
        restore_surface=restore_surface,
        trust_remote_code=trust_remote_code,
        **decoding_options,
        **({} if max_new_tokens is None else {"max_new_tokens": max_new_tokens}),
    )
    echo(format_results(results))


def _parse_sampling(decoding: str, temperature: float | None) -> dict[str, Any]:
    """What `evaluate_paraphraser` takes for sampling; a search takes none of it."""
    if decoding == "sample":
        return {"decoding": "sample"} | ({} if temperature is None else {"temperature": temperature})
    if temperature is not None:
        raise InputError("--temperature is an option of --decoding sample")
    return {}


@app.command()
def evaluate_matcher(
    model: Model,
    dataset: EvaluatedCorpus = None,
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    split: EvaluatedSplit = "test",
    threshold_split: Annotated[str, typer.Option(help="Split that chooses the threshold of F1.")] = "validation",
    max_samples: MaxSamples = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Pairs at once.")] = 64,
    n_samples: NumSamples = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the intervals.")] = 12345,
    output_dir: Annotated[Path | None, typer.Option(help="Where the predictions and results.json go.")] = None,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Label the pairs of a split, or rank its candidates, with 95% intervals.

    Beside the model stand the overlap of words in its place, and published rows.

    \b
    hf-paraphrase evaluate-matcher runs/twitter --data-dir data/twitter_url --output-dir runs/twitter/evaluation
    hf-paraphrase evaluate-matcher runs/first --dataset wikiqa --data-dir data/wikiqa --split validation
    """
    from ..evaluation.matches import evaluate_matcher as evaluate
    from ..evaluation.matches import format_matching_results

    check_ability(model, "labels_pairs", of_any_architecture=True, trust_remote_code=trust_remote_code)
    corpus = read_evaluated_corpus(model, dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    splits = corpus.load()
    rows = take_rows(pick_split(splits, split), max_samples)
    results = evaluate(
        model,
        None,
        rows,
        splits.get(threshold_split),
        batch_size=batch_size,
        n_samples=n_samples,
        seed=seed,
        output_dir=output_dir,
        split=split,
        data=corpus.describe(max_samples=max_samples),
        trust_remote_code=trust_remote_code,
    )
    echo(format_matching_results(results))


@app.command()
def evaluate_autoencoder(
    runs: Annotated[list[Path], typer.Argument(help="Output folders of `train`.")],
    dataset: EvaluatedCorpus = None,
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    split: EvaluatedSplit = "test",
    max_samples: MaxSamples = None,
    num_beams: Annotated[int, typer.Option(min=1, help="Beam width; the paper's is 1, greedy.")] = 1,
    batch_size: Annotated[int, typer.Option(min=1, help="Documents at once.")] = 32,
    n_samples: NumSamples = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the intervals and the shuffled baseline.")] = 12345,
    plot: Annotated[Path | None, typer.Option(help="A PNG file of exact reconstructions by length.")] = None,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Score what autoencoders of documents write, with 95% intervals, the paper's figures and two baselines beside it.

    \b
    hf-paraphrase evaluate-autoencoder runs/hierarchical --data-dir data/hotel_reviews
    hf-paraphrase evaluate-autoencoder runs/standard runs/hierarchical --plot reconstruction.png

    Outputs and results go to RUN/evaluation.
    """
    if plot is not None:
        check_matplotlib("--plot")
    from ..evaluation.documents import evaluate_autoencoder as evaluate
    from ..evaluation.documents import format_document_results, plot_reconstruction
    from ..generation.engine import load_paraphraser

    results = {}
    for run in runs:
        corpus = read_evaluated_corpus(str(run), dataset, dataset_name, data_dir, data_files, dataset_kwargs)
        rows = take_rows(corpus.load(split), max_samples)
        results[run.name] = evaluate(
            *load_paraphraser(run, trust_remote_code=trust_remote_code),
            rows,
            batch_size=batch_size,
            n_samples=n_samples,
            seed=seed,
            output_dir=run / "evaluation",
            split=split,
            data=corpus.describe(),
            num_beams=num_beams,
        )
        echo(format_document_results(results[run.name]))
    if plot is not None:
        plot_reconstruction(results, plot)


@app.command()
def evaluate_language_model(
    model: Model,
    dataset: EvaluatedCorpus = None,
    dataset_name: DatasetName = None,
    data_dir: DataDir = None,
    data_files: DataFiles = None,
    dataset_kwargs: DatasetKwargs = None,
    split: EvaluatedSplit = "test",
    max_samples: Annotated[int | None, typer.Option(min=1, help="At most so many examples, evenly spaced.")] = None,
    objective: Annotated[
        str | None,
        typer.Option(help="What is predicted: next_sentence or autoencode.  [default: what the model has learnt]"),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Examples at once.")] = 64,
    n_samples: NumSamples = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the intervals.")] = 12345,
    output_dir: Annotated[Path | None, typer.Option(help="Where results.json goes.")] = None,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Score how well a language model of sentences predicts a split, in nits per character, with its 95% interval.

    \b
    hf-paraphrase evaluate-language-model runs/sarah-lm --data-dir data/gutenberg
    hf-paraphrase evaluate-language-model you/sarah-lm --dataset books --data-dir data/books --output-dir runs/books
    """
    from ..evaluation.language_models import evaluate_language_model as evaluate
    from ..generation.engine import load_paraphraser

    check_ability(model, "embeds_sentences", trust_remote_code=trust_remote_code)
    corpus = read_evaluated_corpus(model, dataset, dataset_name, data_dir, data_files, dataset_kwargs)
    if objective is None:
        objective = getattr(find_training_config(model), "objective", "next_sentence")
    if objective not in ("next_sentence", "autoencode"):
        raise InputError(f"--objective must be next_sentence or autoencode, not {objective}")
    results = evaluate(
        *load_paraphraser(model, trust_remote_code=trust_remote_code),
        corpus.load(split),
        objective=objective,
        max_samples=max_samples,
        batch_size=batch_size,
        n_samples=n_samples,
        seed=seed,
        output_dir=output_dir,
        split=split,
        data=corpus.describe(),
    )
    (score,) = results.entries[0].scores
    echo(f"{corpus.path}, split {split}, {results.data.rows:,} examples of {objective}")
    echo(f"nits per character: {score.score:.3f} ({score.low:.3f} to {score.high:.3f})")


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
    rouge_tokenize: RougeTokenize = "ascii",
    n_samples: NumSamples = 1000,
    n_trials: Annotated[int, typer.Option(min=2, help="Shuffles for the p-values.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of both.")] = 12345,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV in place of the table.")] = False,
    errors: Errors = "strict",
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
    from ..files import check_errors
    from ..metrics.score_files import read_scored_texts
    from ..metrics.score_table import format_as_csv, format_as_json, format_rows, score_systems

    chosen = choose_metrics(
        metrics,
        lowercase=lowercase,
        tokenize=tokenize,
        word_vectors=word_vectors,
        meteor_variant=meteor_variant,
        meteor_stages=meteor_stages,
        rouge_tokenize=rouge_tokenize,
    )
    check_errors(errors)
    rows = score_systems(
        read_scored_texts(predictions, references or (), sources, errors),
        read_scored_texts(against, references or (), sources, errors) if against else None,
        **chosen,
        n_samples=n_samples,
        n_trials=n_trials,
        seed=seed,
    )
    if as_json or as_csv:
        echo((format_as_json if as_json else format_as_csv)(rows))
    else:
        echo(format_rows(rows, emphasise=partial(typer.style, bold=True)))
