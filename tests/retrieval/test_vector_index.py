from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
import pytest

from hf_paraphrase import ParaphraseRetriever
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.retrieval import vector_index
from hf_paraphrase.retrieval.encoders import load_encoder
from hf_paraphrase.retrieval.vector_index import VectorIndex, choose_index, describe_compressed
from tests.retrieval.corpus import PAIRS, count_letters

COUNT = 4000


def draw_vectors(texts: list[str]) -> np.ndarray:
    """An encoder of the texts "0", "1" …: random points around a hundred centres."""
    centres = np.random.default_rng(0).normal(size=(100, 32))
    return np.stack([np.random.default_rng(int(text)).normal(centres[int(text) % 100], 0.7) for text in texts])


def make_index(*args, count: int = COUNT) -> VectorIndex:
    index = VectorIndex(load_encoder(draw_vectors), *args)
    texts = [str(number) for number in range(count)]
    index.add([texts[: count // 2], texts[count // 2 :]], count)
    return index


def search_naively(vectors: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    vectors, queries = (array / np.linalg.norm(array, axis=1, keepdims=True) for array in (vectors, queries))
    return np.argsort(-(queries @ vectors.T), axis=1)[:, :k]


def recall(rows: np.ndarray, expected: np.ndarray) -> float:
    return float(np.mean([len(set(row) & set(other)) / len(other) for row, other in zip(rows, expected, strict=True)]))


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    vectors = draw_vectors([str(number) for number in range(COUNT + 50)])
    return search_naively(vectors[:COUNT], vectors[COUNT:], 5)


QUERIES = [str(number) for number in range(COUNT, COUNT + 50)]


def test_all_are_compared_where_they_are_few(expected):
    index = make_index()
    assert index.description == "Flat"
    scores, rows = index.search(QUERIES, 5)
    np.testing.assert_array_equal(rows, expected)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert scores.max() <= 1


def test_auto_beyond_the_limit_finds_nearly_all(monkeypatch, expected):
    monkeypatch.setattr(vector_index, "EXACT_UP_TO", 1000)
    index = make_index()
    assert index.description.startswith("IVF")
    assert recall(index.search(QUERIES, 5)[1], expected) >= 0.95


def test_the_choice_by_size():
    for on_gpu in (True, False):
        assert choose_index(200_000, 384, on_gpu) == ("Flat", [""])
    description, efforts = choose_index(200_001, 384, False)
    assert description == "PCAR128,IVF3576,PQ64x4fs,RFlat"
    assert (efforts[0], efforts[-1]) == ("nprobe=13,k_factor_rf=12", "nprobe=223,k_factor_rf=128")
    assert choose_index(1_000_000, 768, False)[0] == "PCAR128,IVF8000,PQ64x4fs,RFlat"
    assert choose_index(1_000_000, 128, False)[0] == "IVF8000,PQ64x4fs,RFlat"
    assert choose_index(1_000_000, 25, False)[0] == "IVF8000,PQ5x4fs,RFlat"
    assert choose_index(1_000_000, 31, False) == ("IVF8000,Flat", ["nprobe=250"])
    assert choose_index(1_000_000, 384, True) == ("IVF8000,Flat", ["nprobe=250"])


def test_auto_tries_out_how_thoroughly_to_search(monkeypatch, expected, caplog):
    """Points in all directions need more than points around centres; where no effort is enough, a warning says so."""
    for name, value in {"EXACT_UP_TO": 1000, "TRIED": 200}.items():
        monkeypatch.setattr(vector_index, name, value)
    efforts = choose_index(COUNT, 32, False)[1]
    around_centres = make_index()
    random = VectorIndex(load_encoder(lambda texts: np.random.default_rng(0).normal(size=(len(texts), 32))))
    random.add([[str(number) for number in range(COUNT)]], COUNT)
    chosen = [efforts.index(index.search_parameters) for index in (around_centres, random)]
    assert chosen[0] < chosen[1]
    assert recall(around_centres.search(QUERIES, 5)[1], expected) >= 0.93
    monkeypatch.setattr(vector_index, "RECALL", 1.1)
    assert make_index().search_parameters == efforts[-1]
    assert "of the nearest sentences" in caplog.text
    assert make_index("auto", efforts[0]).search_parameters == efforts[0]


def test_the_choice_can_be_overridden(expected):
    few, many = make_index("IVF64,Flat", "nprobe=1"), make_index("IVF64,Flat", "nprobe=64")
    assert recall(few.search(QUERIES, 5)[1], expected) < 1
    np.testing.assert_array_equal(many.search(QUERIES, 5)[1], expected)
    assert few.fingerprint != many.fingerprint
    assert make_index("HNSW16").search(QUERIES, 5)[1].shape == (50, 5)


def test_the_size_of_a_compressed_index():
    """Lists grow with the root of the vectors, and each is fitted to forty of them."""
    assert describe_compressed(1_000_000, 384) == ("IVF4000,PQ64np", ["nprobe=64"])
    assert describe_compressed(100_000_000, 768) == ("IVF40000,PQ64np", ["nprobe=64"])
    assert describe_compressed(10_000, 100) == ("IVF250,PQ50np", ["nprobe=64"])
    assert describe_compressed(1000, 32) == ("IVF25,PQ32np", ["nprobe=25"])


def test_compressed_vectors_are_few_bytes_and_find_most(expected, tmp_path):
    compressed, whole = make_index("ivf_pq"), make_index("Flat")
    assert (compressed.description, compressed.search_parameters) == ("IVF100,PQ32np", "nprobe=64")
    _, rows = compressed.search(QUERIES, 20)
    assert recall(rows[:, :5], expected) >= 0.6
    assert np.mean([len(set(row) & set(other)) / 5 for row, other in zip(rows, expected, strict=True)]) >= 0.95
    for index in (compressed, whole):
        index.write(tmp_path / index.description)
    # A code of 32 bytes and a number of 8, beside what does not grow: the centres of lists and of codes.
    centres = 100 * 32 * 4 + 256 * 32 * 4
    assert (tmp_path / "IVF100,PQ32np").stat().st_size < COUNT * (32 + 8) + centres + 20_000
    assert (tmp_path / "Flat").stat().st_size > COUNT * 32 * 4


def test_what_codes_find_is_compared_exactly(expected):
    refined, exact = make_index("ivf_pq_refine"), make_index("Flat")
    assert (refined.description, refined.search_parameters) == ("IVF100,PQ32np", "nprobe=64")
    (scores, rows), (best, _) = (index.search(QUERIES, 5) for index in (refined, exact))
    assert recall(rows, expected) >= 0.95
    np.testing.assert_allclose(scores[:, 0], best[:, 0], atol=1e-3)
    assert (np.diff(scores) <= 0).all()


def assert_found_alike(one, other):
    """Equal places, and scores whose last bit may depend on where vectors lie in memory, as it does with AVX2."""
    for found, expected in zip(one.search(QUERIES, 5), other.search(QUERIES, 5), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2.5e-7, atol=0)


@pytest.mark.parametrize("description", ["Flat", "ivf_pq", "auto", "HNSW16"])
def test_an_index_is_read_where_it_lies(description, tmp_path, monkeypatch):
    """The file of codes is mapped, not copied, and still the index grows and is written as any other."""
    monkeypatch.setattr(vector_index, "EXACT_UP_TO", 1000)
    index, path = make_index(description), tmp_path / "index.faiss"
    index.search(QUERIES, 5)  # which notes its parameters in the index
    index.write(path)
    again = VectorIndex.read(path, index.checksum, index.encoder, index.description, index.search_parameters)
    if description == "ivf_pq" and (maps := Path("/proc/self/maps")).exists():
        assert str(path) in maps.read_text()
    assert_found_alike(again, index)
    again.write(tmp_path / "copy.faiss")
    assert (tmp_path / "copy.faiss").read_bytes() == path.read_bytes()
    for each in (index, again):
        each.add([QUERIES], len(QUERIES))
    assert len(again) == COUNT + 50
    assert_found_alike(again, index)
    assert (tmp_path / "copy.faiss").read_bytes() == path.read_bytes()


def test_too_few_vectors_to_compress():
    with pytest.raises(InputError, match="`index`: 'IVF5,PQ32np' cannot be made of 200 vectors"):
        make_index("ivf_pq", count=200)


def test_vectors_added_later_are_found(expected):
    index = make_index(count=COUNT // 2)
    index.add([[str(number) for number in range(COUNT // 2, COUNT)]], COUNT // 2)
    np.testing.assert_array_equal(index.search(QUERIES, 5)[1], expected)


def test_lists_with_too_few_vectors_leave_places_empty():
    retriever = ParaphraseRetriever.from_pairs(PAIRS, count_letters, "IVF4,Flat", search_parameters="nprobe=1")
    found = retriever.retrieve([source for source, _ in PAIRS], 5)
    assert 1 <= min(map(len, found)) < 5
    for (source, _), pairs in zip(PAIRS, found, strict=True):
        assert pairs[0].source == source
    (found,) = retriever.retrieve([PAIRS[0][0]], 5, exclude=[PAIRS[0][1]])
    assert all(pair.row != 0 for pair in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Nonsense7",), "`index`: faiss knows no index 'Nonsense7'"),
        (("Flat", "nonsense=3"), "`search_parameters`: 'nonsense=3' is nothing for an index 'Flat'"),
        (("IVF1000000,Flat",), "`index`: 'IVF1000000,Flat' cannot be made of 4000 vectors"),
    ],
)
def test_what_faiss_does_not_know(arguments, message):
    with pytest.raises(InputError, match=message):
        make_index(*arguments).search(["1"], 1)


def test_an_encoder_that_changes_its_mind():
    sizes = iter([3, 4])
    encoder = load_encoder(lambda texts: np.ones((len(texts), next(sizes))))
    index = VectorIndex(encoder)
    index.add([["a"]], 1)
    with pytest.raises(InputError, match="makes vectors of 4 numbers, but the index has 3"):
        index.search(["a"], 1)


def test_gpus_are_used_where_faiss_has_any(monkeypatch, expected):
    moved = []
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", lambda index: moved.append(index) or index)
    index = make_index()
    np.testing.assert_array_equal(index.search(QUERIES, 5)[1], expected)
    index.search(QUERIES, 1)
    assert moved == [index.faiss_index]
    index.add([["7"]], 1)
    index.search(QUERIES, 1)
    assert len(moved) == 2


def test_what_faiss_has_not_for_gpus_stays_on_the_cpu(monkeypatch, expected, caplog):
    def refuse(index):
        raise RuntimeError("not implemented on GPU")

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", refuse)
    np.testing.assert_array_equal(make_index().search(QUERIES, 5)[1], expected)
    assert "FAISS has no Flat for GPUs" in caplog.text
