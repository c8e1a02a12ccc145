from __future__ import annotations

import datasets
import pytest

from hf_paraphrase import ParaphraseRetriever
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.retrieval import retriever as module
from tests.retrieval.corpus import PAIRS, count_letters, random_pairs

COLUMNS = ["retrieved_sources", "retrieved_targets", "retrieved_scores"]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def calls(monkeypatch):
    """How many texts each search was for."""
    sizes = []
    retrieve = ParaphraseRetriever.retrieve

    def counted(self, texts, *args, **kwargs):
        sizes.append(len(texts))
        return retrieve(self, texts, *args, **kwargs)

    monkeypatch.setattr(ParaphraseRetriever, "retrieve", counted)
    return sizes


def make_dataset(pairs: list[tuple[str, str]], **columns) -> datasets.Dataset:
    sources, targets = zip(*pairs, strict=True)
    return datasets.Dataset.from_dict({"source": list(sources), "target": list(targets), **columns})


@pytest.mark.parametrize("encoder", ["jaccard", count_letters], ids=["jaccard", "vectors"])
def test_neighbors_are_what_retrieve_finds_without_the_pair_itself(encoder):
    # Short sentences, so that many pairs come twice, in both orders and in capitals.
    pairs = random_pairs(120, longest=2)
    pairs += [pair[::-1] for pair in pairs[:20]] + [(pair[0].upper(), pair[1]) for pair in pairs[:20]]
    retriever = ParaphraseRetriever.from_pairs(pairs, encoder)
    dataset = make_dataset(pairs, id=list(range(len(pairs))))
    found = retriever.neighbors(dataset, 4)
    assert found.column_names == ["source", "target", "id", *COLUMNS]
    assert found.remove_columns(COLUMNS)[:] == dataset[:]
    expected = retriever.retrieve(dataset["source"], 4, exclude=dataset["target"])
    for row, hits in zip(found, expected, strict=True):
        retrieved = list(zip(row["retrieved_sources"], row["retrieved_targets"], strict=True))
        assert retrieved == [hit[:2] for hit in hits]
        assert len(retrieved) == len(row["retrieved_scores"]) == 4
        own = {row["source"].lower(), row["target"].lower()}
        assert all({source.lower(), target.lower()} != own for source, target in retrieved)
        assert row["retrieved_scores"] == sorted(row["retrieved_scores"], reverse=True)


def test_rows_without_a_target_exclude_nothing():
    retriever = ParaphraseRetriever.from_pairs(PAIRS, "jaccard")
    test = datasets.Dataset.from_dict(
        {"source": ["who wrote hamlet"], "references": [["who is the author of hamlet"]]}
    )
    assert retriever.neighbors(test, 1)[0]["retrieved_targets"] == ["who is the author of hamlet"]


def test_what_was_found_is_read_again(calls):
    dataset = make_dataset(PAIRS)
    first = ParaphraseRetriever.from_pairs(PAIRS, count_letters).neighbors(dataset, 2)
    assert sum(calls) == len(PAIRS)
    # Another retriever and another dataset with the same content, and columns that have no say.
    again = ParaphraseRetriever.from_pairs(PAIRS, count_letters)
    assert again.neighbors(make_dataset(PAIRS, id=list("abcde")), 2)[COLUMNS[0]][:] == first[COLUMNS[0]][:]
    assert sum(calls) == len(PAIRS)
    for changed in (
        lambda: again.neighbors(dataset, 3),
        lambda: again.neighbors(make_dataset(PAIRS[::-1]), 2),
        lambda: ParaphraseRetriever.from_pairs(PAIRS, "jaccard").neighbors(dataset, 2),
        lambda: ParaphraseRetriever.from_pairs(PAIRS[1:], count_letters).neighbors(dataset, 2),
        lambda: ParaphraseRetriever.from_pairs(PAIRS, lambda texts: count_letters(texts) ** 2).neighbors(dataset, 2),
    ):
        before = sum(calls)
        changed()
        assert sum(calls) == before + len(PAIRS)


def test_an_interrupted_search_goes_on_where_it_was(monkeypatch, calls):
    monkeypatch.setattr(module, "ROWS_A_FILE", 20)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 5)
    pairs = random_pairs(70)
    retriever = ParaphraseRetriever.from_pairs(pairs, "jaccard")
    expected = retriever.retrieve([source for source, _ in pairs], 2, exclude=[target for _, target in pairs])
    calls.clear()
    search = retriever.search

    def stop_at_the_tenth(*args):
        if len(calls) == 10:
            raise KeyboardInterrupt
        return search(*args)

    retriever.search = stop_at_the_tenth
    with pytest.raises(KeyboardInterrupt):
        retriever.neighbors(make_dataset(pairs), 2)
    retriever.search = search
    calls.clear()
    found = retriever.neighbors(make_dataset(pairs), 2)
    assert sum(calls) == 30  # two files of twenty rows were whole
    assert found["retrieved_sources"][:] == [[pair.source for pair in hits] for hits in expected]


def test_a_selection_of_rows_and_columns_that_are_there_already():
    retriever = ParaphraseRetriever.from_pairs(PAIRS, "jaccard")
    rows = make_dataset(PAIRS).select([3, 0])
    found = retriever.neighbors(retriever.neighbors(rows, 3), 1)
    assert found.column_names == ["source", "target", *COLUMNS]
    assert found["source"][:] == [PAIRS[3][0], PAIRS[0][0]]
    assert found[1]["retrieved_sources"] == [PAIRS[1][0]]


def test_fewer_where_the_memory_is_smaller_and_none_where_it_is_empty():
    rows = make_dataset(PAIRS)
    found = ParaphraseRetriever.from_pairs(PAIRS[:2], "jaccard").neighbors(rows, 5)
    assert [len(row) for row in found["retrieved_scores"]] == [1, 1, 2, 2, 2]
    assert ParaphraseRetriever.from_pairs([], "jaccard").neighbors(rows, 5)["retrieved_sources"][:] == [[]] * 5


def test_no_rows():
    found = ParaphraseRetriever.from_pairs(PAIRS, "jaccard").neighbors(make_dataset(PAIRS).select([]), 2)
    assert len(found) == 0
    assert set(COLUMNS) <= set(found.column_names)


def test_a_dataset_without_sources_is_named():
    with pytest.raises(InputError, match="`dataset` has no column source, only text"):
        ParaphraseRetriever.from_pairs(PAIRS, "jaccard").neighbors(datasets.Dataset.from_dict({"text": ["a"]}), 2)
