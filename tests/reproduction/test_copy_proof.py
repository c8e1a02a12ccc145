from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.pinc.scoring import pinc
from hf_paraphrase.metrics.sufficient_statistics import SufficientStatistics
from hf_paraphrase.reproduction.tables import JUDGED, at_equal_novelty, judge_outputs, load_judges, read_judged

SOURCES = ["how do i learn to cook a fish ?", "what is the best way to run ?"]
OUTPUTS = ["how can one learn cooking of a fish ?", "what is the way to run fast now ?"]
REFERENCES = ["how can i learn cooking a fish ?", "what is the way to run ?"]


def equal(novelty: float, outputs: list[str] = OUTPUTS) -> SufficientStatistics:
    own, copied = (bleu(texts, REFERENCES).statistics["bleu_4"] for texts in (outputs, SOURCES))
    return at_equal_novelty(own, copied, pinc(outputs, SOURCES).statistics["pinc"], novelty)


def test_a_share_of_the_outputs_becomes_copies() -> None:
    """Half of the novelty is that of a corpus with every output, and every copy in its place, once."""
    novelty = pinc(OUTPUTS, SOURCES).statistics["pinc"].score
    mixed = bleu([*OUTPUTS, *SOURCES], REFERENCES * 2)["bleu_4"]
    assert equal(novelty / 2).score == pytest.approx(mixed)
    assert equal(0.0).score == pytest.approx(bleu(SOURCES, REFERENCES)["bleu_4"])
    for reached in (novelty, novelty + 1):
        assert equal(reached).score == pytest.approx(bleu(OUTPUTS, REFERENCES)["bleu_4"])
    assert equal(3.0).name == "bleu_4_equal_pinc" and equal(3.0).signature.startswith("pinc:3.0|")
    sums = np.stack([equal(novelty / 2).rows.sum(0)] * 3)
    assert equal(novelty / 2).score_of_sums(sums) == pytest.approx(mixed)


def test_outputs_are_judged_once(tmp_path: Path) -> None:
    asked = []

    def judge(judged, batch_size):
        asked.append([one.candidate for one in judged])
        return [len(one.candidate) / 100 for one in judged]

    rows = [{"source": "a b", "prediction": text} for text in ("x" * 50, " ")]
    (tmp_path / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for _ in range(2):
        judge_outputs(tmp_path, {"length": (judge, "v1")})
    assert asked == [["x" * 50], ["a b", "a b"]]
    assert read_judged(tmp_path, "outputs")["length"].score == pytest.approx(25)
    assert read_judged(tmp_path, "copies")["length"].score == pytest.approx(3)
    judge_outputs(tmp_path, {"length": (judge, "v2")})
    assert len(asked) == 4 and json.loads((tmp_path / JUDGED).read_text())["length"]["signature"] == "v2"
    assert read_judged(tmp_path / "elsewhere", "outputs") == {}


def test_the_released_model_judges(tmp_path: Path) -> None:
    source = "The meeting was moved to Thursday because the room was taken."
    texts = [source, "The meeting was moved to Friday because the room was free.", "Nobody likes green apples here."]
    rows = [{"source": source, "prediction": text} for text in texts]
    (tmp_path / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge_outputs(tmp_path, load_judges())
    (same, _), (changed, _), (other, _) = read_judged(tmp_path, "outputs")["open"].rows
    assert same > changed > other and read_judged(tmp_path, "copies")["open"].score > 90
