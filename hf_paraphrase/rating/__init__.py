"""Asking people: forms that show them outputs without names, and what their answers say."""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

from ..common.errors import InputError
from ..common.files import open_text, read_json_object, write_text
from ..common.text_tables import TextTable
from ..metrics.preference.agreement import mean_cohen_kappa
from ..metrics.preference.scoring import preference

CRITERIA = ("grammar", "coherency")
POINTS = ("1", "2", "3", "4", "5")
SIDES = ("first", "second", "tie")
# The columns of the CSV files that forms hand out.
FIELDS = {"ratings": ["form", "rater", "item", *CRITERIA], "preference": ["form", "rater", "item", "choice"]}
TEMPLATE = Path(__file__).with_name("rating_form.html")
TITLES = {"ratings": "Rate the paraphrases", "preference": "Compare the paraphrases"}


@dataclass(frozen=True)
class AnswerKey:
    """Which system wrote which text in the forms.

    Args:
        systems: Names.
        forms: The name of each experiment's form.
        ratings: For each question of the first experiment `row` and `system`.
        preference: For each question of the second one `row`, and the systems that are `first` and `second`.
        seed: Of the draw.
        equal: Pairs of systems, `first` and `second`, that wrote the same for a `row`: ties that nobody is asked of.
    """

    systems: list[str]
    forms: dict[str, str]
    ratings: dict[str, dict[str, Any]]
    preference: dict[str, dict[str, Any]]
    seed: int
    equal: list[dict[str, Any]] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        write_text(path, json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike) -> AnswerKey:
        """Read it; InputError where the file is not a key."""
        try:
            return cls(**read_json_object(Path(path)))
        except (ValueError, TypeError) as error:
            raise InputError(f"{path} is not a key.json as the forms are written with") from error


def read_answers(paths: Iterable[str | os.PathLike], key: AnswerKey) -> dict[str, list[dict[str, str]]]:
    """Read the CSV files that raters have handed in, of either form.

    Returns:
        For each experiment the answers, as their columns name them.

    Raises:
        InputError: A file of other forms, an invalid answer, or two answers of one rater; the message names file and
            line.
        FileNotFoundError: There is no such file.
    """
    experiments = {name: experiment for experiment, name in key.forms.items()}
    answers: dict[str, list[dict[str, str]]] = {experiment: [] for experiment in FIELDS}
    seen: dict[tuple[str, str, str], str] = {}
    for path in paths:
        table = TextTable(Path(path), "csv")
        columns = table.columns()
        experiment = next((name for name, fields in FIELDS.items() if fields == columns), None)
        if experiment is None:
            raise InputError(
                f"{path}: the columns are {', '.join(columns or ())}, not the columns of a form's answers"
            )
        for line, row in table.rows():
            place = table.place(line)
            if experiments.get(row["form"]) != experiment:
                raise InputError(f"{place}: this answers the form {row['form']!r}, which this key is not for")
            check_answer(row, experiment, getattr(key, experiment), place)
            first = seen.setdefault((experiment, row["rater"], row["item"]), place)
            if first != place:
                raise InputError(f"{place}: {row['rater']} has answered question {row['item']} before: {first}")
            answers[experiment].append(row)
    return answers


def check_answer(row: Mapping[str, str], experiment: str, questions: Mapping[str, Any], place: str) -> None:
    """Raise InputError unless a row answers a question as it can be answered."""
    columns = dict.fromkeys(CRITERIA, POINTS) if experiment == "ratings" else {"choice": SIDES}
    if not row["rater"].strip():
        raise InputError(f"{place}: rater must not be empty")
    for name, values in {"item": questions, **columns}.items():
        if row[name] not in values:
            wanted = "the number of a question" if name == "item" else "one of " + ", ".join(values)
            raise InputError(f"{place}: {name} must be {wanted}, got {row[name]!r}")


def summarise_answers(answers: Mapping[str, Sequence[Mapping[str, str]]], key: AnswerKey) -> dict[str, Any]:
    """Table 3 and figure 5 of Kazemnejad et al. 2020, from what `read_answers` returns.

    Returns:
        `ratings`: a row for each system, with the mean of each criterion and Cohen's kappa (the mean over the pairs of
        raters), and how many ratings there are. `preference`: for each pair of systems what the metric `preference`
        returns, wins being those of the first, and `equal`, the rows for which both wrote the same: each is a tie of
        every rater of the pair, but the kappas are those of the rows that were shown. Systems without answers are left
        out.
    """
    return {"ratings": _summarise_ratings(answers, key), "preference": _summarise_preference(answers, key)}


def _summarise_ratings(answers: Mapping[str, Sequence[Mapping[str, str]]], key: AnswerKey) -> list[dict[str, Any]]:
    by_system: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for answer in answers["ratings"]:
        by_system[key.ratings[answer["item"]]["system"]].append(answer)
    rows = []
    for system in filter(by_system.__contains__, key.systems):
        row: dict[str, Any] = {"system": system, "ratings": len(by_system[system])}
        for criterion in CRITERIA:
            points: dict[str, dict[str, int]] = defaultdict(dict)
            for answer in by_system[system]:
                points[answer["rater"]][answer["item"]] = int(answer[criterion])
            given = [point for items in points.values() for point in items.values()]
            row[criterion] = sum(given) / len(given)
            row[f"{criterion}_kappa"] = mean_cohen_kappa(points)
        rows.append(row)
    return rows


def _summarise_preference(answers: Mapping[str, Sequence[Mapping[str, str]]], key: AnswerKey) -> list[dict[str, Any]]:
    by_pair: dict[frozenset[str], list[tuple[str, str, str | None]]] = defaultdict(list)
    for answer in answers["preference"]:
        entry = key.preference[answer["item"]]
        pair = frozenset((entry["first"], entry["second"]))
        by_pair[pair].append((answer["item"], answer["rater"], entry.get(answer["choice"])))
    rows = []
    for first, second in combinations(key.systems, 2):
        judgements = by_pair.get(frozenset((first, second)))
        if judgements:
            items, raters, preferred = zip(*judgements, strict=True)
            choices = ["tie" if name is None else "win" if name == first else "loss" for name in preferred]
            equal = [entry["row"] for entry in key.equal if {entry["first"], entry["second"]} == {first, second}]
            shown = list(zip(items, raters, choices, strict=True))
            ties = [(f"equal-{row}", rater, "tie") for row in equal for rater in dict.fromkeys(raters)]
            counted = preference(*zip(*shown, *ties, strict=True))
            # Nobody agreed on what nobody was asked.
            agreed = {name: value for name, value in preference(items, raters, choices).items() if "kappa" in name}
            rows.append({"first": first, "second": second, **counted, **agreed, "equal": len(equal)})
    return rows


def format_rating_results(results: Mapping[str, Any]) -> str:
    """Both tables as text."""
    ratings, pairs = results["ratings"], results["preference"]
    width = max((len(row["system"]) for row in ratings), default=0)
    table = [f"{'':<{width}}  grammar  kappa  coherency  kappa  ratings"] if ratings else []
    table += [
        f"{row['system']:<{width}}  {row['grammar']:7.2f}  {_kappa(row['grammar_kappa']):>5}"
        f"  {row['coherency']:9.2f}  {_kappa(row['coherency_kappa']):>5}  {row['ratings']:7}"
        for row in ratings
    ]
    figure = [
        f"{row['first']} {row['win_share']:.1%}, tie {row['tie_share']:.1%}, {row['second']} {row['loss_share']:.1%}; "
        f"kappa {_kappa(row['cohen_kappa'])}, {row['judgements']} judgements"
        + (f"; {row['equal']} rows with the same outputs, not shown, count as ties" if row["equal"] else "")
        for row in pairs
    ]
    return "\n\n".join("\n".join(lines) for lines in (table, figure) if lines)


def _kappa(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


class SourceOutputs(NamedTuple):
    """A system's output for a source."""

    source: str
    outputs: tuple[str, ...]


def read_outputs(path: str | os.PathLike) -> list[SourceOutputs]:
    """Read a predictions file of `evaluate`, whose rows have several outputs (`predictions`) or one (`prediction`).

    InputError names file and line where one has another format.
    """
    rows = []
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                rows.append(SourceOutputs(row["source"], tuple(row.get("predictions") or [row["prediction"]])))
            except (RecursionError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"{path}, line {number}: this must be a JSON object with `source` and `prediction`, as "
                    "`hf-paraphrase evaluate --output-dir` writes them"
                ) from error
    return rows


def make_rating_forms(
    systems: Mapping[str, Sequence[SourceOutputs]],
    output_dir: str | os.PathLike,
    *,
    num_sources: int = 100,
    num_outputs: int = 3,
    seed: int = 0,
) -> dict[str, Path]:
    """Write the forms of the two experiments of Kazemnejad et al. 2020, section 4.5, and the key to them.

    `ratings.html` shows the outputs of one system for one source at a time, to be rated together from 1 to 5 for
    grammar and for coherency; `preference.html` shows those of two systems for comparison. The sources are drawn at
    random, and so are the order of questions and what comes first in each. A form is one file that needs no network,
    and hands its answers out as CSV. Only `key.json` says which system wrote what: keep it from the raters. Where two
    systems wrote the same for a source, but for case and white space, nobody is asked which of them is better; the key
    notes it, and it counts as a tie of every rater who compared the two.

    Args:
        systems: For each system, by name, its outputs for the same sources in the same order.
        output_dir: Where the files go.
        num_sources: How many sources to draw.
        num_outputs: Outputs of a system for a source that are shown, at most; the paper's groups have three.
        seed: Of all that is drawn.

    Returns:
        The paths of the files: `ratings`, `preference` (with two systems or more that differ) and `key`.

    Raises:
        InputError: Systems that wrote for other sources, or fewer sources than asked for.
    """
    rows = check_systems(systems, num_sources)
    random = np.random.default_rng(seed)
    drawn = random.choice(rows, num_sources, replace=False).tolist()

    def outputs(name: str, row: int) -> list[str]:
        return list(systems[name][row].outputs[:num_outputs])

    sources = [entry.source for entry in next(iter(systems.values()))]
    ratings = [{"row": row, "system": name} for row in drawn for name in systems]
    pairs = [
        {"row": row, **dict(zip(("first", "second"), random.permutation(pair).tolist(), strict=True))}
        for row in drawn
        for pair in combinations(systems, 2)
    ]

    def is_equal(pair: dict[str, Any]) -> bool:
        """But for case and white space, which no rater would judge by."""
        texts = [outputs(pair[side], pair["row"]) for side in ("first", "second")]
        first, second = (sorted(" ".join(text.casefold().split()) for text in side) for side in texts)
        return first == second

    asked = [pair for pair in pairs if not is_equal(pair)]
    answers = {"ratings": number_questions(ratings, random), "preference": number_questions(asked, random)}
    shown = {"ratings": {"outputs": "system"}, "preference": {"first": "first", "second": "second"}}
    questions = {
        experiment: [
            {"item": item, "source": sources[entry["row"]]}
            | {name: outputs(entry[system], entry["row"]) for name, system in shown[experiment].items()}
            for item, entry in entries.items()
        ]
        for experiment, entries in answers.items()
    }
    folder, paths, names = Path(output_dir), {}, {}
    folder.mkdir(parents=True, exist_ok=True)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    for experiment, listed in questions.items():
        if listed:
            # A form's name is made from its content, so that answers to another are told apart.
            digest = hashlib.sha256(json.dumps([experiment, listed]).encode()).hexdigest()
            names[experiment], paths[experiment] = f"{experiment}-{digest[:12]}", folder / f"{experiment}.html"
            form = {
                "form": names[experiment],
                "experiment": experiment,
                "fields": FIELDS[experiment],
                "questions": listed,
            }
            page = template.render(title=TITLES[experiment], experiment=experiment, form=form)
            write_text(paths[experiment], page)
    paths["key"] = folder / "key.json"
    equal = [pair for pair in pairs if is_equal(pair)]
    AnswerKey(systems=list(systems), forms=names, seed=seed, equal=equal, **answers).save(paths["key"])
    return paths


def number_questions(entries: Sequence[dict[str, Any]], random: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Shuffle the questions; their numbers only give the order."""
    return {str(number): entries[place] for number, place in enumerate(random.permutation(len(entries)), 1)}


def check_systems(systems: Mapping[str, Sequence[SourceOutputs]], num_sources: int) -> int:
    """The number of rows, checked to be the same for all systems and large enough."""
    if not systems:
        raise InputError("no system given: pass the outputs of one or several")
    (first, reference), *others = systems.items()
    for name, rows in others:
        if len(rows) != len(reference):
            raise InputError(f"{name} wrote for {len(rows)} sources and {first} for {len(reference)}")
        for number, (one, other) in enumerate(zip(reference, rows, strict=True), 1):
            if one.source != other.source:
                raise InputError(f"row {number}: {first} read {one.source!r:.80} and {name} {other.source!r:.80}")
    if num_sources < 1 or num_sources > len(reference):
        raise InputError(f"num_sources is {num_sources}, but the files have {len(reference)} rows to draw from")
    return len(reference)
