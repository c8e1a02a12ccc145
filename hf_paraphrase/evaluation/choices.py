"""A model's first beam compared with `Paraphraser`'s choice: the same rows, one judge of meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from ..common.environment import describe_environment
from ..common.errors import InputError
from ..common.files import write_lines
from ..common.installation import require
from ..generation.paraphrase_choice import Choice
from ..generation.paraphrase_table import ParaphrasedTexts
from ..generation.paraphraser import Paraphrase, Paraphraser
from ..generation.protected_text import find_change, find_kept, split_into_words
from ..generation.selection import score_by_embedding
from ..generation.writers import Ask, ModelWriter, write
from ..metrics.inputs import check_texts
from ..metrics.score_files import ScoredTexts
from ..metrics.sufficient_statistics import SufficientStatistics
from ..retrieval.encoders import SentenceEncoder, load_encoder
from .comparison import SIGNIFICANT, correct_p_values, format_with_interval
from .paraphrases import CANDIDATES, COPIED
from .results import Entry, Results, describe_commit, describe_data, describe_model, format_table
from .scoring import Scoring

METRICS = ("bleu", "ibleu", "pinc")
COLUMNS = {
    "bleu_4": "BLEU-4",
    "ibleu": "iBLEU",
    "pinc": "PINC",
    "adequacy": "adequacy",
    "names_kept": "names kept",
    "numbers_kept": "numbers kept",
    "unknown_kept": "unknown words kept",
}
# Parrot leaves out candidates of little adequacy and ranks the others by their distance to the text. Its 0.9 is the
# probability of a classifier; of cosines so many would leave out most that it keeps.
PARROT_ADEQUACY = 0.8
# What its other arguments say of where candidates come from, these do not.
OF_THE_CHOICE = {field.name for field in fields(Choice)} | {"adequacy", "encoder", "matcher", "fluency"}

Write = Callable[[list[str]], list[str | None]]


def compare_choices(
    models: Mapping[str, str],
    dataset: Dataset,
    output_dir: Path,
    *,
    encoder: Any,
    num_beams: int = 5,
    batch_size: int = 32,
    n_samples: int = 1000,
    n_trials: int = 10_000,
    seed: int = 12345,
    split: str = "test",
    data: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    trust_remote_code: bool = False,
) -> Results:
    """Score the one paraphrase that each way of choosing gives of every text.

    The ways, of each model: its first beam; the same with its unknown words replaced, where it can do so; what
    `Paraphraser` returns; and, by the rules of Parrot, that candidate of the same pool which is furthest from the text
    in edits among those that `encoder` gives a cosine of 0.8 or, where none has so much, the most (Parrot's own judges
    are other models, and it then returns nothing). The texts themselves are a row too. Scores are of those rows for
    which all of them have an answer. A model that edits by a retrieved pair is given the nearest for its first beam.

    Args:
        models: Checkpoints by the names that they have in the table.
        dataset: Rows of `source` and `references`, or of `source` and one `target`.
        output_dir: Folder for `choices.jsonl`, with every output for each text.
        encoder: The judge of `adequacy`, the mean cosine of the sentence vectors of text and paraphrase (times 100): a
            model of sentence-transformers, as `load_encoder` takes it, which is none of those that choose.
        num_beams: Width of the search for the first beam.
        batch_size: Texts at a time.
        n_trials: Shuffles for the p-values.
        n_samples, seed, split, data, trust_remote_code: As of `evaluate_paraphraser`.
        options: Arguments of `Paraphraser`, such as `min_adequacy`.

    Returns:
        An entry for each way. `names_kept`, `numbers_kept` and `unknown_kept` are shares of those in the texts
        (unknown: to the vocabulary of one of the models), in any case where a model knows none. Its `counts` say how
        many rows have an answer, `answered`, and how many of these change no name and no number, `intact`. Scores are
        tested against the first beam of the first model.

    Raises:
        InputError: Rows that cannot be scored, a model that cannot be loaded, or no row that all answer.
    """
    require("nltk", "metrics", "the distance of Parrot's rules")
    named = "references" if "references" in dataset.column_names else "target"
    sources, references = check_texts(dataset["source"], dataset[named])
    judge = load_encoder(encoder, trust_remote_code=trust_remote_code)
    loaded = {
        name: Paraphraser.from_pretrained(path, trust_remote_code=trust_remote_code) for name, path in models.items()
    }
    unknown = [
        sorted({word for model in loaded.values() for word in find_unknown_words(model.tokenizer, text)})
        for text in sources
    ]
    environment: dict[str, Any] = {"seed": seed, "n_samples": n_samples, "n_trials": n_trials}
    environment |= {"batch_size": batch_size, "encoder": getattr(judge, "name", None) or "a function"}
    first = next(iter(loaded.values()))
    environment |= describe_environment(first.model.device)

    answers: dict[str, list[str | None]] = {COPIED: list(sources)}
    owners = {COPIED: first}
    for name, model in loaded.items():
        for way, answer in _ways(model, judge, num_beams, batch_size, options or {}):
            answers[f"{name}: {way}"], owners[f"{name}: {way}"] = answer(sources), model
    output_dir.mkdir(parents=True, exist_ok=True)
    names, lines = ("source", "references", *answers), zip(sources, references, *answers.values(), strict=True)
    write_lines(output_dir / "choices.jsonl", (dict(zip(names, values, strict=True)) for values in lines))

    rows = [row for row in range(len(sources)) if all(texts[row] for texts in answers.values())]
    if not rows:
        raise InputError("no row has a paraphrase by every method; lower the thresholds, or give more rows")
    scoring = Scoring(METRICS, {}, n_samples, n_trials, seed)
    scored = ScoredRows(
        [sources[row] for row in rows], [references[row] for row in rows], [unknown[row] for row in rows]
    )
    statistics = {}
    for name, texts in answers.items():
        chosen = [str(texts[row]) for row in rows]
        cosines = [cosine for (cosine,) in score_by_embedding(scored.sources, [[text] for text in chosen], judge)]
        statistics[name] = scored.collect(chosen, owners[name].writer.ignores_case, cosines, scoring)
    against = list(answers)[1]
    entries = [
        Entry(COPIED, "baseline", scoring.measure(statistics[COPIED], statistics[against])),
        *(
            replace(
                describe_model(model.model, scoring.measure(statistics[name], statistics[against])),
                system=name,
                counts=_count(sources, answers[name], model.writer.ignores_case),
            )
            for name, model in list(owners.items())[1:]
        ),
    ]
    found = replace(describe_data(data, split, len(sources)), counts={"scored": len(rows)})
    return Results("choices", found, tuple(entries), environment, against)


def format_choices(results: Results, command: str) -> str:
    """The table as Markdown: a line for each way, and how all of it came about, by which command."""
    data, scored = results.data, results.data.counts["scored"]
    corrected = correct_p_values(results)
    heads = ["paraphrase", *COLUMNS.values(), "answered", "neither name nor number changed"]
    lines = []
    for entry in results.entries:
        scores = [format_with_interval(entry.find(name), corrected.get((entry.system, name), 1.0)) for name in COLUMNS]
        shares = ["-", "-"]
        if entry.role != "baseline":
            answered, intact = entry.counts["answered"], entry.counts["intact"]
            shares = [f"{answered / data.rows:.1%}", f"{intact / answered:.1%}"]
        lines.append([entry.system, *scores, *shares])
    environment = results.environment
    return "\n".join(
        [
            *format_table(heads, lines),
            "",
            f"{data.label}; scores are of the {scored:,} that every way answers. ± is half of the 95% interval "
            f"(bootstrap, {environment['n_samples']} samples), * a difference from {results.against} with p < "
            f"{SIGNIFICANT} after Holm's correction for all tests of the table. Adequacy: 100 times the mean cosine "
            f"of the sentence vectors of text and paraphrase, by a judge ({environment['encoder']}) that takes no "
            "part in choosing but by Parrot's rules. Unknown words: those of the texts that the vocabulary of one of "
            "the models lacks; a share of nothing is -.",
            "",
            f"Measured on {environment['device']}, {describe_commit(environment)}:",
            "",
            f"    {command}",
            "",
        ]
    )


def _ways(
    paraphraser: Paraphraser, judge: SentenceEncoder, num_beams: int, batch_size: int, options: Mapping[str, Any]
) -> Iterator[tuple[str, Write]]:
    """The ways of coming by a paraphrase with a model, each a function of the texts."""

    def choose_as_parrot(texts: list[str]) -> list[str | None]:
        pool: dict[str, Any] = {"decoding": paraphraser.writer.default_decoding(1), "num_candidates": CANDIDATES}
        pool |= {name: value for name, value in options.items() if name not in OF_THE_CHOICE}
        pool |= {"adequacy": "embedding", "encoder": judge, "keep": (), "batch_size": batch_size}
        found = cast(ParaphrasedTexts, paraphraser(texts, pool["num_candidates"], **pool))
        return [_choose_distant(text, group) for text, group in zip(texts, found, strict=True)]

    search = partial(search_first, paraphraser.writer, num_beams=num_beams, batch_size=batch_size)
    yield "first beam", partial(search, replace_unknown=False)
    if paraphraser.writer.replaces_unknown:
        yield "first beam, unknown words replaced", search
    yield "Paraphraser", partial(choose_first, paraphraser, batch_size=batch_size, **options)
    yield "Parrot's rules", choose_as_parrot


def search_first(
    writer: ModelWriter, texts: Sequence[str], num_beams: int, batch_size: int, **generate_kwargs: Any
) -> list[str | None]:
    """The likeliest output for each text, by the nearest pair where the model edits by one."""
    ask = Ask(
        decoding="beam",
        num_candidates=1,
        num_neighbors=None if writer.retriever is None else 1,
        batch_size=batch_size,
        generate_kwargs={"num_beams": num_beams, **generate_kwargs},
    )
    return [group[0].text if group else None for group in write(writer, texts, ask)]


def choose_first(paraphraser: Paraphraser, texts: list[str], batch_size: int, **options: Any) -> list[str | None]:
    """A `Paraphraser`'s choice for each text, if it has one."""
    found = cast(ParaphrasedTexts, paraphraser(texts, 1, batch_size=batch_size, **options))
    return [group[0].text if group else None for group in found]


def find_unknown_words(tokenizer: PreTrainedTokenizerBase, text: str) -> list[str]:
    """The words of a text that a vocabulary lacks, without those that have digits: these count as numbers.

    Slow tokenizers have no offsets, and those of this package spell every word.
    """
    if not tokenizer.is_fast:
        return []
    (encoding,) = tokenizer([text]).encodings
    tokens = zip(encoding.ids, encoding.offsets, strict=True)
    words = [text[slice(*place)] for token, place in tokens if token == tokenizer.unk_token_id]
    return [word.casefold() for word in words if word.isalpha()]


def _choose_distant(text: str, candidates: list[Paraphrase]) -> str | None:
    from nltk import edit_distance

    rated = [(one.text, one.adequacy) for one in candidates if one.adequacy is not None]
    best = max((adequacy for _, adequacy in rated), default=0.0)
    adequate = [text for text, adequacy in rated if adequacy >= min(PARROT_ADEQUACY, best)]
    return max(adequate, key=partial(edit_distance, text), default=None)


class ScoredRows(NamedTuple):
    """What paraphrases are scored against."""

    sources: list[str]
    references: list[list[str]]
    unknown: Sequence[list[str]] = ()

    def collect(
        self, answers: list[str], ignore_case: bool, cosines: Sequence[float] | None, scoring: Scoring
    ) -> dict[str, SufficientStatistics]:
        """The statistics of all columns; those of adequacy need cosines."""
        found = scoring.collect(ScoredTexts([answers], self.references, self.sources))
        if cosines is not None:
            adequacy = [max(0.0, cosine) for cosine in cosines]
            found["adequacy"] = SufficientStatistics.from_sentence_scores("adequacy", adequacy, "cosine", scale=100)
        wanted = {
            "names_kept": ([find_kept(text, "names") for text in self.sources], ignore_case),
            "numbers_kept": ([find_kept(text, "numbers") for text in self.sources], ignore_case),
            "unknown_kept": (self.unknown, True),
        }
        for name, (groups, folded) in wanted.items():
            if any(groups):
                kept = [_count_kept(*pair, folded) for pair in zip(groups, answers, strict=True)]
                found[name] = SufficientStatistics.from_ratio(name, kept, list(map(len, groups)), "share", scale=100)
        return {name: found[name] for name in COLUMNS if name in found}


def _count_kept(wanted: Sequence[str], text: str, ignore_case: bool) -> int:
    """Count how many of the words occur in a text as whole words."""
    fold = str.casefold if ignore_case else str
    there = {*map(fold, split_into_words(text)), *find_kept(text, "numbers")}
    return sum(fold(word) in there for word in wanted)


def _count(sources: list[str], answers: list[str | None], ignore_case: bool) -> dict[str, int]:
    given = [(source, answer) for source, answer in zip(sources, answers, strict=True) if answer]
    intact = sum(find_change(*pair, ("names", "numbers"), ignore_case=ignore_case) is None for pair in given)
    return {"answered": len(given), "intact": intact}
