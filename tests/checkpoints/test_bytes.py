"""Invalid UTF-8 and halves of surrogate pairs are reported by file and line, or replaced, and cost nothing else."""

from __future__ import annotations

import io
import json
import sys

import pyarrow
import pyarrow.parquet
import pytest
from transformers import pipeline

from hf_paraphrase import Paraphraser
from hf_paraphrase.cli import terminal
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.models.fset.configuration_fset import FsetConfig
from hf_paraphrase.models.fset.modeling_fset import FsetForConditionalGeneration
from tests.cli.runner import run
from tests.models.tiny import save, tiny_bart, tiny_model, word_tokenizer

LINES = b"the cat sat\nhow \xff do i\nmake bread\n"
OPTIONS = ["--max-new-tokens", "4", "--num-beams", "1"]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return save(tiny_bart(), tmp_path_factory.mktemp("model"))


def pipe_in(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))


@pytest.mark.parametrize("scored", [False, True])
def test_a_stream_goes_on_behind_a_bad_line(scored, model, monkeypatch, capsys):
    options = ["--max-new-tokens", "4", "--json", *(["-n", "1"] if scored else ["--num-beams", "1"])]
    pipe_in(monkeypatch, LINES)
    assert run("paraphrase", model, *options) == 2
    out, err = capsys.readouterr()
    sources = [json.loads(line)["source"] for line in out.splitlines()]
    assert sources == ["the cat sat", "", "make bread"]
    assert "standard input, line 2: invalid start byte at byte 5" in err
    assert err.splitlines()[-1].startswith("error: 1 lines of standard input, first line 2, are not valid UTF-8")
    pipe_in(monkeypatch, LINES)
    assert run("paraphrase", model, *options, "--errors", "replace") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[1])["source"] == "how \ufffd do i"


def test_a_mark_before_a_stream_is_no_letter(monkeypatch):
    """PowerShell begins what it pipes with one."""
    pipe_in(monkeypatch, b"\xef\xbb\xbfthe cat\nsat\n")
    assert list(terminal.Lines()) == ["the cat", "sat"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\ufeffthe cat\n"))
    assert list(terminal.Lines()) == ["the cat"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", LINES, "line 2"),
        ("a.csv", b"text\n" + LINES, "line 3"),
        ("a.csv", "text\na\n".encode("utf-16"), "line 1: save it as UTF-8"),
        (
            "a.jsonl",
            b'{"text": "a"}\n{"text": "\\ud800"}\n',
            "a.jsonl, line 2: column `text`: half of a surrogate pair",
        ),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', "line 2"),
    ],
)
def test_a_file_is_read_before_work_is_spent(name, content, message, model, tmp_path, monkeypatch, capsys):
    (tmp_path / name).write_bytes(content)
    monkeypatch.setattr(Paraphraser, "from_pretrained", None)
    assert run("paraphrase", model, "-n", "1", "--input", tmp_path / name) == 2
    out, err = capsys.readouterr()
    assert (out, message in err, name in err) == ("", True, True)
    if "UTF-8" not in message:
        assert "\ufffd" in "".join(terminal.read_texts(str(tmp_path / name), None, "replace"))


def test_parquet_of_bytes_that_are_no_text(tmp_path):
    column = pyarrow.array([b"a", b"\xff"]).view(pyarrow.string())
    pyarrow.parquet.write_table(pyarrow.table({"text": column}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="a.parquet is not a Parquet file that can be read"):
        terminal.read_texts(str(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"a\nb\xff\n", "a.txt is not valid UTF-8 (invalid start byte at byte 4, line 2)"),
        ("a.csv", "prediction\na\n".encode("utf-16"), "it begins as UTF-16 does, line 1: save it as UTF-8"),
        ("a.jsonl", b'{"prediction": "\\udc00"}\n', "a.jsonl, line 1: column `prediction`: half of a surrogate pair"),
        ("a.jsonl", b"[" * 100_000, "a.jsonl, line 1: not JSON"),
        ("a.jsonl", b'{"prediction": "a", "n": ' + b"1" * 5000 + b"}", "a.jsonl, line 1: not JSON"),
    ],
)
def test_score(name, content, message, tmp_path, capsys):
    (tmp_path / name).write_bytes(content)
    (tmp_path / "references.txt").write_text("a\nb\n" if name == "a.txt" else "a\n")
    command = ["score", "--predictions", tmp_path / name, "--references", tmp_path / "references.txt"]
    command += ["--metrics", "pinc", "--sources", tmp_path / "references.txt", "--n-samples", "2"]
    assert run(*command) == 2
    assert message in capsys.readouterr().err
    if name == "a.txt" or b"udc00" in content:
        assert run(*command, "--errors", "replace") == 0
    assert run(*command, "--errors", "ignore") == 2
    assert "`errors` must be one of 'strict', 'replace', not 'ignore'" in capsys.readouterr().err


def test_arguments_and_documents(model, tmp_path, capsys):
    assert run("paraphrase", model, "a", "b\udcff", *OPTIONS) == 2
    assert "text 2: half of a surrogate pair" in capsys.readouterr().err
    (tmp_path / "a.md").write_bytes(b"One.\n\nTwo \xff.\n")
    command = ["paraphrase-document", "--model", model, tmp_path / "a.md", "--output", tmp_path / "b.md"]
    assert run(*command) == 2
    assert "line 3" in capsys.readouterr().err and not (tmp_path / "b.md").exists()


def test_a_pipeline_names_the_text(model):
    pipe = pipeline("text2text-generation", model=model)
    with pytest.raises(ValueError, match="input 1 of the list has half of a surrogate pair"):
        pipe(["a", "b\ud800"])
    with pytest.raises(InputError, match="`texts`, number 1 from 0: half of a surrogate pair"):
        Paraphraser.from_pretrained(model)(["a", "b\ud800"])


def test_a_text_with_more_tokens_than_positions(model):
    pipe = pipeline("text2text-generation", model=model)
    with pytest.raises(ValueError, match="the input has 401 tokens, but .* has positions for 300"):
        pipe("the " * 400, max_new_tokens=2)
    assert pipe("the " * 400, max_new_tokens=2, truncation=True) == pipe("the " * 299, max_new_tokens=2)


@pytest.mark.parametrize("inputs", [None, 3, 0.5, {"text": "a"}, [None], iter([None]), b"a", object()])
@pytest.mark.parametrize("reads_pairs", [False, True])
def test_what_is_no_text_is_a_value_error(inputs, reads_pairs):
    model = tiny_model(FsetConfig, FsetForConditionalGeneration) if reads_pairs else tiny_bart()
    pipe = pipeline("text2text-generation", model=model, tokenizer=word_tokenizer())
    options = {"retrieved": [("a", "the")]} if reads_pairs else {}
    inputs = iter([None]) if hasattr(inputs, "__next__") else inputs
    with pytest.raises(ValueError, match="not a string"):
        list(pipe(inputs, max_new_tokens=2, **options))
