from __future__ import annotations

import json
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hf_paraphrase.cli.compare import EQUAL_PASSES, Reproduce
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.evaluation.results import Data, Entry, Results, Score
from hf_paraphrase.evaluation.scoring import Scoring
from hf_paraphrase.metrics.self_bleu.scoring import self_bleu
from hf_paraphrase.metrics.sufficient_statistics import SufficientStatistics
from hf_paraphrase.papers.table import Claim, Measurement, Settings, Table, Trained, list_tables, load_table
from hf_paraphrase.reproduction import trainings
from hf_paraphrase.reproduction.report import format_verdict, leave_out_pairs, write_reproduction
from hf_paraphrase.reproduction.tables import (
    COPY_PROOF,
    READERS,
    ScoredMeasurement,
    Verdict,
    _collect_others,
    _judge,
    _read_paraphrases,
    reproduce,
    score_outputs,
)
from hf_paraphrase.reproduction.trainings import list_runs, train_all
from hf_paraphrase.training.recipe import list_recipes
from hf_paraphrase.training.tasks import TASKS

TABLES = [load_table(name) for name in list_tables()]
CARDS = Path(__file__).parents[2] / "model_cards"
TINY = {"hidden_size": 8, "embedding_size": 8, "vocab_size": 60, "num_layers": 1, "residual_interval": 0}
TINY |= {"max_steps": 3, "max_train_samples": 40, "max_eval_samples": 8, "max_new_tokens": 8}


def encode(texts: list[str]) -> np.ndarray:
    vectors = np.array([[1.0, len(text), text.count(" ")] for text in texts])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make_table(**settings) -> Table:
    systems = {
        "with attention": Trained("residual-lstm-synthetic", TINY),
        "without": Trained("residual-lstm-synthetic", {**TINY, "attention": None}, max_steps=2000),
    }
    return Table(
        "tiny",
        "A table",
        {"small": Settings(systems, **settings)},
        (
            Measurement(claims=(Claim("with attention", "without", "bleu_4"),), options={"num_beams": 2}),
            Measurement("three of them", row_options={"without": {"num_candidates": 3, "select": "jaccard"}}),
            Measurement("as before to a system without pairs", options={"num_beams": 2, "allow_own_pair": True}),
        ),
        max_samples=6,
        metrics=("bleu", "meteor", "pinc"),
    )


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_names_recipes_fields_and_rows_that_exist(table: Table) -> None:
    for settings in table.settings.values():
        assert {trained.recipe for trained in settings.systems.values()} <= list_recipes().keys()
        runs = list_runs(settings, Path("runs"), settings.seeds)
        assert len({run.folder for run in runs}) == len(settings.systems) * len(settings.seeds)
        assert len({run.recipe.training.task in ("paraphrase", "edit", "decompose", "adapt") for run in runs}) == 1
        for measurement in table.measurements:
            for claim in measurement.claims:
                assert {claim.better, claim.worse} <= settings.systems.keys()
            assert measurement.row_options.keys() <= settings.systems.keys()
            assert measurement.evaluator in (None, *READERS)
        starts = {trained.start for trained in settings.systems.values()}
        assert starts <= {None, *settings.systems}
    assert not table.cards or (CARDS / table.cards).is_dir()


def test_what_every_task_trains_can_be_evaluated() -> None:
    # No table of a paper trains language models.
    assert READERS.keys() >= TASKS.keys() - {"answer"}


def recompute(table: Table, settings: str, seeds: list[int], path: Path, scoring: Scoring) -> list[ScoredMeasurement]:
    """Scores and verdicts of a table, from the packed outputs alone: no model and no corpus is needed."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
        runs = list_runs(table.choose(settings), Path(folder), seeds)
        return [score_outputs(table, measurement, runs, scoring) for measurement in table.measurements]


def check_recomputed(table: Table, record: dict, file: Path) -> None:
    rows = record["measured"][0]["rows"]
    seeds = [run["seed"] for run in rows[0]["runs"]]
    systems = [row["system"] for row in rows]
    settings = next(name for name, one in table.settings.items() if list(one.systems) == systems)
    found = recompute(table, settings, seeds, file, Scoring(n_samples=2, n_trials=2))
    for (scores, verdicts, copy_proof), made in zip(found, record["measured"], strict=True):
        for row in made["rows"]:
            expected = {score["metric"]: score["score"] for score in row["scores"]}
            assert {score.metric: score.score for score in scores[row["system"]]} == pytest.approx(expected)
        differences = [verdict["difference"] for verdict in made["verdicts"]]
        assert [verdict.difference for verdict in verdicts] == pytest.approx(differences)
        differences = [verdict["difference"] for verdict in made["copy_proof"]]
        assert [verdict.difference for verdict in copy_proof] == pytest.approx(differences)


# Made before outputs were kept: whoever makes one of these tables again strikes it out.
WITHOUT_OUTPUTS = {
    "kazemnejad-quora-li2018",
    "kazemnejad-quora-neighbors",
    "kazemnejad-quora-retrievers",
    "li-hotel-reviews",
    "liu-quora",
    "liu-twitter",
    "prakash-mscoco",
    "traynor-gutenberg",
    "traynor-gutenberg-paraphrases",
}
MADE = [
    (table, path)
    for one in TABLES
    for table in (one, replace(one, name=f"{one.name}{EQUAL_PASSES}"))
    for path in CARDS.glob(f"*/{table.name}.json")
]


@pytest.mark.parametrize(("table", "path"), MADE, ids=[table.name for table, _ in MADE])
def test_a_published_table_judges_its_claims_and_follows_from_its_outputs(table: Table, path: Path) -> None:
    record = json.loads(path.read_text())
    text = path.with_suffix(".md").read_text()
    assert record["table"] == table.name and f"    {record['command']}\n" in text
    outputs = path.with_name(f"{table.name}-outputs.tar.xz")
    assert outputs.exists() == (table.name not in WITHOUT_OUTPUTS)
    if outputs.exists():
        check_recomputed(table, record, outputs)
    # Those made before may lack a measurement that has come since.
    for measurement, made in zip(table.measurements, record["measured"], strict=outputs.exists()):
        judged = [(verdict["claim"]["better"], verdict["claim"]["worse"]) for verdict in made["verdicts"]]
        assert judged == [(claim.better, claim.worse) for claim in measurement.claims]
        assert all(f"**{verdict['outcome']}**" in text for verdict in made["verdicts"])


def test_outputs_of_matchers_are_packed_without_their_texts() -> None:
    """The texts are the corpus's to share, and scores follow from labels."""
    labelled = {"sentence1": "a cat", "sentence2": "café", "label": 1, "prediction": [0.25, 0.75]}
    written = {"source": "sentence1", "references": ["é"], "prediction": "x"}
    lines = [f"{json.dumps(row, ensure_ascii=False)}\n".encode() for row in (labelled, written)]
    assert json.loads(leave_out_pairs(lines[0])) == {"label": 1, "prediction": [0.25, 0.75]}
    assert leave_out_pairs(lines[1]) == lines[1]
    with tarfile.open(CARDS / "coupled-lstm-twitter-small" / "liu-twitter-equal-passes-outputs.tar.xz") as archive:
        first = archive.extractfile(archive.getmembers()[0]).readline()
    assert json.loads(first).keys() == {"label", "prediction"}


def test_names_of_tables_differ() -> None:
    assert len({table.name for table in TABLES}) == len(TABLES) >= 6


def test_a_table_is_made_and_not_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table()
    measured = reproduce(table, "small", tmp_path / "out", n_samples=20, n_trials=20, jobs=2, encoder=encode)
    first, second, third = measured
    assert [row.system for row in first.rows] == ["with attention", "without"]
    names = {score.metric for score in first.rows[0].scores}
    assert names == {"bleu_2", "bleu_4", "meteor", "pinc", "ibleu", "bleu_4_equal_pinc"} | {
        f"{judge}{part}" for judge in ("open", "cosine") for part in ("", "_equal_pinc")
    }
    assert [one.claim.metric for one in first.copy_proof] == list(COPY_PROOF) and second.copy_proof == ()
    (verdict,) = first.verdicts
    assert verdict.difference == pytest.approx(verdict.better.score - verdict.worse.score)
    assert {entry.role for entry in first.others} == {"baseline"}
    assert second.rows[1].entries[0].decoding.num_candidates == 3
    assert first.results.data.rows == 6
    assert [row.scores for row in third.rows] == [row.scores for row in first.rows]
    made = {path.name for path in (tmp_path / "out").glob("*/seed-1/evaluation*")}
    assert made == {"evaluation", "evaluation-three-of-them"}

    text = write_reproduction(table, measured, "the command", tmp_path / "card")
    assert text.count("At most 2,000 steps: without.") == 1
    assert (tmp_path / "card" / "tiny.md").read_text() == text
    assert "    the command" in text and "## Three of them" in text and "Seeds of trainings: 1." in text
    assert text.count("| with attention > without | bleu_4 ") == 1 and "by scores that copying does not raise" in text
    assert text.count("| with attention |") == 3 and "the source, copied" in text
    record = json.loads((tmp_path / "card" / "tiny.json").read_text())
    (run,) = record["measured"][0]["rows"][0]["runs"]
    assert run["steps"] == 3 and run["cpu_seconds"] > 0 and run["recipe"]["training"]["seed"] == 1
    assert record["measured"][0]["verdicts"][0]["outcome"] == verdict.outcome

    outputs = tmp_path / "card" / "tiny-outputs.tar.xz"
    packed = outputs.read_bytes()
    check_recomputed(table, record, outputs)
    write_reproduction(table, measured, "the command", tmp_path / "card")
    assert outputs.read_bytes() == packed
    found = recompute(table, "small", [1], outputs, Scoring(n_samples=20, n_trials=20, seed=12345))
    assert [list(one[0].values()) for one in found] == [[row.scores for row in one.rows] for one in measured]
    assert [one[1:] for one in found] == [(one.verdicts, one.copy_proof) for one in measured]

    def refuse(*args, **kwargs):
        raise AssertionError("it is there already")

    monkeypatch.setattr(trainings, "_call_train", refuse)
    monkeypatch.setattr("hf_paraphrase.reproduction.tables.evaluate_paraphraser", refuse)
    assert reproduce(table, "small", tmp_path / "out", n_samples=20, n_trials=20, encoder=encode)[0].rows == first.rows


def test_steps_that_fit_into_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of half a second and 4 seconds of validation every 500 steps: 1,181 steps in ten minutes."""
    trained = {}

    def train(recipe, folder, data_dir, device):
        steps = int(
            next(line for line in (recipe / "training.yaml").read_text().split("\n") if "max_steps" in line)[11:]
        )
        trained[folder.name] = steps
        folder.mkdir(parents=True)
        spent = {"steps": steps, "train_cpu_seconds": steps / 2, "cpu_seconds": steps / 2 + 4}
        (folder / "training_summary.json").write_text(json.dumps(spent))

    monkeypatch.setattr(trainings, "_call_train", train)
    settings = make_table(minutes=10).settings["small"]
    runs = list_runs(settings, tmp_path, [7])
    train_all(runs, 10, None, 1)
    assert trained == {"seed-7-probe": trainings.PROBED_STEPS, "seed-7": 1181}
    assert runs[0].summary["steps"] == 1181
    train_all(runs, 10, None, 1)
    with pytest.raises(InputError, match="seed-7 has a run of another recipe or budget"):
        train_all(runs, 20, None, 1)
    systems = {
        name: Trained(one.recipe, {**one.fields, "learning_rate": 0.5}) for name, one in settings.systems.items()
    }
    with pytest.raises(InputError, match="seed-7 has a run of another recipe or budget"):
        train_all(list_runs(Settings(systems), tmp_path, [7]), 10, None, 1)

    systems = {name: replace(one, max_steps=900) for name, one in settings.systems.items()}
    train_all(list_runs(Settings(systems), tmp_path, [8]), 10, None, 1)
    assert trained["seed-8"] == 900, "no more steps than are of use"


def test_trainings_of_equal_passes_take_the_time_that_they_need() -> None:
    passes = make_table(minutes=10).settings["small"].with_equal_passes(2)
    assert passes.minutes is None
    for run in list_runs(passes, Path("runs"), [1]):
        assert (run.recipe.training.num_train_epochs, run.recipe.training.max_steps) == (2, -1)
        assert run.max_steps is None and run.recipe.model_config["hidden_size"] == TINY["hidden_size"]


def test_trainings_of_other_passes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(recipe, folder, data_dir, device):
        folder.mkdir(parents=True)
        (folder / "training_summary.json").write_text(json.dumps({"steps": 3}))

    monkeypatch.setattr(trainings, "_call_train", train)
    settings = make_table(minutes=10).settings["small"]
    for _ in range(2):
        train_all(list_runs(settings.with_equal_passes(2), tmp_path, [1]), None, None, 1)
    with pytest.raises(InputError, match="seed-1 has a run of another recipe or budget"):
        train_all(list_runs(settings.with_equal_passes(3), tmp_path, [1]), None, None, 1)


def test_the_two_budgets_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--minutes and --num-train-epochs"):
        reproduce(make_table(), "small", tmp_path, minutes=1, num_train_epochs=1)


def test_a_table_of_equal_passes_has_a_name_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, written = [], []

    def make(num_train_epochs: float | None = None, **others) -> None:
        asked.append(num_train_epochs)

    monkeypatch.setattr("hf_paraphrase.reproduction.tables.reproduce", make)
    monkeypatch.setattr(
        "hf_paraphrase.reproduction.report.write_reproduction",
        lambda table, *others: written.append((table.name, table.title)) or "the table",
    )
    for epochs in (None, 2.0):
        Reproduce(table="prakash-mscoco", output_dir=tmp_path, num_train_epochs=epochs).run()
    assert asked == [None, 2.0]
    (name, title), (other_name, other_title) = written
    assert (name, other_name) == ("prakash-mscoco", f"prakash-mscoco{EQUAL_PASSES}")
    assert other_title == f"{title}, at equal passes"


def test_what_cannot_be_trained_shows_before_the_others_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    def train(recipe, folder, data_dir, device):
        called.append(f"{folder.parent.name}/{folder.name}")
        if folder.parent.name == "without":
            raise InputError("its data is not there")
        folder.mkdir(parents=True)
        spent = {"steps": 60, "train_cpu_seconds": 30, "cpu_seconds": 34}
        (folder / "training_summary.json").write_text(json.dumps(spent))

    monkeypatch.setattr(trainings, "_call_train", train)
    runs = list_runs(make_table().settings["small"], tmp_path, [1])
    with pytest.raises(InputError, match="its data is not there"):
        train_all(runs, 10, None, 1)
    assert called == ["with-attention/seed-1-probe", "without/seed-1-probe"]


def test_a_training_goes_on_from_that_of_another_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order of the rows, and only when the other has ended."""
    called = []

    def train(recipe, folder, data_dir, device):
        called.append(folder.parent.name)
        pretrained = trainings.load_recipe(recipe).training.pretrained
        assert pretrained is None or (Path(pretrained) / "training_summary.json").is_file()
        folder.mkdir(parents=True)
        (folder / "training_summary.json").write_text(json.dumps({"steps": 3}))

    monkeypatch.setattr(trainings, "_call_train", train)
    systems = {
        "third": Trained("residual-lstm-synthetic", TINY, start="second"),
        "second": Trained("residual-lstm-synthetic", TINY, start="first one"),
        "first one": Trained("residual-lstm-synthetic", TINY),
    }
    runs = list_runs(Settings(systems), tmp_path, [5])
    assert runs[0].recipe.training.pretrained == str(runs[1].folder) and runs[2].start is None
    lines: list[str] = []
    train_all(runs, None, None, 2, report=lines.append)
    assert called == ["first-one", "second", "third"]
    folders = {run.system: run.folder for run in runs}
    expected = []
    for name in ("first one", "second", "third"):
        expected += [f"{name}, seed 5: training in {folders[name]}", f"{name}, seed 5: trained, 3 steps"]
    assert lines == expected


def test_a_failed_training_says_where_to_look(tmp_path: Path) -> None:
    systems = {"broken": Trained("residual-lstm-synthetic", {**TINY, "dataset": "mscoco", "dataset_name": None})}
    runs = list_runs(Settings(systems), tmp_path, [1])
    with pytest.raises(InputError, match=r"ended with 2: error: .*; see .*seed-1\.log"):
        train_all(runs, None, tmp_path / "nowhere", 1)


def test_outputs_of_a_row_are_told_apart_where_it_has_several(tmp_path: Path) -> None:
    outputs = [["a b c d", "a b x d", "a b c d"], ["e f g h", "e f", "g h e"]]
    rows = [
        {"source": "a b", "references": ["a c"], "prediction": texts[0], "predictions": texts} for texts in outputs
    ]
    file = tmp_path / "several.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = _read_paraphrases(make_table(), file)
    expected = self_bleu(outputs, lowercase=True)
    for name in ("self_bleu_2", "self_bleu_4"):
        assert found[name].score == pytest.approx(expected[name]) and not found[name].higher_is_better
        assert found[name].rows.shape[0] == 2
    del rows[0]["predictions"]
    file.write_text(json.dumps(rows[0]) + "\n")
    assert _read_paraphrases(make_table(), file).keys() == {"bleu_2", "bleu_4", "meteor", "pinc", "ibleu"}


def test_a_device_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for device, message in (("cuda", "--device cuda: PyTorch finds no GPU"), ("tpu", "must be cpu or cuda, not tpu")):
        with pytest.raises(InputError, match=message):
            reproduce(make_table(), "small", tmp_path, device=device)


def test_trainings_know_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environments = []

    def call(command, *, env, **options):
        environments.append(env)
        raise OSError("not now")

    monkeypatch.setattr(trainings.subprocess, "run", call)
    monkeypatch.delenv("ACCELERATE_USE_CPU", raising=False)
    for device, said in ((None, None), ("cpu", "true")):
        with pytest.raises(OSError, match="not now"):
            train_all(list_runs(make_table().settings["small"], tmp_path, [1]), None, None, 1, device)
        assert environments[-1].get("ACCELERATE_USE_CPU") == said
    assert {env["OMP_NUM_THREADS"] for env in environments} == {"1"}


def test_a_metric_that_cannot_be_shows_before_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args, **kwargs):
        raise AssertionError("nothing is trained")

    def lack(*args, **kwargs):
        raise InputError("nltk is not installed")

    monkeypatch.setattr("hf_paraphrase.reproduction.tables.train_all", refuse)
    monkeypatch.setattr("hf_paraphrase.evaluation.scoring.collect_statistics", lack)
    with pytest.raises(InputError, match="nltk is not installed"):
        reproduce(make_table(), "small", tmp_path)


def test_missing_data_shows_before_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "hf_paraphrase.reproduction.tables.train_all", lambda *_: pytest.fail("a training began without data")
    )

    def lack(*args, **kwargs):
        raise FileNotFoundError("train.csv is missing")

    monkeypatch.setattr("hf_paraphrase.reproduction.tables.load_dataset", lack)
    with pytest.raises(FileNotFoundError, match=r"train\.csv is missing"):
        reproduce(make_table(), "small", tmp_path)


def test_unknown_settings() -> None:
    with pytest.raises(InputError, match="--settings large: tiny has: small"):
        make_table().choose("large")


def judge(better, worse, margin: float = 0.0, **options) -> Verdict:
    claim = Claim("a", "b", "mean", margin)
    statistics, scores = {}, {}
    for name, runs in (("a", better), ("b", worse)):
        made = [SufficientStatistics.from_sentence_scores("mean", run, "", **options) for run in runs]
        statistics[name] = {"mean": made}
        scores[name] = (Score("mean", float(np.mean(runs))),)
    return _judge(claim, scores, statistics, Scoring(n_samples=400, n_trials=400))


def test_a_claim_holds_fails_or_stays_open() -> None:
    draw = np.random.default_rng(0).normal
    base = draw(size=300)
    above, alike = base + 0.5 + 0.1 * draw(size=300), base + 0.1 * draw(size=300)
    assert judge([above], [base]).outcome == "holds"
    assert judge([base], [above]).outcome == "does not hold"
    assert judge([alike], [base]).outcome == "open"
    assert judge([alike], [base], margin=0.2).outcome == "holds"
    assert judge([base], [above], margin=0.2).outcome == "does not hold"
    errors = judge([base], [above], higher_is_better=False)
    assert errors.outcome == "holds" and errors.difference == pytest.approx((above - base).mean())


def test_trainings_that_differ_leave_a_claim_open() -> None:
    """Of three seeds one is far off: test rows alone would decide what trainings do not."""
    base = np.random.default_rng(0).normal(size=400)
    better, worse = [base + shift for shift in (0.1, 0.2, 3.0)], [base, base + 1.0, base + 0.1]
    assert judge([better[2]], [worse[0]]).outcome == "holds"
    assert judge(better, worse).outcome == "open"


def test_a_baseline_that_differs_by_system_stands_there_once_for_each() -> None:
    def record(handed: float) -> Results:
        scores = {"copied": 27.0, "handed over": handed}
        entries = [Entry(name, "baseline", (Score("bleu_4", score),)) for name, score in scores.items()]
        paper = Entry("a paper", "paper", (Score("bleu_4", 33.0),))
        return Results("paraphrases", Data("quora"), (*entries, paper))

    others = _collect_others({"a": record(50.0), "b": record(40.0), "again as a": record(50.0)})
    named = {entry.system: entry.find("bleu_4").score for entry in others}
    assert named == {"copied": 27.0, "handed over (a)": 50.0, "handed over (b)": 40.0, "a paper": 33.0}
    assert [entry.system for entry in _collect_others({"a": record(1.0)})] == ["copied", "handed over", "a paper"]


def test_verdict_as_text() -> None:
    verdict = Verdict(
        Claim("residual", "attention", "bleu_4"),
        Score("bleu_4", 31.2, 30.4, 32.0),
        Score("bleu_4", 30.1, 29.3, 30.9),
        1.1,
        0.2,
        2.0,
        0.012,
    )
    assert format_verdict(verdict) == (
        "claimed: residual > attention in bleu_4; here: 31.2 ± 0.8 against 30.1 ± 0.8, better by 1.1 (0.2 to 2.0), "
        "p = 0.012: **holds**"
    )
