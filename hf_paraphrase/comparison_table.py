"""A comparison of paraphrasers as a Markdown table, as CSV, and as a picture of quality against diversity."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from typing import Any

from .pictures import curve_style, new_figure, save_figure

__all__ = ["format_comparison_as_csv", "format_comparison_as_markdown", "plot_quality_against_diversity"]

# The columns of Table 2 of Kazemnejad et al. 2020, in its order, and PINC, which has an interval as well.
SCORES = {
    "rouge2": "ROUGE-2",
    "rouge1": "ROUGE-1",
    "bleu_4": "BLEU-4",
    "bleu_2": "BLEU-2",
    "meteor": "METEOR",
    "pinc": "PINC",
}
DIVERSITY = {"self_bleu_2": "self-BLEU-2", "distinct_1": "distinct-1", "distinct_2": "distinct-2"}
SPEED = {"num_parameters": "parameters", "sentences_per_second": "sentences/s"}
SIGNIFICANT = 0.05


def format_comparison_as_markdown(results: Mapping[str, Any], command: str) -> str:
    """The table, a line for each system, the published rows below, and how all of it came about.

    Args:
        results: What `compare_paraphrasers` returned.
        command: The one that made it.
    """
    data, environment = results["data"], results["environment"]
    heads = ["system", *SCORES.values(), *DIVERSITY.values(), *SPEED.values()]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    lines += [_system_cells(entry) for entry in results["systems"]]
    lines += [_paper_cells(row) for row in results["paper"]]
    name = " ".join(str(part) for part in (data.get("path"), data.get("name")) if part)
    limit = f", drawn by seed {data['sample_seed']}" if data.get("sample_seed") is not None else ""
    return "\n".join(
        [
            *("| " + " | ".join(cells) + " |" for cells in lines),
            "",
            f"{name or 'data'}, split {data['split']}, {data['rows']:,} rows{limit}. ± is half of the 95% interval "
            f"(bootstrap, {environment['n_samples']} samples). * differs from {results['against']}, p < {SIGNIFICANT} "
            f"(stratified approximate randomisation, two-sided, {environment['n_trials']} trials, seed "
            f"{environment['seed']}). PINC: how many n-grams are not the source's. Self-BLEU-2: how alike a row's "
            "outputs are, before one is chosen; less is more diverse. Sentences a second: with all those outputs.",
            *(
                ["", "The rows of Kazemnejad et al. 2020 are of another split; “as reported” it took over itself."]
                if results["paper"]
                else []
            ),
            "",
            f"Evaluated on {_join(entry['evaluated']['device'] for entry in _ours(results))}, commit "
            f"{_join(str(entry['evaluated']['commit'])[:10] for entry in _ours(results))}, "
            f"{_join(entry['evaluated']['date'][:10] for entry in _ours(results))}:",
            "",
            *(f"    {line}" for line in command.splitlines()),
            "",
            *(f"- {SCORES[metric]}: `{results['signatures'][metric]}`" for metric in SCORES),
            "",
        ]
    )


def format_comparison_as_csv(results: Mapping[str, Any]) -> str:
    """A line for each system and published row; of each score the bounds and the p-value too, empty where unknown."""
    columns = [name for metric in SCORES for name in (metric, f"{metric}_low", f"{metric}_high", f"{metric}_p")]
    text = io.StringIO()
    writer = csv.DictWriter(text, ["system", "source", *columns, *DIVERSITY, *SPEED], lineterminator="\n")
    writer.writeheader()
    for entry in results["systems"]:
        row = {name: entry.get(name) for name in SPEED} | {name: entry["diversity"].get(name) for name in DIVERSITY}
        for metric in SCORES:
            score = entry["scores"][metric]
            row |= {metric: score["score"], f"{metric}_low": score["low"], f"{metric}_high": score["high"]}
            row[f"{metric}_p"] = score["p_value"]
        writer.writerow({"system": entry["name"], "source": "measured", **row})
    for paper in results["paper"]:
        writer.writerow({"system": paper["model"], "source": "published", **paper["scores"]})
    return text.getvalue()


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


def _system_cells(entry: Mapping[str, Any]) -> list[str]:
    diversity = entry["diversity"]
    alike = diversity.get("self_bleu_2")
    return [
        entry["name"],
        *(_format_score(entry["scores"][metric]) for metric in SCORES),
        "-" if alike is None else f"{alike:.1f}",
        *(f"{diversity[name]:.3f}" for name in ("distinct_1", "distinct_2")),
        f"{entry['num_parameters']:,}" if "num_parameters" in entry else "-",
        f"{entry['sentences_per_second']:.1f}" if "sentences_per_second" in entry else "-",
    ]


def _paper_cells(row: Mapping[str, Any]) -> list[str]:
    scores = [f"{row['scores'][metric]:.2f}" if metric in row["scores"] else "-" for metric in SCORES]
    return [row["model"], *scores, *["-"] * (len(DIVERSITY) + len(SPEED))]


def _format_score(score: Mapping[str, Any]) -> str:
    mark = "*" if score["p_value"] is not None and score["p_value"] < SIGNIFICANT else ""
    return f"{score['score']:.1f} ± {(score['high'] - score['low']) / 2:.1f}{mark}"


def _error(score: Mapping[str, Any]) -> list[list[float]]:
    """What `errorbar` takes: how far the interval reaches below and above."""
    return [[max(0.0, score["score"] - score["low"])], [max(0.0, score["high"] - score["score"])]]


def _ours(results: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [entry for entry in results["systems"] if "evaluated" in entry]


def _join(values: Any) -> str:
    return ", ".join(dict.fromkeys(str(value) for value in values))
