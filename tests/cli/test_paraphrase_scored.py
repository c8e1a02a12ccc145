"""`hf-paraphrase paraphrase`: files in, scored paraphrases out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from hf_paraphrase import Paraphraser
from hf_paraphrase.cli.paraphrase import COLUMNS
from hf_paraphrase.cli.terminal import open_table, read_texts
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.common.text_tables import TextTable

from .runner import run

TEXTS = ["how do i learn faster ?", "", "the cat sat on the mat", 'a "dog", or\ta cat', "can you make bread"]
OPTIONS = ["-n", "2", "--max-new-tokens", "5", "--batch-size", "2", "--min-adequacy", "0"]


@pytest.fixture(scope="module")
def expected(checkpoint: Path) -> list[tuple]:
    paraphraser = Paraphraser.from_pretrained(checkpoint)
    groups = zip(TEXTS, paraphraser(TEXTS, 2, max_new_tokens=5, min_adequacy=0), strict=True)
    return [
        (row, source, rank, one.text, one.score)
        for row, (source, group) in enumerate(groups, start=1)
        for rank, one in enumerate(group, start=1)
    ]


def write_texts(path: Path) -> None:
    if path.suffix == ".parquet":
        table = pyarrow.table({"number": list(range(5)), "text": TEXTS})
        pyarrow.parquet.write_table(table, path, row_group_size=2)
    elif path.suffix in (".csv", ".tsv"):
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            table = csv.writer(file, delimiter="," if path.suffix == ".csv" else "\t")
            table.writerows([["number", "text"], *enumerate(TEXTS)])
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    else:
        path.write_text("".join(f"{text}\n" for text in TEXTS))


def read_rows(path: Path) -> list[dict]:
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path).to_pylist()
    rows = read_table(path)
    if path.suffix == ".jsonl":
        return rows
    return [row | {"row": int(row["row"]), "rank": int(row["rank"]), "score": float(row["score"])} for row in rows]


def read_table(path: Path) -> list[dict]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="," if path.suffix == ".csv" else "\t"))


@pytest.mark.parametrize(
    ("read", "written"),
    [(".txt", ".jsonl"), (".csv", ".parquet"), (".parquet", ".csv"), (".jsonl", ".tsv"), (".tsv", ".jsonl")],
)
def test_from_file_to_file(
    read: str, written: str, checkpoint: Path, expected: list[tuple], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    write_texts(tmp_path / f"in{read}")
    output = tmp_path / f"out{written}"
    assert run("paraphrase", checkpoint, *OPTIONS, "--input", tmp_path / f"in{read}", "--output", output) == 0
    rows = read_rows(output)
    assert list(rows[0]) == ["row", "source", "rank", "text", "score", "adequacy", "fluency", "novelty"]
    found = [(row["row"], row["source"], row["rank"], row["text"]) for row in rows]
    assert found == [row[:4] for row in expected] and {row[0] for row in found} == {1, 3, 4, 5}
    assert [row["score"] for row in rows] == pytest.approx([row[4] for row in expected], rel=1e-3)
    assert {file.name for file in tmp_path.iterdir()} == {f"in{read}", f"out{written}"}
    told = f"{output}: {len(rows)} paraphrases of {len(TEXTS)} texts, {len(TEXTS) - 4} of which have none\n"
    assert capsys.readouterr().err.endswith(told)


def test_a_file_without_texts_gives_a_table_without_rows(checkpoint: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "in.csv").write_text("text\n")
    output = tmp_path / "out.csv"
    assert run("paraphrase", checkpoint, "-n", "1", "--input", tmp_path / "in.csv", "--output", output) == 0
    assert read_rows(output) == [] and output.read_text().startswith("row,source,rank")
    assert "0 paraphrases of 0 texts" in capsys.readouterr().err


def test_lines_of_standard_input_and_json(
    checkpoint: Path, expected: list[tuple], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for given in ([], ["--input", "-"]):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{text}\n" for text in TEXTS)))
        assert run("paraphrase", checkpoint, *OPTIONS, "--json", *given) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [(row["row"], row["source"]) for row in rows] == list(enumerate(TEXTS, start=1))
        found = [text for row in rows for text in row["paraphrases"]]
        assert found == [row[3] for row in expected]
        scores = [one["score"] for row in rows for one in row["scores"]]
        assert scores == pytest.approx([row[4] for row in expected], rel=1e-3)


def test_for_people(checkpoint: Path, expected: list[tuple], capsys: pytest.CaptureFixture) -> None:
    assert run("paraphrase", checkpoint, *TEXTS[:3], *OPTIONS) == 0
    blocks = capsys.readouterr().out.strip("\n").split("\n\n")
    assert [block.split("\n")[0] for block in blocks] == [TEXTS[0], TEXTS[2]]
    lines = [line.split("  ", 1) for block in blocks for line in block.split("\n")[1:]]
    assert [line[1] for line in lines] == [row[3] for row in expected if row[0] < 4]
    assert [float(line[0].split()[0]) for line in lines] == pytest.approx([r[4] for r in expected[:4]], abs=6e-4)
    options = ["--keep", "none", "--return-rejected", "--decoding", "sample", "--seed", "3", "--min-novelty", "0.95"]
    assert run("paraphrase", checkpoint, TEXTS[2], *OPTIONS, *options) == 0
    assert "is below 0.95)" in capsys.readouterr().out


def test_a_text_without_a_paraphrase_is_told(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("paraphrase", checkpoint, "the cat sat", *OPTIONS, "--min-adequacy", 1) == 0
    assert capsys.readouterr().out == "the cat sat\nno candidate passed; --return-rejected shows why\n\n"


def test_every_option_reaches_the_paraphraser(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(Paraphraser, "__call__", lambda self, texts, n, **options: asked.append((n, options)) or [])
    options = {
        "min_adequacy": 0.1,
        "min_fluency": 0.2,
        "min_novelty": 0.3,
        "diversity": 0.4,
        "adequacy": "embedding",
        "encoder": "e",
        "fluency": "f",
        "seed": 5,
        "num_beams": 6,
        "temperature": 0.7,
        "select": "mbr",
        "max_new_tokens": 8,
        "num_neighbors": 9,
        "num_candidates": 10,
        "matcher": "m",
        "batch_size": 11,
        "decoding": "dips",
        "fidelity": 0.25,
        "exclude_source": True,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value) if value is not True]
    words += ["--exclude-source", "--return-rejected", "--keep", "names, urls"]
    assert run("paraphrase", checkpoint, "a", "-n", "4", *words) == 0
    usual = {"language": "en", "batch_size": 16, "return_rejected": False}
    assert asked == [(4, {**usual, **options, "return_rejected": True, "keep": ["names", "urls"]})]
    words = ["--keep", "none", "--decoding", "noise", "--temperature", "uniform", "--noise", "0.5"]
    assert run("paraphrase", checkpoint, "a", *words) == 0
    assert asked[1] == (1, {**usual, "keep": [], "decoding": "noise", "temperature": "uniform", "noise": 0.5})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--temperature", "warm"], "--temperature takes a number or uniform, got 'warm'"),
        (["--noise", "0.5"], "`noise` is for `decoding='noise'` alone"),
        (["--select", "luck"], "`select` must be one of score, jaccard, mbr, embedding, matcher, not 'luck'"),
        (["-n", "0"], "Invalid value for '-n': "),
        (["-n", "2", "--min-adequacy", "1.5"], "Invalid value for '--min-adequacy': "),
        (["-n", "2", "--diversity", "-1"], "Invalid value for '--diversity': "),
        (
            ["-n", "2", "--decoding", "x"],
            "`decoding` must be one of 'beam', 'diverse_beam', 'dips', 'sample', 'noise' or null, not 'x'",
        ),
        (["-n", "2", "--decoding", "sample", "--fidelity", "0"], "--fidelity is an option of --decoding dips"),
        (["-n", "2", "--fidelity", "0"], "--fidelity is an option of --decoding dips"),
        (["-n", "2", "--input", "a.txt"], "--input: texts are given already"),
        (["-n", "2", "--output", "a.xlsx"], "--output must end in .parquet, .csv, .tsv or .jsonl, not a.xlsx"),
        (
            ["-n", "2", "--dtype", "int4"],
            "`dtype` must be one of float32, bfloat16, float16, fast, int8, auto, not 'int4'",
        ),
        (["--dtype", "int4"], "`dtype` must be one of float32, bfloat16, float16, fast, int8, auto, not 'int4'"),
        (
            ["-n", "2", "--keep", "number"],
            "`keep`: 'number' is near to the kind 'numbers'; it is one of names, numbers, urls, addresses, "
            "placeholders, mentions, terms, code, quotes, or, as a word, '\"number\"'",
        ),
        (
            ["-n", "2", "--adequacy", "x"],
            "`adequacy` must be one of open, round_trip, embedding, matcher, jaccard, mbr, or a function, not 'x'",
        ),
    ],
)
def test_what_cannot_be(options: list[str], message: str, checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("paraphrase", checkpoint, "a text", *options) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    # What else typer says of a value differs between its releases.
    assert last.startswith(f"error: {message}") if message.startswith("Invalid") else last == f"error: {message}"


WRONG = [
    ("a.csv", b"number,question\n1,x\n", [], "a.csv: no column `text` or `source`; there are: number, question"),
    ("a.csv", b"text,other\nx,1\ny\n", [], "a.csv, line 3: 1 cells for 2 columns"),
    ("a.csv", b"text\nx\ny\n", ["--column", "z"], "a.csv: no column `z`; there are: text"),
    ("a.jsonl", b'{"text": "x"}\n{"text": 3}\n', [], "a.jsonl, line 2, column `text`: expected text, not a number: 3"),
    (
        "a.jsonl",
        b'{"text": "x"}\n{"q": "y"}\n',
        [],
        "a.jsonl, line 2: no column `text` or `source`; there are: q; give",
    ),
    ("a.jsonl", b'{"text": "x"}\nx\n', [], "a.jsonl, line 2: not JSON (Expecting value)"),
    (
        "a.jsonl",
        b"[1]\n",
        ["--column", "q"],
        "a.jsonl, line 1: expected a JSON object with a field for each column, not a list",
    ),
    ("a.parquet", b"text", [], "a.parquet is not a Parquet file that can be read: "),
    ("a.txt", b"x\n\xff\n", [], "a.txt is not valid UTF-8 (invalid start byte at byte 3, line 2)"),
    ("none.csv", None, [], "No such file or directory: 'none.csv'"),
    ("none.txt", None, [], "No such file or directory: 'none.txt'"),
    ("none.parquet", None, [], "none.parquet"),
]


@pytest.mark.parametrize(("name", "content", "options", "message"), WRONG)
def test_bad_input_is_named_by_file_and_line(
    name: str,
    content: bytes | None,
    options: list[str],
    message: str,
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content)
    assert run("paraphrase", checkpoint, "--input", name, *options, "--output", "out.parquet") == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("error: ") and message in last
    assert not list(tmp_path.glob("*out*"))


def test_columns_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"q": ["x", None], "r": ["y", "z"]}), path)
    assert list(read_texts(str(path), "r")) == ["y", "z"]
    with pytest.raises(InputError, match="a.parquet: no column `text` or `source`; there are: q, r"):
        read_texts(str(path))
    assert list(read_texts(str(path), "q")) == ["x", ""]
    pyarrow.parquet.write_table(pyarrow.table({"q": [["x"]]}), path)
    with pytest.raises(InputError, match="a.parquet, row 1, column `q`: expected text, not a list"):
        read_texts(str(path), "q")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_rows_are_flushed_as_they_come(suffix: str, tmp_path: Path) -> None:
    path, columns = tmp_path / f"a{suffix}", {"row": "int64", "text": "string"}
    rows = [{"row": 1, "text": 'a "b",\n'}, {"row": None, "text": "ü"}]
    with open_table(path, columns) as write:
        sizes = []
        for row in rows:
            write([row])
            sizes.append(path.stat().st_size if path.exists() else None)
        write([])
    assert sizes == [None, None] if suffix == ".parquet" else 0 < sizes[0] < sizes[1] == path.stat().st_size
    if suffix == ".parquet":
        assert pyarrow.parquet.read_table(path).to_pylist() == rows
        assert pyarrow.parquet.ParquetFile(path).num_row_groups == 2


def test_a_parquet_file_that_failed_is_not_there(tmp_path: Path) -> None:
    def rows() -> Iterator[dict]:
        yield {"row": 1}
        raise RuntimeError

    for old in (None, b"old"):
        path = tmp_path / "a.parquet"
        if old:
            path.write_bytes(old)
        with pytest.raises(RuntimeError), open_table(path, {"row": "int64"}) as write:
            for row in rows():
                write([row])
        assert [file.read_bytes() for file in tmp_path.iterdir()] == ([old] if old else [])


@pytest.mark.parametrize(("suffix", "safe_cells"), [(".csv", None), (".csv", True), (".csv", False), (".tsv", None)])
def test_formulas_are_read_as_they_were_before(suffix: str, safe_cells: bool | None, tmp_path: Path) -> None:
    texts = ["=1+1", "@ann hello", "- no", "'=", "''-", "'tis", "' =", "it's = that", "plain"]
    texts = texts if safe_cells is not False else [text for text in texts if not text.startswith(("'=", "''-"))]
    path = tmp_path / f"rows{suffix}"
    with open_table(path, COLUMNS, safe_cells) as write:
        write([dict.fromkeys(COLUMNS) | {"row": 1, "source": text, "text": text, "score": -0.5} for text in texts])
    assert list(read_texts(str(path))) == texts
    assert [row.values["source"] for row in TextTable(path).rows()] == texts
    assert ("'=1+1" in path.read_text()) == (suffix == ".csv" and safe_cells is not False)


@pytest.mark.parametrize(
    ("suffix", "safe_cells", "is_quoted"),
    [
        (".csv", None, True),
        (".csv", False, False),
        (".tsv", None, False),
        (".tsv", True, True),
        (".jsonl", True, False),
    ],
)
def test_formulas_of_spreadsheets(suffix: str, safe_cells: bool | None, is_quoted: bool, tmp_path: Path) -> None:
    texts = ['=HYPERLINK("http://evil")', "+1", "-1", "@SUM(A1)", "a = b", ""]
    path = tmp_path / f"rows{suffix}"
    with open_table(path, {"text": "string", "row": "int64", "score": "double"}, safe_cells) as write:
        write([{"text": text, "row": 1, "score": -0.5} for text in texts])
    rows = read_table(path)
    quoted = [f"'{text}" for text in texts[:4]] if is_quoted else texts[:4]
    assert [row["text"] for row in rows] == [*quoted, *texts[4:]]
    assert {float(row["score"]) for row in rows} == {-0.5}


def test_the_strength_is_the_paraphrasers(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("paraphrase", checkpoint, *TEXTS, *OPTIONS, "--strength", "0.9", "--json") == 0
    written = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    groups = Paraphraser.from_pretrained(checkpoint, strength=0.9)(TEXTS, 2, max_new_tokens=5, min_adequacy=0)
    assert [row["paraphrases"] for row in written] == [[one.text for one in group] for group in groups]
    assert all(scores["novelty"] >= 0.45 for row in written for scores in row["scores"])
    assert run("paraphrase", checkpoint, "the cat", *OPTIONS, "--strength", "2") == 2
    assert "--strength" in capsys.readouterr().err
