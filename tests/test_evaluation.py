from __future__ import annotations

import json
from pathlib import Path

import pytest
from datasets import Dataset

from hf_paraphrase.errors import InputError
from hf_paraphrase.evaluation import evaluate_paraphraser, format_results
from hf_paraphrase.inference import compute_perplexity, generate_paraphrases
from hf_paraphrase.metrics.bleu.scoring import bleu
from tests.tiny_models import make_bart, make_tokenizer

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
def results(folder: Path) -> dict:
    return evaluate_paraphraser(
        make_bart(),
        make_tokenizer(),
        Dataset.from_dict(ROWS),
        num_beams=[1, 4],
        batch_size=2,
        max_new_tokens=7,
        n_bootstrap=20,
        output_dir=folder / "new" / "folder",
        data={"path": "mscoco", "name": None},
    )


def test_scores_are_those_of_the_parts(results: dict) -> None:
    model, tokenizer = make_bart(), make_tokenizer()
    for entry, width in zip(results["generation"], (1, 4), strict=True):
        predictions = generate_paraphrases(model, tokenizer, ROWS["source"], num_beams=width, max_new_tokens=7)
        assert entry["bleu"] == bleu(predictions, ROWS["references"], lowercase=True, n_bootstrap=20)
        assert entry["decoding"]["num_beams"] == width
        assert entry["decoding"]["max_new_tokens"] == 7
        assert entry["sentences_per_second"] == pytest.approx(4 / entry["seconds"])
    first = [texts[0] for texts in ROWS["references"]]
    assert results["perplexity"] == pytest.approx(
        compute_perplexity(model, tokenizer, ROWS["source"], first), rel=1e-4
    )


def test_baselines(results: dict) -> None:
    copied = bleu(ROWS["source"], ROWS["references"], lowercase=True, n_bootstrap=20)
    assert results["baselines"]["copy_source"] == copied
    references = [[source, *texts[1:]] for source, texts in zip(ROWS["source"], ROWS["references"], strict=True)]
    first = [texts[0] for texts in ROWS["references"]]
    assert results["baselines"]["first_reference"] == bleu(first, references, lowercase=True, n_bootstrap=20)


def test_files(results: dict, folder: Path) -> None:
    folder = folder / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == [
        "predictions-test-beam1.jsonl",
        "predictions-test-beam4.jsonl",
        "results-test.json",
    ]
    assert json.loads((folder / "results-test.json").read_text()) == results
    rows = [json.loads(line) for line in (folder / "predictions-test-beam4.jsonl").read_text().splitlines()]
    assert [row["source"] for row in rows] == ROWS["source"]
    assert [row["references"] for row in rows] == ROWS["references"]
    assert rows[1]["prediction"] == ""
    assert bleu([row["prediction"] for row in rows], ROWS["references"], lowercase=True)["score"] == pytest.approx(
        results["generation"][1]["bleu"]["score"]
    )


def test_results_say_what_was_done(results: dict) -> None:
    assert results["data"] == {"path": "mscoco", "name": None, "split": "test", "rows": 4}
    assert results["model"]["model_type"] == "bart"
    assert results["model"]["num_parameters"] == make_bart().num_parameters()
    assert results["environment"]["device"] == "cpu"
    assert set(results["environment"]) >= {"commit", "date", "threads", "seed", "versions", "batch_size"}
    assert "case:lc" in results["generation"][0]["bleu"]["signature"]


def test_table(results: dict) -> None:
    lines = format_results(results).splitlines()
    assert lines[0] == "mscoco, split test, 4 rows"
    assert lines[1].split() == ["BLEU", "beam", "1", "beam", "4"]
    assert not any("Prakash" in line for line in lines)
    paper = [
        {**entry, "paper_bleu": figure} for entry, figure in zip(results["generation"], (None, 36.7), strict=True)
    ]
    table = format_results({**results, "paper": "Prakash et al. 2016", "generation": paper})
    assert table.splitlines()[3].split() == ["Prakash", "et", "al.", "2016", "-", "36.7"]


def test_path_and_single_target(tmp_path: Path) -> None:
    make_bart().save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    rows = Dataset.from_dict({"source": ["how do i cook ?"], "target": ["how to cook ?"]})
    results = evaluate_paraphraser(tmp_path, None, rows, num_beams=[2], n_bootstrap=None, lowercase=False)
    assert results["model"]["name"] == str(tmp_path)
    assert results["baselines"]["copy_source"] == bleu(["how do i cook ?"], ["how to cook ?"])
    assert "±" not in format_results(results)


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
        evaluate_paraphraser(make_bart(), make_tokenizer(), Dataset.from_dict(rows))


def test_a_model_without_tokenizer() -> None:
    with pytest.raises(InputError, match="tokenizer is missing"):
        evaluate_paraphraser(make_bart(), None, Dataset.from_dict(ROWS))
