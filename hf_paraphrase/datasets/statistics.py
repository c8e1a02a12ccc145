from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

import datasets
import pyarrow as pa
import pyarrow.compute as pc

from ..common.pictures import add_legend, in_style, new_figure, save_figure

# How many texts have how many words.
LengthCounts = Counter[int]


def count_lengths(rows: datasets.Dataset) -> dict[str, LengthCounts]:
    """Count words, which white space separates, in every text of every text column of a split; the texts of lists
    count singly. Columns without texts are left out."""
    counts: dict[str, LengthCounts] = {}
    for batch in rows.with_format("arrow").iter(10_000):
        for name in batch.column_names:
            column = batch[name]
            while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
                column = pc.list_flatten(column)
            if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
                continue
            lengths = pc.count_substring_regex(column, r"\S+").drop_null()
            found = counts.setdefault(name, Counter())
            for entry in pc.value_counts(lengths).to_pylist():
                found[entry["values"]] += entry["counts"]
    return {name: found for name, found in counts.items() if found}


def describe_lengths(counts: LengthCounts) -> dict[str, float]:
    """The number of texts, and the mean, the quantiles and the extremes of their lengths in words."""
    total = counts.total()
    ordered = sorted(counts.items())
    # The number of texts that are at most as long.
    seen = list(accumulate(count for _, count in ordered))
    median, high = (ordered[bisect_left(seen, share * total)][0] for share in (0.5, 0.95))
    return {
        "texts": total,
        "mean": sum(length * count for length, count in ordered) / total,
        "min": ordered[0][0],
        "median": median,
        "95%": high,
        "max": ordered[-1][0],
    }


@in_style
def plot_lengths(counts: Mapping[str, LengthCounts], path: str | os.PathLike) -> None:
    """Draw the share of texts of every length as PNG, a curve for each name, as Figure 5 of Prakash et al. 2016 does.

    The axis ends where all but one text in two hundred do.
    """
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    figure = new_figure()
    axes = figure.subplots()
    longest = 1
    for name, lengths in counts.items():
        total, all_lengths = lengths.total(), range(min(lengths), max(lengths) + 1)
        seen = list(accumulate(map(lengths.__getitem__, all_lengths)))
        shown = all_lengths[: bisect_left(seen, 0.995 * total) + 1]
        longest = max(longest, shown[-1])
        axes.plot(shown, [lengths[length] / total for length in shown], marker="o", label=f"{name} ({total:,})")
    axes.set(xlabel="length in words", ylabel="share of the texts", xlim=(0, longest + 1), ylim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    axes.grid(True)
    add_legend(axes)
    save_figure(figure, path)
