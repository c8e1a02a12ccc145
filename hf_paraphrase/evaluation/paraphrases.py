"""A split and a model -> paraphrases, their scores and perplexity, and the files that hold them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..common.environment import describe_environment
from ..common.errors import InputError
from ..common.files import write_lines
from ..generation.backends import load_writer
from ..generation.engine import compute_perplexity, generate_several
from ..generation.language_model_writer import LanguageModelWriter
from ..generation.loading import load_paraphraser
from ..generation.paraphrase_table import ParaphrasedTexts
from ..generation.paraphraser import Paraphraser
from ..generation.seeded_sampling import sample_seeded
from ..generation.writers import Ask, write
from ..metrics.inputs import check_texts
from ..metrics.score_files import ScoredTexts
from ..metrics.self_bleu.scoring import self_bleu
from ..models.layers.portable import can
from ..models.search.generation_request import GenerationRequest
from ..models.search.pipeline_checks import find_pairs, load_retriever
from ..models.text.candidate_selection import tokens
from ..models.text.unknown_words import check_replaceable
from ..papers import find_paper_rows
from ..retrieval import ParaphraseRetriever
from .results import (
    Decoding,
    Entry,
    Group,
    Results,
    Score,
    Speed,
    describe_data,
    describe_model,
    describe_papers,
    describe_retrieval,
    format_scores,
)
from .scoring import Scoring, load_given, save_results, score_without_interval

# How `select` names the choice of a `Paraphraser`, and of how many candidates it chooses one.
CHOSEN, CANDIDATES = "paraphraser", 10
# The names of the baselines.
COPIED = "the source, copied"
FIRST_REFERENCE = "first reference, against the source and the other references"
NEAREST_TARGET = "the target of the nearest pair, copied"


def evaluate_paraphraser(
    model: PreTrainedModel | str | os.PathLike,
    tokenizer: PreTrainedTokenizerBase | None,
    dataset: Dataset,
    *,
    num_beams: Sequence[int] | None = None,
    batch_size: int = 64,
    metrics: Sequence[str] = ("bleu",),
    metric_options: Mapping[str, Mapping[str, Any]] | None = None,
    n_samples: int = 1000,
    seed: int = 12345,
    output_dir: str | os.PathLike | None = None,
    split: str = "test",
    data: Mapping[str, Any] | None = None,
    num_neighbors: Sequence[int] = (1,),
    retriever: ParaphraseRetriever | None = None,
    allow_own_pair: bool = False,
    num_candidates: int | None = None,
    select: str = "score",
    choose: bool = False,
    matcher: str | os.PathLike | None = None,
    decoding: str = "beam",
    num_return_sequences: int = 1,
    group_by: str | None = None,
    replace_unknown: bool = False,
    restore_surface: bool = False,
    prompt: str | os.PathLike | None = None,
    trust_remote_code: bool = False,
    **generate_kwargs: Any,
) -> Results:
    """Paraphrase a split, and score the outputs and baselines against all references.

    The baselines use the same rows: one hands back each source as its own paraphrase; one scores the first reference
    against the source and the other references, as many texts as an output of the model is scored against. For models
    that edit retrieved pairs, a third returns the nearest pair's target. Scores are those of `hf-paraphrase score`.

    A model that edits by retrieved pairs writes one output by each of the nearest, or they share out
    `num_return_sequences`: of each row one output, drawn at random, is scored, and self-BLEU says how alike they are.
    The rows K = 1, 3, 5 of Kazemnejad et al. 2020, appendix A.2, are of a model each, trained with as many neighbours;
    those of one model are not to be put beside them. Any other model writes `num_return_sequences`, of which the
    likeliest is scored.

    Where train and test overlap, the nearest pair is often (x, y) itself, and the answer is handed over. So pairs that
    share a sentence with the row, its source or one of its references, on either side, are left out; sentences are
    equal that differ in case or white space alone.

    Args:
        model: Any `AutoModelForSeq2SeqLM` or causal language model, or where to load one from.
        tokenizer: Its tokenizer; None for the one saved with a model that is given by its path.
        dataset: Rows of `source` and `references`, or of `source` and one `target`.
        num_beams: Beam widths, each decoded and scored; 1 is greedy. None for 5 and 10, or where nothing is searched.
        batch_size: Rows at once.
        metrics: Names out of `metrics.score_table.SCORED_METRICS`.
        metric_options: For a metric the options of its function. Case-sensitive metrics ignore case by default, since
            word-level tokenizers lower-case; signatures say so.
        n_samples: Resampled corpora for the 95% intervals.
        seed: Of that sampling, and of `decoding="sample"`; any other decoding draws nothing.
        output_dir: Where to write `predictions-SPLIT-beamN.jsonl` (of another decoding `-diverse_beamN`, `-dipsN`
            or `-sample1`) and `results-SPLIT.json`; None to write nothing. With several outputs per row, the first
            file has them all, as `predictions`.
        split: Name of the split.
        data: Where the rows come from, by the fields of `Data`: `path`, `name`, `kwargs` of the builder.
        num_neighbors: How many pairs; each number is scored apart. Of no account for other models.
        retriever: Finds the pairs; None for the one saved with the model.
        allow_own_pair: Whether to edit by pairs that share the row's source or a reference too, as the paper does.
        num_candidates: Outputs to choose from at each decoding, as `generate_paraphrases` takes it.
        select: How they are chosen.
        choose: Whether they are chosen as a `Paraphraser` does, by its own floors and scores. If none passes, the
            source is used, and `answered` counts the other rows. For models that edit by no pairs.
        matcher: The model that `select="matcher"` asks.
        decoding: How outputs are found: a key of `DECODINGS`, or "sample" (with `temperature`,
            `top_k`, `top_p`); its own arguments are among `generate_kwargs`.
        num_return_sequences: Outputs of each row; by several pairs, the nearer ones write one more where they cannot
            share evenly. With 1, each pair writes one.
        group_by: A column of the dataset, such as `in_train`: its values' rows are scored apart too.
        replace_unknown: Whether each unknown word that the model writes becomes the word of the source that it
            attended to, as `GenerationRequest` has it.
        restore_surface: Whether outputs get the case and the spacing of ordinary text before they are scored.
        prompt: YAML file with the prompt of a language model; None for its own, or that of the package.
        trust_remote_code: Let what is loaded by its name run its own code.
        generate_kwargs: Handed to `model.generate`, for instance `max_new_tokens`; the rest is up to the model's
            generation config.

    Returns:
        What `results-SPLIT.json` holds: an entry for each beam width, and each number of pairs if there are any;
        the baselines; and the rows of a paper with this architecture, if any. `counts` say how many rows have
        `doubles` and `copies` of the source among their outputs, over how many `reference_tokens` the perplexity is
        the mean, and of a model that edits by pairs how many rows have one of their own, `rows_with_own_pair`.

    Raises:
        InputError: Rows that cannot be scored, no tokenizer, no retriever, an unknown metric or column, both one
            output chosen of several and several asked for, or unknown words that the model cannot replace.
    """
    rows = _Rows.read(dataset, group_by)
    found = describe_data(data, split, len(rows.sources))
    scoring = Scoring(metrics, metric_options or {}, n_samples=n_samples, seed=seed)
    if num_return_sequences > 1 and num_candidates is not None:
        raise InputError("`num_candidates` leaves one output of each row: `num_return_sequences` must be 1")
    if choose and (num_return_sequences > 1 or select != "score"):
        raise InputError("`choose` decides on one output itself: leave `num_return_sequences` and `select` out")
    sampling = {"do_sample": decoding == "sample"} | ({"seed": seed} if decoding == "sample" else {})
    widths = num_beams or ([1] if decoding == "sample" else [CANDIDATES] if choose else [5, 10])
    if decoding == "sample" and set(widths) != {1}:
        raise InputError(f"`num_beams`: {list(widths)}, but `decoding='sample'` searches nothing: leave it out")
    if output_dir is not None:
        Path(output_dir).mkdir(parents=True, exist_ok=True)
    model, tokenizer = load_given(model, tokenizer, partial(load_paraphraser, causal=True), trust_remote_code)
    writer = None
    if not model.config.is_encoder_decoder:
        writer = cast(LanguageModelWriter, load_writer(model, tokenizer, prompt=prompt))
    elif prompt is not None:
        raise InputError(f"`prompt` is for language models; a {type(model).__name__} reads the text itself")
    if writer is not None and num_candidates is not None and not choose:
        raise InputError("`num_candidates`: outputs of a language model are chosen by `choose` alone")
    if choose and can(model.config, "reads_pairs"):
        raise InputError("`choose`: of a model that edits by retrieved pairs, `compare --encoder` scores the choice")
    several = num_return_sequences > 1 and can(model.config, "reads_pairs")
    if several and (len(num_neighbors) > 1 or num_neighbors[0] > num_return_sequences):
        raise InputError(
            f"`num_return_sequences`: {num_return_sequences} outputs cannot be shared out among {list(num_neighbors)} "
            "pairs; `num_neighbors` must be one number, and no larger"
        )
    if replace_unknown:
        try:
            check_replaceable(model, tokenizer)
        except ValueError as error:
            raise InputError(str(error)) from error
    words = {"replace_unknown": replace_unknown, "restore_surface": restore_surface}
    generate_kwargs |= {name: value for name, value in words.items() if value}
    # Asked now: the working tree may change while the model writes.
    environment = {"batch_size": batch_size, "seed": seed, **describe_environment(model.device)}
    # The baselines ask no model: what cannot be scored shows before hours of generation.
    first = [texts[0] for texts in rows.references]
    others = [[source, *texts[1:]] for source, texts in zip(rows.sources, rows.references, strict=True)]
    baselines = [
        Entry(COPIED, "baseline", **rows.score(rows.sources, scoring)),
        Entry(FIRST_REFERENCE, "baseline", **_Rows(rows.sources, others, {}).score(first, scoring)),
    ]
    pairs, counts = _find_pairs(model, retriever, rows, max(num_neighbors), allow_own_pair, trust_remote_code)
    nearest = [group[0] for group in pairs] if pairs else None
    if nearest:
        handed = rows.score([target for _, target in nearest], scoring)
        baselines.append(Entry(NEAREST_TARGET, "baseline", **handed))

    if writer is None:
        perplexity = compute_perplexity(model, tokenizer, rows.sources, first, batch_size=batch_size, pairs=nearest)
    else:
        perplexity = _perplexity_of_answers(writer, rows.sources, first, batch_size)
    counts["reference_tokens"] = int(perplexity["tokens"])
    known = describe_model(model, perplexity=perplexity["perplexity"], counts=counts)
    asked = Decoding(
        decoding,
        allow_own_pair=allow_own_pair if pairs else None,
        num_candidates=num_candidates or (CANDIDATES if choose else None),
        select=CHOSEN if choose else None if num_candidates is None else select,
        matcher=None if matcher is None else os.fspath(matcher),
        num_return_sequences=num_return_sequences,
        generate_kwargs=generate_kwargs | sampling,
    )
    answerer = Paraphraser(model, tokenizer, trust_remote_code=trust_remote_code, prompt=prompt) if choose else writer
    settled = _resolve_arguments(model, tokenizer, asked)
    entries = []
    for width in widths:
        way = replace(asked, num_beams=width)
        written = _decode(model, tokenizer, rows.sources, way, pairs, answerer, batch_size, trust_remote_code)
        for k in num_neighbors if pairs else [None]:
            how = replace(way, num_neighbors=k, generate_kwargs=settled)
            entry = _score(replace(known, decoding=how), rows, written, scoring)
            if output_dir is not None:
                name = _name_outputs(split, how)
                entry = replace(entry, outputs=name)
                _write_outputs(Path(output_dir) / name, rows, *written.take(how, seed))
            entries.append(entry)

    # A paper's rows are shown next to ours of the same beam width, and not with samples.
    searched = set() if decoding == "sample" else set(widths)
    paper = [row for row in find_paper_rows(model.config, found.path) if row.num_beams in {None, *searched}]
    results = Results("paraphrases", found, (*entries, *baselines, *describe_papers(paper)), environment)
    return save_results(results, output_dir)


def format_results(results: Results) -> str:
    """The scores as text: a line for each system, ours first, the baselines and the paper's rows below."""
    entries = results.of("model")
    speeds = {one.decoding.num_beams: one.speed.per_second for one in entries if one.decoding and one.speed}
    several = [(one, one.decoding.num_outputs) for one in entries if one.decoding and one.diversity]
    return format_scores(
        results,
        1,
        f"perplexity of the first references: {entries[0].perplexity:.2f}",
        f"sentences a second: {', '.join(f'{speed:.1f} (beam {width})' for width, speed in speeds.items())}",
        *(
            f"answered: {entry.counts['answered']} of {results.data.rows} rows; of the others the source is scored"
            for entry in entries
            if "answered" in entry.counts
        ),
        *describe_retrieval(results),
        *(
            f"self-BLEU-2 of {number} outputs a row: {entry.score_of('self_bleu_2').score:.1f}"
            for entry, number in several
        ),
        *(
            f"rows with a double among {number} outputs: {entry.counts['doubles']}, with a copy of the source: "
            f"{entry.counts['copies']}"
            for entry, number in several
        ),
    )


@dataclass(frozen=True)
class _Rows:
    """Texts to paraphrase, what their outputs are scored against, and the rows of each group by column and value."""

    sources: list[str]
    references: list[list[str]]
    groups: dict[tuple[str, Any], list[int]]

    @classmethod
    def read(cls, dataset: Dataset, group_by: str | None) -> _Rows:
        """Read the columns of a dataset, and refuse what cannot be scored."""
        columns = dataset.column_names
        references = "references" if "references" in columns else "target"
        if "source" not in columns or references not in columns:
            raise InputError(
                f"the dataset has the columns {columns}; needed are `source` and `references` (or `target`)"
            )
        if group_by is not None and group_by not in columns:
            raise InputError(f"`group_by`: the dataset has no column {group_by}, only {', '.join(columns)}")
        groups: dict[tuple[str, Any], list[int]] = {}
        if group_by:
            for row, value in enumerate(dataset[group_by]):
                groups.setdefault((group_by, value), []).append(row)
        sources, expected = check_texts(dataset["source"], dataset[references])
        return cls(sources, expected, {group: groups[group] for group in sorted(groups, key=str)})

    def take(self, rows: Sequence[int]) -> _Rows:
        """Some of the rows."""
        return _Rows([self.sources[row] for row in rows], [self.references[row] for row in rows], {})

    def score(self, outputs: Sequence[str], scoring: Scoring) -> dict[str, Any]:
        """The entry for one output per row: `scores`, and those of each of the `groups`."""
        groups = [
            Group(*group, len(rows), **self.take(rows).score([outputs[row] for row in rows], scoring))
            for group, rows in self.groups.items()
        ]
        scores = scoring.measure(scoring.collect(ScoredTexts([list(outputs)], self.references, self.sources)))
        return {"scores": scores, "groups": tuple(groups)} if groups else {"scores": scores}


class _Written(NamedTuple):
    """Outputs of each row: one for each of its pairs, or the requested number; the first is the choice."""

    outputs: list[tuple[str, ...]]
    candidates: list[list[str]]
    seconds: float
    counts: dict[str, int]  # of rows that a `Paraphraser` answers, where it was asked

    def take(self, decoding: Decoding, seed: int) -> tuple[list[str], list[tuple[str, ...]]]:
        """Of each row the likeliest of the outputs asked for, or by pairs one drawn of them; and all of them."""
        count = decoding.num_outputs
        places = np.random.default_rng(seed).integers(count if decoding.num_neighbors else 1, size=len(self.outputs))
        several = [texts[:count] for texts in self.outputs]
        return [texts[place] for texts, place in zip(several, places, strict=True)], several


def _decode(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sources: list[str],
    decoding: Decoding,
    pairs: list[list[tuple[str, str]]] | None,
    answerer: Paraphraser | LanguageModelWriter | None,
    batch_size: int,
    trust_remote_code: bool,
) -> _Written:
    """Write the outputs of all rows; by `pairs`, those of each row, a model that edits, or by what answers for it."""
    count, candidates, counts, started = decoding.num_return_sequences, [], {}, time.perf_counter()
    options = dict(decoding.generate_kwargs)
    outputs: list[tuple[str, ...]]
    ask: dict[str, Any] = {"decoding": decoding.method, "batch_size": batch_size}
    if answerer is not None:
        ask["seed"] = options.pop("seed", 0)
        is_sample = options.pop("do_sample")
        options |= {} if is_sample else {"num_beams": decoding.num_beams}
    if isinstance(answerer, Paraphraser):
        found = cast(ParaphrasedTexts, answerer(sources, 1, num_candidates=decoding.num_candidates, **ask, **options))
        outputs = [(group[0].text if group else source,) for source, group in zip(sources, found, strict=True)]
        counts["answered"] = sum(map(bool, found))
    elif answerer is not None:
        request = Ask(num_candidates=count, generate_kwargs=options, **ask)
        answerer.check(request)
        # An answer that is a list gives more than one.
        outputs = [tuple(one.text for one in group[:count]) for group in write(answerer, sources, request)]
    else:
        columns = list(zip(*pairs, strict=True)) if pairs else [None]
        ask |= {"decoding": sample_seeded} if decoding.method == "sample" else {}
        ask |= {"num_beams": decoding.num_beams, **options}
        if count > 1:
            shares = [-(-(count - place) // len(columns)) for place in range(len(columns))]
            written = [
                generate_several(model, tokenizer, sources, share, pairs=each, **ask)
                for share, each in zip(shares, columns, strict=True)
            ]
            outputs = [tuple(chain.from_iterable(groups)) for groups in zip(*written, strict=True)]
        else:
            ask |= {"num_candidates": decoding.num_candidates or 1, "select": decoding.select or "score"}
            ask |= {"matcher": decoding.matcher, "trust_remote_code": trust_remote_code}
            written = [generate_several(model, tokenizer, sources, pairs=each, **ask) for each in columns]
            outputs = [tuple(group[0] for group in groups) for groups in zip(*written, strict=True)]
            candidates = written[0]
    return _Written(outputs, candidates, time.perf_counter() - started, counts)


def _perplexity_of_answers(
    writer: LanguageModelWriter, sources: Sequence[str], targets: Sequence[str], batch_size: int
) -> dict[str, float]:
    """How well a language model predicts each target as its answer, as `compute_perplexity` of an encoder-decoder."""
    pairs = [pair for pair in zip(sources, targets, strict=True) if all(text.strip() for text in pair)]
    if not pairs:
        raise InputError("no row has both a source and a target with text: there is no perplexity to compute")
    worded, answers = map(list, zip(*pairs, strict=True))
    counts = [len(writer.encoder.encode_answer(answer)) for answer in answers]
    means = writer.mean_log_probs(worded, answers, batch_size)
    total = sum(mean * count for mean, count in zip(means, counts, strict=True))
    return {"perplexity": math.exp(-total / sum(counts)), "tokens": sum(counts)}


def _score(entry: Entry, rows: _Rows, written: _Written, scoring: Scoring) -> Entry:
    """A system and its decoding, with all measurements of its outputs."""
    predictions, outputs = written.take(cast(Decoding, entry.decoding), scoring.seed)
    per_second = len(outputs) * len(written.outputs[0]) / written.seconds
    return replace(
        entry,
        **rows.score(predictions, scoring),
        diversity=_score_diversity(outputs),
        candidate_diversity=_score_diversity(written.candidates),
        counts=entry.counts | _count_repeats(rows.sources, outputs) | written.counts,
        speed=Speed(written.seconds, per_second, "sentences"),
    )


def _find_pairs(
    model: PreTrainedModel,
    retriever: ParaphraseRetriever | None,
    rows: _Rows,
    k: int,
    allow_own_pair: bool,
    trust_remote_code: bool,
) -> tuple[list[list[tuple[str, str]]] | None, dict[str, int]]:
    """The `k` nearest pairs of each row, for a model that edits by them, and how many rows have one of their own."""
    if not can(model.config, "reads_pairs"):
        return None, {}
    try:
        retriever = retriever or load_retriever(model, trust_remote_code)
    except ValueError as error:
        raise InputError(str(error)) from error
    if len(retriever) < k:
        raise InputError(f"`num_neighbors`: {k}, but the retriever has {len(retriever)} pairs")
    sentences = [[source, *texts] for source, texts in zip(rows.sources, rows.references, strict=True)]
    pairs = find_pairs(retriever, rows.sources, k, None if allow_own_pair else sentences)
    if any(len(found) < k for found in pairs):
        raise InputError(
            f"`num_neighbors`: {k}, but fewer pairs were found that share no sentence with their row; lower it, or "
            "set `allow_own_pair`"
        )
    return pairs, {"rows_with_own_pair": int((retriever.count_shared(sentences) > 0).sum())}


def _resolve_arguments(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, asked: Decoding) -> dict[str, Any]:
    """All arguments in effect for `generate`, except the beam width, which the record has anyway."""
    resolved = {**model.generation_config.to_diff_dict(), **asked.generate_kwargs}
    if resolved.get("replace_unknown"):
        request = GenerationRequest.from_kwargs(**asked.generate_kwargs)
        allowed = request.generate_kwargs(model, tokenizer)
        resolved |= {name: allowed[name] for name in ("suppress_tokens",) if name in allowed}
    return {name: value for name, value in resolved.items() if name not in ("transformers_version", "num_beams")}


def _score_diversity(outputs: Sequence[Sequence[str]]) -> tuple[Score, ...]:
    """The similarity of the outputs of each row, if there are several."""
    several = outputs and len(outputs[0]) > 1
    return score_without_interval(self_bleu(outputs, lowercase=True)) if several else ()


def _count_repeats(sources: list[str], outputs: Sequence[Sequence[str]]) -> dict[str, int]:
    """How many rows have an output twice, and how many their source, by the words in lower case."""
    rows = [(tokens(source), [tokens(text) for text in texts]) for source, texts in zip(sources, outputs, strict=True)]
    return {
        "doubles": sum(len(set(map(tuple, texts))) < len(texts) for _, texts in rows),
        "copies": sum(source in texts for source, texts in rows),
    }


def _name_outputs(split: str, decoding: Decoding) -> str:
    k = decoding.num_neighbors
    pairs = f"-neighbors{k}" if k and k > 1 else ""
    return f"predictions-{split}-{decoding.method}{decoding.num_beams}{pairs}.jsonl"


def _write_outputs(path: Path, rows: _Rows, predictions: list[str], outputs: list[tuple[str, ...]]) -> None:
    lines = (
        {"source": source, "references": texts, "prediction": prediction}
        | ({"predictions": several} if len(several) > 1 else {})
        for source, texts, prediction, several in zip(rows.sources, rows.references, predictions, outputs, strict=True)
    )
    write_lines(path, lines)
