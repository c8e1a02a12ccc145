"""Augmentations that are stopped and go on, and those that may not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import datasets
import pytest

from hf_paraphrase import Paraphraser
from hf_paraphrase.augmentation import executors, outcomes, steps
from hf_paraphrase.augmentation.executors import AugmentationError
from hf_paraphrase.augmentation.run import Augmentation, run_augmentation
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.common.files import locked
from tests.models.tiny import save, tiny_bart

from .runs import OPTIONS, ask, kill_and_restart, read_output, run, write_questions

ROWS = 90


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save(tiny_bart(), folder)
    return folder


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_questions(tmp_path_factory.mktemp("input") / "questions.csv", ROWS)


@pytest.fixture(scope="module")
def quiet(questions: Path, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a run that was left alone."""
    output = tmp_path_factory.mktemp("quiet")
    run(ask(questions, checkpoint), output)
    return output


def test_every_row_is_there_with_its_columns(quiet: Path, questions: Path, checkpoint: Path) -> None:
    rows = read_output(quiet)
    lines = questions.read_text().splitlines()[1:]
    sources = {row["source_id"]: f"{row['question']},{row['label']}" for row in rows}
    assert sources == {f"questions.csv:{number}": line for number, line in enumerate(lines, start=2)}
    paraphraser = Paraphraser.from_pretrained(checkpoint, device="cpu")
    texts = [line.split(",")[0] for line in lines]
    expected = [
        (f"questions.csv:{number}", rank, one.text)
        for number, group in enumerate(paraphraser(texts, 2, **OPTIONS), start=2)
        for rank, one in enumerate(group, start=1)
    ]
    assert [(r["source_id"], r["rank"], r["paraphrase"]) for r in rows if r["paraphrase"] is not None] == expected
    blank = [row for row in rows if not row["question"]]
    assert blank and {row["error"] for row in blank} == {"the text is blank"}


def test_the_output_is_a_dataset_with_a_card(quiet: Path) -> None:
    rows = datasets.load_dataset(str(quiet), split="train")
    assert len(rows) == len(read_output(quiet))
    card = (quiet / "README.md").read_text()
    counted = {"source rows": ROWS, "paraphrases": sum(text is not None for text in rows["paraphrase"])}
    counted["source rows that failed"] = sum(error == "the text is blank" for error in rows["error"])
    for name, count in counted.items():
        assert f"| {name} | {count:,} |" in card
    for row in ("| decoding | `sample` |", "| the text is blank | ", "| is the same as another |"):
        assert row in card
    assert str(quiet.parent) not in card


def test_two_runs_in_one_folder(questions: Path, checkpoint: Path, tmp_path: Path) -> None:
    asked = ask(questions, checkpoint)
    told = f"another run works in {tmp_path / '.augment'} .process {os.getpid()} on "
    with locked(tmp_path / ".augment"), pytest.raises(InputError, match=told):
        run(asked, tmp_path)
    assert not (tmp_path / "data").exists()


def test_rows_that_are_cut_are_counted(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("question\nthe cat\nthe cat sat on a mat the cat sat\n" + "the cat " * 500 + "\n")
    options = {**OPTIONS, "max_source_length": 6}
    counts = run(ask(tmp_path / "in.csv", checkpoint, options=options), tmp_path / "out")
    assert (counts["rows"], counts["cut"]) == (3, 2)
    assert (
        "| source rows longer than what the model reads (`max_source_length`) | 2 |"
        in (tmp_path / "out" / "README.md").read_text()
    )


def test_links_that_lead_out_of_a_checkpoint_are_not_read(checkpoint: Path, questions: Path, tmp_path: Path) -> None:
    shutil.copytree(checkpoint, tmp_path / "model")
    (tmp_path / "model" / "more").symlink_to(questions)
    with pytest.raises(InputError, match="more is a link that leads out of"):
        run(ask(questions, tmp_path / "model"), tmp_path / "out")


@pytest.mark.parametrize(
    ("kills", "whole_group", "number"),
    [(5, True, signal.SIGKILL), (2, False, signal.SIGKILL), (2, True, signal.SIGINT)],
)
def test_killed_at_random_moments(
    kills: int, whole_group: bool, number: int, questions: Path, checkpoint: Path, tmp_path: Path
) -> None:
    """Of two workers; alone, these notice that whoever started them is gone."""
    asked = ask(questions, checkpoint, tasks=30)
    run(asked, tmp_path / "quiet")
    done = kill_and_restart(partial(run, asked, tmp_path / "out", 2), tmp_path / "out", kills, whole_group, number)
    assert 0 < done < 30
    assert read_output(tmp_path / "out") == read_output(tmp_path / "quiet")
    assert not list(tmp_path.rglob("*.part"))


def test_a_killed_worker_is_noticed(questions: Path, checkpoint: Path, tmp_path: Path, quiet: Path) -> None:
    """As where a system runs out of memory: what waited for it would wait for ever."""
    paraphrase, victim = outcomes.RowParaphraser.__call__, os.getpid()

    def die(*args):
        if os.getpid() != victim and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return paraphrase(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcomes.RowParaphraser, "__call__", die)
        with pytest.raises(AugmentationError, match="a process was killed.*the same command"):
            run(ask(questions, checkpoint), tmp_path / "out", workers=2)
    run(ask(questions, checkpoint), tmp_path / "out", workers=2)
    assert read_output(tmp_path / "out") == read_output(quiet)


def test_a_full_disk(
    questions: Path, checkpoint: Path, tmp_path: Path, quiet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tasks that it stopped leave nothing that looks done."""
    write, calls = steps.pq.ParquetWriter.write_table, []

    def run_full(self, table, **options):
        calls.append(table)
        if table.schema.get_field_index("paraphrase") >= 0 and len(calls) > 4:
            raise OSError(28, "No space left on device")
        return write(self, table, **options)

    with monkeypatch.context() as patch:
        patch.setattr(steps.pq.ParquetWriter, "write_table", run_full)
        with pytest.raises(AugmentationError, match="of 6 tasks could not be finished .*No space left"):
            run(ask(questions, checkpoint), tmp_path)
    shards = {file.name for file in (tmp_path / "data").iterdir()}
    assert 0 < len(shards) < 6 and all(name.endswith(".parquet") for name in shards)
    run(ask(questions, checkpoint), tmp_path)
    assert read_output(tmp_path) == read_output(quiet)


def test_rows_that_fail_alone(questions: Path, checkpoint: Path, tmp_path: Path, quiet: Path) -> None:
    """What a row does to the model does nothing to the rows beside it, and the row says what it was."""
    call = Paraphraser.__call__

    def stumble(self, texts, **options):
        if any(text.startswith("how") for text in texts):
            raise RuntimeError("a wrong\nturn")
        return call(self, texts, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Paraphraser, "__call__", stumble)
        counts = run(ask(questions, checkpoint), tmp_path)
    rows, expected = read_output(tmp_path), read_output(quiet)
    failed = [row for row in rows if row["question"].startswith("how")]
    assert failed and {(row["error"], row["paraphrase"]) for row in failed} == {("RuntimeError: a wrong turn", None)}
    assert counts["failed: RuntimeError"] == len(failed)
    others = [row for row in expected if not row["question"].startswith("how")]
    texts = ("source_id", "rank", "paraphrase", "error")
    assert [[row[name] for name in texts] for row in rows if row not in failed] == [
        [row[name] for name in texts] for row in others
    ]


def test_a_lost_shard_is_made_again(questions: Path, checkpoint: Path, tmp_path: Path, quiet: Path) -> None:
    run(ask(questions, checkpoint), tmp_path)
    (tmp_path / "data" / "train-00002-of-00006.parquet").unlink()
    for name in ("data/.train-00002-of-00006.parquet.0.part", ".augment/.rows.parquet.0.part", ".README.md.0.part"):
        (tmp_path / name).write_text("half")
    run(ask(questions, checkpoint), tmp_path)
    assert not list(tmp_path.rglob("*.part"))
    assert read_output(tmp_path) == read_output(quiet)


def test_what_is_done_is_not_done_again(questions: Path, checkpoint: Path, quiet: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in (quiet / "data").iterdir()}
    assert run(ask(questions, checkpoint), quiet)["rows"] == ROWS
    assert {file: file.stat().st_mtime_ns for file in (quiet / "data").iterdir()} == before


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"n": 3}, "n 2, not 3"), ({"tasks": 5}, "tasks 6, not 5"), ({"options": {**OPTIONS, "seed": 1}}, "'seed': 1")],
)
def test_other_settings_are_refused(changes: dict, told: str, questions: Path, checkpoint: Path, quiet: Path) -> None:
    with pytest.raises(InputError, match="was begun with other settings .*give another --output") as error:
        run(ask(questions, checkpoint, **changes), quiet)
    assert told in str(error.value)


def test_another_input_or_model_of_the_same_name_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    source = write_questions(tmp_path / "questions.csv", 5)
    model = tmp_path / "model"
    save(tiny_bart(), model)
    run(ask(source, model, tasks=1), tmp_path / "out")
    settings = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(settings | {"dropout": 0.5}))
    with pytest.raises(InputError, match="the files of the model have changed"):
        run(ask(source, model, tasks=1), tmp_path / "out")
    write_questions(source, 6)
    with pytest.raises(InputError, match="the contents of the input have changed"):
        run(ask(source, model, tasks=1), tmp_path / "out")


def test_a_folder_of_another_origin_is_refused(questions: Path, checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train-00000-of-00001.parquet").touch()
    with pytest.raises(InputError, match="has files already"):
        run(ask(questions, checkpoint), tmp_path)


def test_what_cannot_be_is_said_before_anything_is_read(questions: Path, checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`min_adequacy` must be from 0 to 1"):
        run(ask(questions, checkpoint, options={"min_adequacy": 7}), tmp_path)
    assert not any(tmp_path.iterdir())


def test_each_process_has_a_rank_of_its_own() -> None:
    places = executors.multiprocessing.get_context("fork").SimpleQueue()
    for place in range(2):
        places.put(place)
    with executors.ProcessPoolExecutor(
        2, executors.multiprocessing.get_context("fork"), executors._begin, (places, 1)
    ) as pool:
        found = set(pool.map(tell_rank, [0.2] * 4))
    assert found == {"0", "1"}


def tell_rank(seconds: float) -> str:
    time.sleep(seconds)
    return os.environ["LOCAL_RANK"]


def test_elsewhere_than_on_this_machine(questions: Path, checkpoint: Path, tmp_path: Path, quiet: Path) -> None:
    """Where fsspec reaches, a shard is one upload."""
    from datatrove.io import get_datafolder

    from hf_paraphrase.augmentation.run import run_augmentation

    output = "memory://augmented"
    run_augmentation(ask(questions, checkpoint), output, logging_dir=str(tmp_path / "state"))
    names = get_datafolder(output).list_files()
    assert names == ["README.md", *(f"data/train-{rank:05d}-of-00006.parquet" for rank in range(6))]
    for name in names[1:]:
        assert get_datafolder(output).open(name).read() == (quiet / name).read_bytes()


def test_an_output_inside_of_its_own_input_is_refused(tmp_path: Path) -> None:
    """It would change the input, so that the same command could not go on."""
    (tmp_path / "rows.csv").write_text("question\nwhy?\n")
    with pytest.raises(InputError, match="lies inside the input"):
        run_augmentation(Augmentation(input=str(tmp_path), model="none", column="question"), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_corpus_may_have_the_name_of_the_folder_of_the_output(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--output quora/out` of the corpus `quora`: such a name is not a folder, so the output is not inside of it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refused:
        run_augmentation(ask("no-such-corpus", checkpoint), "no-such-corpus/out")
    assert "lies inside the input" not in str(refused.value)


class PanicException(BaseException):
    """Like that of tokenizers, which is not an Exception."""


def test_a_panic_is_the_outcome_of_its_row_alone() -> None:
    def paraphrase(texts: list[str]) -> list[list]:
        if "bad" in texts:
            raise PanicException("stack")
        return [[] for _ in texts]

    def cut(text: str) -> str:
        if text == "bad":
            raise PanicException("stack")
        return text

    rows = object.__new__(outcomes.RowParaphraser)
    writer = SimpleNamespace(device=SimpleNamespace(type="cpu"), tokens=Counter())
    rows.paraphraser = type("Fake", (), {"__call__": lambda self, texts: paraphrase(texts), "writer": writer})()
    rows.options, rows.cutter, rows.batch_size = {}, cut, 3
    assert [outcome.error for outcome in rows(["a", "bad", "c"])] == [None, "PanicException: stack", None]
