"""A comparison of paraphrasers as a Markdown table, as CSV, and as a picture of quality against diversity."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping

from ..common.spreadsheet_cells import csv_writer, quote_formulas
from ..metrics.significance import holm
from ..pictures import curve_style, in_style, new_figure, save_figure
from .results import Entry, Results, Score, format_table, join_distinct

# The columns of Table 2 of Kazemnejad et al. 2020, in order, and PINC; other metrics follow.
SCORES = {
    "rouge2": "ROUGE-2",
    "rouge1": "ROUGE-1",
    "bleu_4": "BLEU-4",
    "bleu_2": "BLEU-2",
    "meteor": "METEOR",
    "pinc": "PINC",
}
# Computed beside the two that the paper has.
HIDDEN = ("rougeL", "rougeW")
DIVERSITY = {"self_bleu_2": "self-BLEU-2", "distinct_1": "distinct-1", "distinct_2": "distinct-2"}
SPEED = {"num_parameters": "parameters", "sentences_per_second": "sentences/s"}
# Which of them are shown, with how many digits; shares of words are below 1.
DIGITS = {"self_bleu_2": 1, "distinct_1": 3, "distinct_2": 3}
SIGNIFICANT = 0.05


def format_comparison_as_markdown(results: Results, command: str) -> str:
    """The table, a line for each system, the published rows below, and how all of it came about, by which command.

    A star marks scores that differ from the baseline's with p < 0.05 after Holm's correction for all tests of the
    table.
    """
    columns, models, paper = _columns(results), results.of("model"), results.of("paper")
    corrected = correct_p_values(results)
    heads = ["system", *columns.values(), *DIVERSITY.values(), "chosen by", *SPEED.values()]
    return "\n".join(
        [
            *format_table(heads, (_cells(entry, columns, corrected) for entry in results.entries)),
            "",
            f"{results.data.label}. ± is half of the 95% interval (bootstrap, {results.environment['n_samples']} "
            f"samples). {_describe_marks(results, corrected)} PINC: how many n-grams are not the source's. "
            "Self-BLEU-2: how alike two of a row's outputs are, before one is chosen, the mean over pairs of them; "
            "less is more diverse. Chosen by: how one of them is kept; “score” keeps the likeliest, “jaccard” the one "
            "most like the source, as the paper does. Sentences a second: with all those outputs.",
            *_describe_retrievals(models),
            *(
                ["", "The rows of Kazemnejad et al. 2020 are of another split; “as reported” it took over itself."]
                if paper
                else []
            ),
            *(
                ["", "The paper's METEOR is another METEOR than this one: its column compares ours with ours only."]
                if paper and "meteor" in columns
                else []
            ),
            "",
            f"Evaluated on {join_distinct(entry.environment['device'] for entry in models)}, commit "
            f"{join_distinct((entry.environment['commit'] or 'unknown')[:10] for entry in models)}, "
            f"{join_distinct(entry.environment['date'][:10] for entry in models)}:",
            "",
            *(f"    {line}" for line in command.splitlines()),
            "",
            *(f"- {title}: `{models[0].score_of(score).signature}`" for score, title in columns.items()),
            "",
        ]
    )


def format_comparison_as_csv(results: Results) -> str:
    """A line for each system and published row; of each score the bounds and p-values too, empty where unknown: `_p`
    of the test alone, `_holm` after Holm's correction for all tests of the table."""
    shown, corrected = _columns(results), correct_p_values(results)
    columns = [f"{score}{part}" for score in shown for part in ("", "_low", "_high", "_p", "_holm")]
    text = io.StringIO()
    names = ["system", "source", *columns, *DIVERSITY, "chosen_by", *SPEED]
    writer = csv_writer(text, names)
    for entry in results.entries:
        published = entry.role == "paper"
        row = quote_formulas({"system": entry.system}) | {"source": "published" if published else "measured"}
        for name in [*shown, *DIVERSITY]:
            score = entry.find(name)
            row[name] = score and score.score
            if score and name in shown:
                row |= {f"{name}_low": score.low, f"{name}_high": score.high, f"{name}_p": score.p_value}
                row[f"{name}_holm"] = corrected.get((entry.system, name))
        row["chosen_by"] = None if published else _rule(entry)
        row["num_parameters"] = entry.model and entry.model.num_parameters
        row["sentences_per_second"] = entry.speed and entry.speed.per_second
        writer.writerow(row)
    return text.getvalue()


def correct_p_values(results: Results) -> dict[tuple[str, str], float]:
    """The p-values after Holm's correction for all tests that the table shows, by system and score."""
    tests = {
        (entry.system, score.metric): score.p_value
        for entry in results.entries
        for score in map(entry.find, _columns(results))
        if score and score.p_value is not None
    }
    return dict(zip(tests, holm(list(tests.values())), strict=True))


@in_style
def plot_quality_against_diversity(results: Results, path: str | os.PathLike) -> None:
    """Draw BLEU-4 over PINC, and over self-BLEU-2 of the outputs that one was chosen from, a dot a system, as PNG.
    Figure 6 of Kazemnejad et al. 2020 has the same measures, over K."""
    figure = new_figure(11, 4.5)
    left, right = figure.subplots(1, 2, sharey=True)
    for number, entry in enumerate(entry for entry in results.entries if entry.role != "paper"):
        style = {**curve_style(number), "linestyle": "", "markersize": 6}
        quality, pinc, alike = entry.score_of("bleu_4"), entry.score_of("pinc"), entry.find("self_bleu_2")
        bars = {"xerr": _error(pinc), "yerr": _error(quality)}
        left.errorbar(pinc.score, quality.score, **bars, **style, label=entry.system)
        if alike is not None:
            right.errorbar(alike.score, quality.score, yerr=_error(quality), **style)
    left.set(xlabel="PINC (more is more diverse)", ylabel="BLEU-4")
    right.set(xlabel="self-BLEU-2 of the candidates (less is more diverse)")
    for axes in (left, right):
        axes.grid(True)
    figure.legend(loc="outside right center")
    save_figure(figure, path)


def _columns(results: Results) -> dict[str, str]:
    """The scores that the table has, with their titles."""
    found = [score.metric for score in results.entries[0].scores]
    known = {name: title for name, title in SCORES.items() if name in found}
    return known | {name: name for name in found if name not in (*SCORES, *HIDDEN)}


def _describe_marks(results: Results, corrected: Mapping[tuple[str, str], float]) -> str:
    """A legend for the stars, and which scores cannot have one."""
    n_trials, n_tests = results.environment["n_trials"], len(corrected)
    text = (
        f"* differs from {results.against}, p < {SIGNIFICANT} after Holm's correction for the {n_tests} tests of "
        f"this table (stratified approximate randomisation, two-sided, {n_trials} trials, seed "
        f"{results.environment['seed']})."
    )
    # The smallest p-value there is counts for all tests at first.
    smallest = n_tests / (n_trials + 1)
    if smallest < SIGNIFICANT:
        return text
    return f"{text} So few trials show no p below {smallest:.3f} after the correction: nothing could be marked."


def _describe_retrievals(models: list[Entry]) -> list[str]:
    """Which pairs the systems got that edit by them."""
    treatments = {False: "left out", True: "allowed, the answer itself too"}
    lines = []
    for allowed, treated in treatments.items():
        names = [one.system for one in models if one.decoding and one.decoding.allow_own_pair is allowed]
        if names:
            lines += ["", f"Pairs that share a row's source or reference were {treated}: {', '.join(names)}."]
    return lines


def _rule(entry: Entry) -> str:
    """How one of a system's outputs for a row is chosen."""
    return (entry.decoding and entry.decoding.rule) or "-"


def _cells(entry: Entry, columns: Mapping[str, str], corrected: Mapping[tuple[str, str], float]) -> list[str]:
    """The line of a system; of a published row the scores alone are known."""
    scores = {name: entry.find(name) for name in (*columns, *DIVERSITY)}
    return [
        entry.system,
        *(format_with_interval(scores[name], corrected.get((entry.system, name), 1.0)) for name in columns),
        *("-" if (one := scores[name]) is None else f"{one.score:.{DIGITS[name]}f}" for name in DIVERSITY),
        _rule(entry),
        f"{entry.model.num_parameters:,}" if entry.model else "-",
        f"{entry.speed.per_second:.1f}" if entry.speed else "-",
    ]


def format_with_interval(score: Score | None, p_value: float) -> str:
    """A score with half of its interval, starred where its p-value is small; - if there is none."""
    if score is None:
        return "-"
    if score.margin is None:
        return f"{score.score:.2f}"
    return score.format(1) + "*" * (p_value < SIGNIFICANT)


def _error(score: Score) -> list[list[float]]:
    """What `errorbar` takes: how far the interval reaches below and above."""
    low, high = score.interval or (score.score, score.score)
    return [[max(0.0, score.score - low)], [max(0.0, high - score.score)]]
