"""One record for all that is evaluated: what a file holds, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from hf_paraphrase import PairLstmConfig, PairLstmForSequenceClassification
from hf_paraphrase.cli.compare import EQUAL_PASSES
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.common.files import write_json, write_lines
from hf_paraphrase.evaluation.matches import OVERLAP, evaluate_matcher, format_matching_results, read_match_statistics
from hf_paraphrase.evaluation.results import Data, Decoding, Entry, Group, Model, Results, Score, Speed, describe_data
from hf_paraphrase.hub.card import describe_checkpoint
from hf_paraphrase.hub.checkpoint import read_checkpoint
from hf_paraphrase.metrics.significance import bootstrap
from hf_paraphrase.papers.table import list_tables
from tests.hub.runs import write_run
from tests.models.tiny import word_tokenizer

ROOT = Path(__file__).resolve().parents[2]
# What a table of a paper gave has a shape of its own (tests/reproduction).
OTHERS = {"training_summary", "judges", *list_tables()}
COMMITTED = sorted(
    path for path in ROOT.glob("model_cards/*/*.json") if path.stem.removesuffix(EQUAL_PASSES) not in OTHERS
)
SCORES = (Score("bleu_4", 20.5, 19.0, 22, "case:lc", 0.5, 0.01), Score("pinc", 0.0))
FULL = Results(
    "comparison",
    Data("quora", "clean", {"seed": 3}, 10, 0, "test", 10, {"words": 7}),
    (
        Entry(
            "FSET",
            "model",
            SCORES,
            Model("runs/fset", "fset", 12),
            Decoding("dips", 5, 3, False, 4, "jaccard", None, 1, {"max_new_tokens": 7, "suppress_tokens": [3]}),
            (Group("in_train", False, 4, SCORES), Group("in_train", None, 6, SCORES)),
            SCORES,
            SCORES[:1],
            3.5,
            {"doubles": 0},
            Speed(2.0, 5.0, "sentences"),
            "autoencode",
            "predictions-test-dips5.jsonl",
            {"steps": 3},
            Data("snli"),
            {"device": "cpu"},
        ),
        Entry("the source, copied", "baseline", ()),
    ),
    {"seed": 1},
    "FSET",
)


def test_every_field_comes_back_from_a_file(tmp_path):
    FULL.save(tmp_path / "new" / "results.json")
    assert Results.load(tmp_path / "new" / "results.json") == FULL
    # What is not known is not written.
    (_, copied) = json.loads((tmp_path / "new" / "results.json").read_text())["entries"]
    assert copied == {"system": "the source, copied", "role": "baseline", "scores": []}


def test_a_decoding_names_itself():
    assert FULL.entries[0].label("ours") == "ours, dips 5, 3 pairs a row, by jaccard of 4"
    assert FULL.entries[0].decoding.identifier == "dips5_pairs3"
    assert (Decoding().label, Decoding().identifier, Decoding().num_outputs) == ("beam 1", "beam1", 1)


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: "/".join(path.parts[-2:]))
def test_what_is_published_has_the_one_shape(path):
    results = Results.load(path)
    assert all(entry.scores for entry in results.entries)
    assert results.to_dict() == json.loads(path.read_text(encoding="utf-8"))


def test_the_builder_s_arguments_have_one_place():
    assert describe_data({"path": "a", "kwargs": {"b": 1}}, "test", 3) == Data("a", kwargs={"b": 1}, rows=3)
    with pytest.raises(InputError, match="`data`: no field min_words; arguments of the builder stand in `kwargs`"):
        describe_data({"path": "a", "min_words": 3}, "test", 3)


def change(**fields):
    return lambda values: values | fields


@pytest.mark.parametrize(
    "spoil",
    [
        lambda values: {name: value for name, value in values.items() if name != "schema"},
        change(schema=0),
        change(kind="generation"),
        change(entries=[]),
        change(systems={}),
        change(data={"path": "quora", "min_words": 3}),
        change(entries=[{"system": "a", "role": "model", "scores": [{"metric": "bleu_4", "score": "high"}]}]),
        change(entries=[{"system": "a", "role": "ours", "scores": []}]),
        lambda values: [values],
        # As it was written before.
        lambda values: {"model": {}, "data": {}, "generation": [], "baselines": {}, "paper": [], "environment": {}},
    ],
)
def test_a_file_of_another_shape_is_refused_by_its_name(spoil, tmp_path):
    path = tmp_path / "results-test.json"
    path.write_text(json.dumps(spoil(FULL.to_dict())))
    with pytest.raises(InputError, match=r"results-test\.json is not an evaluation rec.*; evaluate"):
        Results.load(path)
    path.write_text("{")
    with pytest.raises(InputError, match=r"results-test\.json is not valid JSON"):
        Results.load(path)


def test_a_checkpoint_with_an_old_file_names_it(tmp_path):
    folder = write_run(tmp_path / "run")
    (folder / "evaluation" / "results-test.json").write_text('{"model": {}, "scores": []}')
    with pytest.raises(InputError, match=r"run: evaluation/results-test\.json is not an evaluation rec.*; evaluate"):
        read_checkpoint(folder)


def test_info_shows_every_kind_alike(tmp_path):
    folder = write_run(tmp_path / "run")
    for kind in ("paraphrases", "documents", "language_model", "matches"):
        results = replace(FULL, kind=kind, data=replace(FULL.data, split=kind))
        results.save(folder / "evaluation" / f"results-{kind}.json")
    text = describe_checkpoint(read_checkpoint(folder))
    for kind in ("paraphrases", "documents", "language_model", "matches"):
        section = text.split(f"results, split {kind}\n")[1]
        lines = [line.strip() for line in section.splitlines()]
        assert lines[0] == "quora, 10 rows"
        assert lines[1].startswith("this model, dips 5, 3 pairs a row, by jaccard of 4: bleu_4 20.50 (19.00 to 22.00)")


def pair_tokenizer() -> PreTrainedTokenizerBase:
    tokenizer = word_tokenizer()
    tokenizer.model_input_names = [*tokenizer.model_input_names, "token_type_ids"]
    return tokenizer


def test_a_matcher_s_record(tmp_path):
    config = PairLstmConfig(vocab_size=len(word_tokenizer()), embedding_size=4, hidden_size=4, num_labels=2)
    tokenizer = pair_tokenizer()
    rows = {"sentence1": ["the cat", "a dog"], "sentence2": ["a cat", "bread"], "label": [1, 0]}
    results = evaluate_matcher(
        PairLstmForSequenceClassification(config),
        tokenizer,
        Dataset.from_dict(rows),
        n_samples=10,
        output_dir=tmp_path,
        data={"path": "twitter_url", "name": "pairs"},
    )
    assert Results.load(tmp_path / "results-test.json") == results
    entry, overlap, *paper = results.entries
    assert [score.metric for score in entry.scores] == ["accuracy", "f1", "max_f1"]
    assert (overlap.system, overlap.role, len(overlap.scores)) == (OVERLAP, "baseline", 2)
    # One pair shares a word, the other none, and the first is the paraphrase.
    assert overlap.find("max_f1").score == 1.0
    assert entry.speed.unit == "pairs" and entry.counts["num_parameters_without_embeddings"] > 0
    assert len((tmp_path / entry.outputs).read_text().splitlines()) == 2
    read = read_match_statistics(tmp_path / entry.outputs)
    assert {name: entry.find(name).score for name in ("accuracy", "max_f1")} == {
        name: pytest.approx(statistics.score) for name, statistics in read.items()
    }
    assert {name: statistics.name for name, statistics in read.items()} == {name: name for name in read}
    assert paper and {row.role for row in paper} == {"paper"}
    lines = format_matching_results(results).splitlines()
    assert lines[0].startswith("twitter_url, split test, 2 rows") and lines[2].startswith("this model ")
    assert lines[3].startswith(OVERLAP) and lines[4].startswith(paper[0].system) and lines[2].count("±") == 3


def test_trainings_with_thresholds_of_their_own_have_a_mean(tmp_path):
    """The largest F1 of each is at another threshold, and both are 1."""
    runs = []
    for run, (high, low) in enumerate([(0.9, 0.8), (0.2, 0.1)]):
        file = tmp_path / f"{run}.jsonl"
        rows = [{"prediction": [1 - score, score], "label": label} for score, label in ((high, 1), (low, 0))]
        write_lines(file, rows)
        runs.append(read_match_statistics(file)["max_f1"])
    assert bootstrap(runs, n_samples=10, resample_runs=True).score == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("num_labels", "columns", "scores"),
    [
        (3, {"sentence1": ["the cat", "a dog"], "sentence2": ["a cat", "bread"], "label": [1, 2]}, None),
        (
            1,
            {
                "query": ["the cat sat", "make bread"],
                "candidates": [["a dog", "a cat sat", "bread"], ["how to make bread", "a cat"]],
                "label": [1, 1],
            },
            {"precision_at_1": 0.5, "mrr": 0.75, "map": 0.75},
        ),
    ],
)
def test_overlap_beside_other_matchers(num_labels, columns, scores):
    """It ranks by the words that are shared, and cannot tell three labels apart."""
    config = PairLstmConfig(vocab_size=len(word_tokenizer()), embedding_size=4, hidden_size=4, num_labels=num_labels)
    tokenizer = pair_tokenizer()
    model = PairLstmForSequenceClassification(config)
    results = evaluate_matcher(model, tokenizer, Dataset.from_dict(columns), n_samples=10)
    found = [{score.metric: score.score for score in entry.scores} for entry in results.of("baseline")]
    assert found == ([] if scores is None else [scores])


def test_the_overlap_s_threshold_is_chosen_in_validation():
    config = PairLstmConfig(vocab_size=len(word_tokenizer()), embedding_size=4, hidden_size=4, num_labels=2)
    tokenizer = pair_tokenizer()
    rows = Dataset.from_dict({"sentence1": ["the cat"] * 2, "sentence2": ["the dog", "the cat"], "label": [1, 1]})
    validation = Dataset.from_dict({"sentence1": ["cat"] * 2, "sentence2": ["dog", "cat"], "label": [0, 1]})
    model = PairLstmForSequenceClassification(config)
    (overlap,) = evaluate_matcher(model, tokenizer, rows, validation, n_samples=10).of("baseline")
    f1, max_f1 = overlap.scores
    assert (f1.score, f1.signature) == (pytest.approx(2 / 3), "threshold:1")
    assert (max_f1.score, max_f1.signature) == (1.0, "threshold:0.333333")


@pytest.mark.parametrize("path", sorted(ROOT.glob("model_cards/*/*.json")), ids=lambda path: path.stem)
def test_committed_records_are_compact(path: Path, tmp_path: Path) -> None:
    write_json(tmp_path / "again.json", json.loads(path.read_text(encoding="utf-8")))
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
