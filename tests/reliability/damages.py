"""Checkpoints that are damaged, lie about themselves or ask for too much: every command refuses them in one line."""

from __future__ import annotations

import io
import random
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from tests.checkpoints.damage import BOMBS, DAMAGES
from tests.cli.runner import run
from tests.models.tiny import save, tiny_matcher

from .checkpoints import COMMANDS, PAIRS, WRITERS
from .trials import Trials

WAYS = DAMAGES | BOMBS
# Reads no more of a checkpoint than its configuration and the headers of its weights.
LOOKS = "info"
# What an encoder leaves unread may be damaged: its head, and how it would generate.
ENCODES = ("mine",)
UNREAD = {"beams", "outputs", "new tokens", "min length", "another tensor", "beams in words"}
UNREAD |= {"another vocabulary's start"}


def open_damaged_checkpoints(count: int, seed: int = 0) -> Trials:
    """Open `count` checkpoints, each damaged in one way, by commands in turn."""
    trials = Trials("damaged checkpoints")
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        command, damage = list(COMMANDS)[number % len(COMMANDS)], draw.choice(list(WAYS))
        name = draw.choice([*WRITERS, *(["bert"] if command == "evaluate" else [])])
        with tempfile.TemporaryDirectory(prefix="damaged-") as scratch:
            make_damaged(Path(scratch), name, damage, draw)
            with trials.trial(f"{number}: {command}, {name}, {damage}"):
                open_by(command, Path(scratch), damage)
    return trials


def make_damaged(scratch: Path, name: str, damage: str, draw: random.Random) -> None:
    """Make a checkpoint `evil`, damage it, and write what the commands read beside it."""
    save(tiny_matcher(2) if name == "bert" else WRITERS[name](), scratch / "evil")
    spoil, _ = WAYS[damage]
    spoil(scratch / "evil", draw)
    (scratch / "pairs.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in PAIRS))
    (scratch / "texts.txt").write_text("".join(f"{a}\n" for a, _ in PAIRS))
    (scratch / "out").mkdir()


def open_by(command: str, scratch: Path, damage: str) -> None:
    """Run a command, which must end with one line on what is wrong, and say nothing else."""
    values = {name: scratch / name for name in ("evil", "out")}
    values |= {"pairs": scratch / "pairs.csv", "texts": scratch / "texts.txt"}
    arguments = [word.format(**values) for word in [*command.split(), *COMMANDS[command]]]
    out, said = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(said):
        code = run(*arguments)
    if code == 0 and (command == LOOKS or (command in ENCODES and damage in UNREAD)):
        return
    lines = said.getvalue().splitlines()
    assert code == 2, f"ended with {code}: {said.getvalue()[-200:]}"
    assert lines[-1].startswith("error: ") and sum(line.startswith("error: ") for line in lines) == 1, lines[-3:]
    assert not out.getvalue(), f"it wrote {out.getvalue()[:200]!r}"
