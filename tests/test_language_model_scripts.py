from __future__ import annotations

import json
import random
import runpy
from pathlib import Path

import pytest

from hf_paraphrase.evaluation.results import Results
from hf_paraphrase.training.recipe import Recipe
from tests.training.tasks.test_language_model import SIZES, WORDS, LanguageModelConfig

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


@pytest.fixture(scope="module")
def books(tmp_path_factory) -> Path:
    """Documents of 20 lines, some of them to validate on and some to test on."""
    folder, draw = tmp_path_factory.mktemp("books"), random.Random(0)
    lines = [f"the {draw.choice(WORDS)} and the {draw.choice(WORDS)} ." for _ in range(800)]
    (folder / "books.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def recipes(tmp_path_factory) -> list[Path]:
    training = LanguageModelConfig(
        dataset="books",
        dataset_kwargs={"lines_per_document": 20, "validation_fraction": 0.2, "test_fraction": 0.2},
        max_steps=2,
        train_batch_size=8,
        max_eval_samples=20,
        disable_tqdm=True,
    )
    folders = []
    for kind in ("sarah", "gru"):
        folders.append(tmp_path_factory.mktemp("recipes") / f"tiny-{kind}")
        Recipe(folders[-1].name, SIZES | {"sentence_encoder": kind}, {}, training).save(folders[-1])
    return folders


def test_one_command_compares_recipes_and_goes_on(books, recipes, tmp_path):
    compare = runpy.run_path(str(SCRIPTS / "compare_language_models.py"))["main"]
    options = {"data_dir": books, "output_dir": tmp_path, "override": ["learning_rate=0.01"], "max_samples": 16}
    for seeds in ([1], [1, 2]):
        compare(recipes, seeds=seeds, split="test", **options)
    runs = Results.load(tmp_path / "comparison.json").of("model")
    assert sorted((run.system, run.training["seed"]) for run in runs) == [
        ("tiny-gru", 1),
        ("tiny-gru", 2),
        ("tiny-sarah", 1),
        ("tiny-sarah", 2),
    ]
    scores = [run.scores[0].score for run in runs]
    assert scores == sorted(scores)
    assert all(run.training["steps"] == 2 and run.environment["date"] for run in runs)
    assert (tmp_path / "comparison.png").stat().st_size > 5000

    draw_maps = runpy.run_path(str(SCRIPTS / "map_embeddings.py"))["main"]
    maps = tmp_path / "maps"
    draw_maps(
        tmp_path / "tiny-gru-seed=1",
        output_dir=maps,
        dataset="books",
        data_dir=books,
        max_documents=30,
        num_words=5,
        num_sentences=12,
        near_word=["rainy"],
        near_sentence=["The rain."],
        num_nearest=4,
        perplexity=3.0,
        seed=0,
    )
    names = {"words", "sentences", "words-near-1", "sentences-near-1"}
    assert {path.name for path in maps.iterdir()} == {f"{name}.{kind}" for name in names for kind in ("png", "html")}
    assert "rainy" in (maps / "words-near-1.html").read_text(encoding="utf-8")

    rank = runpy.run_path(str(SCRIPTS / "rank_paraphrases.py"))["main"]
    (tmp_path / "sentences.txt").write_text("the sun and the rain .\n\nsnow\n")
    written = tmp_path / "candidates.jsonl"
    rank(
        tmp_path / "tiny-gru-seed=1",
        tmp_path / "sentences.txt",
        num_candidates=3,
        temperature="0.5",
        noise="uniform",
        seed=0,
        shown=2,
        output=written,
    )
    rows = [json.loads(line) for line in written.read_text().splitlines()]
    assert [row["text"] for row in rows] == ["the sun and the rain .", "snow"]
    assert all(candidate["temperature"] == 0.5 for row in rows for candidate in row["candidates"])
