"""First beam, Paraphraser and Parrot's rules in one table, every figure counted again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from nltk import edit_distance

from hf_paraphrase import Paraphraser
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.evaluation.choices import compare_choices, format_choices
from hf_paraphrase.evaluation.paraphrases import COPIED
from hf_paraphrase.evaluation.results import Entry, Results
from hf_paraphrase.generation.engine import generate_several
from hf_paraphrase.generation.loading import load_paraphraser
from hf_paraphrase.metrics.ibleu.scoring import ibleu
from hf_paraphrase.models.search.pipeline_checks import find_pairs
from tests.generation.paraphrasers import make_paraphraser
from tests.models.tiny import save, tiny_bart, tiny_t5

SOURCES = [
    "the cat Tom sat on 3 mat",
    "how do i learn 12 faster ?",
    "can you make Swedish bread ?",
    "the dog sat on the mat",
    "how to cook Tom a cat",
]
TARGETS = ["3 mat and Tom", "learn 12 faster", "make bread", "a dog sat", "cook"]
WORDS = sorted({word for text in SOURCES for word in text.split()})
ROWS = Dataset.from_dict({"source": SOURCES, "target": TARGETS})
OPTIONS = {"max_new_tokens": 8, "num_beams": 10, "keep": (), "min_adequacy": 0.0, "min_novelty": 0.0}


def encode(texts: list[str]) -> np.ndarray:
    """Counts of known words and of all, as unit vectors."""
    counts = np.array([[1.0, len(text.split()), *map(text.split().count, WORDS)] for text in texts])
    return counts / np.linalg.norm(counts, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def paths(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return {"bart": save(tiny_bart(), folder / "bart"), "t5": save(tiny_t5(), folder / "t5")}


def compare(paths: dict[str, str], folder: Path, rows: Dataset = ROWS, **options) -> Results:
    settings = {"encoder": encode, "num_beams": 2, "n_samples": 20, "n_trials": 20, "data": {"path": "pairs"}}
    return compare_choices(paths, rows, folder, **settings, options=OPTIONS | options)


@pytest.fixture(scope="module")
def compared(paths, tmp_path_factory) -> tuple[Results, list[dict]]:
    folder = tmp_path_factory.mktemp("choices")
    results = compare(paths, folder)
    return results, [json.loads(line) for line in (folder / "choices.jsonl").read_text().splitlines()]


def scores(entry: Entry) -> dict[str, float]:
    return {score.metric: score.score for score in entry.scores}


def test_every_way_of_every_model_has_a_row(compared):
    results, lines = compared
    ways = ("first beam", "first beam, unknown words replaced", "Paraphraser", "Parrot's rules")
    assert [entry.system for entry in results.entries] == [
        COPIED,
        *(f"{m}: {w}" for m in ("bart", "t5") for w in ways),
    ]
    assert results.against == "bart: first beam" and [line["source"] for line in lines] == SOURCES
    assert [line["references"] for line in lines] == [[target] for target in TARGETS]


def test_each_way_writes_what_it_says(compared, paths):
    _, lines = compared
    model, tokenizer = load_paraphraser(paths["bart"], None)
    first = generate_several(model, tokenizer, SOURCES, 1, num_beams=2, max_new_tokens=256)
    assert [line["bart: first beam"] for line in lines] == [group[0] for group in first]
    paraphraser = Paraphraser(model, tokenizer)
    chosen = paraphraser(SOURCES, 1, **OPTIONS)
    assert [line["bart: Paraphraser"] for line in lines] == [group[0].text if group else None for group in chosen]
    # Of the options all that say where candidates come from.
    rules = {"decoding": "beam", "num_candidates": 10, "adequacy": "embedding", "encoder": encode}
    pool = paraphraser(SOURCES, 10, **rules, **OPTIONS)
    for line, group in zip(lines, pool, strict=True):
        least = min(0.8, max(one.adequacy for one in group))
        distances = {one.text: edit_distance(line["source"], one.text) for one in group if one.adequacy >= least}
        assert distances[line["bart: Parrot's rules"]] == max(distances.values())


def test_scores_are_of_the_rows_that_every_way_answers(compared):
    results, lines = compared
    scored = [line for line in lines if all(line.values())]
    assert 0 < len(scored) == results.data.counts["scored"] and results.data.rows == len(SOURCES)
    sources, references = ([line[name] for line in scored] for name in ("source", "references"))
    for entry in results.entries[1:]:
        outputs = [line[entry.system] for line in scored]
        found = scores(entry)
        expected = ibleu(outputs, references, sources, lowercase=True)
        assert found["ibleu"] == pytest.approx(expected["score"])
        cosines = (encode(sources) * encode(outputs)).sum(1)
        assert found["adequacy"] == pytest.approx(100 * cosines.mean())
        kept = {"names_kept": ["Tom", "Swedish"], "numbers_kept": ["3", "12"], "unknown_kept": ["Tom", "Swedish"]}
        for name, words in kept.items():
            pairs = [
                (word, out)
                for text, out in zip(sources, outputs, strict=True)
                for word in words
                if word in text.split()
            ]
            if pairs:
                assert found[name] == pytest.approx(100 * np.mean([word in out.split() for word, out in pairs]))
        assert entry.counts["answered"] == sum(line[entry.system] is not None for line in lines)
    assert {name: scores(results.entries[0])[name] for name in ("pinc", "adequacy")} == pytest.approx(
        {"pinc": 0, "adequacy": 100}
    )


def test_intact_are_those_that_change_no_name_and_no_number(compared, paths, tmp_path):
    results, _ = compared
    assert results.find("bart: first beam").counts["intact"] < len(SOURCES)
    kept = compare({"t5": paths["t5"]}, tmp_path, keep=("names", "numbers"))
    counts = kept.find("t5: Paraphraser").counts
    assert counts["intact"] == counts["answered"] > 0


def test_the_table_says_how_it_was_made(compared):
    results, _ = compared
    table = format_choices(Results.from_dict(results.to_dict()), "hf-paraphrase compare x")
    heads, _, copied, first = table.splitlines()[:4]
    assert heads.count("|") == first.count("|") and copied.startswith(f"| {COPIED} |") and copied.endswith("| - | - |")
    assert "    hf-paraphrase compare x\n" in table and "judge (a function)" in table
    assert f"of the {results.data.counts['scored']} that every way answers" in table


def test_a_share_of_nothing_is_none(paths, tmp_path):
    rows = Dataset.from_dict({"source": ["the dog sat on the mat"], "target": ["a dog sat"]})
    results = compare({"bart": paths["bart"]}, tmp_path, rows)
    assert scores(results.entries[1]).keys() == {"bleu_4", "ibleu", "pinc", "adequacy"}
    assert "| - | - | - | 100.0% | 100.0% |" in format_choices(results, "")


def test_no_row_for_all_is_said(paths, tmp_path):
    with pytest.raises(InputError, match="no row has a paraphrase by every method"):
        compare(paths, tmp_path, min_adequacy=1.0)


def test_a_model_that_edits_by_pairs_is_given_the_nearest(tmp_path):
    editor, texts = make_paraphraser("edit_lstm"), ["the cat sat", "how do i learn faster ?", "can you make bread"]
    save(editor.model, tmp_path / "editor")
    editor.retriever.save_pretrained(tmp_path / "editor" / "retriever")
    rows = Dataset.from_dict({"source": texts, "target": texts})
    results = compare({"editor": str(tmp_path / "editor")}, tmp_path, rows, num_neighbors=1)
    lines = map(json.loads, (tmp_path / "choices.jsonl").read_text().splitlines())
    pairs = [found[0] for found in find_pairs(editor.retriever, texts, 1)]
    expected = generate_several(editor.model, editor.tokenizer, texts, 1, num_beams=2, pairs=pairs)
    assert [line["editor: first beam"] for line in lines] == [group[0] for group in expected]
    assert results.find("editor: Paraphraser").counts["answered"] > 0
