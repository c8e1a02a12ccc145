from __future__ import annotations

import gzip
import math
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.embedding_greedy.scoring import embedding_greedy
from hf_paraphrase.tokenization.word_vectors import WordVectors, load_word_vectors

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
    whole = embedding_greedy(predictions, references, word_vectors=vectors).statistics
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


def binary(words: dict[str | bytes, list[float]], end: bytes = b"") -> bytes:
    """Word vectors in word2vec's binary format."""
    dimension = len(next(iter(words.values())))
    parts = [b"%d %d\n" % (len(words), dimension)]
    for word, numbers in words.items():
        parts += [
            word if isinstance(word, bytes) else word.encode(),
            b" ",
            struct.pack(f"<{dimension}f", *numbers),
            end,
        ]
    return b"".join(parts)


# The numbers of the second word are the bytes of spaces and newlines.
BINARY = {"New_York": [1, 2], "naïve": struct.unpack("<2f", b" \n  \n\n  "), "東京": [-0.5, 3e-20]}


@pytest.mark.parametrize("end", [b"", b"\n"], ids=["as Google wrote it", "as word2vec.c writes it"])
@pytest.mark.parametrize("name", ["vectors.bin", "vectors.bin.gz"])
def test_word2vec_s_binary_format(tmp_path: Path, end: bytes, name: str) -> None:
    path = tmp_path / name
    content = binary(BINARY, end)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    loaded = load_word_vectors(path)
    assert loaded.key_to_index == {word: row for row, word in enumerate(BINARY)}
    assert loaded.vectors.dtype == np.float32
    assert loaded.vectors.tolist() == np.array(list(BINARY.values()), dtype=np.float32).tolist()
    some = load_word_vectors(path, {"東京", "Kyoto"})
    assert some.key_to_index == {"東京": 0} and some.vectors.tolist() == loaded.vectors[2:].tolist()
    assert load_word_vectors(path, {"Kyoto"}).vectors.shape == (0, 2)


def test_binary_vectors_score_as_those_of_text(vectors: Path, tmp_path: Path) -> None:
    words = {line.split()[0]: [float(number) for number in line.split()[1:]] for line in LINES.splitlines()}
    (tmp_path / "tiny.bin").write_bytes(binary(words))
    texts = ["east northeast", "west"], ["north east", "east"]
    scores = [embedding_greedy(*texts, word_vectors=path) for path in (vectors, tmp_path / "tiny.bin")]
    assert scores[0].pop("signature").replace(".txt", ".bin") == scores[1].pop("signature")
    assert scores[0] == scores[1]


def test_a_mark_before_vectors_is_no_letter(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"\xef\xbb\xbfcat 1 2\ndog 3 4\n")
    assert list(load_word_vectors(path).key_to_index) == ["cat", "dog"]


def test_words_cut_within_a_character_are_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "vectors.bin"
    path.write_bytes(binary({"東京".encode()[:-1]: [1, 2], "a" * 20_000: [3, 4], "b": [5, 6]}))
    loaded = load_word_vectors(path)
    assert list(loaded.key_to_index)[1:] == ["a" * 20_000, "b"] and loaded.vectors.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_memory_holds_what_the_vocabulary_has(tmp_path: Path) -> None:
    path = tmp_path / "vectors.bin"
    path.write_bytes(binary({f"word{number}": [number] * 300 for number in range(5000)}))
    tracemalloc.start()
    loaded = load_word_vectors(path, {"word7", "word4999"})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert loaded.vectors[:, 0].tolist() == [7, 4999]
    assert peak < path.stat().st_size / 50


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (binary(BINARY)[:-1], "vectors.bin, word 3 of 3: expected a word and 2 numbers, but the file ends at byte 50"),
        (binary(BINARY)[:-10], "word 3 of 3: expected a word"),
        (b"3 2\n" + b"x" * 100_000, "word 1 of 3: expected a word"),
        (binary({"a": [1, 2], "b": [1, math.nan]}), r"word 2 of 2 \(b\): not all of its numbers are finite"),
        (b"a 1 2\nb 3 4\n", "vectors.bin does not begin with a line of two numbers"),
        (b"", "vectors.bin does not begin with a line of two numbers"),
        (gzip.compress(binary(BINARY))[:-20], "vectors.bin is a damaged gzip file"),
    ],
    ids=["cut", "cut in a word", "no space", "not finite", "text", "empty", "gzip"],
)
def test_damaged_binary_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "vectors.bin"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_word_vectors(path)


def test_a_binary_file_of_another_name_is_told_from_text(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(binary({"a": [-1.1, 2]}))
    with pytest.raises(InputError, match=r"vectors.txt, line 2, is not UTF-8 at byte \d+; .* named .bin"):
        load_word_vectors(path, {"b"})


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


def test_a_mark_before_word_vectors_is_no_letter(tmp_path: Path) -> None:
    for header in ("", "2 2\n"):
        (tmp_path / "vectors.txt").write_text(f"{header}cat 1 0\ndog 0 1\n", encoding="utf-8-sig")
        assert list(load_word_vectors(tmp_path / "vectors.txt").key_to_index) == ["cat", "dog"]
