from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from datasets import Dataset, IterableDataset, IterableDatasetDict, load_dataset

from hf_paraphrase.common.errors import InputError, TrainingInterrupted
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.tasks import TASKS
from hf_paraphrase.training.train_rows import StreamedRows, read_windows

from .tiny_runs import assert_equal, last_weights, make_pairs, make_recipe, send_after

# Three windows of 20 rows a pass, the last one of 10, with seven batches: 18 steps are two passes and a half.
STEPS = 18


def write_corpus(folder: Path) -> None:
    """The tiny task in files as a large corpus comes in: several of them."""
    pairs = make_pairs()
    for number in range(3):
        pairs["train"].shard(3, number).to_json(folder / f"train-{number}.jsonl")
    pairs["validation"].to_json(folder / "validation.jsonl")


def streamed_recipe(folder: Path, **fields) -> Recipe:
    options = {
        "dataset": str(folder),
        "dataset_kwargs": {"streaming": True},
        "max_steps": STEPS,
        "eval_strategy": "steps",
        "eval_steps": 5,
        "shuffle_buffer_size": 20,
    }
    return make_recipe(**options | fields)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    return folder


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    train(streamed_recipe(corpus), folder)
    return folder


def read_evaluations(folder: Path) -> list[tuple[float, float]]:
    evaluations = json.loads((folder / "training_summary.json").read_text())["evaluations"]
    return [(entry["train_loss"], entry["eval_loss"]) for entry in evaluations]


def test_what_a_streamed_run_says(whole):
    summary = json.loads((whole / "training_summary.json").read_text())
    assert (summary["train_pairs"], summary["validation_pairs"]) == (50, 11)
    assert (summary["steps"], summary["epochs"]) == (STEPS, 2)
    assert (whole / "model.safetensors").is_file()


@pytest.mark.parametrize("stops", [[3], [7], [16], [2, 4, 7]], ids=str)
def test_a_stopped_run_goes_on_exactly(corpus, whole, tmp_path, monkeypatch, stops):
    """Within a window, at its end, at the end of a pass, in the second and third pass; and several times."""
    recipe = streamed_recipe(corpus)
    for number, step in enumerate(stops):
        with monkeypatch.context() as patch:
            send_after(patch, step)
            with pytest.raises(TrainingInterrupted):
                train(recipe, tmp_path / "run", resume=number > 0)
    train(recipe, tmp_path / "run", resume=True)
    assert_equal(last_weights(tmp_path / "run"), last_weights(whole))
    assert read_evaluations(tmp_path / "run") == read_evaluations(whole)


def test_a_killed_run_goes_on_from_its_checkpoint(corpus, whole, tmp_path):
    """SIGKILL leaves no time to save: what was not saved is trained again."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from hf_paraphrase.training.loop import train\n"
        "from hf_paraphrase.training.run import TrainingRun\n"
        "from tests.training.test_streaming import streamed_recipe\n"
        "step = TrainingRun._step\n"
        "def step_or_die(run):\n"
        "    if run.state.step == 13:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    step(run)\n"
        "TrainingRun._step = step_or_die\n"
        "train(streamed_recipe(Path(sys.argv[1])), sys.argv[2])\n"
    )
    run = subprocess.run([sys.executable, script, corpus, tmp_path / "run"], env=environment())
    assert run.returncode == -9
    assert [folder.name for folder in tmp_path.glob("run/checkpoints/last-*")] == ["last-00000010"]
    train(streamed_recipe(corpus), tmp_path / "run", resume=True)
    assert_equal(last_weights(tmp_path / "run"), last_weights(whole))


def test_two_processes_go_on_exactly(corpus, tmp_path):
    """Started three times: a run that is left alone, one that is stopped in its second pass, and its end."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "import pytest\n"
        "from hf_paraphrase.training.loop import train\n"
        "from hf_paraphrase.common.errors import TrainingInterrupted\n"
        "from tests.training.test_streaming import streamed_recipe\n"
        "from tests.training.tiny_runs import send_after\n"
        "corpus, folder, kind = sys.argv[1:]\n"
        "recipe = streamed_recipe(Path(corpus))\n"
        "if kind == 'stopped':\n"
        "    send_after(pytest.MonkeyPatch(), 9)\n"
        "    with pytest.raises(TrainingInterrupted):\n"
        "        train(recipe, folder)\n"
        "else:\n"
        "    train(recipe, folder, resume=kind == 'resumed')\n"
    )
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script, corpus]
    for folder, kind in (("whole", "whole"), ("parts", "stopped"), ("parts", "resumed")):
        run = subprocess.run([*launch, tmp_path / folder, kind], env=environment(), capture_output=True)
        assert run.returncode == 0, run.stderr.decode()
    assert json.loads((tmp_path / "parts" / "training_summary.json").read_text())["processes"] == 2
    assert_equal(last_weights(tmp_path / "parts"), last_weights(tmp_path / "whole"))
    assert read_evaluations(tmp_path / "parts") == read_evaluations(tmp_path / "whole")


def environment() -> dict[str, str]:
    root = Path(__file__).resolve().parents[2]
    return os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows,
        lambda rows: rows.take(33),
        lambda rows: rows.filter(lambda row: "w3" not in row["source"]),
        lambda rows: rows.map(lambda rows: {"source": rows["target"]}, batched=True, batch_size=4),
    ],
    ids=["plain", "take", "filter", "map"],
)
@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_windows_are_found_again(corpus, tmp_path, kind, change):
    files = sorted(map(str, corpus.glob("train-*")))
    if kind == "parquet":
        files = [str(tmp_path / f"{number}.parquet") for number in range(3)]
        for number, file in enumerate(files):
            make_pairs()["train"].shard(3, number).to_parquet(file, batch_size=5)

    def read(*place):
        rows = change(load_dataset(kind, data_files=files, split="train", streaming=True))
        return ((epoch, position, window["source"][:]) for epoch, position, window in read_windows(rows, 8, *place))

    windows = list(islice(read(), 9))
    assert windows[-1][0] >= 1
    for number, (epoch, position, _) in enumerate(windows[:7]):
        again = list(islice(read(epoch, json.loads(json.dumps(position))), 3))
        assert [window for _, _, window in again] == [window for _, _, window in windows[number : number + 3]]


def test_a_pass_has_every_row_once_in_an_order_of_its_own(corpus):
    files = sorted(map(str, corpus.glob("train-*")))
    rows = load_dataset("json", data_files=files, split="train", streaming=True)
    task = TASKS["paraphrase"](streamed_recipe(corpus).training)
    tokenizer = task.make_tokenizer(make_pairs()["train"], 20)
    streamed, passes, step = StreamedRows(task, tokenizer, rows), {0: [], 1: []}, 0
    while True:
        portion, batches = streamed.at(step)
        if streamed.epochs(step) == 2:
            break
        for batch in batches:
            passes[streamed.epochs(step)] += [tuple(row["input_ids"]) for row in portion.rows.select(batch)]
        step += 1
    expected = task.encode(make_pairs(), tokenizer).splits["train"]
    assert sorted(passes[0]) == sorted(passes[1]) == sorted(map(tuple, expected["input_ids"][:]))
    assert passes[0] != passes[1]


def test_rows_are_read_no_sooner_than_needed():
    read = []

    def generate():
        for number in range(1000):
            read.append(number)
            yield {"source": f"w{number % 7} w2", "target": "w1"}

    rows = IterableDataset.from_generator(generate)
    task = TASKS["paraphrase"](make_recipe(shuffle_buffer_size=30).training)
    tokenizer = task.make_tokenizer(make_pairs()["train"], 20)
    streamed = StreamedRows(task, tokenizer, rows)
    steps = [streamed.at(step)[0].number for step in range(8)]
    assert steps == [0, 0, 0, 0, 1, 1, 1, 1]
    assert len(read) <= 61


def test_windows_without_words_are_left_out(corpus):
    blank, rows = {"source": " ", "target": " "}, list(make_pairs()["train"])
    mixed = Dataset.from_list([*rows[:20], *[blank] * 40, *rows[20:]]).to_iterable_dataset()
    task = TASKS["paraphrase"](streamed_recipe(corpus).training)
    tokenizer = task.make_tokenizer(make_pairs()["train"], 20)
    streamed = StreamedRows(task, tokenizer, mixed)
    numbers = [streamed.at(step)[0].number for step in range(7)]
    assert numbers == [0, 0, 0, 1, 1, 1, 2]
    assert len(streamed) == 50


def test_streams_given_in_python_train_alike(whole, tmp_path, corpus):
    files = {split: sorted(map(str, corpus.glob(f"{split}*"))) for split in ("train", "validation")}
    rows = load_dataset("json", data_files=files, streaming=True)
    assert isinstance(rows, IterableDatasetDict)
    train(streamed_recipe(corpus), tmp_path, dataset=rows)
    assert_equal(last_weights(tmp_path), last_weights(whole))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_steps": -1}, "`num_train_epochs`: a streamed corpus has no length.*`max_steps`"),
        ({"eval_strategy": "epoch"}, "`eval_strategy: epoch`: .*`eval_steps`"),
        ({"lr_scheduler_type": "step_halving"}, "`lr_scheduler_type: step_halving`"),
        ({"shuffle_buffer_size": 0}, "`shuffle_buffer_size` must be at least 1"),
        ({"dataset": "synthetic_questions", "task": "edit"}, "`task: edit` needs all rows"),
        ({"dataset": "synthetic_questions", "task": "decompose"}, "`task: decompose` needs all rows"),
    ],
)
def test_what_needs_a_length_is_refused(corpus, tmp_path, fields, message):
    with pytest.raises(InputError, match=message):
        train(streamed_recipe(corpus, **fields), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("train_rows", "validation_rows", "message"),
    [
        (lambda rows: rows.remove_columns("target"), lambda rows: rows, "split train .* lacks the column target"),
        (lambda rows: rows.take(0), lambda rows: rows, "split train is empty"),
        (lambda rows: rows, lambda rows: rows.take(0), "split validation of dataset .* is empty"),
    ],
)
def test_faults_of_a_stream_are_named(corpus, tmp_path, train_rows, validation_rows, message):
    rows = {split: part.to_iterable_dataset() for split, part in make_pairs().items()}
    rows = {"train": train_rows(rows["train"]), "validation": validation_rows(rows["validation"])}
    with pytest.raises(InputError, match=message):
        train(streamed_recipe(corpus), tmp_path / "run", dataset=rows)


def test_another_stream_is_not_gone_on_with(corpus, tmp_path):
    recipe = streamed_recipe(corpus, max_steps=2)
    train(recipe, tmp_path)
    other = IterableDatasetDict({split: part.to_iterable_dataset() for split, part in make_pairs(seed=1).items()})
    with pytest.raises(InputError, match="training pairs are not those"):
        train(recipe, tmp_path, dataset=other, resume=True)
