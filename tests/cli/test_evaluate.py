from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict

import hf_paraphrase.datasets
from hf_paraphrase import ResidualLstmConfig, ResidualLstmForConditionalGeneration
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.evaluation.kinds import EVALUATORS
from hf_paraphrase.evaluation.results import Data, Results
from tests.models.tiny import save, tiny_bart, tiny_matcher, tiny_model

from .runner import run


def test_a_split_that_is_not_there(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("evaluate", checkpoint, "--dataset", "synthetic_questions", "--split", "tset") == 2
    assert "unknown split `tset`" in capsys.readouterr().err


def test_evaluate(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    asked = {}

    def load_dataset(path, **kwargs):
        asked.update(kwargs, path=path)
        return Dataset.from_dict({"source": ["how do i cook ?"] * 3, "references": [["can you cook ?"]] * 3})

    monkeypatch.setattr(hf_paraphrase.datasets, "load_dataset", load_dataset)
    options = ["--dataset-kwargs", "max_words=15", "--dataset-kwargs", "name_of=it", "--max-samples", "2"]
    options += [
        "--num-beams",
        "1",
        "--num-beams",
        "2",
        "--output-dir",
        tmp_path / "evaluation",
        "--max_new_tokens",
        "4",
    ]
    assert run("evaluate", checkpoint, "--dataset", "mscoco", "--data-dir", tmp_path, *options) == 0
    assert asked == {
        "path": "mscoco",
        "name": None,
        "data_dir": tmp_path,
        "split": "test",
        "max_words": 15,
        "name_of": "it",
    }
    results = Results.load(tmp_path / "evaluation" / "results-test.json")
    assert [entry.decoding.generate_kwargs["max_new_tokens"] for entry in results.of("model")] == [4, 4]
    assert results.data == Data("mscoco", None, {"max_words": 15, "name_of": "it"}, 2, None, "test", 2)
    table = capsys.readouterr().out
    assert "beam 1" in table
    assert "the source, copied" in table


def test_evaluate_knows_what_a_run_was_trained_on(
    checkpoint: Path, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def load_dataset(path, **kwargs):
        asked.append((path, kwargs))
        raise InputError("enough")

    monkeypatch.setattr(hf_paraphrase.datasets, "load_dataset", load_dataset)
    folder = tmp_path / "run"
    shutil.copytree(checkpoint, folder)
    shutil.copytree(recipe, folder / "recipe")
    with (folder / "recipe" / "training.yaml").open("a") as file:
        file.write("dataset_name: plain\ndata_dir: here\ndataset_kwargs: {seed: 3, size: 9}\n")
    assert run("evaluate", folder, "--dataset-kwargs", "seed=4") == 2
    plain = {"name": "plain", "data_dir": "here", "split": "test", "seed": 4, "size": 9}
    assert asked == [("synthetic_questions", plain)]


def test_evaluate_refuses_bad_input(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("evaluate", checkpoint, "--dataset", "mscoco", "--dataset-kwargs", "max_words") == 2
    assert capsys.readouterr().err == "error: --dataset-kwargs takes KEY=VALUE, got 'max_words'\n"
    assert run("evaluate", checkpoint) == 2
    assert capsys.readouterr().err.startswith("error: --dataset is missing")
    assert run("evaluate", checkpoint, "--dataset", "no_such_corpus") == 2
    assert "no_such_corpus" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--allow-own-pair"]])
def test_own_pairs_are_allowed_on_request_alone(
    options: list[str], checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def evaluate(*args: object, allow_own_pair: bool, **kwargs: object) -> None:
        asked.append(allow_own_pair)
        raise InputError("enough")

    monkeypatch.setitem(EVALUATORS, "paraphraser", evaluate)
    assert run("evaluate", checkpoint, "--dataset", "synthetic_questions", "--max-samples", "2", *options) == 2
    assert asked == [bool(options)]


def test_evaluate_matcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    rows = {"sentence1": ["a cat", "the dog"] * 3, "sentence2": ["the cat", "a mat"] * 3, "label": [1, 0] * 3}
    splits = DatasetDict(validation=Dataset.from_dict(rows), test=Dataset.from_dict(rows))
    monkeypatch.setattr(hf_paraphrase.datasets, "load_dataset", lambda *args, **kwargs: splits)
    # One that is not of this package, too.
    model = save(tiny_matcher(2), tmp_path / "bert")
    options = ["--dataset", "msrp", "--max-samples", 4, "--output-dir", tmp_path / "evaluation"]
    assert run("evaluate", model, *options) == 0
    assert capsys.readouterr().out.startswith("msrp, split test, 4 rows; ")
    assert {path.name for path in (tmp_path / "evaluation").iterdir()} == {
        "predictions-test.jsonl",
        "results-test.json",
    }


def test_autoencoders_are_known_by_their_task_and_drawn_side_by_side(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Any architecture may have learnt to autoencode; each run is evaluated on its own corpus."""
    asked = []

    def load_dataset(path, **kwargs):
        asked.append(path)
        return Dataset.from_dict({"sentences": [["the cat sat", "a dog"], ["make bread"], ["a cat"]]})

    monkeypatch.setattr(hf_paraphrase.datasets, "load_dataset", load_dataset)
    runs = [tmp_path / "first", tmp_path / "second"]
    for folder in runs:
        save(tiny_bart(), folder)
        shutil.copytree(recipe, folder / "recipe")
        with (folder / "recipe" / "training.yaml").open("a") as file:
            file.write("task: autoencode\n")
    files = {"reconstructions-test.jsonl", "results-test.json"}
    options = ["--max-samples", 2, "--n-samples", 10, "--output-dir"]
    assert run("evaluate", runs[0], *options, tmp_path / "evaluation") == 0
    assert {path.name for path in (tmp_path / "evaluation").iterdir()} == files
    assert run("compare", f"one={runs[0]},num_beams=2", f"two={runs[1]}", *options, tmp_path / "out") == 0
    assert asked == ["synthetic_questions"] * 3 and capsys.readouterr().out.count("split test") == 3
    assert {path.name for path in (tmp_path / "out" / "one").iterdir()} == files
    assert (tmp_path / "out" / "reconstruction.png").read_bytes().startswith(b"\x89PNG")
    matcher = save(tiny_matcher(2), tmp_path / "bert")
    assert run("compare", f"one={runs[0]}", f"other={matcher}", *options, tmp_path / "out") == 2
    assert capsys.readouterr().err.endswith("; one: autoencoder, other: matcher\n")


def test_words_and_surface_of_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the options do is tested with the models; here that they arrive, and that results say so."""
    rows = Dataset.from_dict({"source": ["how do i cook Zebra ?"] * 2, "references": [["can you cook ?"]] * 2})
    monkeypatch.setattr(hf_paraphrase.datasets, "load_dataset", lambda *_, **__: rows)
    model = tiny_bart()
    model.generation_config.update(suppress_tokens=[3], sequence_bias=[[[3], 50.0]], max_new_tokens=2)
    options = ["--dataset", "mscoco", "--num-beams", "1", "--output-dir", tmp_path / "evaluation"]
    for asked in ([], ["--replace-unknown", "--restore-surface"]):
        assert run("evaluate", save(model, tmp_path / "model"), *options, *asked) == 0
        (entry,) = Results.load(tmp_path / "evaluation" / "results-test.json").of("model")
        lines = (tmp_path / "evaluation" / entry.outputs).read_text().splitlines()
        predictions = [json.loads(line)["prediction"] for line in lines]
        known = ["replace_unknown", "restore_surface"]
        settled = entry.decoding.generate_kwargs
        assert [settled.get(name) for name in known] == [bool(asked) or None] * 2
        assert settled["suppress_tokens"] == (None if asked else [3])
        for text in predictions:
            words = text.rstrip("?").split()
            assert (len(words) > 0 and words[0][0].isupper() and set(text.lower().split()) <= SOURCE) == bool(asked)


def test_samples_of_which_one_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    rows = Dataset.from_dict({"source": ["how do i cook"], "references": [["can you cook ?"]]})
    monkeypatch.setattr(hf_paraphrase.datasets, "load_dataset", lambda *_, **__: rows)
    args = ["evaluate", save(tiny_bart(), tmp_path / "model"), "--dataset", "mscoco", "--max-new-tokens", "4"]
    args += ["--num-candidates", "3", "--select", "mbr", "--output-dir", tmp_path / "evaluation"]
    assert run(*args, "--decoding", "sample", "--temperature", "0.5") == 0
    (entry,) = Results.load(tmp_path / "evaluation" / "results-test.json").of("model")
    assert entry.decoding.generate_kwargs["temperature"] == 0.5 and "sample, by mbr of 3" in capsys.readouterr().out
    assert run(*args, "--temperature", "0.5") == 2
    assert capsys.readouterr().err == "error: --temperature is an option of --decoding sample\n"


SOURCE = {"how", "do", "i", "cook", "zebra", "?"}


def test_unknown_words_of_a_model_without_attention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    rows = Dataset.from_dict({"source": ["how do i"], "references": [["can you cook ?"]]})
    monkeypatch.setattr(hf_paraphrase.datasets, "load_dataset", lambda *_, **__: rows)
    model = tiny_model(ResidualLstmConfig, ResidualLstmForConditionalGeneration)
    command = ["evaluate", save(model, tmp_path), "--dataset", "mscoco", "--replace-unknown"]
    assert run(*command) == 2
    assert (
        "`replace_unknown`: this ResidualLstmForConditionalGeneration attends to no words" in capsys.readouterr().err
    )
