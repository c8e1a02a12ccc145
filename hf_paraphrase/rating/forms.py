from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

from ..common.files import open_text, write_text
from ..errors import InputError
from .answers import FIELDS, AnswerKey

TEMPLATE = Path(__file__).with_name("rating_form.html")
TITLES = {"ratings": "Rate the paraphrases", "preference": "Compare the paraphrases"}


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
    for experiment in [name for name in questions if questions[name]]:
        form = describe_form(experiment, questions[experiment])
        names[experiment], paths[experiment] = form["form"], folder / f"{experiment}.html"
        environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
        template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
        write_text(paths[experiment], template.render(title=TITLES[experiment], experiment=experiment, form=form))
    paths["key"] = folder / "key.json"
    equal = [pair for pair in pairs if is_equal(pair)]
    AnswerKey(systems=list(systems), forms=names, seed=seed, equal=equal, **answers).save(paths["key"])
    return paths


def number_questions(entries: Sequence[dict[str, Any]], random: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Shuffle the questions; their numbers only give the order."""
    return {str(number): entries[place] for number, place in enumerate(random.permutation(len(entries)), 1)}


def describe_form(experiment: str, questions: list[dict[str, Any]]) -> dict[str, Any]:
    """What a form holds: its name, made from its content, so that answers to another are told apart; its questions."""
    digest = hashlib.sha256(json.dumps([experiment, questions]).encode()).hexdigest()
    return {
        "form": f"{experiment}-{digest[:12]}",
        "experiment": experiment,
        "fields": FIELDS[experiment],
        "questions": questions,
    }


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
