from __future__ import annotations

import gzip
import logging
import random

import numpy as np
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import load_dataset
from hf_paraphrase.datasets.sampling import index_texts, search_index
from tests.datasets.corpora import sentence, write, yahoo_answers

DOCUMENT = """<vespaadd><document type="wisdom"><uri>{number}</uri><subject>{question}</subject>
<content>More words.</content><bestanswer>{answer}</bestanswer>
<nbestanswers><answer_item>{answer}</answer_item></nbestanswers></document></vespaadd>"""


def feed(*documents: tuple[str, str]) -> str:
    body = "\n".join(
        DOCUMENT.format(number=number, question=question, answer=answer)
        for number, (question, answer) in enumerate(documents)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<ystfeed>{body}</ystfeed>'


def questions(count: int) -> list[tuple[str, str]]:
    return [
        (f"How is {sentence(number)} &amp; co?", f"So it{'&lt;br /&gt;'} is {sentence(number, 9)}")
        for number in range(count)
    ]


def test_right_answer_among_wrong_ones(tmp_path):
    answers = dict(line.split("\t") for line in yahoo_answers()["answers.tsv"])
    for name, count in (("five", 5), ("ten", 10)):
        splits = load_dataset("yahoo_answers", name, write(tmp_path, yahoo_answers()))
        assert splits.num_rows == {"train": 60, "validation": 3, "test": 3}
        rows = [row for rows in splits.values() for row in rows]
        for row in rows:
            assert len(set(row["candidates"])) == len(row["candidates"]) == count
            assert row["candidates"][row["label"]] == answers[row["query"]]
            assert set(row["candidates"]) <= set(answers.values())
        assert {row["label"] for row in rows} == set(range(count))


def test_wrong_answers_are_like_the_right_one(tmp_path):
    topics = ["red apple fruit tree garden", "fast car engine road wheel", "deep sea fish water salt"]
    lines = [f"what about this question {number}\tanswer{number} {topics[number % 3]}" for number in range(90)]
    splits = load_dataset("yahoo_answers", data_dir=write(tmp_path, {"a.tsv": lines}), pool_size=20)
    for row in splits["train"]:
        assert len({answer.partition(" ")[2] for answer in row["candidates"]}) == 1


def test_search_agrees_with_scores_of_all_answers():
    draw = random.Random(0)
    answers = [" ".join(draw.choices(["apple", "beech", "cedar", "dune", "ebb", "fen"], k=6)) for _ in range(200)]
    index = index_texts(answers)
    scores = index.get_scores(["apple", "dune"])
    order = np.lexsort((np.arange(200), -scores))
    for size in (1, 10, 60):
        assert search_index(index, "apple dune", size).tolist() == sorted(order[:size].tolist())
    assert search_index(index, "the of", 10).tolist() == search_index(index, "unknown", 10).tolist() == []


def test_xml_files(tmp_path):
    write(tmp_path, {"manner.xml": feed(*questions(30)).split("\n"), "other.tsv": ["not\tread"]})
    splits = load_dataset("yahoo_answers", data_dir=tmp_path)
    assert sum(splits.num_rows.values()) == 30
    row = splits["train"][0]
    assert row["query"].startswith("How is s") and row["query"].endswith("& co?")
    assert row["candidates"][row["label"]].startswith("So it is s")


def test_lengths_and_repetitions(tmp_path):
    long, short = sentence(1, 51), "too short"
    lines = [*yahoo_answers()["answers.tsv"], f"{long}\t{sentence(1)}", f"{sentence(2)}\t{short}"]
    lines += [line.upper() for line in lines[:20]]
    splits = load_dataset("yahoo_answers", data_dir=write(tmp_path, {"a.tsv": lines}))
    assert sum(splits.num_rows.values()) == 66
    fewer = load_dataset("yahoo_answers", data_dir=tmp_path, max_questions=25)
    assert sum(fewer.num_rows.values()) == 25


def test_damaged_documents_are_counted(tmp_path, caplog):
    write(tmp_path, {"a.xml": feed(*questions(30), ("", "No question, though some answer.")).split("\n")})
    with pytest.raises(InputError, match="1 of 31 questions are bad.*has no question"):
        load_dataset("yahoo_answers", data_dir=tmp_path)
    with caplog.at_level(logging.WARNING):
        load_dataset("yahoo_answers", data_dir=tmp_path, max_bad_fraction=0.1)
    assert "1 of 31 questions are bad" in caplog.text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged after 0 questions"),
        (b"<a><b></b></a>", "holds no <document>"),
        (feed(*questions(30)).encode()[:-200], "damaged after .* questions"),
        (feed(*questions(2)).encode(), "2 different answers.*too few for 5"),
        (b"\x1f\x8bno gzip", "damaged after 0 questions"),
    ],
)
def test_other_files(tmp_path, content, message):
    (tmp_path / "a.xml").write_bytes(content)
    with pytest.raises(InputError, match=f"{message}.*expected"):
        load_dataset("yahoo_answers", data_dir=tmp_path)


ENCODINGS = [
    "shift_jis",
    "gb18030",
    "big5",
    "euc-jp",
    "utf-7",
    "utf-32",
    "utf-16",
    "idna",
    "punycode",
    "hex",
    "unknown",
]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings_that_the_parser_lacks(tmp_path, encoding):
    (tmp_path / "a.xml").write_text(feed(*questions(30)).replace("UTF-8", encoding))
    with pytest.raises(InputError, match="a.xml is damaged after 0 questions .*expected"):
        load_dataset("yahoo_answers", data_dir=tmp_path)


def test_encodings_that_the_parser_knows(tmp_path):
    for encoding in ("utf-16", "latin-1", "koi8-r"):
        (tmp_path / "a.xml").write_bytes(feed(*questions(30)).replace("UTF-8", encoding).encode(encoding))
        assert sum(load_dataset("yahoo_answers", data_dir=tmp_path).num_rows.values()) == 30


def test_a_question_without_end_is_refused(tmp_path, monkeypatch):
    with gzip.open(tmp_path / "a.xml.gz", "wb") as file:
        file.write(
            feed(*questions(30)).encode().removesuffix(b"</ystfeed>") + b"<document><subject>" + b"x" * 3_000_000
        )
    with pytest.raises(InputError, match="after 30 questions .the next is longer than 1,048,576 bytes"):
        load_dataset("yahoo_answers", data_dir=tmp_path)
    monkeypatch.setenv("HF_PARAPHRASE_MAX_UNPACKED_BYTES", "100000")
    with pytest.raises(InputError, match="above the limit of 100,000"):
        load_dataset("yahoo_answers", data_dir=tmp_path)


def test_bm25_is_optional(tmp_path, monkeypatch):
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'hf-paraphrase\[ranking\]'"):
        load_dataset("yahoo_answers", data_dir=write(tmp_path, yahoo_answers()))
