"""The judge of the released model, and which texts are judged by it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from hf_paraphrase import Paraphraser
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation import judges
from hf_paraphrase.generation.judges import FEATURES, Judged, find_foreign_form, load_adequacy, pair_features
from hf_paraphrase.generation.writers import ModelWriter
from tests.cli.runner import run
from tests.models.tiny import save, tiny_bart, word_tokenizer
from tests.serving.running import run_app

from .paraphrasers import OpenParaphraser

WEIGHTS = {"mean": 1.0, "worst": 0.5, "numbers": -2.0, "names": -1.0, "persons": -3.0, "polarity": -4.0}
# Less than 2.2 characters a token is another language to it.
OWN_TEXT = {"weights": [0.0, 1.0, 0.0], "bias": -2.2}


@pytest.fixture
def writer() -> ModelWriter:
    """A calibrated model."""
    model = tiny_bart()
    model.config.judge = {"weights": WEIGHTS, "bias": 2.0}
    return ModelWriter(model, word_tokenizer())


def test_features(writer: ModelWriter) -> None:
    """Both directions count, and what a language model overlooks."""
    pairs = [
        ("the cat sat on the mat", "a dog sat"),
        ("I have 3 dogs", "you have four dogs"),
        ("We saw Anna", "We did not see Peter"),
    ]
    features = pair_features(writer, *map(list, zip(*pairs, strict=True)), 2)
    for (source, candidate), row in zip(pairs, features, strict=True):
        there, back = (writer.token_log_probs([a], [b], 1)[0] for a, b in ((source, candidate), (candidate, source)))
        assert row[0] == pytest.approx((sum(there) / len(there) + sum(back) / len(back)) / 2, abs=1e-5)
        assert row[1] == pytest.approx((min(there) + min(back)) / 2, abs=1e-5)
    assert features[:, 2:].tolist() == [[0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]]
    assert pair_features(writer, [], [], 2).shape == (0, len(FEATURES))


def test_the_probability(writer: ModelWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = load_adequacy("open", writer)
    features = pair_features(writer, ["I have 3 dogs"], ["you have four dogs"], 1)[0]
    logit = sum(WEIGHTS[name] * value for name, value in zip(FEATURES, features, strict=True)) + 2.0
    assert judge([Judged("I have 3 dogs", "you have four dogs")], 4) == pytest.approx([1 / (1 + math.exp(-logit))])
    extreme = np.array([[-1e4, 0, 0, 0, 0, 0], [1e4, 0, 0, 0, 0, 0]])
    monkeypatch.setattr(judges, "pair_features", lambda *args: extreme)
    assert judge([], 4) == [0.0, 1.0]


def test_another_set_of_weights_is_refused(writer: ModelWriter) -> None:
    writer.model.config.judge = {"weights": {"mean": 1.0}, "bias": 0.0}
    with pytest.raises(InputError, match="needs weights of mean, worst, numbers"):
        load_adequacy("open", writer)


def test_a_model_without_calibration_is_judged_by_the_released_one(
    writer: ModelWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = load_adequacy("open", writer)
    monkeypatch.setattr(judges, "_load_released_judge", lambda device: released)
    assert load_adequacy("open", ModelWriter(tiny_bart(), word_tokenizer())) is released
    monkeypatch.setattr(judges, "_load_released_judge", lambda device: None)
    with pytest.raises(InputError, match="needs a calibrated model"):
        load_adequacy("open", ModelWriter(tiny_bart(), word_tokenizer()))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Комната была занята.", "other scripts"),
        ("部屋がふさがっていたので", "other scripts"),
        ("Freedom", "single words"),
        ('"Sorry!"', "single words"),
        ("milk, eggs, brown bread, butter", "lists"),
        ("- milk - eggs - bread", "lists"),
        ("1. eggs 2. milk 3. flour", "lists"),
        ("Yes, sir, at once.", None),
        ("Storm leaves thousands without power", None),
        ("The café, the naïve and the Ångström.", None),
        ("", None),
    ],
)
def test_forms_of_texts(text: str, reason: str | None) -> None:
    assert find_foreign_form(text) == (None if reason is None else f"the model does not paraphrase {reason}")


def test_a_paraphraser_leaves_other_texts() -> None:
    model = tiny_bart()
    model.config.own_text, model.generation_config.max_new_tokens = OWN_TEXT, 7
    paraphraser = OpenParaphraser(model, word_tokenizer())
    texts = ["how do you make bread", "a b c d e", "bread", " "]
    reasons = [f"the model does not paraphrase {kind}" for kind in ("other languages or code", "single words")]
    reasons = [None, *reasons, None]
    assert paraphraser.own_text.find_refusals(texts, 16) == reasons
    found = paraphraser(texts, n=2, adequacy="round_trip")
    assert [group.refusal for group in found] == [group.refusal for group in paraphraser(iter(texts))] == reasons
    assert [bool(group) for group in found] == [True, False, False, False]
    shown = paraphraser(texts, n=2, adequacy="round_trip", return_rejected=True)
    assert [[(one.text, one.reason) for one in group] for group in shown[1:]] == [
        [(texts[1], reasons[1])],
        [(texts[2], reasons[2])],
        [],
    ]
    document = "a b c d e f"
    rewritten, (change,) = paraphraser.document(document, return_changes=True, adequacy="round_trip")
    assert rewritten == document and change.reason == reasons[1]


REFUSAL = "the model does not paraphrase single words"


@pytest.fixture
def refusing(tmp_path: Path) -> Path:
    model = tiny_bart()
    model.config.own_text = OWN_TEXT
    return save(model, tmp_path)


def test_the_command_says_why_a_text_is_refused(refusing: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("paraphrase", refusing, "bread") == 0
    assert capsys.readouterr().out == f"bread\n{REFUSAL}\n\n"
    assert run("paraphrase", refusing, "bread", "--json") == 0
    assert json.loads(capsys.readouterr().out)["refusal"] == REFUSAL


def test_the_server_says_why_a_text_is_refused(refusing: Path) -> None:
    with run_app(Paraphraser.from_pretrained(refusing)) as server:
        (answer,) = server.post("/paraphrase", texts="bread").json()["results"]
        events = server.post("/paraphrase", texts="bread", stream=True).text
    assert answer == {"source": "bread", "paraphrases": [], "refusal": REFUSAL}
    assert json.dumps(REFUSAL) in events
