from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from hf_paraphrase.errors import InputError
from hf_paraphrase.metrics.embedding_greedy.scoring import embedding_greedy, embedding_greedy_statistics
from hf_paraphrase.word_vectors import WordVectors, load_word_vectors

# Two directions, the one between them (of another length), and one against the first.
LINES = "east 2 0\nnorth 0 1\nnortheast 3 3\nwest -1 0\n"
HALF = math.sqrt(0.5)


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.txt"
    path.write_text(LINES)
    return path


@pytest.mark.parametrize(
    ("prediction", "reference", "greedy"),
    [
        ("east", "east", 1),
        ("east", "north", 0),
        ("east", "west", 0),  # -1, but a word need not match at all
        ("east", "northeast", HALF),
        ("east north", "northeast", HALF),
        ("east north", "east", (1 / 2 + 1) / 2),  # one direction finds both words' best, the other only one
        ("east east north", "east", (2 / 3 + 1) / 2),
        ("east unknown", "east", 1),
        ("unknown", "east", 0),
        ("", "east", 0),
    ],
)
def test_greedy_by_hand(prediction: str, reference: str, greedy: float, vectors: Path) -> None:
    result = embedding_greedy([prediction], [reference], word_vectors=vectors)
    assert result["score"] == pytest.approx(100 * greedy)
    turned = embedding_greedy([reference], [prediction], word_vectors=vectors)
    assert turned["score"] == pytest.approx(100 * greedy)


def test_average_and_extrema_by_hand(vectors: Path) -> None:
    """(2, 0) + (0, 1) = (2, 1); the extrema of (2, 0) and (3, 3) are (3, 3), those of (2, 0) and (-1, 0) (2, 0)."""
    result = embedding_greedy(["east north"], ["east"], word_vectors=vectors)
    assert result["average"] == pytest.approx(100 * 2 / math.sqrt(5))
    result = embedding_greedy(["east northeast"], ["east west"], word_vectors=vectors)
    assert result["extrema"] == pytest.approx(100 * HALF)
    assert embedding_greedy(["west"], ["east"], word_vectors=vectors)["average"] == pytest.approx(-100)


def test_a_corpus_is_the_mean_of_its_sentences(vectors: Path) -> None:
    words = ["east", "north", "northeast", "west", "unknown"]
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(words, size=rng.integers(0, 7))) for _ in range(60)]
    predictions, references = texts[:30], [texts[30:][i : i + 1 + i % 3] for i in range(0, 30)]
    whole = embedding_greedy_statistics(predictions, references, word_vectors=vectors)
    for row, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        one = [embedding_greedy([prediction], [text], word_vectors=vectors) for text in reference]
        expected = max(entry["score"] for entry in one)
        assert 100 * whole["embedding_greedy"].rows[row, 0] == pytest.approx(expected)


def test_any_object_with_keys_and_vectors_will_do(vectors: Path) -> None:
    given = WordVectors({"east": 1, "north": 0}, np.array([[0, 1], [1, 0]], dtype=np.float32))
    result = embedding_greedy(["EAST"], ["east"], word_vectors=given, lowercase=True)
    assert result["score"] == pytest.approx(100)
    assert result["signature"] == "nrefs:1|case:lc|tok:13a|vectors:given|dim:2"
    assert "vectors:tiny.txt" in embedding_greedy(["east"], ["east"], word_vectors=vectors)["signature"]


def test_header_vocabulary_and_repeated_words(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("3 2\na 1 2\nb 3 4\na 5 6\n")
    loaded = load_word_vectors(path)
    assert loaded.key_to_index == {"a": 0, "b": 1}
    assert loaded.vectors.tolist() == [[1, 2], [3, 4]]
    assert load_word_vectors(path, {"b"}).key_to_index == {"b": 0}


@pytest.mark.parametrize("line", ["c 1", "c 1 x", "c 1 nan", " 1 2"])
def test_bad_line_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(f"a 1 2\n{line}\n")
    with pytest.raises(InputError, match=r"vectors.txt, line 2: expected a word and 2 numbers"):
        load_word_vectors(path)


def test_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    with pytest.raises(InputError, match="holds no vectors"):
        load_word_vectors(tmp_path / "empty.txt")
