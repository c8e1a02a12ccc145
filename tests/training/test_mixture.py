from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict

from hf_paraphrase.common.errors import InputError, TrainingInterrupted
from hf_paraphrase.datasets import load_dataset
from hf_paraphrase.retrieval import pairs as retrieval_pairs
from hf_paraphrase.training.arguments import read_mixture
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.mixture import load_mixture
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.tasks import TASKS, edit

from .test_distributed import ONE_MACHINE, finish, launch
from .test_streaming import environment
from .tiny_runs import WORDS, assert_equal, last_weights, make_recipe, send_after

KINDS = {"first": 40, "second": 60}
ENTRIES = [
    {
        "dataset": "groups",
        "dataset_kwargs": {"data_files": f"{name}.tsv", "max_held_out": 0.4, "validation_size": 6, "test_size": 6},
        "name": f"corpus {name}",
        "licence": f"licence {name}",
        "share": share,
    }
    for name, share in zip(KINDS, (3, 1), strict=True)
]


def write_groups(folder: Path) -> Path:
    """Two corpora of groups of two to four sentences, whose sentences start with the corpus's name."""
    draw = random.Random(0)
    for name, count in KINDS.items():
        groups = (
            [f"{name} " + " ".join(draw.choices(WORDS, k=draw.randint(2, 7))) for _ in range(draw.randint(2, 4))]
            for _ in range(count)
        )
        (folder / f"{name}.tsv").write_text("".join("\t".join(group) + "\n" for group in groups))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_groups(tmp_path_factory.mktemp("corpora"))


def mixed_recipe(folder: Path, **fields):
    options = {"mixture": ENTRIES, "data_dir": str(folder), "pairs_per_group": 1, "num_train_epochs": 3}
    return make_recipe(**options | fields)


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "whole"
    train(mixed_recipe(folder), directory)
    return directory


def read_summary(directory: Path) -> dict:
    return json.loads((directory / "training_summary.json").read_text())


def test_the_summary_names_corpora_licences_and_shares(whole):
    summary = read_summary(whole)
    first, second = summary["mixture"]
    assert [first["name"], first["licence"]] == ["corpus first", "licence first"]
    assert [second["name"], second["licence"]] == ["corpus second", "licence second"]
    assert (first["share"], second["share"]) == pytest.approx((0.75, 0.25), abs=0.01)
    # 28 and 48 groups are left to train on, with a pair each.
    assert first["pairs_per_epoch"] + second["pairs_per_epoch"] == 28 + 48
    assert first["train_pairs"] + second["train_pairs"] == summary["train_pairs"]
    assert (first["validation_pairs"], second["validation_pairs"]) == (6, 2)
    assert summary["validation_pairs"] == 8


def test_the_run_says_what_it_is_trained_on(folder, tmp_path, capsys):
    train(mixed_recipe(folder, max_steps=1, disable_tqdm=False), tmp_path)
    said = capsys.readouterr().err
    assert "corpus first: 75.0% of an epoch, 57 of " in said
    assert "licence: licence second" in said


@pytest.mark.parametrize("stops", [[3], [12, 7]], ids=str)
def test_a_stopped_run_goes_on_exactly(folder, whole, tmp_path, monkeypatch, stops):
    """In the first epoch, and in the second and third, which have drawn other pairs."""
    recipe = mixed_recipe(folder, save_steps=4)
    for number, step in enumerate(stops):
        with monkeypatch.context() as patch:
            send_after(patch, step)
            with pytest.raises(TrainingInterrupted):
                train(recipe, tmp_path, resume=number > 0)
    train(recipe, tmp_path, resume=True)
    assert_equal(last_weights(tmp_path), last_weights(whole))
    assert read_summary(tmp_path)["last"]["eval_loss"] == read_summary(whole)["last"]["eval_loss"]


def test_a_killed_run_goes_on_exactly(folder, whole, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from hf_paraphrase.training.loop import train\n"
        "from hf_paraphrase.training.run import TrainingRun\n"
        "from tests.training.test_mixture import mixed_recipe\n"
        "step = TrainingRun._step\n"
        "def step_or_die(run):\n"
        "    if run.state.step == 15:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    step(run)\n"
        "TrainingRun._step = step_or_die\n"
        "train(mixed_recipe(Path(sys.argv[1]), save_steps=4), sys.argv[2])\n"
    )
    run = subprocess.run([sys.executable, script, folder, tmp_path / "run"], env=environment())
    assert run.returncode == -signal.SIGKILL
    train(mixed_recipe(folder, save_steps=4), tmp_path / "run", resume=True)
    assert_equal(last_weights(tmp_path / "run"), last_weights(whole))


def test_two_processes_train_as_one(folder, tmp_path):
    fields = {"dropout": 0.0, "train_batch_size": 7}
    train(mixed_recipe(folder, **fields), tmp_path / "one")
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "from pathlib import Path\n"
        "from hf_paraphrase.training.loop import train\n"
        "from tests.training.test_mixture import mixed_recipe\n"
        f"train(mixed_recipe(Path(sys.argv[1]), **{fields!r}), sys.argv[2])\n"
    )
    os.symlink(folder, tmp_path / "pairs")
    finish([launch(ONE_MACHINE, script, tmp_path, "two")])
    one, two = (read_summary(tmp_path / name) for name in ("one", "two"))
    assert (two["processes"], two["steps"], two["mixture"]) == (2, one["steps"], one["mixture"])
    weights = last_weights(tmp_path / "two")
    for name, tensor in last_weights(tmp_path / "one").items():
        torch.testing.assert_close(weights[name], tensor, rtol=1e-3, atol=1e-4)


def texts_of(rows: Dataset) -> set[str]:
    return {text.casefold() for name in ("source", "target") for text in rows[name]}


def test_no_corpus_trains_on_what_another_one_holds_out(folder, tmp_path):
    """The second corpus holds all of the first, in other groups: a sentence of a held-out one, its whole group."""
    write_groups(tmp_path)
    lines = (tmp_path / "first.tsv").read_text().upper().splitlines()
    with (tmp_path / "second.tsv").open("a") as file:
        file.writelines(f"{line}\textra {number}\n" for number, line in enumerate(lines))
    splits = load_mixture(read_mixture(ENTRIES), tmp_path, seed=0)
    held_out = set()
    for name in KINDS:
        options = ENTRIES[0]["dataset_kwargs"] | {"data_files": f"{name}.tsv"}
        alone = load_dataset("groups", data_dir=tmp_path, **options)
        held_out |= texts_of(alone["validation"])
        held_out |= {text.casefold() for row in alone["test"] for text in [row["source"], *row["references"]]}
        tested = {text.casefold() for row in alone["test"] for text in [row["source"], *row["references"]]}
        assert not tested & texts_of(splits["validation"])
    assert not held_out & texts_of(splits["train"])
    # A held-out group of the first corpus leaves nothing in the second, not even the sentence that is new there.
    extras = {text for text in texts_of(splits["train"]) if text.startswith("extra")}
    assert 0 < len(extras) < 40 - 6


def test_validation_is_mixed_by_share_and_has_no_row_twice(folder):
    rows = load_mixture(read_mixture(ENTRIES), folder, seed=0)["validation"]
    assert np.bincount(rows["corpus"][:]).tolist() == [6, 2]
    assert len(set(zip(rows["source"], rows["target"], strict=True))) == 8
    assert all(
        rows["source"][place].startswith(("first", "second")[corpus]) for place, corpus in enumerate(rows["corpus"])
    )


def test_corpora_of_pairs_are_mixed_with_groups(folder, tmp_path):
    """A row without a group is its own; paths of files and folders start at the data folder."""
    (tmp_path / "sub").mkdir()
    write_groups(tmp_path / "sub")
    pairs = "".join(json.dumps({"source": f"pair {number}", "target": f"two {number}"}) + "\n" for number in range(60))
    (tmp_path / "pairs.jsonl").write_text(pairs)
    entries = [
        {"dataset": "pairs", "dataset_kwargs": {"data_files": "pairs.jsonl"}},
        {"dataset": "groups", "data_dir": "sub", "dataset_kwargs": {"data_files": "first.tsv"}},
        {"dataset": "pairs.jsonl"},
        {"dataset": "synthetic_questions", "dataset_kwargs": {"train_size": 30, "validation_size": 5, "test_size": 5}},
    ]
    rows = load_mixture(read_mixture(entries), tmp_path, seed=0)["train"]
    groups = {corpus: set() for corpus in range(4)}
    for row in rows:
        groups[row["corpus"]].add(row["group"])
    sizes = np.bincount(rows["corpus"][:]).tolist()
    assert [len(groups[corpus]) for corpus in (0, 2, 3)] == [sizes[0], sizes[2], sizes[3]]
    assert len(groups[1]) < sizes[1] / 2
    assert len(set().union(*groups.values())) == sum(map(len, groups.values()))


def test_groups_alone_are_drawn_anew(folder, tmp_path):
    """One corpus and `pairs_per_group`: a run has as many steps as one pair a group makes."""
    options = {"dataset": "groups", "dataset_kwargs": ENTRIES[0]["dataset_kwargs"], "mixture": [], "max_steps": -1}
    summary = train(mixed_recipe(folder, **options, num_train_epochs=2, train_batch_size=7), tmp_path)
    assert (summary["steps"], summary["mixture"]) == (2 * 4, [])  # 28 groups
    assert summary["train_pairs"] > 60


def test_groups_are_drawn_from_a_stream(folder, tmp_path):
    kwargs = {"data_files": {"train": ["first.tsv"], "validation": ["second.tsv"]}, "streaming": True}
    options = {"dataset": "groups", "dataset_kwargs": kwargs, "mixture": [], "eval_strategy": "steps", "eval_steps": 9}
    recipe = mixed_recipe(folder, **options, max_steps=9, shuffle_buffer_size=100)
    task = TASKS["paraphrase"](recipe.training)
    rows = task.load(folder)
    (window,) = islice((Dataset.from_list(list(rows["train"].take(100))),), 1)
    tokenizer = task.make_tokenizer(window, 30)
    encoded = task.encode(DatasetDict(train=window), tokenizer).splits["train"]
    drawn = np.concatenate([batch for step in task.make_batches(encoded).epoch(4) for batch in step])
    groups = np.array(encoded["group"][:])
    assert len(drawn) == len(set(groups)) == len(set(groups[drawn]))
    assert train(recipe, tmp_path)["steps"] == 9


@pytest.mark.parametrize("task", ["edit", "decompose"])
def test_other_tasks_of_pairs_are_trained_on_a_mixture(task, folder, tmp_path):
    fields = {"max_steps": 2}
    if task == "edit":
        recipe = mixed_recipe(folder, **fields)
        training = TASKS["edit"].config_class(
            **{name: value for name, value in vars(recipe.training).items() if name != "task"},
            retriever_encoder="jaccard",
        )
    else:
        recipe = mixed_recipe(folder, **fields)
        training = TASKS["decompose"].config_class(
            **{name: value for name, value in vars(recipe.training).items() if name != "task"}
        )
    learnt = TASKS[task](training)
    rows = learnt.load(folder)
    data = learnt.encode(rows, learnt.make_tokenizer(rows["train"], 40))
    steps = learnt.make_batches(data.splits["train"]).epoch(1)
    batch = learnt.make_collator(data.tokenizer)(learnt.features(data.splits["train"], steps[0][0], 1))
    assert batch["labels"].shape[0] == len(steps[0][0])


def test_the_rows_that_tell_whether_a_pair_is_used_are_of_every_corpus(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(edit, "COMPARED_ROWS", 3)  # the first corpus has twice as many
    fields = vars(mixed_recipe(folder, max_steps=2).training) | {"task": "edit"}
    training = edit.EditConfig(**fields | {"retriever_encoder": "jaccard"})
    model = {"model_type": "edit_lstm", "hidden_size": 8, "embedding_size": 8, "num_layers": 1, "vocab_size": 40}
    train(Recipe("tiny", model, {}, training), tmp_path)
    assert read_summary(tmp_path)["evaluations"][-1]["eval_loss_random_pair"] > 0


def test_a_corpus_whose_rows_are_all_left_out_is_named(folder):
    task = TASKS["paraphrase"](mixed_recipe(folder).training)
    rows = task.load(folder)
    encoded = task.encode(rows, task.make_tokenizer(rows["train"], 40)).splits["train"]
    with pytest.raises(InputError, match="`mixture`: corpus second has no row left to train on"):
        task.make_batches(encoded.filter(lambda row: row["corpus"] == 0))


class Encoder:
    """Makes the number of its words a sentence's direction, and counts what it is asked."""

    def __init__(self):
        self.texts: list[str] = []

    def __call__(self, texts):
        self.texts += texts
        angles = np.array([len(text.split()) for text in texts]) / 4
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


@pytest.fixture
def encoder(monkeypatch) -> Encoder:
    encoder = Encoder()
    monkeypatch.setattr(retrieval_pairs, "load_encoder", lambda name, trust_remote_code: encoder)
    return encoder


def test_pairs_of_little_likeness_are_left_out_and_computed_once(encoder, folder, tmp_path):
    name = str(tmp_path / "encoder")
    entries = [ENTRIES[0], ENTRIES[1] | {"min_cosine": -1.0}]
    recipe = mixed_recipe(folder, mixture=entries, filter_encoder=name, min_cosine=np.cos(0.3).item())

    def load(recipe):
        return TASKS["paraphrase"](recipe.training).load(folder)["train"]

    rows = load(recipe)
    apart = [abs(len(row["source"].split()) - len(row["target"].split())) for row in rows]
    corpora = rows["corpus"][:]
    assert max(far for far, corpus in zip(apart, corpora, strict=True) if corpus == 0) == 1
    assert max(far for far, corpus in zip(apart, corpora, strict=True) if corpus == 1) > 1
    # Each sentence once, though it stands in several pairs; and nothing for another threshold.
    assert len(encoder.texts) == len(set(encoder.texts))
    seen = len(encoder.texts)
    stricter = load(recipe.override({"min_cosine": 0.999}))
    assert len(encoder.texts) == seen
    assert 0 < len(stricter) < len(rows)


def test_an_encoder_filters_a_single_corpus(encoder, folder, tmp_path):
    options = {"dataset": "groups", "dataset_kwargs": ENTRIES[0]["dataset_kwargs"], "mixture": []}
    recipe = mixed_recipe(folder, **options, filter_encoder=str(tmp_path / "other"), min_cosine=0.999)
    rows = TASKS["paraphrase"](recipe.training).load(folder)["train"]
    assert all(len(row["source"].split()) == len(row["target"].split()) for row in rows)


def test_train_samples_of_a_mixture_are_of_every_corpus(folder):
    task = TASKS["paraphrase"](mixed_recipe(folder, max_train_samples=20, max_eval_samples=4).training)
    rows = task.load(folder)
    assert len(rows["train"]) == 20 and set(rows["train"]["corpus"][:]) == {0, 1}
    assert np.bincount(rows["validation"]["corpus"][:]).tolist() == [3, 1]


def test_a_tokenizer_counts_each_sentence_once(folder):
    task = TASKS["paraphrase"](mixed_recipe(folder).training)
    texts = list(task.texts(task.load(folder)["train"]))
    assert len(texts) == len(set(texts))


FIRST = ENTRIES[0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mixture": [FIRST, {"share": 1}]}, "`mixture`, entry 2: the field `dataset` is missing"),
        ({"mixture": [FIRST | {"shares": 1}]}, "`mixture`, entry 1: .*unknown field `shares`; did you mean share"),
        ({"mixture": [FIRST | {"share": 0}]}, "`mixture`, entry 1: `share` must be greater than 0"),
        ({"mixture": [FIRST | {"share": "half"}]}, "`mixture`, entry 1: `share` must be float or null, not 'half'"),
        ({"mixture": [FIRST, ENTRIES[1] | {"share": None}]}, "entry 2: `share` is missing; give every corpus one"),
        ({"mixture": [FIRST, FIRST]}, "entry 2: corpus first is there already; set `name`"),
        ({"mixture": [FIRST | {"dataset_kwargs": {"streaming": True}}]}, "entry 1: .*leave `streaming` out"),
        ({"mixture": [FIRST | {"min_cosine": 0.5}]}, "`min_cosine` needs `filter_encoder`"),
        ({"mixture": [FIRST], "dataset_name": "filtered"}, "`dataset_name` is for one corpus"),
        ({"mixture": []}, "`dataset` is missing; name the corpus to train on, or several in `mixture`"),
        ({"mixture": {"dataset": "groups"}}, "`mixture` must be"),
        ({"filter_encoder": "somewhere"}, "`filter_encoder` needs `min_cosine`"),
        ({"filter_encoder": "somewhere", "min_cosine": 2}, "`min_cosine` must be at least -1 and at most 1, not 2"),
        ({"pairs_per_group": 0}, "`pairs_per_group` must be at least 1"),
    ],
)
def test_fields_are_checked_on_loading(folder, fields, message):
    with pytest.raises(InputError, match=message):
        mixed_recipe(folder).override(fields)


@pytest.mark.parametrize("fields", [{"mixture": ENTRIES}, {"dataset": "quora", "pairs_per_group": 1}])
def test_tasks_that_learn_from_no_pairs_refuse_what_is_of_pairs(fields):
    with pytest.raises(InputError, match="is for tasks that learn from pairs .*, not match"):
        TASKS["match"].config_class(**fields)


def test_a_corpus_without_groups_cannot_give_pairs_of_each(folder, tmp_path):
    recipe = make_recipe(dataset="synthetic_questions", pairs_per_group=1)
    with pytest.raises(InputError, match="lacks the column group"):
        train(recipe, tmp_path / "run")


def test_a_missing_file_of_a_mixture_is_named(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="first.tsv"):
        train(mixed_recipe(folder), tmp_path / "run", data_dir=tmp_path)
