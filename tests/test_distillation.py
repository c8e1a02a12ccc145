"""Distillation from texts to a table: whenever it is killed, the same call goes on, with the same result."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from datasets import load_dataset
from safetensors.torch import load_file

import hf_paraphrase
from hf_paraphrase.augmentation.run import Augmentation
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.common.files import read_lines
from hf_paraphrase.distillation import Distillation, _write_corpus, run_distillation
from tests.generation.language_models import PROMPT, byte_tokenizer, tiny_llama
from tests.generation.paraphrasers import random_sentences
from tests.models.tiny import save
from tests.training.tiny_runs import make_pairs, make_recipe

OPTIONS = {"keep": [], "num_candidates": 3, "max_new_tokens": 50, "min_adequacy": 0.0, "adequacy": "jaccard"}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Distillation:
    """Of a tiny causal teacher and a tiny recurrent student."""
    folder = tmp_path_factory.mktemp("teacher")
    # Python's `splitlines` takes the first for the end of a line, JSON does not.
    texts = [text.replace(" ", "\u2028", 1) for text in dict.fromkeys(random_sentences(24))]
    (folder / "texts.csv").write_text("\n".join(["text", *texts]), encoding="utf-8")
    (folder / "pairs").mkdir()
    for split, rows in make_pairs(train=20, validation=5).items():
        rows.to_json(folder / "pairs" / f"{split}.jsonl")
    PROMPT.save(folder / "mine.yaml")
    model = save(tiny_llama(), folder / "model", byte_tokenizer())
    (folder / "model" / "README.md").write_text("---\nlicense: apache-2.0\n---\n# A teacher\n")
    texts = {
        "input": str(folder / "texts.csv"),
        "column": "text",
        "n": 2,
        "tasks": 2,
        "prompt": str(folder / "mine.yaml"),
    }
    recipe = make_recipe(num_train_epochs=1, vocab_size=40, dataset=str(folder / "pairs"))
    return Distillation(texts=Augmentation(model=model, **texts, options=OPTIONS), recipe=recipe, held_out=0.2)


@pytest.fixture(scope="module")
def whole(asked: Distillation, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """What one quiet call makes, and how many files it has put in their places."""
    folder, moves = tmp_path_factory.mktemp("whole") / "run", []
    replace = os.replace
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", lambda *paths, **kwargs: moves.append(paths) or replace(*paths, **kwargs))
        run_distillation(asked, folder)
    return folder, len(moves)


def run_until(moves: int, work: Callable[[], object]) -> int:
    """Work in a process that kills itself before so many files are put in their places; return its status."""
    process = os.fork()
    if process:
        return os.waitpid(process, 0)[1]
    replace, left = os.replace, [moves]

    def replace_or_die(*paths: object, **kwargs: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*paths, **kwargs)

    try:
        os.replace = replace_or_die
        torch.set_num_threads(1)
        work()
        os._exit(0)
    finally:
        os._exit(1)


def read_result(folder: Path) -> dict:
    """All that a run leaves, but for how long it took."""
    rows = json.loads((folder / "table.json").read_text())
    texts = {name: (folder / name).read_text() for name in ("test.jsonl", "corpus/train.jsonl", "corpus/README.md")}
    weights = {name: load_file(folder / name / "model.safetensors") for name in ("student", "undistilled")}
    weights = {f"{run}.{name}": tensor.tolist() for run, found in weights.items() for name, tensor in found.items()}
    return {"rows": [{**row, "texts_per_second": 0} for row in rows], **texts, **weights}


def test_killed_three_times_the_result_is_the_same(
    asked: Distillation, whole: tuple[Path, int], tmp_path: Path
) -> None:
    folder, moves = whole
    output = tmp_path / folder.name
    for _ in range(3):
        assert run_until(moves // 4, lambda: run_distillation(asked, output)) == signal.SIGKILL
    assert run_until(10 * moves, lambda: run_distillation(asked, output)) == 0
    assert read_result(output) == read_result(folder)


def test_the_corpus_has_what_passed_and_the_table_all_models(asked: Distillation, whole: tuple[Path, int]) -> None:
    folder, _ = whole
    corpus = load_dataset("json", data_files=str(folder / "corpus" / "train.jsonl"), split="train")
    tested = {row["source"] for row in read_lines(folder / "test.jsonl")}
    assert tested and tested.isdisjoint(corpus["source"]) and len(corpus) >= 5
    rows = json.loads((folder / "table.json").read_text())
    assert [row["model"] for row in rows] == ["teacher", "student", "undistilled"]
    assert all(row["texts_per_second"] > 0 and 0 <= row["answered"] <= 100 for row in rows)
    card = (folder / "corpus" / "README.md").read_text()
    assert "| licence | apache-2.0 |" in card and "'Rewrite.'" in card and "## Rejected candidates" in card


def test_the_likeliest_by_the_teacher_are_learnt(asked: Distillation, whole: tuple[Path, int], tmp_path: Path) -> None:
    shutil.copytree(whole[0] / "candidates", tmp_path / "candidates")
    _write_corpus(replace(asked, likeliest=1), Counter(), tmp_path)
    files = sorted((tmp_path / "candidates" / "data").glob("*.parquet"))
    candidates = [row for file in files for row in pq.read_table(file).to_pylist() if row["paraphrase"]]
    rows = read_lines(tmp_path / "corpus" / "train.jsonl")
    best: dict[str, dict] = {}
    for row in candidates:
        best[row["text"]] = max(best.get(row["text"], row), row, key=lambda one: one["fluency"])
    assert rows and all(best[row["source"]]["paraphrase"] == row["target"] for row in rows)
    all_rows = read_lines(whole[0] / "corpus" / "train.jsonl")
    firsts = {row["source"]: row for row in reversed(all_rows)}
    assert len(rows) == len(firsts) < len(all_rows)
    assert any(row != firsts[row["source"]] for row in rows)  # not the best by score
    assert "| likeliest by the teacher | 1 |" in (tmp_path / "corpus" / "README.md").read_text()


def test_probabilities_of_others_are_not_the_teacher_s(asked: Distillation, whole: tuple[Path, int], tmp_path) -> None:
    with pytest.raises(InputError, match="`likeliest` asks the teacher"):
        replace(asked, likeliest=1, texts=replace(asked.texts, options={**OPTIONS, "fluency": "gpt2"}))
    shutil.copytree(whole[0] / "candidates", tmp_path / "candidates")
    for file in (tmp_path / "candidates" / "data").glob("*.parquet"):
        table = pq.read_table(file)
        place = table.schema.get_field_index("fluency")
        pq.write_table(table.set_column(place, "fluency", pa.nulls(len(table), pa.float64())), file)
    with pytest.raises(InputError, match="`likeliest`: the server gives no log-probabilities"):
        _write_corpus(replace(asked, likeliest=1), Counter(), tmp_path)


def test_in_python_it_is_one_call(asked: Distillation, whole: tuple[Path, int]) -> None:
    """The arguments are those of the run, which has nothing left to do."""
    texts = asked.texts
    given = {"column": "text", "n": 2, "tasks": 2, "prompt": texts.prompt, "options": OPTIONS}
    with pytest.raises(InputError, match="begun with held_out"):
        hf_paraphrase.distill(texts.input, texts.model, asked.recipe, whole[0], **given)
    rows = hf_paraphrase.distill(texts.input, texts.model, asked.recipe, whole[0], **given, asked={"held_out": 0.2})
    assert rows == json.loads((whole[0] / "table.json").read_text())


def test_another_distillation_in_the_same_folder_is_refused(asked: Distillation, whole: tuple[Path, int]) -> None:
    changed = Distillation(texts=asked.texts, recipe=asked.recipe, held_out=0.3)
    with pytest.raises(InputError, match=r"begun with held_out 0\.2, not 0\.3"):
        run_distillation(changed, whole[0])
