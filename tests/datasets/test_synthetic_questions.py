from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from itertools import product

import pytest

from hf_paraphrase.datasets import load_dataset, make_builder
from hf_paraphrase.datasets.synthetic_questions import (
    CHOICE,
    FIELD,
    FORMS,
    FRAMES,
    GRAMMAR,
    PHRASES,
    SLOTS,
    word_meaning,
)


def make_rows(split: str, **kwargs) -> list[dict]:
    builder = make_builder("synthetic_questions", **kwargs)
    empty = {"source": None, "target": None, "references": None}
    return [empty | row for row in builder.generate_rows(split)]


@pytest.fixture(scope="module")
def splits() -> dict[str, list[dict]]:
    return {split: make_rows(split) for split in ("train", "validation", "test")}


def texts_of(rows: list[dict]) -> set[str]:
    return {
        text.lower() for row in rows for text in (row["source"], row["target"], *(row["references"] or [])) if text
    }


def all_wordings(template: str) -> set[str]:
    """A template's wordings, its fields left open."""
    parts = CHOICE.split(template)
    choices = [(part if "|" in part else PHRASES[part]).split("|") for part in parts[1::2]]
    wordings = set()
    for chosen in product(*choices):
        text = "".join(plain + choice for plain, choice in zip(parts[::2], (*chosen, ""), strict=True))
        wordings.add(FIELD.sub(lambda match: "{" + match[1].rstrip("12") + "}", text))
    return wordings


def test_every_field_and_choice_exists():
    used = set()
    for templates in FRAMES.values():
        fields = [set(re.findall(r"\{(\w+)", template)) for template in templates]
        assert all(names == fields[0] for names in fields), f"a template loses a word: {templates}"
        used |= {name.rstrip("12") for name in fields[0]}
        for match in (match for template in templates for match in FIELD.finditer(template)):
            assert match[2] in FORMS
        assert all(re.fullmatch(r".*[?.]", template) for template in templates)
        assert len(templates) >= 4, "a test source needs three references"
    assert used == set(SLOTS)
    assert set(FRAMES) > set(GRAMMAR["symmetric"])
    assert all(len(words) == len(set(words)) for words in SLOTS.values())


def test_no_wording_has_two_meanings():
    owners = {}
    for frame, templates in FRAMES.items():
        for number, template in enumerate(templates):
            for wording in all_wordings(template):
                assert owners.setdefault(wording, (frame, number)) == (frame, number)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("a", {"owl": "an owl", "tiger": "a tiger", "Easter": "an Easter", "older person": "an older person"}),
        ("s", {"fox": "foxes", "pony": "ponies", "monkey": "monkeys", "goose": "geese", "tour guide": "tour guides"}),
        ("ing", {"swim": "swimming", "ride a bike": "riding a bike", "ski": "skiing", "tie knots": "tying knots"}),
        ("is", {"bread": "is bread", "eggs": "are eggs", "hummus": "is hummus"}),
        ("does", {"bread": "does bread", "eggs": "do eggs"}),
        ("it", {"mint": "it", "roses": "them"}),
        (None, {"owl": "owl"}),
    ],
)
def test_forms(form, words):
    assert {word: FORMS[form](word) for word in words} == words


def test_sizes_and_distinct_rows(splits):
    pairs = {frozenset((row["source"], row["target"])) for row in splits["train"]}
    assert len(pairs) == len(splits["train"]) == 60_000
    assert all(len(pair) == 2 for pair in pairs)
    assert len({row["source"] for row in splits["test"]}) == len(splits["test"]) == 1000
    assert len(splits["validation"]) == 1000


def test_every_test_source_has_several_other_references(splits):
    counts = Counter(len(row["references"]) for row in splits["test"])
    assert min(counts) >= 3 and len(counts) > 1
    for row in splits["test"]:
        assert len({row["source"], *row["references"]}) == 1 + len(row["references"])


@pytest.mark.parametrize("seed", [42, 7])
def test_splits_share_no_question(splits, seed):
    if seed != 42:
        splits = {split: make_rows(split, seed=seed, train_size=20_000) for split in splits}
    train, validation, test = (texts_of(splits[split]) for split in ("train", "validation", "test"))
    assert not test & train and not test & validation and not validation & train


def test_text_is_clean_english(splits):
    texts = {text for rows in splits.values() for row in rows for text in (row["source"], row["target"]) if text}
    texts |= {text for row in splits["test"] for text in row["references"]}
    for text in texts:
        assert re.fullmatch(r"([A-Z][\w' ,-]*\. )?[A-Z][\w' ,-]*\?", text), text
        assert not re.search(r"\b[Aa] [aeio]|\b[Aa]n [^aeiouE]|  |[\[\]{}|]|\bi\b", text), text


def test_pairs_are_reworded_not_copied(splits):
    def shared(row):
        source, target = (set(re.findall(r"\w+", row[side].lower())) for side in ("source", "target"))
        return len(source & target) / len(source | target)

    overlap = [shared(row) for row in splits["train"]]
    assert sum(overlap) / len(overlap) < 0.6
    assert len({word for row in splits["train"] for word in row["source"].lower().split()}) > 800


def test_sizes_do_not_touch_other_rows():
    few, many = (make_rows("train", train_size=size) for size in (10, 20))
    assert many[:10] == few
    assert make_rows("test", train_size=5, test_size=20)[:10] == make_rows("test", test_size=10)


def test_seed_decides():
    assert make_rows("train", train_size=20, seed=1) == make_rows("train", train_size=20, seed=1)
    assert make_rows("train", train_size=20, seed=1) != make_rows("train", train_size=20, seed=2)


def test_rows_are_pinned(splits):
    # The same on every machine and Python; a change here changes what published figures were measured on.
    assert [(row["source"], row["target"]) for row in splits["train"][:2]] == PINNED_TRAIN
    assert splits["test"][0] == {"target": None, **PINNED_TEST}
    assert hashlib.sha256(json.dumps(splits).encode()).hexdigest() == PINNED_DIGEST


PINNED_DIGEST = "48e52b55024fdf0cf3caad0d3f578b4d7ea89772550ab7f7e79af2620f5a6f2c"
PINNED_TRAIN = [
    ("What is a good way for kids to start photography?", "What should kids know before they start photography?"),
    (
        "What does a truck driver do that a plumber doesn't, and the other way around?",
        "What's the difference between a plumber and a truck driver?",
    ),
]
PINNED_TEST = {
    "source": "Can you tell me how to get a bank account in Jordan?",
    "references": [
        "How should I get a bank account in Jordan?",
        "What is the process for getting a bank account in Jordan?",
        "What do you need to do to get a bank account in Jordan?",
        "Where should I apply for a bank account in Jordan?",
        "How do you apply for a bank account in Jordan?",
    ],
}


def test_streaming_gives_the_same_rows():
    builder = make_builder("synthetic_questions", test_size=10)
    rows = [{key: row[key] for key in ("source", "references")} for row in builder.as_streaming_dataset(split="test")]
    assert rows == load_dataset("synthetic_questions", split="test", train_size=10, test_size=10).to_list()


def test_words_take_their_forms():
    meaning = ("programming_choice", {"program": "game", "programming1": "Java", "programming2": "SQL"})
    template = "between {programming1} and {programming2}, what for {program:a}?"
    assert word_meaning(meaning, template, lambda words: words[0]) == "Between Java and SQL, what for a game?"
    assert word_meaning(("x", {"animal": "goose"}), "{animal:s} [fly|swim]", lambda words: words[-1]) == "Geese swim"
