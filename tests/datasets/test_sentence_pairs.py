from __future__ import annotations

from collections import Counter

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import load_dataset
from hf_paraphrase.datasets.sampling import deal, held_out_sizes, linked_groups
from tests.datasets.corpora import existing_split, msrp, quora, sentence, snli, twitter_url, write, write_corpus


def number(text: str) -> int:
    return int(text.split()[0][1:])


def questions(rows) -> set[str]:
    names = {"source", "target", "references"} & set(rows.column_names)
    return {text for row in rows for name in names for text in ([row[name]] if name != "references" else row[name])}


@pytest.mark.parametrize(
    ("total", "wanted", "expected"),
    [
        (1000, (30, 100), (30, 100)),
        (100, (30, 100), (6, 19)),
        (8, (3000, 30_000), (1, 1)),
        (8, (3000, 1), (1, 1)),
        (4, (3000, 30_000), (0, 1)),
        (100, (30, 0), (25, 0)),
        (100, (0, 30), (0, 25)),
        (0, (3, 3), (0, 0)),
        (9, (0, 0), (0, 0)),
    ],
)
def test_held_out_sizes(total, wanted, expected):
    assert held_out_sizes(total, *wanted, most=0.25) == expected


def test_linked_groups():
    pairs = [("a", "b"), ("c", "d"), ("e", "f"), ("d", "a"), ("g", "g"), ("f", "e")]
    groups = linked_groups(pairs, lambda pair: pair)
    assert sorted(map(sorted, groups)) == [
        [("a", "b"), ("c", "d"), ("d", "a")],
        [("e", "f"), ("f", "e")],
        [("g", "g")],
    ]


def test_groups_are_dealt_whole():
    groups = [[(group, item) for item in range(4)] for group in range(10)]
    dealt = deal(groups, {"test": 7, "validation": 2, "train": None}, key=lambda item: item, seed=1)
    assert {split: len(items) for split, items in dealt.items()} == {"test": 7, "validation": 2, "train": 28}
    owners = [{group for group, _ in items} for items in dealt.values()]
    assert not owners[0] & owners[1] and not owners[0] & owners[2] and not owners[1] & owners[2]


def test_quora_takes_duplicates_and_their_share(tmp_path):
    splits = load_dataset("quora", data_dir=write(tmp_path, quora()))
    assert splits.num_rows == {"train": 68, "validation": 2, "test": 20}
    everything = {
        frozenset((row["source"], row.get("target") or row["references"][0]))
        for rows in splits.values()
        for row in rows
    }
    assert len(everything) == 90
    assert all(max(map(number, pair)) % 4 < 3 for pair in everything)


def test_quora_sizes(tmp_path):
    sizes = {"train_size": 5, "validation_size": 3, "test_size": 4}
    splits = load_dataset("quora", data_dir=write(tmp_path, quora()), **sizes)
    assert splits.num_rows == {"train": 5, "validation": 3, "test": 4}


def test_quora_clean_splits_share_no_question(tmp_path):
    folder = write(tmp_path, quora())
    sizes = {"validation_size": 9, "test_size": 9}
    loaded = [load_dataset("quora", name, folder, **sizes) for name in ("clean", "paraphrases")]
    clean, leaky = ({split: questions(rows) for split, rows in splits.items()} for splits in loaded)
    assert leaky["test"] & leaky["train"]
    assert not clean["test"] & clean["train"]
    assert not clean["validation"] & clean["train"] and not clean["validation"] & clean["test"]


def test_quora_pairs_keep_labels(tmp_path):
    splits = load_dataset("quora", "pairs", write(tmp_path, quora()))
    labels = Counter(label for rows in splits.values() for label in rows["label"])
    assert labels == {0: 30, 1: 90}
    assert splits["train"].features["label"].names == ["not_paraphrase", "paraphrase"]


def test_quora_clean_pairs_are_those_of_clean_and_as_many_that_are_none(tmp_path):
    folder = write(tmp_path, quora())
    sizes = {"validation_size": 9, "test_size": 9}
    clean, splits = (load_dataset("quora", name, folder, **sizes) for name in ("clean", "clean_pairs"))
    for split, rows in splits.items():
        pairs = [(row["source"], row.get("target") or row["references"][0]) for row in clean[split]]
        assert [(row["sentence1"], row["sentence2"]) for row in rows if row["label"] == 1] == pairs
        others = [row for row in rows if row["label"] == 0]
        # Both are of this split, and of other chains.
        assert {row["sentence2"] for row in others} <= {question for pair in pairs for question in pair}
        assert all(number(row["sentence1"]) // 4 != number(row["sentence2"]) // 4 for row in others)
        assert [row["sentence1"] for row in others] == [first for first, _ in pairs]


def test_quora_clean_pairs_look_alike(tmp_path):
    rows = load_dataset("quora", "clean_pairs", write(tmp_path, quora()), split="train", pool_size=3)
    shared = [len({*row["sentence1"].split()} & {*row["sentence2"].split()}) for row in rows if row["label"] == 0]
    assert min(shared) >= 3


def test_a_pair_in_other_order_or_capitals_is_one(tmp_path):
    files = quora()
    rows = [line.split("\t") for line in files["quora_duplicate_questions.tsv"]][1:41]
    added = ["\t".join([*row[:3], row[4].upper(), row[3], "1"]) for row in rows]
    files["quora_duplicate_questions.tsv"] += added
    splits = load_dataset("quora", data_dir=write(tmp_path, files))
    # New are only the ten pairs that were not duplicates before.
    assert sum(splits.num_rows.values()) == 100


def test_sentences_are_cut(tmp_path):
    folder = write(tmp_path, quora())
    short = load_dataset("quora", data_dir=folder, split="train", max_words=3)
    assert {len(text.split()) for text in questions(short)} == {3}
    whole = load_dataset("quora", data_dir=folder, split="train", max_words=None)
    assert {len(text.split()) for text in questions(whole)} == {6}


def test_li2018_is_kept_as_it_is(tmp_path):
    for path, folder in (("quora", tmp_path), ("twitter_url", tmp_path / "li2018_split")):
        files = existing_split()
        write(folder, files)
        splits = load_dataset(path, "li2018", tmp_path)
        for split, name in (("train", "train.tsv"), ("validation", "val.tsv")):
            assert [f"{row['source']}\t{row['target']}" for row in splits[split]] == files[name]
        assert splits["test"]["in_train"][:] == [False, False, False, True, True]


def test_twitter_votes(tmp_path):
    folder = write(tmp_path, twitter_url())
    splits = load_dataset("twitter_url", "pairs", folder)
    votes = {number(row["sentence1"]) % 7: row["label"] for rows in splits.values() for row in rows}
    assert votes == {0: 0, 1: 0, 2: 0, 4: 1, 5: 1, 6: 1}
    # Pair 69 is in both files, and three votes of six say nothing.
    assert sorted(map(number, splits["test"]["sentence1"])) == [one for one in range(69, 105) if one % 7 != 3]
    assert splits["train"].num_rows + splits["validation"].num_rows == 59
    positive = load_dataset("twitter_url", data_dir=folder)
    assert {number(row["source"]) % 7 for rows in positive.values() for row in rows} == {4, 5, 6}


TEST_FILES = {
    ("twitter_url", "pairs"): "Twitter_URL_Corpus_test.txt",
    ("twitter_url", "paraphrases"): "Twitter_URL_Corpus_test.txt",
    ("twitter_url", "li2018"): "test.tsv",
    ("msrp", "pairs"): "msr_paraphrase_test.txt",
    ("msrp", "paraphrases"): "msr_paraphrase_test.txt",
    ("snli", "default"): "snli_1.0/snli_1.0_test.jsonl",
    ("quora", "li2018"): "test.tsv",
}


@pytest.mark.parametrize(("path", "name"), TEST_FILES, ids=map("-".join, TEST_FILES))
def test_a_test_file_stays_whole(path, name, tmp_path):
    """Published figures are for all its rows, and some pairs stand there twice."""
    folder = write_corpus(path, name, tmp_path)
    whole = load_dataset(path, name, folder, split="test").to_list()
    file = folder / TEST_FILES[path, name]
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines + lines[path == "msrp" :]))
    doubled = load_dataset(path, name, folder, split="test").to_list()
    assert Counter(map(repr, doubled)) == Counter(map(repr, whole * 2))


def test_a_test_file_keeps_both_labels_of_a_pair(tmp_path):
    files = twitter_url()
    pair = f"{sentence(74)}\t{sentence(1074)}"
    files["Twitter_URL_Corpus_test.txt"].append(f"{pair}\t(1, 6)\t")
    test = load_dataset("twitter_url", "pairs", write(tmp_path, files), split="test")
    assert [row["label"] for row in test if number(row["sentence1"]) == 74] == [0, 1]


@pytest.mark.parametrize("name", ["pairs", "paraphrases"])
def test_train_pairs_with_two_labels_are_left_out_and_counted(name, tmp_path, caplog):
    files, pairs = twitter_url(), [(4, "1"), (5, "0"), (6, "5")]
    for one, votes in pairs:
        files["Twitter_URL_Corpus_train.txt"].append(
            f"{sentence(one + 1000).upper()}\t{sentence(one)}\t({votes}, 6)\t"
        )
    splits = load_dataset("twitter_url", name, write(tmp_path, files))
    known = {
        text.casefold()
        for split in ("train", "validation")
        for row in splits[split]
        for text in row.values()
        if isinstance(text, str)
    }
    assert sentence(4) not in known and sentence(5) not in known
    # With the same label both times, a pair is one.
    assert sentence(6) in known
    assert "2 pairs stand in the file with two labels; left out" in caplog.text


def test_quora_pairs_with_two_labels_are_in_no_split(tmp_path, caplog):
    files = quora()
    files["quora_duplicate_questions.tsv"].append(f"500\t0\t0\t{sentence(1)}\t{sentence(0)}\t0")
    splits = load_dataset("quora", "pairs", write(tmp_path, files))
    pairs = [{row["sentence1"], row["sentence2"]} for rows in splits.values() for row in rows]
    assert {sentence(0), sentence(1)} not in pairs and len(pairs) == 119
    assert "1 pairs stand in the file with two labels; left out" in caplog.text


def test_msrp_has_a_validation_split(tmp_path):
    splits = load_dataset("msrp", data_dir=write(tmp_path, msrp()), validation_size=7)
    assert splits.num_rows == {"train": 33, "validation": 7, "test": 20}
    assert splits["train"][0]["sentence1"].startswith('He said "s')
    assert set(load_dataset("msrp", "paraphrases", tmp_path)["train"].column_names) == {"source", "target"}


def test_snli_leaves_undecided_pairs_out(tmp_path, caplog):
    splits = load_dataset("snli", data_dir=write(tmp_path, snli()))
    assert splits.num_rows == {"train": 23, "validation": 8, "test": 7}
    label = splits["train"].features["label"]
    assert {number(row["sentence1"]) % 4: label.int2str(row["label"]) for row in splits["train"]} == {
        0: "entailment",
        1: "neutral",
        2: "contradiction",
    }
    assert "1 pairs stand in the test file too" in caplog.text


def test_wrong_labels_are_bad_lines(tmp_path):
    files = quora()
    files["quora_duplicate_questions.tsv"][5] = f"4\t0\t0\t{sentence(1)}\t{sentence(2)}\tyes"
    with pytest.raises(InputError, match="line 6, has is_duplicate 'yes', not 0 or 1"):
        load_dataset("quora", data_dir=write(tmp_path, files), max_bad_fraction=0)
    files = twitter_url()
    files["Twitter_URL_Corpus_train.txt"][0] = f"{sentence(1)}\t{sentence(2)}\t(7, 6)\t"
    with pytest.raises(InputError, match=r"line 1, has the votes '\(7, 6\)'"):
        load_dataset("twitter_url", data_dir=write(tmp_path, files), max_bad_fraction=0)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"max_held_out": 1.5}, "`max_held_out` must be at least 0 and at most 1"),
        ({"max_bad_fraction": -1}, "`max_bad_fraction` must be at least 0 and at most 1"),
        ({"max_words": 0}, "`max_words` must be at least 1"),
        ({"max_words": "3"}, "`max_words` must be int or null"),
    ],
)
def test_bad_arguments_are_named(kwargs, message, tmp_path):
    with pytest.raises(InputError, match=message):
        load_dataset("quora", data_dir=tmp_path, **kwargs)
