from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from hf_paraphrase import Paraphraser, ParaphraseRetriever, ResidualLstmConfig, ResidualLstmForConditionalGeneration
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.evaluation import paraphrases
from hf_paraphrase.evaluation.paraphrases import (
    COPIED,
    FIRST_REFERENCE,
    NEAREST_TARGET,
    _count_repeats,
    evaluate_paraphraser,
    format_results,
)
from hf_paraphrase.evaluation.results import Data, Results, Score, describe_papers
from hf_paraphrase.generation.engine import compute_perplexity, generate_paraphrases, generate_several
from hf_paraphrase.generation.seeded_sampling import sample_seeded
from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.score_files import ScoredTexts
from hf_paraphrase.metrics.score_table import score_systems
from hf_paraphrase.models.text.candidate_selection import select_by_mbr
from hf_paraphrase.papers import PaperRow
from tests.models.test_pipeline_pairs import tiny_fset
from tests.models.tiny import tiny_bart, word_tokenizer

ROWS = {
    "source": ["How do i learn to cook ?", "", "what is the best way to make bread ?", "can you cook ?"],
    "references": [
        ["what is the best way to learn to cook ?", "how can i learn to cook ?"],
        ["how do you make bread ?"],
        ["how do i make bread quickly ?", "what is the way to make bread ?", "can you make bread ?"],
        ["do you cook ?", "is it you who can cook ?"],
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evaluation")


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return evaluate_paraphraser(
        tiny_bart(),
        word_tokenizer(),
        Dataset.from_dict(ROWS),
        num_beams=[1, 4],
        batch_size=2,
        max_new_tokens=7,
        metrics=("bleu", "pinc"),
        n_samples=20,
        output_dir=folder / "new" / "folder",
        data={"path": "mscoco", "name": None},
    )


def test_scores_are_those_of_the_score_table(results: Results) -> None:
    model, tokenizer = tiny_bart(), word_tokenizer()
    for entry, width in zip(results.of("model"), (1, 4), strict=True):
        predictions = generate_paraphrases(model, tokenizer, ROWS["source"], num_beams=width, max_new_tokens=7)
        assert entry.scores == score(predictions, ROWS["references"])
        assert entry.decoding.num_beams == width
        assert entry.decoding.generate_kwargs["max_new_tokens"] == 7
        assert entry.speed.per_second == pytest.approx(4 / entry.speed.seconds)
        first = [texts[0] for texts in ROWS["references"]]
        found = {"perplexity": entry.perplexity, "tokens": entry.counts["reference_tokens"]}
        assert found == pytest.approx(compute_perplexity(model, tokenizer, ROWS["source"], first), rel=1e-4)


def score(predictions: list[str], references: list[list[str]]) -> tuple[Score, ...]:
    options = {"bleu": {"lowercase": True}, "pinc": {"lowercase": True}}
    texts = ScoredTexts([predictions], references, ROWS["source"])
    rows = score_systems(texts, metrics=("bleu", "pinc"), options=options, n_samples=20)
    return tuple(
        Score(row.metric, row.score, row.low, row.high, row.signature, row.selection_variance) for row in rows
    )


def test_baselines(results: Results) -> None:
    copied = results.find(COPIED)
    assert copied.scores == score(ROWS["source"], ROWS["references"])
    assert copied.find("bleu_4").score == pytest.approx(
        bleu(ROWS["source"], ROWS["references"], lowercase=True)["score"]
    )
    references = [[source, *texts[1:]] for source, texts in zip(ROWS["source"], ROWS["references"], strict=True)]
    first = [texts[0] for texts in ROWS["references"]]
    assert results.find(FIRST_REFERENCE).scores == score(first, references)


def test_files(results: Results, folder: Path) -> None:
    folder = folder / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == [
        "predictions-test-beam1.jsonl",
        "predictions-test-beam4.jsonl",
        "results-test.json",
    ]
    assert Results.load(folder / "results-test.json") == results
    rows = [json.loads(line) for line in (folder / "predictions-test-beam4.jsonl").read_text().splitlines()]
    assert [row["source"] for row in rows] == ROWS["source"]
    assert [row["references"] for row in rows] == ROWS["references"]
    assert rows[1]["prediction"] == ""
    assert score([row["prediction"] for row in rows], ROWS["references"]) == results.of("model")[1].scores
    assert results.of("model")[1].outputs == "predictions-test-beam4.jsonl"


def test_results_say_what_was_done(results: Results) -> None:
    assert results.data == Data("mscoco", None, split="test", rows=4)
    entry = results.entries[0]
    assert entry.model.model_type == "bart"
    assert entry.model.num_parameters == tiny_bart().num_parameters()
    assert results.environment["device"] == "cpu"
    assert set(results.environment) >= {"commit", "date", "threads", "seed", "versions", "batch_size"}
    assert all("lc" in score.signature for score in entry.scores)


def test_table(results: Results) -> None:
    lines = format_results(results).splitlines()
    assert lines[0].startswith("mscoco, split test, 4 rows")
    assert lines[1].split() == ["bleu_4", "bleu_2", "pinc"]
    assert lines[2].startswith("this model, beam 1 ")
    assert all(line.count("±") == 3 for line in lines[2:6])
    assert not any("Prakash" in line for line in lines)
    paper = describe_papers([PaperRow("Prakash et al. 2016", 5, {"bleu_4": 36.7})])
    table = format_results(replace(results, entries=(*results.entries, *paper)))
    assert table.splitlines()[6].split() == ["Prakash", "et", "al.", "2016,", "beam", "5", "36.7", "-", "-"]


def test_diverse_decoding(tmp_path: Path) -> None:
    rows, model, tokenizer = Dataset.from_dict(ROWS), tiny_bart(), word_tokenizer()
    options = {"decoding": "diverse_beam", "diversity_penalty": 2.0, "max_new_tokens": 7}
    results = evaluate_paraphraser(
        model, tokenizer, rows, num_beams=[4], num_return_sequences=3, n_samples=20, output_dir=tmp_path, **options
    )
    (entry,) = results.of("model")
    decoding = entry.decoding
    assert (decoding.method, decoding.num_return_sequences, decoding.num_beams) == ("diverse_beam", 3, 4)
    assert {"diversity_penalty": 2.0, "max_new_tokens": 7}.items() <= decoding.generate_kwargs.items()
    expected = generate_several(model, tokenizer, ROWS["source"], 3, num_beams=4, **options)
    lines = (tmp_path / "predictions-test-diverse_beam4.jsonl").read_text().splitlines()
    assert [json.loads(line)["predictions"] for line in lines] == expected
    assert [json.loads(line)["prediction"] for line in lines] == [group[0] for group in expected]
    table = format_results(results)
    assert "this model, diverse_beam 4 " in table and "self-BLEU-2 of 3 outputs a row" in table
    counts = entry.counts
    line = f"rows with a double among 3 outputs: {counts['doubles']}, with a copy of the source: {counts['copies']}"
    assert line in table.splitlines()
    with pytest.raises(InputError, match="`num_return_sequences` must be 1"):
        evaluate_paraphraser(model, tokenizer, rows, num_return_sequences=3, num_candidates=3)


def test_samples_of_which_one_is_chosen(tmp_path: Path) -> None:
    rows, model, tokenizer = Dataset.from_dict(ROWS), tiny_bart(), word_tokenizer()
    sampling = {"decoding": "sample", "temperature": 2.0, "max_new_tokens": 7, "n_samples": 20}
    options = sampling | {"num_candidates": 6, "select": "mbr"}

    def evaluate(folder: str, **changes: Any) -> list[str]:
        results = evaluate_paraphraser(model, tokenizer, rows, output_dir=tmp_path / folder, **options | changes)
        (entry,) = results.of("model")
        assert entry.label("ours") == "ours, sample, by mbr of 6"
        used = {"temperature": 2.0, "do_sample": True, "seed": changes.get("seed", 12345)}
        assert used.items() <= entry.decoding.generate_kwargs.items()
        lines = (tmp_path / folder / "predictions-test-sample1.jsonl").read_text().splitlines()
        return [json.loads(line)["prediction"] for line in lines]

    chosen = evaluate("first")
    assert evaluate("again", batch_size=1) == chosen
    assert evaluate("other", seed=2) != chosen
    how = {"do_sample": True, "num_beams": 1, "seed": 12345, "temperature": 2.0, "max_new_tokens": 7}
    candidates = generate_several(model, tokenizer, ROWS["source"], 6, decoding=sample_seeded, **how)
    places = select_by_mbr(candidates)
    assert [texts[place] for texts, place in zip(candidates, places, strict=True)] == chosen
    assert any(places)
    with pytest.raises(InputError, match="searches nothing"):
        evaluate_paraphraser(model, tokenizer, rows, num_beams=[5], **sampling)


def test_rows_with_doubles_and_copies() -> None:
    outputs = [("How  do I?", "how do i ?"), ("a", "b"), ("c b", "b c"), ("x", "x")]
    assert _count_repeats(["do i", "A", "b  C", "x"], outputs) == {"doubles": 2, "copies": 3}


def test_path_and_single_target(tmp_path: Path) -> None:
    tiny_bart().save_pretrained(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    rows = Dataset.from_dict({"source": ["how do i cook ?"], "target": ["how to cook ?"]})
    options = {"bleu": {"lowercase": False}}
    results = evaluate_paraphraser(tmp_path, None, rows, num_beams=[2], metric_options=options, max_new_tokens=5)
    assert results.entries[0].model.name == str(tmp_path)
    (copied, _) = results.find(COPIED).scores
    assert copied.score == pytest.approx(bleu(["how do i cook ?"], ["how to cook ?"])["score"])
    assert "case:mixed" in copied.signature


def test_the_papers_rows_of_the_widths_used_are_beside_ours() -> None:
    rows = Dataset.from_dict(ROWS)
    model = ResidualLstmForConditionalGeneration(
        ResidualLstmConfig(vocab_size=len(word_tokenizer()), embedding_size=8, hidden_size=8)
    )
    results = evaluate_paraphraser(
        model, word_tokenizer(), rows, num_beams=[2, 5], max_new_tokens=3, data={"path": "mscoco"}
    )
    (row,) = results.of("paper")
    assert (row.decoding.num_beams, row.find("bleu_4").score, row.find("ter").score) == (5, 36.7, 52.3)


@pytest.mark.parametrize(
    ("how", "shown"), [({"num_beams": [1]}, ["any", "greedy"]), ({"decoding": "sample"}, ["any"])]
)
def test_a_papers_greedy_rows_stand_beside_no_samples(
    how: dict[str, Any], shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    published = [PaperRow("any", None, {"bleu_4": 1.0}), PaperRow("greedy", 1, {"bleu_4": 2.0})]
    monkeypatch.setattr("hf_paraphrase.evaluation.paraphrases.find_paper_rows", lambda *_: published)
    results = evaluate_paraphraser(
        tiny_bart(), word_tokenizer(), Dataset.from_dict(ROWS), max_new_tokens=3, n_samples=5, **how
    )
    assert [row.system for row in results.of("paper")] == shown


def test_an_unknown_metric_stops_it_before_the_work() -> None:
    with pytest.raises(InputError, match="unknown metric 'blue'"):
        evaluate_paraphraser("nowhere", None, Dataset.from_dict(ROWS), metrics=["blue"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"source": ["a"], "text": ["b"]}, r"the dataset has the columns \['source', 'text'\]"),
        ({"source": [], "references": []}, "nothing to score"),
        ({"source": ["a", "b"], "references": [["x"], []]}, r"references\[1\] is an empty list"),
    ],
)
def test_rows_that_cannot_be_scored(rows: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_paraphraser(tiny_bart(), word_tokenizer(), Dataset.from_dict(rows))


def test_a_model_without_tokenizer() -> None:
    with pytest.raises(InputError, match="tokenizer is missing"):
        evaluate_paraphraser(tiny_bart(), None, Dataset.from_dict(ROWS))


PAIRS = [
    ("the cat sat", "a cat sat"),
    ("the dog sat", "the dog on the mat"),
    ("how do i learn ?", "how learn faster ?"),
    ("the mat", "the mat sat"),
    ("what is a dog ?", "is it a dog ?"),
    ("how do i cook ?", "how to cook ?"),
]


def test_models_that_edit_by_pairs(tmp_path: Path) -> None:
    rows = Dataset.from_dict(
        {
            "source": ["the cat on the mat", "a dog sat", "how do i learn faster ?", "the mat"],
            "references": [["a cat on a mat"], ["the dog sat"], ["how learn faster ?"], ["a mat"]],
            "in_train": [True, False, True, False],
        }
    )
    retriever = ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard")
    options = {"num_beams": [2], "num_neighbors": [1, 3], "num_candidates": 2, "select": "jaccard", "n_samples": 20}
    model, tokenizer = tiny_fset(), word_tokenizer()
    results = evaluate_paraphraser(
        model, tokenizer, rows, retriever=retriever, group_by="in_train", output_dir=tmp_path, **options
    )
    one, three = results.of("model")
    assert [one.decoding.num_neighbors, three.decoding.num_neighbors] == [1, 3]
    assert not one.diversity and 0 <= three.diversity[0].score < 100.1
    for entry in (one, results.find(COPIED)):
        assert [group.label for group in entry.groups] == ["in_train=False", "in_train=True"]
        assert [group.rows for group in entry.groups] == [2, 2]
    assert Results.load(tmp_path / "results-test.json") == results
    own = [[source, *texts] for source, texts in zip(rows["source"], rows["references"], strict=True)]
    nearest = [pairs[0][:2] for pairs in retriever.retrieve(rows["source"], exclude_sentences=own)]
    handed, written = results.find(NEAREST_TARGET).find("bleu_4"), [target for _, target in nearest]
    assert handed.score == pytest.approx(bleu(written, rows["references"], lowercase=True)["score"])
    choice = {"num_candidates": 2, "select": "jaccard"}
    expected = generate_paraphrases(model, tokenizer, rows["source"], pairs=nearest, num_beams=2, **choice)
    lines = (tmp_path / "predictions-test-beam2.jsonl").read_text().splitlines()
    assert [json.loads(line)["prediction"] for line in lines] == expected
    assert (tmp_path / "predictions-test-beam2-neighbors3.jsonl").is_file()
    table = format_results(results)
    assert "beam 2, 3 pairs a row" in table and "self-BLEU-2 of 3 outputs a row" in table
    # Appendix A.2 has a model for each K: one model's rows are not those.
    assert "K = " not in table and "not the K of Kazemnejad et al. 2020" in table
    with pytest.raises(InputError, match="9, but the retriever has 6 pairs"):
        evaluate_paraphraser(model, tokenizer, rows, retriever=retriever, num_neighbors=[9])
    with pytest.raises(InputError, match="6, but fewer pairs were found that share no sentence with their row"):
        evaluate_paraphraser(model, tokenizer, rows, retriever=retriever, num_neighbors=[6])
    with pytest.raises(InputError, match="no column in_dev"):
        evaluate_paraphraser(model, tokenizer, rows, retriever=retriever, group_by="in_dev")
    model.save_pretrained(tmp_path / "alone")
    tokenizer.save_pretrained(tmp_path / "alone")
    with pytest.raises(InputError, match="no folder retriever"):
        evaluate_paraphraser(tmp_path / "alone", None, rows)


@pytest.mark.parametrize(("k", "shares"), [(1, [5]), (3, [2, 2, 1]), (5, [1] * 5)])
def test_pairs_share_out_the_outputs(k: int, shares: list[int], tmp_path: Path) -> None:
    rows = Dataset.from_dict({"source": ["my bird is slow", "a fish"], "references": [["a slow bird"], ["some fish"]]})
    retriever = ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard")
    options = {"retriever": retriever, "num_beams": [5], "num_return_sequences": 5, "n_samples": 20}
    model, tokenizer = tiny_fset(), word_tokenizer()
    results = evaluate_paraphraser(
        model, tokenizer, rows, num_neighbors=[k], max_new_tokens=4, output_dir=tmp_path, **options
    )
    assert "self-BLEU-2 of 5 outputs a row" in format_results(results)
    expected: list[list[str]] = [[], []]
    for place, share in enumerate(shares):
        pairs = [found[place][:2] for found in retriever.retrieve(rows["source"], k)]
        several = generate_several(model, tokenizer, rows["source"], share, pairs=pairs, num_beams=5, max_new_tokens=4)
        expected = [[*before, *group] for before, group in zip(expected, several, strict=True)]
    (file,) = tmp_path.glob("predictions-*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["predictions"] for line in lines] == expected
    assert all(line["prediction"] in line["predictions"] for line in lines)
    for counts in ([6], [1, 3]):  # refused before a retriever is looked for, of which there is none
        with pytest.raises(InputError, match=r"5 outputs cannot be shared out among \["):
            evaluate_paraphraser(model, tokenizer, rows, num_neighbors=counts, **{**options, "retriever": None})


def test_the_answer_is_not_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The retriever knows each row's own pair, that pair the other way round, and one that shares its source."""
    rows = Dataset.from_dict(
        {
            "source": ["the cat sat", "how do i learn ?", ""],
            "references": [["a cat", "A  cat sat"], ["how learn faster ?"], ["the mat"]],
        }
    )
    memory = [
        *PAIRS,
        ("A cat sat", "the cat sat"),
        ("the  Cat sat", "a dog on the mat"),
        ("how do i learn ?", "is it faster ?"),
    ]
    retriever = ParaphraseRetriever.from_pairs(memory, encoder="jaccard")
    shown: list[list[tuple[str, str]]] = []
    generate = paraphrases.generate_several

    def record(*args: object, pairs: list[tuple[str, str]], **kwargs: object) -> list[list[str]]:
        shown.append(pairs)
        return generate(*args, pairs=pairs, **kwargs)

    monkeypatch.setattr(paraphrases, "generate_several", record)
    options = {"num_beams": [1], "num_neighbors": [3], "n_samples": 20, "max_new_tokens": 4}
    model, tokenizer = tiny_fset(), word_tokenizer()
    results = evaluate_paraphraser(model, tokenizer, rows, retriever=retriever, **options)
    assert treatment(results) == (False, 3)
    assert "(for 3 of 3 rows there are any) were left out" in format_results(results)
    own = [{"the cat sat", "a cat", "a cat sat"}, {"how do i learn ?", "how learn faster ?"}]
    for row, sentences in enumerate(own):
        pairs = [nearest[row] for nearest in shown]
        assert len(set(pairs)) == 3
        assert all(" ".join(text.lower().split()) not in sentences for pair in pairs for text in pair)

    shown.clear()
    allowed = evaluate_paraphraser(model, tokenizer, rows, retriever=retriever, allow_own_pair=True, **options)
    assert treatment(allowed) == (True, 3)
    assert "were allowed, the answer itself too" in format_results(allowed)
    assert list(shown[0][:2]) == [PAIRS[0], PAIRS[2]]
    assert allowed.entries[0].perplexity != results.entries[0].perplexity


def treatment(results: Results) -> tuple[bool, int]:
    entry = results.entries[0]
    return entry.decoding.allow_own_pair, entry.counts["rows_with_own_pair"]


def test_what_a_paraphraser_chooses_is_scored() -> None:
    """Rows that it leaves out keep their source, and are counted."""
    model, tokenizer, rows = tiny_bart(), word_tokenizer(), Dataset.from_dict(ROWS)
    options = {"max_new_tokens": 7, "metrics": ("bleu", "pinc"), "n_samples": 20}
    results = evaluate_paraphraser(model, tokenizer, rows, choose=True, **options)
    (entry,) = results.of("model")
    found = Paraphraser(model, tokenizer)(ROWS["source"], 1, num_beams=10, max_new_tokens=7)
    chosen = [group[0].text if group else text for text, group in zip(ROWS["source"], found, strict=True)]
    assert entry.scores == score(chosen, ROWS["references"])
    assert entry.counts["answered"] == sum(map(bool, found)) < len(found)
    assert entry.decoding.rule == "paraphraser of 10" and f"answered: {entry.counts['answered']} of 4 rows" in (
        format_results(results)
    )
    with pytest.raises(InputError, match="`choose` decides on one output itself"):
        evaluate_paraphraser(model, tokenizer, rows, choose=True, num_return_sequences=2, **options)
    with pytest.raises(InputError, match="`choose`: of a model that edits by retrieved pairs"):
        evaluate_paraphraser(tiny_fset(), tokenizer, rows, choose=True, **options)
