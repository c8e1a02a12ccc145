from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from hf_paraphrase.generation.paraphrase_table import Paraphrases
from hf_paraphrase.generation.paraphraser import Paraphrase, Paraphraser

from .runner import run

DOCUMENT = "\ufeff# How do I cook?\r\n\r\n- How do I cook bread?\r\n- `code`  \r\n\r\nCan you make *good* bread?"


def answer(self: Paraphraser, texts: list[str], **options: object) -> list[Paraphrases]:
    assert options["min_novelty"] in (0.1, 0.5) and options["min_adequacy"] == 0.1 and "names" in options["keep"]
    is_open = options["min_novelty"] == 0.1
    assert options.get("strength") == (None if is_open else 1)
    return [
        Paraphrases([Paraphrase(text.replace("bread", "soup"))] if is_open and "bread" in text else [])
        for text in texts
    ]


def test_a_document_is_paraphrased(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(Paraphraser, "__call__", answer)
    file, output, changes = tmp_path / "in.md", tmp_path / "out.md", tmp_path / "changes.jsonl"
    file.write_bytes(DOCUMENT.encode())
    assert run("paraphrase-document", "--model", checkpoint, file, "--output", output, "--changes", changes) == 0
    assert output.read_bytes() == DOCUMENT.replace("bread", "soup").encode()
    rows = [json.loads(line) for line in changes.read_text(encoding="utf-8").splitlines()]
    assert [(row["line"], row["before"], row["after"]) for row in rows] == [
        (3, "How do I cook bread?", "How do I cook soup?"),
        (4, "`code`", None),
        (6, "Can you make *good* bread?", "Can you make *good* soup?"),
    ]
    assert capsys.readouterr().out == f"2 of 3 sentences rewritten: {output}\n"
    options = ["--output", file, "--min-novelty", 0.5, "--strength", 1]
    assert run("paraphrase-document", "--model", checkpoint, file, *options) == 0
    assert file.read_bytes() == DOCUMENT.encode()


def test_what_is_there_keeps_its_permissions_and_a_link_its_place(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Paraphraser, "__call__", answer)
    file, link = tmp_path / "in.md", tmp_path / "link.md"
    file.write_bytes(DOCUMENT.encode())
    file.chmod(0o600)
    link.symlink_to(file)
    assert run("paraphrase-document", "--model", checkpoint, link, "--output", link) == 0
    assert link.is_symlink() and b"soup" in file.read_bytes() and file.stat().st_mode & 0o777 == 0o600


def test_a_device_is_written_to_and_not_replaced(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Paraphraser, "__call__", answer)
    file = tmp_path / "in.md"
    file.write_text("Bake bread with me today.")
    leader, follower = os.openpty()
    try:
        terminal, link = Path(os.ttyname(follower)), tmp_path / "link"
        link.symlink_to(terminal)
        for output in (terminal, link):
            assert run("paraphrase-document", "--model", checkpoint, file, "--output", output) == 0
            assert terminal.is_char_device() and os.read(leader, 100) == b"Bake soup with me today."
        assert link.is_symlink()
    finally:
        os.close(leader)
        os.close(follower)


def test_code_alone_makes_a_markdown_file_no_plain_text(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Paraphraser, "__call__", answer)
    file = tmp_path / "in.md"
    file.write_text("You can make bread:\n\n    make the bread for me\n")
    assert run("paraphrase-document", "--model", checkpoint, file, "--output", file) == 0
    assert file.read_text() == "You can make soup:\n\n    make the bread for me\n"


def test_a_model_writes_into_it(checkpoint: Path, tmp_path: Path) -> None:
    file = tmp_path / "in.md"
    file.write_bytes(DOCUMENT.encode())
    # The model of a test writes nothing adequate.
    assert run("paraphrase-document", "--model", checkpoint, file, "--output", file) == 0
    assert file.read_bytes() == DOCUMENT.encode()
    assert run("paraphrase-document", "--model", checkpoint, file, "--output", file, "--min-adequacy", 0) == 0
    lines = file.read_bytes().decode().split("\r\n")
    assert lines[:2] + lines[3:5] == DOCUMENT.split("\r\n")[:2] + DOCUMENT.split("\r\n")[3:5]
    assert lines[2].startswith("- ") and lines[2] != "- How do I cook bread?"


@pytest.mark.parametrize("format", ["rtf", "md"])
def test_formats(format: str, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "in.md").write_text("words", encoding="utf-8")
    arguments = ["--model", checkpoint, tmp_path / "in.md", "--output", tmp_path / "out.md", "--format", format]
    assert run("paraphrase-document", *arguments) == 2
    assert (
        f"`format` must be one of auto, markdown, plain, subtitles, html, docx, not '{format}'"
        in capsys.readouterr().err
    )


def test_what_is_no_text_is_told_with_file_and_byte(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "in.md"
    file.write_bytes(b"a word\n" * 10_000 + b"\xff\n")
    assert run("paraphrase-document", "--model", "none", file, "--output", tmp_path / "out.md") == 2
    error = f"error: {file} is not valid UTF-8 (invalid start byte at byte 70001, line 10001)\n"
    assert capsys.readouterr().err == error
    assert not (tmp_path / "out.md").exists()


@pytest.mark.parametrize("name", ["in.tex", "in.rst", "in.org", "in.odt", "IN.ADOC"])
def test_files_that_are_not_known_to_be_prose_are_refused(
    name: str, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / name).write_text("It has three words.", encoding="utf-8")
    arguments = ["paraphrase-document", "--model", checkpoint, tmp_path / name, "--output", tmp_path / "out.md"]
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert f"ends in {Path(name).suffix.lower()}, not in one of .md" in error and "to read it anyway" in error
    assert run(*arguments, "--format", "plain") == 0


def test_what_changed_is_shown(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(Paraphraser, "__call__", answer)
    file, page = tmp_path / "in.md", tmp_path / "diff.html"
    file.write_text("How do I cook bread & \x1b[2J eggs?\n", encoding="utf-8")
    command = ["paraphrase-document", "--model", checkpoint, file, "--output", tmp_path / "out.md"]
    assert run(*command, "--diff", "--diff-html", page) == 0
    shown = capsys.readouterr().out.splitlines()[0]
    assert shown == "1: How do I cook [-bread-]{+soup+} & \\u001b[2J eggs?"
    html = page.read_text(encoding="utf-8")
    assert '<li value="1">How do I cook <del>bread</del><ins>soup</ins> &amp; ' in html
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert run(*command, "--diff") == 0
    assert "\x1b[31m[-bread-]\x1b[0m\x1b[32m{+soup+}\x1b[0m" in capsys.readouterr().out


def test_a_word_document_is_rewritten(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Paraphraser, "__call__", answer)
    text = "<w:p><w:r><w:t>How do I cook bread?</w:t></w:r></w:p>"
    file, output = tmp_path / "in.docx", tmp_path / "out.docx"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", f'<w:document xmlns:w="w">{text}</w:document>')
    assert run("paraphrase-document", "--model", checkpoint, file, "--output", output) == 0
    with zipfile.ZipFile(output) as archive:
        assert b"<w:t>How do I cook soup?</w:t>" in archive.read("word/document.xml")


def test_subtitles_are_known_by_their_ending(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Paraphraser, "__call__", answer)
    cues = ("00:00:01,000 --> 00:00:02,500\nHow do I cook bread?", "00:00:03,000 --> 00:00:04,000\nI like bread and")
    text = "".join(f"{number}\n{cue}\n\n" for number, cue in enumerate(cues, 1))
    (tmp_path / "in.srt").write_text(text, encoding="utf-8")
    command = ["paraphrase-document", "--model", checkpoint, tmp_path / "in.srt"]
    assert run(*command, "--output", tmp_path / "out.srt") == 0
    assert (tmp_path / "out.srt").read_text(encoding="utf-8") == text.replace("cook bread", "cook soup")
