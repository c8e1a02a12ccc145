"""Commands that are killed at a stage by name: started again, each ends as one that nobody killed."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from huggingface_hub import constants

from hf_paraphrase.training.loop import train
from tests.cli.runner import run
from tests.generation.paraphrasers import make_paraphraser, random_sentences
from tests.hub.runs import write_run
from tests.hub.server import HubServer
from tests.training.tiny_runs import last_weights, make_pairs, make_recipe

from .trials import Trials

REPOSITORY = "you/tiny"


class Stage(NamedTuple):
    """The moment before Python does something for the first time.

    Args:
        event: As `sys.addaudithook` calls it; `request` for one that the test's Hub gets.
        place: A pattern that its arguments match.
    """

    event: str
    place: str


class Task(NamedTuple):
    """What is killed.

    Args:
        work: Does it in a folder, and is called again after a kill.
        read: What it has left in the folder.
        stages: Where it is killed, by name.
    """

    work: Callable[[Path], Any]
    read: Callable[[Path], Any]
    stages: dict[str, Stage]


def kill_at_stages(count: int, seed: int = 0) -> Trials:
    """Kill a command `count` times: every task at every stage, in an order that is drawn."""
    trials = Trials("kills at stages")
    all_stages = [(name, stage) for name, task in TASKS.items() for stage in task.stages]
    random.Random(seed).shuffle(all_stages)
    with tempfile.TemporaryDirectory(prefix="stages-") as scratch, HubServer() as server:
        make_inputs(Path(scratch))
        expected: dict[str, Any] = {}
        for number in range(count):
            name, stage = all_stages[number % len(all_stages)]
            folder = make_folder(Path(scratch), str(number))
            with trials.trial(f"{number}: {name}, before {stage}"):
                if name not in expected:
                    server.clear()
                    whole = make_folder(Path(scratch), f"whole {name}")
                    assert start(TASKS[name], whole, server) == 0, "fails without a kill"
                    expected[name] = TASKS[name].read(whole), read_hub(server)
                server.clear()
                code = start(TASKS[name], folder, server, TASKS[name].stages[stage])
                assert code == -signal.SIGKILL, f"was not killed, but ended with {code}"
                code = start(TASKS[name], folder, server)
                assert code == 0, f"ended with {code} when it was started again"
                assert (TASKS[name].read(folder), read_hub(server)) == expected[name], "another result"
                left = [path.name for path in folder.rglob("*") if path.name.endswith(".part")]
                assert not left, f"left: {left}"
    return trials


def make_inputs(scratch: Path) -> None:
    paraphraser = make_paraphraser("bart")
    paraphraser.model.save_pretrained(scratch / "model")
    paraphraser.tokenizer.save_pretrained(scratch / "model")
    texts = random_sentences(12)
    (scratch / "texts.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    rows = [json.dumps({"source": text, "target": other}) for text, other in zip(texts, texts[1:], strict=False)]
    (scratch / "pairs.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    write_run(scratch / "run")


def make_folder(scratch: Path, name: str) -> Path:
    folder = scratch / "folders" / name
    folder.mkdir(parents=True)
    return folder


def start(task: Task, folder: Path, server: HubServer, stage: Stage | None = None) -> int:
    """Do a task in a process of its own, and return how it ended."""
    server.faults = []
    process = os.fork()
    if not process:
        work(task, folder, server, stage)
    if stage is not None and stage.event == "request":
        server.faults = [Killer(stage.place, process)]
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def work(task: Task, folder: Path, server: HubServer, stage: Stage | None) -> None:
    """Do a task, and end the process."""
    code = 1
    with suppress(BaseException):
        os.environ["HF_TOKEN"] = "hf_you"
        constants.ENDPOINT, constants.HF_HUB_OFFLINE, constants.HF_HUB_DISABLE_XET = server.endpoint, False, True
        log = os.open(folder.with_name(f"{folder.name}.log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if stage is not None and stage.event != "request":
            sys.addaudithook(lambda event, args: kill_before(stage, event, args))
        code = task.work(folder)
    os._exit(code or 0)


def kill_before(stage: Stage, event: str, args: tuple[Any, ...]) -> None:
    if event == stage.event and re.search(stage.place, " ".join(map(str, args[:2]))):
        os.kill(os.getpid(), signal.SIGKILL)


class Killer:
    """A fault of the server's: who sends a request is killed while it waits for the answer.

    Args:
        pattern: Of the request.
        process: Who sends it.
    """

    status, done, retry_after = 503, False, None

    def __init__(self, pattern: str, process: int):
        self.pattern, self.process, self.times = pattern, process, 1

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "times" and value == 0:
            os.kill(self.process, signal.SIGKILL)


def read_hub(server: HubServer) -> dict[str, bytes]:
    repositories = server.repositories.values()
    return {path: blob.content for one in repositories for path, blob in one.files().items()}


def paraphrase(folder: Path) -> int:
    texts, output = folder.parents[1] / "texts.txt", folder / "out.parquet"
    return run("paraphrase", folder.parents[1] / "model", "-n", 1, "--input", texts, "--output", output)


def augment(folder: Path) -> int:
    inputs, model = folder.parents[1] / "pairs.jsonl", folder.parents[1] / "model"
    return run("augment", inputs, "--column", "source", "--model", model, "--output", folder / "out")


def evaluate(folder: Path) -> int:
    files = f"--data-files=test={folder.parents[1] / 'pairs.jsonl'}"
    options = ["--dataset", "pairs", files, "--metrics", "bleu", "--output-dir", folder / "out"]
    return run("evaluate", folder.parents[1] / "model", *options)


def push(folder: Path) -> int:
    return run("push", folder.parents[1] / "run", "--repo-id", REPOSITORY)


def train_anew(folder: Path) -> int:
    started = any(folder.glob("out/checkpoints/last-*"))
    recipe, pairs = make_recipe(save_steps=2), make_pairs()
    train(recipe, folder / "out", dataset=pairs, resume=started, overwrite=not started)
    return 0


def read_rows(folder: Path) -> list[dict[str, Any]]:
    rows = [row for file in sorted(folder.rglob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    return sorted(rows, key=str)


TASKS = {
    "paraphrase": Task(
        paraphrase,
        read_rows,
        {
            "opening the model": Stage("open", r"model/config\.json"),
            "putting the file in place": Stage("os.rename", r"out\.parquet"),
        },
    ),
    "augment": Task(
        augment,
        read_rows,
        {
            "opening the model": Stage("open", r"model/config\.json"),
            "putting the input in place": Stage("os.rename", r"parquet"),
            "putting a shard in place": Stage("os.rename", r"data/"),
            "writing the card": Stage("os.rename", r"README"),
        },
    ),
    "evaluate": Task(
        evaluate,
        lambda folder: sorted(path.read_text() for path in folder.rglob("*.jsonl")),
        {
            "opening the model": Stage("open", r"model/config\.json"),
            "putting the outputs in place": Stage("os.rename", r"\.jsonl"),
            "putting the results in place": Stage("os.rename", r"results-.*\.json"),
        },
    ),
    "train": Task(
        train_anew,
        lambda folder: {name: tensor.tolist() for name, tensor in last_weights(folder / "out").items()},
        {
            "writing the log": Stage("open", r"log_history"),
            "putting a checkpoint in place": Stage("os.rename", r"checkpoints/last-"),
            "removing an old checkpoint": Stage("shutil.rmtree", r"checkpoints/last-"),
            "putting the model in place": Stage("os.rename", r"out/model\.safetensors"),
            "writing the summary": Stage("os.rename", r"training_summary"),
        },
    ),
    "push": Task(
        push,
        lambda folder: None,  # it leaves something on the Hub alone
        {
            "the repository is there": Stage("request", r"POST /api/repos/create"),
            "files are announced": Stage("request", r"POST .*/preupload/"),
            "weights are sent": Stage("request", r"/large/"),
            "the commit": Stage("request", r"POST .*/commit/"),
        },
    ),
}
