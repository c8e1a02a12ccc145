from __future__ import annotations

from collections import Counter

from datasets import ClassLabel, Dataset, Features, List, Value

from hf_paraphrase.datasets.statistics import count_lengths, describe_lengths, plot_lengths


def test_words_of_every_text_column_are_counted():
    text, numbers = Value("string"), {"label": ClassLabel(2), "place": Value("int32")}
    features = Features({"source": text, "references": List(text), **numbers})
    rows = {
        "source": ["one two\tthree", " one ", None],
        "references": [["a", "b c"], [], None],
        "label": [0, 1, 1],
        "place": [1, 2, 3],
    }
    assert count_lengths(Dataset.from_dict(rows, features)) == {"source": {3: 1, 1: 1}, "references": {1: 1, 2: 1}}


def test_many_batches():
    rows = Dataset.from_dict({"source": ["word " * (number % 7) for number in range(25_000)]})
    assert count_lengths(rows)["source"] == Counter(number % 7 for number in range(25_000))


def test_description():
    counts = Counter({1: 50, 2: 44, 5: 5, 100: 1})
    assert describe_lengths(counts) == {"texts": 100, "mean": 2.63, "min": 1, "median": 1, "95%": 5, "max": 100}
    assert describe_lengths(Counter({4: 1})) == {"texts": 1, "mean": 4, "min": 4, "median": 4, "95%": 4, "max": 4}


def test_plot(tmp_path):
    path = tmp_path / "lengths.png"
    plot_lengths({"train": Counter({1: 50, 3: 44, 100: 6}), "test": Counter({4: 1})}, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["lengths.png"]
