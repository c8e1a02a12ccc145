"""`hf-paraphrase score` and what stands behind it."""

from __future__ import annotations

import csv
import io
import json
import re
import struct
from pathlib import Path

import pytest

from hf_paraphrase import metrics
from hf_paraphrase.cli.app import main
from hf_paraphrase.cli.options import metrics_option
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics import Scored, list_metrics, scored_metrics
from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.score_files import ScoredTexts, read_scored_texts
from hf_paraphrase.metrics.score_table import SCORED_METRICS, collect_statistics, format_rows, score_systems

SOURCES = [f"how do i learn to cook dish number {n} ?" for n in range(12)]
REFERENCES = [[f"what is the way to learn to cook dish {n} ?", f"how can i cook number {n} ?"] for n in range(12)]
GOOD = [f"how can i learn to cook dish {n} ?" for n in range(12)]
BAD = [f"dish {n} is what people eat ." for n in range(12)]


def run(capsys: pytest.CaptureFixture, *args: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_info:
        main(["score", *map(str, args)])
    captured = capsys.readouterr()
    return exit_info.value.code or 0, captured.out, captured.err


def write_jsonl(path: Path, predictions: list[str], references: list[list[str]] = REFERENCES) -> Path:
    rows = zip(SOURCES, references, predictions, strict=False)
    lines = [json.dumps({"source": row[0], "references": row[1], "prediction": row[2]}) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "good.jsonl", GOOD)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "bad.jsonl", BAD)


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, Path]:
    columns = {"good": GOOD, "first": [row[0] for row in REFERENCES], "second": [row[1] for row in REFERENCES]}
    columns |= {"sources": SOURCES}
    for name, lines in columns.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return {name: tmp_path / f"{name}.txt" for name in columns}


def test_table_of_one_system(good: Path, capsys: pytest.CaptureFixture) -> None:
    code, out, _ = run(capsys, "--predictions", good, "--metrics", "bleu,ter,pinc,ibleu", "--n-samples", 20)
    assert code == 0
    head, *lines = out.splitlines()
    assert head.split() == ["metric", "score", "95%", "interval", "signature"]
    assert [line.split()[0] for line in lines] == ["bleu_4", "bleu_2", "ter", "pinc", "ibleu"]
    assert lines[0].split()[1] == f"{bleu(GOOD, REFERENCES)['score']:.2f}"
    assert "nrefs:2|case:lc" in lines[0]


def test_table_against_another_system(good: Path, bad: Path, capsys: pytest.CaptureFixture) -> None:
    options = ["--metrics", "bleu,ter", "--n-samples", 20, "--n-trials", 200]
    _, out, _ = run(capsys, "--predictions", bad, "--against", good, *options)
    lines = out.splitlines()
    score = f"{bleu(GOOD, REFERENCES)['score']:.2f}*"
    assert score in lines[1]
    assert f"{bleu(BAD, REFERENCES)['score']:.2f} " in lines[1]
    assert lines[3].startswith("ter")
    assert lines[-1].startswith("* better, p < 0.05")


def test_text_files_are_the_same_as_jsonl(good: Path, texts: dict[str, Path], capsys: pytest.CaptureFixture) -> None:
    options = ["--metrics", "bleu,pinc", "--n-samples", 20, "--json", "--cased", "--tokenize", "none"]
    files = ["--references", texts["first"], "--references", texts["second"], "--sources", texts["sources"]]
    _, from_text, _ = run(capsys, "--predictions", texts["good"], *files, *options)
    _, from_jsonl, _ = run(capsys, "--predictions", good, *options)
    assert from_text == from_jsonl
    assert "case:mixed" in json.loads(from_text)[0]["signature"]


def quoted(text: str) -> str:
    return f'"{text}"'


@pytest.mark.parametrize(("suffix", "separator"), [("csv", ","), ("tsv", "\t")])
def test_tables_are_read_by_column(suffix: str, separator: str, good: Path, tmp_path: Path) -> None:
    """Predictions with a mark that spreadsheets write, commas in fields, and references in files of their own."""
    outputs = tmp_path / f"outputs.{suffix}"
    rows = [separator.join(("id", quoted("prediction"), "source"))]
    rows += [separator.join((str(n), quoted(f"{text}, {n}"), SOURCES[n])) for n, text in enumerate(GOOD)]
    outputs.write_text("\r\n".join(rows) + "\r\n", encoding="utf-8-sig", newline="")
    first, second = tmp_path / f"first.{suffix}", tmp_path / f"second.{suffix}"
    for place, (path, name) in enumerate(((first, "target"), (second, "reference"))):
        lines = [f"a{separator}{name}", *(f"{n}{separator}{row[place]}" for n, row in enumerate(REFERENCES))]
        path.write_text("\n".join(lines))
    texts = read_scored_texts([outputs], [first, second])
    assert texts == ScoredTexts([[f"{text}, {n}" for n, text in enumerate(GOOD)]], REFERENCES, SOURCES)
    assert read_scored_texts([good], [first, good], outputs).references[3] == [REFERENCES[3][0], *REFERENCES[3]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "question,answer\na,b\n",
            "line 2: no column `prediction` or `paraphrases`; there are: question, answer",
        ),
        ("prediction,reference\na,b,c\n", "line 2: 3 cells for 2 columns; quote cells that hold the delimiter"),
        ("prediction,reference\na,\n", "line 2: no text in `references`"),
        ("prediction,reference\n", "is empty"),
        ("prediction,prediction\na,b\n", "two columns are called `prediction`; rename one"),
        (
            "prediction\na\n",
            "line 2: no column `references` or `reference` or `target`; there are: prediction; give --references",
        ),
    ],
)
def test_tables_that_cannot_be_read_are_refused(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    path = tmp_path / "outputs.csv"
    path.write_text(text)
    code, _, error = run(capsys, "--predictions", path)
    assert code == 2
    assert re.fullmatch(rf"error: {path}(, | |: ){message}\n", error), error


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outputs.parquet").write_bytes(b"PAR1\xff\xfe")
    with pytest.raises(InputError, match="outputs.parquet is not a Parquet file that can be read"):
        read_scored_texts([tmp_path / "outputs.parquet"])
    (tmp_path / "outputs.txt").write_bytes(b"PAR1\xff\xfe")
    with pytest.raises(InputError, match="outputs.txt is not valid UTF-8 .* at byte 5"):
        read_scored_texts([tmp_path / "outputs.txt"])


def test_outputs_of_paraphrase_as_json(tmp_path: Path, texts: dict[str, Path], capsys: pytest.CaptureFixture) -> None:
    """Of several paraphrases of a text the first, likeliest one is scored; the sources are there already."""
    rows = [{"source": SOURCES[n], "paraphrases": [text, "another"]} for n, text in enumerate(GOOD)]
    (tmp_path / "said.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--references", texts["first"], "--metrics", "bleu,pinc", "--n-samples", 20]
    code, said, _ = run(capsys, "--predictions", tmp_path / "said.json", *options)
    assert code == 0
    plain = ["--predictions", texts["good"], "--sources", texts["sources"]]
    assert said == run(capsys, *plain, *options)[1]
    # A text without paraphrases is answered by nothing.
    (tmp_path / "said.json").write_text(json.dumps({"source": "a", "paraphrases": []}) + "\n")
    (tmp_path / "one.txt").write_text("b\n")
    assert read_scored_texts([tmp_path / "said.json"], [tmp_path / "one.txt"]).runs == [[""]]


def test_the_default_metrics_need_no_extras(
    good: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    code, out, error = run(capsys, "--predictions", good, "--n-samples", 20)
    assert (code, error) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["bleu_4", "bleu_2", "ter"]
    assert run(capsys, "--predictions", good, "--metrics", "rouge")[0] == 2


def test_case_is_ignored_unless_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip("nltk")
    pytest.importorskip("rouge_score")
    loud = write_jsonl(tmp_path / "loud.jsonl", [row[0].upper() for row in REFERENCES])
    options = ["--predictions", loud, "--metrics", "bleu,ter,rouge,meteor,pinc,ibleu", "--meteor-stages", "exact"]
    options += ["--n-samples", 20, "--json"]
    scores = {}
    for choice in ((), ("--lowercase",), ("--cased",)):
        rows = json.loads(run(capsys, *options, *choice)[1])
        scores[choice] = {row["metric"]: (row["score"], row["signature"]) for row in rows}
    assert scores[()] == scores[("--lowercase",)]
    assert scores[()]["bleu_4"][0] == pytest.approx(100) and scores[()]["ter"][0] == 0
    assert all("case:lc" in signature for _, signature in scores[()].values())
    cased = scores[("--cased",)]
    assert cased["bleu_4"][0] < 50 < cased["ter"][0]
    heeding = {name for name, (_, signature) in cased.items() if "case:mixed" in signature}
    assert heeding == {"bleu_4", "bleu_2", "ter", "pinc", "ibleu"}
    # And in Python, as `evaluate_paraphraser` asks for the same scores.
    texts = read_scored_texts([loud])
    assert [row.score for row in score_systems(texts, metrics=["bleu", "ter"], n_samples=20)] == [
        scores[()][name][0] for name in ("bleu_4", "bleu_2", "ter")
    ]


def test_json_and_csv_hold_the_same(good: Path, bad: Path, capsys: pytest.CaptureFixture) -> None:
    options = ["--predictions", good, "--predictions", bad, "--against", good, "--against", good]
    options += ["--metrics", "bleu", "--n-samples", 20, "--n-trials", 20]
    _, as_json, _ = run(capsys, *options, "--json")
    _, as_csv, _ = run(capsys, *options, "--csv")
    rows = json.loads(as_json)
    assert rows[0]["better"] == "against"
    assert rows[0]["optimizer_variance"] > 0
    assert list(rows[0]) == next(csv.reader(io.StringIO(as_csv)))
    for row, cells in zip(rows, csv.DictReader(io.StringIO(as_csv)), strict=True):
        assert cells["metric"] == row["metric"]
        assert float(cells["p_value"]) == row["p_value"]


def test_the_better_score_is_bold() -> None:
    texts = ScoredTexts([GOOD], REFERENCES, None)
    against = ScoredTexts([BAD], REFERENCES, None)
    rows = score_systems(texts, against, metrics=["ter"], n_samples=10, n_trials=100)
    assert rows[0].better == "predictions"
    assert f"<b>{rows[0].score:.2f}*</b>" in format_rows(rows, emphasise=lambda cell: f"<b>{cell}</b>")
    same = score_systems(texts, texts, metrics=["ter"], n_samples=10, n_trials=10)
    assert (same[0].better, same[0].p_value) == (None, 1)
    assert "<b>" not in format_rows(same, emphasise=lambda cell: f"<b>{cell}</b>")


def test_a_metric_says_whether_it_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is enough: no list names it."""
    for name, declaration in (("first", "SCORED = Scored(('first',), inputs=('sources',))"), ("second", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.py").touch()
        (tmp_path / name / "__init__.py").write_text(f"from hf_paraphrase.metrics import Scored\n{declaration}")
    monkeypatch.setattr(metrics, "_FOLDER", tmp_path)
    monkeypatch.setattr(metrics, "__path__", [str(tmp_path)])
    assert scored_metrics.__wrapped__() == {"first": Scored(("first",), inputs=("sources",))}


def test_metrics_are_offered_wherever_they_are_named(good: Path, capsys: pytest.CaptureFixture) -> None:
    assert list(SCORED_METRICS) == [name for name in list_metrics() if name in SCORED_METRICS]
    assert f"Comma-separated: {', '.join(SCORED_METRICS)}." in metrics_option("bleu").metadata["help"]
    for name in {"distinct_n", "self_bleu"}:
        assert name not in SCORED_METRICS
        assert run(capsys, "--predictions", good, "--metrics", name)[0] == 2


def test_every_name_of_the_table_is_there(tmp_path: Path) -> None:
    pytest.importorskip("nltk")
    pytest.importorskip("rouge_score")
    (tmp_path / "vectors.txt").write_text("how 1 0\nwhat 0 1\n")
    options = {"meteor": {"stages": ("exact",)}, "embedding_greedy": {"word_vectors": tmp_path / "vectors.txt"}}
    for metric, scored in SCORED_METRICS.items():
        scores = collect_statistics(metric, ScoredTexts([GOOD], REFERENCES, SOURCES), options.get(metric, {}))
        assert tuple(scores) == scored.names
        assert all(runs[0].rows.shape[0] == len(GOOD) for runs in scores.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metrics", "blue"], "unknown metric 'blue'; available: bleu, embedding_greedy"),
        (["--metrics", "embedding_greedy"], "give --word-vectors"),
        (["--predictions", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_bad_options(options: list[str], message: str, good: Path, capsys: pytest.CaptureFixture) -> None:
    code, _, err = run(capsys, "--predictions", good, *options)
    assert code == 2
    assert message in err


def test_word_vectors_in_word2vec_s_binary_format(tmp_path: Path, good: Path, capsys: pytest.CaptureFixture) -> None:
    words = {
        word: [number % 7 - 3.0, number % 5 + 1.0] for number, word in enumerate(sorted({*" ".join(GOOD).split()}))
    }
    text = "".join(f"{word} {x} {y}\n" for word, (x, y) in words.items())
    (tmp_path / "vectors.txt").write_text(text)
    content = b"".join(word.encode() + b" " + struct.pack("<2f", *numbers) for word, numbers in words.items())
    (tmp_path / "vectors.bin").write_bytes(b"%d 2\n" % len(words) + content)
    options = ["--predictions", good, "--metrics", "embedding_greedy", "--n-samples", 20, "--json", "--word-vectors"]
    tables = [run(capsys, *options, tmp_path / name)[1] for name in ("vectors.txt", "vectors.bin")]
    assert json.loads(tables[0])[0]["score"] > 0
    assert tables[0].replace("vectors.txt", "vectors.bin") == tables[1]


def test_bad_files_are_named(tmp_path: Path, good: Path, texts: dict[str, Path]) -> None:
    with pytest.raises(
        InputError,
        match=r"good.txt, line 1: no column `references` or .*; give --references",
    ):
        read_scored_texts([texts["good"]])
    short = tmp_path / "short.txt"
    short.write_text("a\nb\n")
    with pytest.raises(InputError, match=r"differ in length, in rows: .*good.jsonl 12, .*short.txt 2"):
        read_scored_texts([good], [short])
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"prediction": "a", "references": ["b"]}\n{"prediction"\n')
    with pytest.raises(InputError, match=r"broken.jsonl, line 2: not JSON"):
        read_scored_texts([broken])
    broken.write_text('{"text": "a", "references": ["b"]}\n')
    with pytest.raises(
        InputError, match=r"broken.jsonl, line 1: no column `prediction` or `paraphrases`; there are: text, references"
    ):
        read_scored_texts([broken])
    broken.write_text('["a"]\n')
    with pytest.raises(InputError, match=r"broken.jsonl, line 1: expected a JSON object"):
        read_scored_texts([broken])
    broken.write_text("")
    with pytest.raises(InputError, match=r"broken.jsonl is empty"):
        read_scored_texts([broken])
    other = write_jsonl(tmp_path / "other.jsonl", GOOD, REFERENCES[::-1])
    with pytest.raises(InputError, match=r"good.jsonl and .*other.jsonl differ in their references"):
        read_scored_texts([good, other])
    with pytest.raises(InputError, match="other test sentences"):
        score_systems(read_scored_texts([good]), read_scored_texts([other]))
    with pytest.raises(InputError, match="pinc needs the sources; give --sources"):
        score_systems(read_scored_texts([texts["good"]], [texts["first"]]), metrics=["pinc"])


def test_an_empty_line_is_no_reference(tmp_path: Path, texts: dict[str, Path]) -> None:
    ragged = tmp_path / "ragged.txt"
    ragged.write_text("\n" * 11 + "only here\n")
    references = read_scored_texts([texts["good"]], [texts["first"], ragged]).references
    assert references[0] == REFERENCES[0][:1]
    assert references[11] == [REFERENCES[11][0], "only here"]
