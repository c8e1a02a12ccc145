"""Texts that make the tokenizer panic with a BaseException: they cost their own request or row, and nothing else."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from tokenizers import Regex, pre_tokenizers

from hf_paraphrase.generation.paraphraser import Paraphraser
from tests.cli.runner import run
from tests.generation.paraphrasers import make_paraphraser, random_sentences
from tests.serving.running import run_app

from .trials import Trials

PANIC = "z" * 25 + "!"


def panic_in_workers(count: int, seed: int = 0) -> Trials:
    """Ask `serve` and `augment` in turn, `count` times in all, for such texts among others."""
    trials = Trials("panics in workers")
    with tempfile.TemporaryDirectory(prefix="panics-") as scratch:
        model = save_panicking(Path(scratch) / "model")
        for number in range(count):
            draw = random.Random(f"{seed} {number}")
            texts = random_sentences(draw.randint(2, 6), seed=number)
            place = draw.randint(0, len(texts))
            texts.insert(place, PANIC)
            with trials.trial(f"{number}: text {place} of {len(texts)}", seconds=120):
                if number % 2:
                    augment(model, texts, place, Path(scratch) / str(number))
                else:
                    serve(model, texts, place)
    return trials


def save_panicking(folder: Path) -> Path:
    """A checkpoint whose tokenizer splits by a pattern that backtracks without end."""
    paraphraser = make_paraphraser("bart")
    paraphraser.model.save_pretrained(folder)
    paraphraser.tokenizer.save_pretrained(folder)
    tokenizer = Paraphraser.from_pretrained(folder).tokenizer
    usual = tokenizer.backend_tokenizer.pre_tokenizer
    pattern = pre_tokenizers.Split(Regex("(z+)+$"), "isolated")
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pattern, usual] if usual else [pattern])
    tokenizer.save_pretrained(folder)
    return folder


def serve(model: Path, texts: list[str], place: int) -> None:
    with run_app(Paraphraser.from_pretrained(model)) as server:
        for number, text in enumerate(texts):
            status = server.post("/paraphrase", texts=text, n=1).status_code
            assert status == (500 if number == place else 200), f"text {number} was answered {status}"
        assert server.client.get("/health").status_code == 200


def augment(model: Path, texts: list[str], place: int, scratch: Path) -> None:
    scratch.mkdir()
    (scratch / "texts.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    output = scratch / "out"
    assert run("augment", scratch / "texts.txt", "--column", "text", "--model", model, "--output", output) == 0
    rows = pq.read_table(output / "data").to_pylist()
    panicked = [row["text"] for row in rows if "PanicException" in (row["error"] or "")]
    assert panicked == [PANIC], f"panics in {panicked}"
    assert {row["text"] for row in rows} == set(texts)
