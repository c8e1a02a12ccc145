"""Small files in the published layout of each corpus."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

WORDS = ["amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "knoll", "larch"]
WORDS += ["maple", "nook", "oasis", "pond"]

# Configurations whose rows or lists keep the order of the files; all others are shuffled with a seed.
IN_FILE_ORDER = {
    "groups": ("default", "filtered"),
    "hotel_reviews": ("paper",),
    "mscoco": ("all_pairs", "consensus"),
    "quora": ("li2018",),
    "snli": ("default",),
    "twitter_url": ("li2018",),
    "wikipedia_paragraphs": ("paper",),
    "wikiqa": ("default",),
}


def sentence(number: int, length: int = 6) -> str:
    """A sentence of its own for each number."""
    return " ".join([f"s{number}", *(WORDS[(number + place) % len(WORDS)] for place in range(length - 1))])


def quora() -> dict[str, list[str]]:
    rows = ["id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"]
    # Chains of three duplicates that share questions, then pairs that are none.
    for number in range(30):
        first, second, third, other = (sentence(4 * number + place) for place in range(4))
        for pair in ((first, second, 1), (second, third, 1), (third, first, 1), (first, other, 0)):
            rows.append("\t".join([str(len(rows)), "0", "0", pair[0], pair[1], str(pair[2])]))
    return {"quora_duplicate_questions.tsv": rows}


def existing_split() -> dict[str, list[str]]:
    pairs = [f"{sentence(2 * number)}\t{sentence(2 * number + 1)}" for number in range(20)]
    reverse = "\t".join(reversed(pairs[1].split("\t")))
    return {"train.tsv": pairs[:14], "val.tsv": pairs[14:17], "test.tsv": [*pairs[17:], pairs[0], reverse]}


def twitter_url() -> dict[str, list[str]]:
    def line(number: int, end: str = "\thttps://t.co/x") -> str:
        return f"{sentence(number)}\t{sentence(number + 1000)}\t({number % 7}, 6){end}"

    train = [line(number) for number in range(70)]
    test = [line(number, "\t\thttps://t.co/x" if number % 5 else "\t") for number in range(69, 105)]
    return {"Twitter_URL_Corpus_train.txt": train, "Twitter_URL_Corpus_test.txt": ["", *test, ""]}


def msrp() -> dict[str, list[str]]:
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    rows = [
        f'{number % 2}\t{number}\t0\tHe said "{sentence(number)}\t{sentence(number + 500)}' for number in range(60)
    ]
    return {
        "msr_paraphrase_train.txt": [line + "\r" for line in [header, *rows[:41]]],
        "msr_paraphrase_test.txt": [line + "\r" for line in [header, *rows[40:]]],
    }


def snli() -> dict[str, list[str]]:
    labels = ("entailment", "neutral", "contradiction", "-")

    def line(number: int) -> str:
        return json.dumps(
            {
                "gold_label": labels[number % 4],
                "sentence1": sentence(number),
                "sentence2": sentence(number + 500),
                "annotator_labels": [],
            }
        )

    return {
        "snli_1.0/snli_1.0_train.jsonl": [line(number) for number in range(31)],
        "snli_1.0/snli_1.0_dev.jsonl": [line(number) for number in range(40, 50)],
        "snli_1.0/snli_1.0_test.jsonl": [line(number) for number in range(30, 40)],
    }


def wikiqa() -> dict[str, list[str]]:
    header = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel"

    def rows(start: int, stop: int) -> list[str]:
        # Every third question has no answer, every other one two.
        return [header] + [
            f"Q{question}\t{sentence(question)}?\tD0\tTitle\tD0-{place}\t{sentence(10 * question + place, 9)}"
            f"\t{int(question % 3 > 0 and place in (1, 3))}"
            for question in range(start, stop)
            for place in range(4)
        ]

    return {
        "WikiQA-train.tsv": rows(0, 12) + [line.replace("Q", "QX", 1) for line in rows(16, 17)[1:]],
        "WikiQA-dev.tsv": rows(12, 15),
        "WikiQA-test.tsv": rows(15, 20),
    }


def ppdb() -> dict[str, list[str]]:
    def line(source: str, target: str, category: str = "[NN]") -> str:
        return f"{category} ||| {source} ||| {target} ||| PPDB2.0Score=3.2 Abstract=0 ||| 0-0 ||| Equivalence"

    rows = []
    for number in range(200):
        source, targets = f"phrase {WORDS[number % 16]}{chr(97 + number // 16)}", [f"{word} it" for word in WORDS[:7]]
        rows += [line(source, f"{target} {chr(97 + number // 16)}") for target in targets]
        rows += [line(f"{targets[0]} {chr(97 + number // 16)}", source), line(source, f"{targets[0]} a", "[VB]")]
    rows += [line("room 7", "room seven"), line("[NP,1] of", "[NP,1] 's"), line("same", "same"), line("², not ٣", "x")]
    return {"ppdb-2.0-l-all": rows}


def wikianswers() -> dict[str, list[str]]:
    rows = []
    for cluster in range(100):
        questions = [sentence(10 * cluster + place) for place in range(4)]
        rows += [f"{first}\t{second}\t0-0 1-1" for first in questions for second in questions if first != second]
    return {"word_alignments.txt": rows}


def yahoo_answers() -> dict[str, list[str]]:
    return {"answers.tsv": [f"{sentence(number)}\t{sentence(number + 3, 12)}" for number in range(66)]}


def mscoco() -> dict[str, list[str]]:
    def content(images: range) -> list[str]:
        captions = [
            {"image_id": image, "id": 10 * image + place, "caption": sentence(10 * image + place)}
            for image in images
            for place in range(5)
        ]
        return [json.dumps({"info": {}, "images": [{"id": image} for image in images], "annotations": captions})]

    return {
        "annotations/captions_train2014.json": content(range(20)),
        "annotations/captions_val2014.json": content(range(20, 32)),
    }


def hotel_reviews() -> dict[str, list[str]]:
    def hotel(numbers: range) -> list[str]:
        reviews = (f"{sentence(2 * number)}. {sentence(2 * number + 1).capitalize()}!" for number in numbers)
        return [
            f"{line}\r"
            for review in reviews
            for line in ("<Author>someone", f"<Content>{review}  ", "<Date>Dec 23, 2008", "<Rating>5\t4\t-1\t", "")
        ]

    return {
        f"Texts/hotel_{hotel_id}_parsed.txt": hotel(range(40 * hotel_id, 40 * hotel_id + 40)) for hotel_id in (0, 1)
    }


def wikipedia_paragraphs() -> dict[str, list[str]]:
    articles = ((f" = Article {number} = ", " ", f" {sentence(number, 9)} . <unk> , too . ") for number in range(80))
    return {"wiki.train.tokens": [line for article in articles for line in article]}


def books() -> dict[str, list[str]]:
    return {
        f"books_large_p{part}.txt": [f"{sentence(1000 * part + number)} ." for number in range(200)] for part in (1, 2)
    }


def gutenberg() -> dict[str, list[str]]:
    def book(number: int) -> list[str]:
        title = f"The Book of {WORDS[number % 16].capitalize()} {number}"
        paragraphs = (f"{sentence(100 * number + place, 12).capitalize()}." for place in range(12))
        return [
            f"The Project Gutenberg EBook of {title}, by W. W. Jacobs",
            *("", f"Title: {title}", "", "Author: W. W. Jacobs", "", "Language: English", ""),
            f"*** START OF THIS PROJECT GUTENBERG EBOOK {title.upper()} ***",
            *(line for paragraph in paragraphs for line in ("", paragraph)),
            "",
            f"*** END OF THIS PROJECT GUTENBERG EBOOK {title.upper()} ***",
        ]

    return {f"txt/{number}.txt": book(number) for number in range(22)}


def pairs() -> dict[str, list[str]]:
    rows = ({"source": sentence(2 * number), "target": sentence(2 * number + 1)} for number in range(60))
    return {"pairs.jsonl": [json.dumps(row) for row in rows]}


def groups() -> dict[str, list[str]]:
    ends = ("", " too", " and so on")
    return {"groups.tsv": ["\t".join(f"{sentence(number)}{end}" for end in ends) for number in range(60)]}


def synthetic_questions() -> dict[str, list[str]]:
    return {}


FILES = {
    "books": books,
    "groups": groups,
    "gutenberg": gutenberg,
    "hotel_reviews": hotel_reviews,
    "mscoco": mscoco,
    "msrp": msrp,
    "pairs": pairs,
    "ppdb": ppdb,
    "quora": quora,
    "snli": snli,
    "synthetic_questions": synthetic_questions,
    "twitter_url": twitter_url,
    "wikianswers": wikianswers,
    "wikipedia_paragraphs": wikipedia_paragraphs,
    "wikiqa": wikiqa,
    "yahoo_answers": yahoo_answers,
}
# The arguments that make three splits of files so small.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "books": {"lines_per_document": 5, "validation_fraction": 0.2, "test_fraction": 0.2},
    "groups": {"max_held_out": 0.2},
    "gutenberg": {"train_books": 15, "validation_books": 3, "test_books": 4},
    "hotel_reviews": {"min_words": 5, "max_unknown": 0.5, "train_size": 40, "validation_size": 20, "test_size": 20},
    "mscoco": {"validation_size": 4},
    "pairs": {"max_held_out": 0.4},
    "synthetic_questions": {"train_size": 30, "validation_size": 5, "test_size": 5},
}
ARGUMENTS["wikipedia_paragraphs"] = ARGUMENTS["hotel_reviews"]
# So many lines make a record, where it is not one.
RECORD_LINES = {"hotel_reviews": 5}


def write(folder: Path, files: dict[str, list[str]]) -> Path:
    """Write files of lines, made whole by newlines."""
    for name, lines in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return folder


def write_corpus(path: str, name: str | None, folder: Path) -> Path:
    """Write the files that a configuration of a corpus is read from."""
    return write(folder, existing_split() if name == "li2018" else FILES[path]())


def load_arguments(path: str, name: str | None, folder: Path) -> dict[str, Any]:
    """Write a corpus's files; what `load_dataset` takes to read them."""
    write_corpus(path, name, folder)
    own = {"groups": "groups.tsv", "pairs": "pairs.jsonl"}
    files = {"synthetic_questions": {}, **{name: {"data_files": folder / file} for name, file in own.items()}}
    return {**files.get(path, {"data_dir": folder}), **ARGUMENTS.get(path, {})}


def reorder(path: str, content: str) -> str:
    """The same records of a corpus's file in another order; the first, which may be a header, stays."""
    shuffle = random.Random(0).shuffle
    if path == "mscoco":
        lists = json.loads(content)
        for part in ("images", "annotations"):
            shuffle(lists[part])
        return json.dumps(lists)
    lines, size = content.split("\n")[:-1], RECORD_LINES.get(path, 1)
    first, *records = [lines[place : place + size] for place in range(0, len(lines), size)]
    shuffle(records)
    return "".join(f"{line}\n" for record in (first, *records) for line in record)
