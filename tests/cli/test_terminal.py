"""No file that a command reads sends its own escape sequences to the terminal."""

from __future__ import annotations

import json
import logging
import warnings
from pathlib import Path

import pytest

from hf_paraphrase.cli.terminal import echo, make_printable, print_logs_safely

from .runner import run

ESCAPES = "\x1b]0;title\x07\x1b[31mred\x9b2J\r"
SHOWN = r"\u001b]0;title\u0007\u001b[31mred\u009b2J\u000d"


def test_control_characters_become_visible():
    assert make_printable(f"a\tb\n{ESCAPES}é") == f"a\tb\n{SHOWN}é"
    assert make_printable("\x1b[1mbest\x1b[0m") == "\x1b[1mbest\x1b[0m"


def test_info_of_a_summary_with_escapes(checkpoint: Path, tmp_path: Path, capsys):
    for path in checkpoint.iterdir():
        if path.is_file():
            (tmp_path / path.name).symlink_to(path) if path.suffix == ".safetensors" else (
                tmp_path / path.name
            ).write_bytes(path.read_bytes())
    summary = {"recipe": {"name": ESCAPES}, "steps": 1, "epochs": 1.0}
    (tmp_path / "training_summary.json").write_text(json.dumps(summary))
    run("info", tmp_path)
    printed = "".join(capsys.readouterr())
    assert "\x1b" not in printed and "\x07" not in printed and "\x9b" not in printed


@pytest.fixture
def safe_logs():
    factory, formatter = logging.getLogRecordFactory(), warnings.formatwarning
    print_logs_safely()
    yield
    logging.setLogRecordFactory(factory)
    warnings.formatwarning = formatter


def test_logs_and_warnings(safe_logs, caplog):
    logging.getLogger("hf_paraphrase").warning("read %s", ESCAPES)
    assert caplog.messages == [f"read {SHOWN}"]
    assert "\x1b" not in warnings.formatwarning(ESCAPES, UserWarning, "file.py", 1)


def test_data_that_is_piped_is_not_changed(capsys):
    echo(ESCAPES, is_data=True)
    assert capsys.readouterr().out == f"{ESCAPES}\n"
    echo(ESCAPES)
    assert capsys.readouterr().out == f"{SHOWN}\n"
