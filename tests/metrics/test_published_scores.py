"""Our figures on the data that others published figures for.

HF_PARAPHRASE_METRIC_DATA names a folder with `multeval/example` (MultEval's example), `nlg-eval` (that project's) and
`embedding` (300 questions, scored with the script that Prakash et al. used), HF_PARAPHRASE_WORD_VECTORS one with the
GloVe files that the last was scored with.
"""

from __future__ import annotations

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.embedding_greedy.scoring import embedding_greedy
from hf_paraphrase.metrics.meteor.scoring import meteor
from hf_paraphrase.metrics.rouge.scoring import weighted_lcs
from hf_paraphrase.metrics.significance import approximate_randomisation, bootstrap
from hf_paraphrase.metrics.ter.scoring import ter
from hf_paraphrase.tokenization.word_vectors import WordVectors, load_word_vectors

pytestmark = pytest.mark.slow

SYSTEMS = {
    "baseline": {"BLEU": (18.5, 0.3, 0.1), "TER": (65.7, 0.4, 0.2), "METEOR": (29.3, 0.1, 0.0), "Length": 107.5},
    "sys1": {"BLEU": (18.8, 0.3, 0.3), "TER": (64.8, 0.4, 0.6), "METEOR": (30.3, 0.1, 0.1), "Length": 107.7},
}
needs_java = pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pycocoevalcap") is None, reason="needs Java and pycocoevalcap"
)


def folder(variable: str) -> Path:
    if variable not in os.environ:
        pytest.skip(f"{variable} is not set")
    return Path(os.environ[variable])


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")


@pytest.fixture(scope="module")
def multeval() -> dict[str, list]:
    example = folder("HF_PARAPHRASE_METRIC_DATA") / "multeval" / "example"
    runs = {name: [read_lines(example / f"hyps.lc.tok.en.{name}.opt{run}") for run in range(3)] for name in SYSTEMS}
    return {**runs, "references": read_lines(example / "refs.test2010.lc.tok.en.0")}


@pytest.fixture(scope="module")
def nlg_eval() -> tuple[list[str], list[tuple[str, str]]]:
    example = folder("HF_PARAPHRASE_METRIC_DATA") / "nlg-eval"
    references = zip(read_lines(example / "ref1.txt"), read_lines(example / "ref2.txt"), strict=True)
    return read_lines(example / "hyp.txt"), list(references)


def check_table(name: str, metric: str, runs: list, tolerance: float = 0.05) -> None:
    """Mean, standard deviation due to the test set and between runs, as MultEval prints them: to one decimal."""
    result = bootstrap(runs)
    mean, selection, optimizer = SYSTEMS[name][metric]
    assert result.score == pytest.approx(mean, abs=tolerance)
    assert np.sqrt(result.selection_variance) == pytest.approx(selection, abs=0.06)
    assert np.sqrt(result.optimizer_variance) == pytest.approx(optimizer, abs=0.06)


def test_multeval_bleu(multeval: dict[str, list]) -> None:
    runs = {
        name: [bleu(texts, multeval["references"], tokenize="none").statistics["bleu_4"] for texts in multeval[name]]
        for name in SYSTEMS
    }
    for name in SYSTEMS:
        check_table(name, "BLEU", runs[name])
    assert runs["baseline"][0].score == pytest.approx(18.54, abs=0.005)
    assert approximate_randomisation(runs["sys1"], runs["baseline"], n_trials=1000) < 0.01


def test_multeval_length(multeval: dict[str, list]) -> None:
    for name, figures in SYSTEMS.items():
        results = [bleu(texts, multeval["references"], tokenize="none") for texts in multeval[name]]
        lengths = [100 * result["sys_len"] / result["ref_len"] for result in results]
        assert np.mean(lengths) == pytest.approx(figures["Length"], abs=0.06)


def test_multeval_ter(multeval: dict[str, list]) -> None:
    for name in SYSTEMS:
        check_table(name, "TER", [ter(texts, multeval["references"]).statistics["ter"] for texts in multeval[name]])
    assert ter(multeval["baseline"][0], multeval["references"])["score"] == pytest.approx(65.51916398508937, abs=0.005)


@needs_java
def test_multeval_meteor(multeval: dict[str, list]) -> None:
    for name in SYSTEMS:
        options = {"variant": "1.5"}
        runs = [meteor(texts, multeval["references"], **options).statistics["meteor"] for texts in multeval[name]]
        check_table(name, "METEOR", runs)


def test_nlg_eval_bleu(nlg_eval: tuple) -> None:
    result = bleu(*nlg_eval, tokenize="none")
    for order, expected in enumerate((0.55, 0.428174, 0.284043, 0.201143), start=1):
        assert result[f"bleu_{order}"] == pytest.approx(100 * expected, abs=1e-4)


def test_nlg_eval_rouge_l(nlg_eval: tuple) -> None:
    """coco-caption's ROUGE-L: best precision and best recall of any reference, and recall weighted by 1.2."""
    scores = []
    for prediction, references in zip(*nlg_eval, strict=True):
        words = prediction.split()
        pairs = [(reference.split(), words) for reference in references]
        common = weighted_lcs(pairs, 1)
        precision = max(common) / len(words)
        recall = max(value / len(pair[0]) for value, pair in zip(common, pairs, strict=True))
        scores.append((1 + 1.2**2) * precision * recall / (recall + 1.2**2 * precision))
    assert np.mean(scores) == pytest.approx(0.522104, abs=1e-6)


@needs_java
def test_nlg_eval_meteor(nlg_eval: tuple) -> None:
    single = ["this is a test", "this is also a test"], "this is a good test", 0.44434387
    french = ["Test en français.", "Le test en français."], "Le test est en français.", 0.48372379050300296
    assert meteor(*nlg_eval, variant="1.5")["score"] == pytest.approx(29.5797, abs=1e-4)
    for references, prediction, expected in (single, french):
        assert meteor([prediction], [references], variant="1.5")["score"] == pytest.approx(100 * expected, abs=1e-5)


@pytest.mark.parametrize("name", ["glove.6B.50d.top.txt", "glove.twitter.27B.25d.12k.txt"])
def test_embeddings_of_the_script_that_the_paper_used(name: str) -> None:
    """Its greedy score takes dot products, so that only its figures for vectors of unit length are cosines."""
    data, path = folder("HF_PARAPHRASE_METRIC_DATA") / "embedding", folder("HF_PARAPHRASE_WORD_VECTORS") / name
    expected = json.loads((data / "expected.json").read_text())
    predictions, references = read_lines(data / "quora300.pred.txt"), read_lines(data / "quora300.gt.txt")
    given = load_word_vectors(path)
    lengths = np.linalg.norm(given.vectors, axis=1, keepdims=True)
    for kind, vectors in (("raw", given), ("unit", WordVectors(given.key_to_index, given.vectors / lengths))):
        options = {"word_vectors": vectors, "tokenize": "none"}
        statistics = embedding_greedy(predictions, references, **options).statistics
        figures = expected[f"{name}:{kind}"]
        assert statistics["embedding_average"].score == pytest.approx(100 * figures["average_mean"], abs=1e-5)
        assert statistics["embedding_extrema"].score == pytest.approx(100 * figures["extrema_mean"], abs=1e-5)
        greedy = statistics["embedding_greedy"].rows[:, 0]
        assert greedy == pytest.approx(np.array(expected[f"{name}:unit"]["greedy_per_line"]), abs=1e-6)
