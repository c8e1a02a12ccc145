from __future__ import annotations

import datasets
import numpy as np
import pytest

from hf_paraphrase import ParaphraseRetriever
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.models.text.candidate_selection import jaccard_similarity
from hf_paraphrase.retrieval import RetrievedPair
from tests.retrieval.corpus import PAIRS, count_letters, random_pairs

ENCODERS = pytest.mark.parametrize("encoder", ["jaccard", count_letters], ids=["jaccard", "vectors"])


def cosine(first: str, second: str) -> float:
    one, other = count_letters([first, second])
    return float(one @ other / max(np.linalg.norm(one) * np.linalg.norm(other), 1e-12))


@pytest.mark.parametrize(
    ("encoder", "similarity"), [("jaccard", jaccard_similarity), (count_letters, cosine)], ids=["jaccard", "vectors"]
)
def test_the_most_similar_sources_come_first(encoder, similarity):
    pairs = list(dict.fromkeys(random_pairs(200)))
    retriever = ParaphraseRetriever.from_pairs(pairs, encoder)
    texts = [source for source, _ in random_pairs(30, seed=1)]
    for text, found in zip(texts, retriever.retrieve(texts, 4), strict=True):
        best = sorted((similarity(text, source) for source, _ in pairs), reverse=True)[:4]
        assert [pair.score for pair in found] == pytest.approx(best, abs=1e-5)
        for pair in found:
            assert (pair.source, pair.target) == pairs[pair.row]
            assert pair.score == pytest.approx(similarity(text, pair.source), abs=1e-5)


@pytest.mark.parametrize(
    ("encoder", "similarity"),
    [
        ("jaccard", lambda text, *pair: jaccard_similarity(text, " ".join(pair))),
        (count_letters, lambda text, *pair: np.mean([cosine(text, sentence) for sentence in pair])),
    ],
    ids=["jaccard", "vectors"],
)
def test_a_text_may_be_compared_with_the_whole_pair(encoder, similarity):
    pairs = list(dict.fromkeys(random_pairs(200)))
    retriever = ParaphraseRetriever.from_pairs(pairs[:150], encoder, compare="pair")
    retriever.add(pairs[150:])
    texts = [source for source, _ in random_pairs(30, seed=1)]
    for text, found in zip(texts, retriever.retrieve(texts, 4), strict=True):
        best = sorted((similarity(text, *pair) for pair in pairs), reverse=True)[:4]
        assert [pair.score for pair in found] == pytest.approx(best, abs=1e-5)
        assert [similarity(text, *pairs[pair.row]) for pair in found] == pytest.approx(best, abs=1e-5)
    by_source = ParaphraseRetriever.from_pairs(pairs, encoder)
    assert by_source.retrieve(texts, 4) != retriever.retrieve(texts, 4)
    assert by_source.fingerprint != retriever.fingerprint


def test_a_text_is_compared_with_nothing_else():
    with pytest.raises(InputError, match="`compare` must be source or pair, not 'target'"):
        ParaphraseRetriever.from_pairs(PAIRS, "jaccard", compare="target")


def test_what_is_returned():
    retriever = ParaphraseRetriever.from_pairs(PAIRS, "jaccard")
    assert retriever.retrieve(["Who wrote HAMLET"]) == [[RetrievedPair(*PAIRS[4], 1.0, 4)]]
    assert len(retriever) == len(PAIRS)


@ENCODERS
def test_more_pairs_than_there_are(encoder):
    retriever = ParaphraseRetriever.from_pairs(PAIRS, encoder)
    (found,) = retriever.retrieve(["how do i learn"], 99)
    assert sorted(pair.row for pair in found) == list(range(len(PAIRS)))
    (found,) = retriever.retrieve([PAIRS[0][0]], 99, exclude=[PAIRS[0][1]])
    assert sorted(pair.row for pair in found) == list(range(1, len(PAIRS)))


@ENCODERS
def test_the_excluded_pair_is_left_out_whatever_its_order_or_case(encoder):
    source, target = PAIRS[0]
    pairs = [*PAIRS, (target, source), (source.upper(), target), (source, "another target")]
    retriever = ParaphraseRetriever.from_pairs(pairs, encoder)
    for text, other in ((source, target), (target, source), (source.title(), target.upper())):
        found, kept = retriever.retrieve([text, text], 99, exclude=[other, "nothing"])
        assert {pair.row for pair in kept} - {pair.row for pair in found} == {0, 5, 6}
    (found,) = retriever.retrieve([source], 2, exclude=[target])
    assert len(found) == 2
    assert found[0].target == "another target"


@ENCODERS
def test_pairs_with_an_excluded_sentence_are_left_out_and_k_others_returned(encoder):
    pairs = list(dict.fromkeys(random_pairs(300, longest=3)))
    retriever = ParaphraseRetriever.from_pairs(pairs, encoder)
    # Some sentences stand in dozens of pairs, some in one or none; the case and the white space are others.
    asked = [*random_pairs(60, seed=1, longest=2), ("no such words", "nowhere")]
    sentences = [[text.title(), f" {other}\n", "how"][: 1 + place % 3] for place, (text, other) in enumerate(asked)]
    texts = [text for text, _ in asked]
    squeezed = [{" ".join(sentence.lower().split()) for sentence in group} for group in sentences]
    everything = retriever.retrieve(texts, len(pairs))
    found = retriever.retrieve(texts, 4, exclude_sentences=sentences)
    for hits, unwanted, group in zip(everything, squeezed, found, strict=True):
        expected = [hit.score for hit in hits if unwanted.isdisjoint((hit.source, hit.target))][:4]
        assert len(group) == 4 and [hit.score for hit in group] == pytest.approx(expected, abs=1e-6)
        assert all(unwanted.isdisjoint((hit.source, hit.target)) for hit in group)
    counts = retriever.count_shared(sentences)
    for count, unwanted in zip(counts, squeezed, strict=True):
        sharing = sum(not unwanted.isdisjoint(pair) for pair in pairs)
        assert sharing <= count <= 2 * len(unwanted) * sharing and (count > 0) == (sharing > 0)
    assert counts.max() > 30 and counts.min() == 0
    (none,) = ParaphraseRetriever.from_pairs(PAIRS[:1], encoder).retrieve(["x"], 1, exclude_sentences=[[PAIRS[0][1]]])
    assert none == []


@ENCODERS
def test_an_excluded_pair_and_excluded_sentences_go_together(encoder):
    retriever = ParaphraseRetriever.from_pairs(PAIRS, encoder)
    (found,) = retriever.retrieve([PAIRS[0][0]], 5, exclude=[PAIRS[0][1]], exclude_sentences=[["who wrote hamlet"]])
    assert sorted(pair.row for pair in found) == [1, 2, 3]
    (found,) = retriever.retrieve([PAIRS[0][0]], 5, exclude_sentences=[[]])
    assert len(found) == 5


@ENCODERS
def test_pairs_added_are_found_at_once(encoder):
    retriever = ParaphraseRetriever.from_pairs(PAIRS[:2], encoder)
    before = retriever.fingerprint
    retriever.add(PAIRS[1:])
    assert len(retriever) == len(PAIRS)
    assert retriever.fingerprint != before
    texts = [source for source, _ in PAIRS]
    assert retriever.retrieve(texts, 5) == ParaphraseRetriever.from_pairs(PAIRS, encoder).retrieve(texts, 5)


def test_where_the_encoder_fails_nothing_is_added():
    def encode(texts: list[str]) -> np.ndarray:
        if "fail" in texts:
            raise RuntimeError("out of memory")
        return count_letters(texts)

    retriever = ParaphraseRetriever.from_pairs(PAIRS[:2], encode)
    before = retriever.fingerprint
    with pytest.raises(RuntimeError):
        retriever.add([*PAIRS[2:], ("fail", "x")])
    assert retriever.fingerprint == before
    retriever.add(PAIRS[2:])
    found = retriever.retrieve([source for source, _ in PAIRS])
    assert [(pair.source, pair.target, pair.row) for (pair,) in found] == [
        (*pair, row) for row, pair in enumerate(PAIRS)
    ]


@ENCODERS
def test_an_empty_memory_finds_nothing_until_something_is_added(encoder):
    retriever = ParaphraseRetriever.from_pairs([], encoder)
    assert retriever.retrieve(["how", ""], 3) == [[], []]
    assert retriever.retrieve(["how", ""], 3, exclude=["a", "b"]) == [[], []]
    retriever.add(PAIRS)
    assert retriever.retrieve([PAIRS[3][0]])[0][0][:2] == PAIRS[3]


@ENCODERS
def test_thousands_of_texts_are_found_as_one_is(encoder):
    retriever = ParaphraseRetriever.from_pairs(random_pairs(100), encoder)
    texts = [source for source, _ in random_pairs(3000, seed=2, longest=3)] + ["", " ", "你好 👍", "\u0000", "e\u0301"]
    together = retriever.retrieve(texts, 2)
    assert len(together) == len(texts)
    for place in [0, 7, *range(3000, 3005)]:
        (alone,) = retriever.retrieve([texts[place]], 2)
        assert [pair.score for pair in together[place]] == pytest.approx([pair.score for pair in alone], abs=1e-6)
    assert retriever.retrieve([], 2) == []
    assert retriever.retrieve((), 2, exclude=()) == []


def test_a_column_of_a_dataset_is_a_list_of_texts():
    rows = datasets.Dataset.from_dict({"source": ["who wrote hamlet"], "target": ["x"]})
    retriever = ParaphraseRetriever.from_pairs(PAIRS, "jaccard")
    assert retriever.retrieve(rows["source"], exclude=rows["target"])[0][0].row == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("how", 1), "`texts` is one text"),
        ((["how", None], 1), "`texts`, number 1: this is of type NoneType"),
        ((["how"], 0), "`k` must be a whole number of at least 1, not 0"),
        ((["how"], 1.5), "`k` must be a whole number of at least 1, not 1.5"),
        ((["how"], 1, "target"), "`exclude` is one text"),
        ((["how"], 1, [None]), "`exclude`, number 0"),
        ((["how"], 1, ["a", "b"]), "`exclude` has 2 targets for 1 texts"),
        ((["how"], 1, None, ["a"]), r"`exclude_sentences\[0\]` is one text"),
        ((["how"], 1, None, [["a"], ["b"]]), "`exclude_sentences` has 2 lists of sentences for 1 texts"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        ParaphraseRetriever.from_pairs(PAIRS, "jaccard").retrieve(*arguments)
