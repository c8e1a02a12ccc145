from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hf_paraphrase.cli.app import main
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.meteor import scoring
from hf_paraphrase.metrics.meteor.scoring import meteor
from tests.models.tiny import save, tiny_bart

nltk_corpus = pytest.importorskip("nltk.corpus")

WITHOUT_WORDNET = ("exact", "stem")

# What METEOR 1.5 answers to nlg-eval's two examples (`-stdio -l en -norm`), and its scores for them.
JAR_ANSWERS = [
    "10.0 7.0 4.0 4.0 1.0 1.0 2.0 2.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 2.0 3.0 3.0",
    "10.0 13.0 6.0 7.0 4.0 4.0 4.0 4.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 2.0 1.0 2.0 10.0 9.0",
]
JAR_SCORES, JAR_CORPUS_SCORE = [0.1556568826170604, 0.39012536521249613], 0.2957971080379661


@pytest.fixture
def tiny_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Knows that dogs are hounds."""
    words = ("dog", "hound")
    synset = SimpleNamespace(lemmas=lambda: [SimpleNamespace(name=lambda word=word: word) for word in words])
    reader = SimpleNamespace(ensure_loaded=lambda: None, synsets=lambda word: [synset] if word in words else [])
    monkeypatch.setattr(nltk_corpus, "wordnet", reader)


@pytest.mark.parametrize(
    ("prediction", "reference", "score"),
    [
        ("a b c d", "a b c d", 1 - 0.5 / 4**3),  # one chunk of four
        ("b a", "a b", 1 - 0.5),  # two chunks of two words
        ("a b", "a b c d", 0.5 / (0.9 + 0.1 * 0.5) * (1 - 0.5 / 2**3)),  # precision 1, recall 1/2
        ("walks", "walking", 1 - 0.5),  # by the stem
        ("A", "a", 1 - 0.5),
        ("a b", "c d", 0),
        ("", "a", 0),
    ],
)
def test_nltk_by_hand(prediction: str, reference: str, score: float) -> None:
    assert meteor([prediction], [reference], stages=WITHOUT_WORDNET)["score"] == pytest.approx(100 * score)


def test_stages(tiny_wordnet: None) -> None:
    prediction, reference = ["the dog walks"], ["the hound walking"]
    one, two, three = (1 / 3 * (1 - 0.5), 2 / 3 * (1 - 0.5), 1 - 0.5 / 3**3)
    assert meteor(prediction, reference, stages=("exact",))["score"] == pytest.approx(100 * one)
    assert meteor(prediction, reference, stages=WITHOUT_WORDNET)["score"] == pytest.approx(100 * two)
    result = meteor(prediction, reference)
    assert result["score"] == pytest.approx(100 * three)
    assert result["variant"] == "nltk"
    assert "|variant:nltk|stages:exact+stem+wordnet|case:lc|tok:13a|" in result["signature"]


def test_wordnet_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = nltk_corpus.LazyCorpusLoader("no-such-wordnet", nltk_corpus.reader.WordNetCorpusReader, None)
    monkeypatch.setattr(nltk_corpus, "wordnet", missing)
    with pytest.raises(InputError, match="nltk.downloader wordnet.* with stages exact,stem, and say so"):
        meteor(["a"], ["a"])


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_the_command_line_hears_of_its_option(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    missing = nltk_corpus.LazyCorpusLoader("no-such-wordnet", nltk_corpus.reader.WordNetCorpusReader, None)
    monkeypatch.setattr(nltk_corpus, "wordnet", missing)
    (tmp_path / "a.csv").write_text("prediction,reference\na,a\n")
    save(tiny_bart(), tmp_path)
    where = {
        "score": ["--predictions", str(tmp_path / "a.csv")],
        "evaluate": [str(tmp_path), "--dataset", "synthetic_questions"],
    }[command]
    for options, message in (
        ([], r"with --meteor-stages exact,stem, and say so"),
        (["--meteor-stages", "stem"], r"--meteor-stages must be a beginning of exact,stem,wordnet, got stem\n"),
    ):
        with pytest.raises(SystemExit) as exit_info:
            main([command, *where, "--metrics", "meteor", *options])
        error = capsys.readouterr().err
        assert exit_info.value.code == 2 and re.search(message, error), error
        assert "stages=" not in error


def test_the_best_reference_counts_in_any_order() -> None:
    references = ["x y", "a b c", "a b"]
    best = meteor(["a b c"], ["a b c"], stages=WITHOUT_WORDNET)["score"]
    assert meteor(["a b c"], [references], stages=WITHOUT_WORDNET)["score"] == best
    assert meteor(["a b c"], [references[::-1]], stages=WITHOUT_WORDNET)["score"] == best


def test_score_is_the_mean_of_the_sentences() -> None:
    statistics = meteor(["a", "b"], ["a", "c"], stages=WITHOUT_WORDNET).statistics["meteor"]
    assert statistics.rows.tolist() == [[0.5, 1], [0, 1]]
    assert statistics.score == 25


def test_formula_of_1_5_on_answers_of_the_jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sent = []
    monkeypatch.setattr(scoring, "_run_jar", lambda jar, lines, normalize: sent.extend(lines) or JAR_ANSWERS)
    monkeypatch.setattr(scoring, "_find_jar", lambda jar: tmp_path)
    statistics = meteor(["a |||b", "c\n"], [["d", "e"], "f"], variant="1.5").statistics["meteor"]
    assert sent == ["SCORE ||| d ||| e ||| a b", "SCORE ||| f ||| c"]
    assert statistics.score == pytest.approx(100 * JAR_CORPUS_SCORE)
    assert statistics.score_of_sums(statistics.rows) == pytest.approx(100 * np.array(JAR_SCORES))
    assert statistics.score_of_sums(np.zeros(23)) == 0
    perfect = np.array([4, 4, 2, 2, 2, 2, 2, 2, *[0] * 12, 1, 4, 4])
    assert statistics.score_of_sums(perfect) == pytest.approx(100)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "2"}, "unknown variant '2'; available: nltk, 1.5"),
        ({"stages": ("stem",)}, "stages must be a beginning of"),
        ({"tokenize": "14a"}, "unknown tokenize '14a'"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        meteor(["a"], ["a"], **options)


def test_java_or_the_jar_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(scoring.shutil, "which", lambda name: None)
    with pytest.raises(InputError, match="needs Java"):
        meteor(["a"], ["a"], variant="1.5")
    monkeypatch.setattr(scoring.shutil, "which", lambda name: "/usr/bin/java")
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'hf-paraphrase\[meteor\]'"):
        meteor(["a"], ["a"], variant="1.5")
    with pytest.raises(FileNotFoundError, match="no METEOR jar at"):
        meteor(["a"], ["a"], variant="1.5", jar=tmp_path / "meteor-1.5.jar")
