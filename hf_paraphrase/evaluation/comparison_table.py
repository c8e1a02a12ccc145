"""A comparison of paraphrasers as a Markdown table, as CSV, and as a picture of quality against diversity."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from typing import Any

from ..metrics.significance import holm
from ..pictures import curve_style, new_figure, save_figure

__all__ = [
    "correct_p_values",
    "format_comparison_as_csv",
    "format_comparison_as_markdown",
    "plot_quality_against_diversity",
]

# The columns of Table 2 of Kazemnejad et al. 2020, in its order, and PINC; what else was asked for stands behind them.
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
SIGNIFICANT = 0.05


def format_comparison_as_markdown(results: Mapping[str, Any], command: str) -> str:
    """The table, a line for each system, the published rows below, and how all of it came about.

    A system whose score differs from that of the one tested against is marked where p < 0.05 after Holm's correction
    for all tests of the table.

    Args:
        results: What `compare_paraphrasers` returned.
        command: The one that made it.
    """
    data, environment, columns = results["data"], results["environment"], _columns(results)
    corrected = correct_p_values(results)
    heads = ["system", *columns.values(), *DIVERSITY.values(), "chosen by", *SPEED.values()]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    lines += [_system_cells(entry, columns, corrected) for entry in results["systems"]]
    lines += [_paper_cells(row, columns) for row in results["paper"]]
    name = " ".join(str(part) for part in (data.get("path"), data.get("name")) if part)
    limit = f", drawn by seed {data['sample_seed']}" if data.get("sample_seed") is not None else ""
    return "\n".join(
        [
            *("| " + " | ".join(cells) + " |" for cells in lines),
            "",
            f"{name or 'data'}, split {data['split']}, {data['rows']:,} rows{limit}. ± is half of the 95% interval "
            f"(bootstrap, {environment['n_samples']} samples). {_describe_marks(results, corrected)} PINC: how many "
            "n-grams are not the source's. Self-BLEU-2: how alike two of a row's outputs are, before one is chosen, "
            "the mean over pairs of them; less is more diverse. Chosen by: how one of them is kept; “score” "
            "keeps the likeliest, “jaccard” the one most like the source, as the paper does. Sentences a second: with "
            "all those outputs.",
            *_describe_retrievals(results),
            *(
                ["", "The rows of Kazemnejad et al. 2020 are of another split; “as reported” it took over itself."]
                if results["paper"]
                else []
            ),
            *(
                ["", "The paper's METEOR is another METEOR than this one: its column compares ours with ours only."]
                if results["paper"] and "meteor" in columns
                else []
            ),
            "",
            f"Evaluated on {_join(entry['evaluated']['device'] for entry in _ours(results))}, commit "
            f"{_join(str(entry['evaluated']['commit'])[:10] for entry in _ours(results))}, "
            f"{_join(entry['evaluated']['date'][:10] for entry in _ours(results))}:",
            "",
            *(f"    {line}" for line in command.splitlines()),
            "",
            *(f"- {title}: `{results['signatures'][score]}`" for score, title in columns.items()),
            "",
        ]
    )


def format_comparison_as_csv(results: Mapping[str, Any]) -> str:
    """A line for each system and published row; of each score the bounds and p-values too, empty where unknown.

    `_p` is the p-value of the test alone, `_holm` that after Holm's correction for all tests of the table.
    """
    shown, corrected = _columns(results), correct_p_values(results)
    columns = [f"{score}{part}" for score in shown for part in ("", "_low", "_high", "_p", "_holm")]
    text = io.StringIO()
    names = ["system", "source", *columns, *DIVERSITY, "chosen_by", *SPEED]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for entry in results["systems"]:
        row = {name: entry.get(name) for name in SPEED} | {name: entry["diversity"].get(name) for name in DIVERSITY}
        for name in shown:
            score = entry["scores"][name]
            row |= {name: score["score"], f"{name}_low": score["low"], f"{name}_high": score["high"]}
            row |= {f"{name}_p": score["p_value"], f"{name}_holm": corrected.get((entry["name"], name))}
        row["chosen_by"] = _rule(entry)
        writer.writerow({"system": entry["name"], "source": "measured", **row})
    for paper in results["paper"]:
        scores = {name: score for name, score in paper["scores"].items() if name in shown}
        writer.writerow({"system": paper["model"], "source": "published", **scores})
    return text.getvalue()


def correct_p_values(results: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """The p-values after Holm's correction for all tests that the table shows, by system and score.

    Args:
        results: What `compare_paraphrasers` returned.
    """
    tests = {
        (entry["name"], name): entry["scores"][name]["p_value"]
        for entry in results["systems"]
        for name in _columns(results)
        if entry["scores"][name]["p_value"] is not None
    }
    return dict(zip(tests, holm(list(tests.values())), strict=True))


def plot_quality_against_diversity(results: Mapping[str, Any], path: str | os.PathLike) -> None:
    """Draw BLEU-4 over PINC, and over self-BLEU-2 of the outputs that one was chosen from, a dot a system.

    Figure 6 of Kazemnejad et al. 2020 has the same measures, over K.

    Args:
        results: What `compare_paraphrasers` returned.
        path: The PNG file to write.
    """
    figure = new_figure(11, 4.5)
    left, right = figure.subplots(1, 2, sharey=True)
    for number, entry in enumerate(results["systems"]):
        style = {**curve_style(number), "linestyle": "", "capsize": 2, "markersize": 6}
        quality, pinc = (entry["scores"][metric] for metric in ("bleu_4", "pinc"))
        bars = {"xerr": _error(pinc), "yerr": _error(quality)}
        left.errorbar(pinc["score"], quality["score"], **bars, **style, label=entry["name"])
        alike = entry["diversity"].get("self_bleu_2")
        if alike is not None:
            right.errorbar(alike, quality["score"], yerr=_error(quality), **style)
    left.set(xlabel="PINC (more is more diverse)", ylabel="BLEU-4")
    right.set(xlabel="self-BLEU-2 of the candidates (less is more diverse)")
    for axes in (left, right):
        axes.grid(True, alpha=0.3)
    figure.legend(loc="outside right center")
    save_figure(figure, path)


def _columns(results: Mapping[str, Any]) -> dict[str, str]:
    """The scores that the table has, with their titles."""
    found = results["signatures"]
    known = {name: title for name, title in SCORES.items() if name in found}
    return known | {name: name for name in found if name not in (*SCORES, *HIDDEN)}


def _describe_marks(results: Mapping[str, Any], corrected: Mapping[tuple[str, str], float]) -> str:
    """What a star says, and where there can be none."""
    n_trials, n_tests = results["environment"]["n_trials"], len(corrected)
    text = (
        f"* differs from {results['against']}, p < {SIGNIFICANT} after Holm's correction for the {n_tests} tests of "
        f"this table (stratified approximate randomisation, two-sided, {n_trials} trials, seed "
        f"{results['environment']['seed']})."
    )
    # The smallest p-value there is counts for all tests at first.
    smallest = n_tests / (n_trials + 1)
    if smallest < SIGNIFICANT:
        return text
    return f"{text} So few trials show no p below {smallest:.3f} after the correction: nothing could be marked."


def _describe_retrievals(results: Mapping[str, Any]) -> list[str]:
    """Which pairs the systems got that edit by them."""
    entries = [entry for entry in results["systems"] if "retrieval" in entry]
    allowed = [entry["name"] for entry in entries if entry["retrieval"]["allow_own_pair"]]
    others = [entry["name"] for entry in entries if not entry["retrieval"]["allow_own_pair"]]
    return [
        line
        for names, treated in ((others, "left out"), (allowed, "allowed, the answer itself too"))
        if names
        for line in ("", f"Pairs that share a row's source or reference were {treated}: {', '.join(names)}.")
    ]


def _rule(entry: Mapping[str, Any]) -> str:
    """How one of a system's outputs for a row is chosen."""
    decoding = entry.get("decoding", {})
    return "{select} of {num_candidates}".format_map(decoding) if "num_candidates" in decoding else "-"


def _system_cells(
    entry: Mapping[str, Any], columns: Mapping[str, str], corrected: Mapping[tuple[str, str], float]
) -> list[str]:
    diversity = entry["diversity"]
    alike = diversity.get("self_bleu_2")
    return [
        entry["name"],
        *(_format_score(entry["scores"][name], corrected.get((entry["name"], name), 1.0)) for name in columns),
        "-" if alike is None else f"{alike:.1f}",
        *(f"{diversity[name]:.3f}" for name in ("distinct_1", "distinct_2")),
        _rule(entry),
        f"{entry['num_parameters']:,}" if "num_parameters" in entry else "-",
        f"{entry['sentences_per_second']:.1f}" if "sentences_per_second" in entry else "-",
    ]


def _paper_cells(row: Mapping[str, Any], columns: Mapping[str, str]) -> list[str]:
    scores = [f"{row['scores'][name]:.2f}" if name in row["scores"] else "-" for name in columns]
    return [row["model"], *scores, *["-"] * (len(DIVERSITY) + 1 + len(SPEED))]


def _format_score(score: Mapping[str, Any], p_value: float) -> str:
    return f"{score['score']:.1f} ± {(score['high'] - score['low']) / 2:.1f}{'*' * (p_value < SIGNIFICANT)}"


def _error(score: Mapping[str, Any]) -> list[list[float]]:
    """What `errorbar` takes: how far the interval reaches below and above."""
    return [[max(0.0, score["score"] - score["low"])], [max(0.0, score["high"] - score["score"])]]


def _ours(results: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [entry for entry in results["systems"] if "evaluated" in entry]


def _join(values: Any) -> str:
    return ", ".join(dict.fromkeys(str(value) for value in values))
