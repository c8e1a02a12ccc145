from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import load_dataset, make_builder
from hf_paraphrase.datasets.gutenberg import Book, read_book
from hf_paraphrase.datasets.running_text import words_of

NEW = """The Project Gutenberg EBook of {title}, by {author}

This eBook is for the use of anyone anywhere.


Title: {title}

Author: {author}

Release Date: January 1, 2004 [EBook #1]

Language: English

*** START OF THIS PROJECT GUTENBERG EBOOK {title} ***




Produced by Somebody and
somebody else




{body}



End of the Project Gutenberg EBook of {title}, by {author}

*** END OF THIS PROJECT GUTENBERG EBOOK {title} ***

***** This file should be named 1.txt *****
Creating the works from public domain print editions. A very long licence.
"""

OLD = """**The Project Gutenberg Etext of {title}, by {author}**

Copyright laws are changing all over the world.

***START**THE SMALL PRINT!**FOR PUBLIC DOMAIN ETEXTS**START***
Why is this "Small Print!" statement here?
*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*



{body}



End of The Project Gutenberg Etext of {title}, by {author}
"""


def body(name: str, paragraphs: int = 12) -> str:
    """Paragraphs of three lines and two sentences; no two books have one in common."""
    return "\n\n".join(
        f"Paragraph {number} of {name} begins with one sentence\nabout Mr. Jones, which goes\non. Then it ends, as it"
        " has to end."
        for number in range(paragraphs)
    )


def write(path: Path, title: str, author: str = "W.W. Jacobs", text: str | None = None, form: str = NEW) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = form.format(title=title, author=author, body=text or body(title))
    path.write_bytes(content.replace("\n", "\r\n").encode())
    return path


@pytest.fixture
def corpus(tmp_path):
    for number in range(22):
        author = ("W.W. Jacobs", "Charles Darwin")[number % 2]
        write(tmp_path / "corpus" / f"{number}.txt", f"Book {number}", author)
    return tmp_path / "corpus"


def load(folder, name=None, **kwargs):
    return load_dataset("gutenberg", name, data_dir=folder, **kwargs)


@pytest.mark.parametrize("form", [NEW, OLD])
def test_header_and_footer_are_cut(tmp_path, form):
    book = read_book(write(tmp_path / "1.txt", "The Skipper's Wooing", form=form))
    paragraphs = body("The Skipper's Wooing").split("\n\n")
    assert book == Book("The Skipper's Wooing", "W.W. Jacobs", [" ".join(text.split()) for text in paragraphs])


def test_the_other_forms_of_header_and_footer(tmp_path):
    closely = NEW.replace("*** START OF THIS", "***START OF THE").replace("*** END OF THIS", "***END OF THE")
    closely = closely.replace("End of the Project Gutenberg EBook", "End of Project Gutenberg's")
    wrapped = NEW.replace("EBOOK {title} ***\n\n\n\n\nProduced", "EBOOK {title}\nAND MORE ***\n\n\n\n\nProduced")
    both = NEW.replace("{body}", "*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.1*END*\n\n{body}")
    uncredited = NEW.replace("Produced by Somebody", "Note: Project Gutenberg also has an HTML version")
    for number, form in enumerate([closely, wrapped, both, uncredited]):
        book = read_book(write(tmp_path / f"{number}.txt", "A Book", form=form))
        assert book.paragraphs == [" ".join(text.split()) for text in body("A Book").split("\n\n")], number


def test_titles_and_authors(tmp_path):
    long = NEW.replace("Title: {title}", "Title: On the Origin\n       of Species").replace("Author: {author}", "")
    assert read_book(write(tmp_path / "1.txt", "X", "A. B.", form=long))[:2] == ("On the Origin of Species", "A. B.")
    without = OLD.replace("**The Project Gutenberg Etext of {title}, by {author}**", "An etext")
    assert read_book(write(tmp_path / "pg7.txt", "X", form=without))[:2] == ("pg7", "")
    path = tmp_path / "Charles Darwin___The Voyage.txt"
    path.write_text(body("x"), encoding="utf-8")
    assert read_book(path)[:2] == ("The Voyage", "Charles Darwin")
    path = tmp_path / "notes.txt"
    path.write_text(body("x"), encoding="utf-8")
    with pytest.raises(InputError, match="no header of Project Gutenberg and is not called Author___Title.txt"):
        read_book(path)


def test_encodings(tmp_path):
    text = body("x") + "\n\nA café — “here”."
    path = write(tmp_path / "1.txt", "X", text=text)
    content = path.read_bytes()
    assert read_book(path).paragraphs[-1] == "A café — “here”."
    path.write_bytes(b"\xef\xbb\xbf" + content.replace(b"\r\n", b"\r\r\n"))
    assert read_book(path).paragraphs[-1] == "A café — “here”."
    path.write_bytes(content.decode().encode("cp1252"))
    assert read_book(path).paragraphs[-1] == "A café — “here”."
    path.write_bytes(
        content.decode().encode("cp1252").replace(b"Language:", b"Character set encoding: UTF-8\r\nLanguage:")
    )
    with pytest.raises(InputError, match="is not UTF-8, as its header says, at byte"):
        read_book(path)
    path.write_bytes(content.replace("é".encode(), b"\x81"))
    with pytest.raises(InputError, match="neither UTF-8 nor Windows-1252 at byte"):
        read_book(path)
    path.write_bytes(content.replace(b"here", b"he\0re"))
    assert (
        read_book(path).paragraphs[-1] == "A café — “here”."
        and read_book(path).nul_characters == path.read_bytes().count(0) > 0
    )


def test_what_is_no_text_is_left_out(tmp_path):
    text = "[Illustration: A cat\non a mat]\n\n* * * * *\n\n       12\n\nA line.\n\n[Illustration]"
    assert read_book(write(tmp_path / "1.txt", "X", text=text)).paragraphs == ["A line."]
    with pytest.raises(InputError, match="holds no text"):
        read_book(write(tmp_path / "1.txt", "X", text="* * *"))


def test_a_row_is_a_book(corpus):
    splits = load(corpus)
    assert {name: len(split) for name, split in splits.items()} == {"train": 20, "test": 2}
    row = splits["train"][0]
    assert list(row) == ["title", "author", "sentences"] and row["author"] in ("W.W. Jacobs", "Charles Darwin")
    assert row["sentences"][:2] == [
        f"Paragraph 0 of {row['title']} begins with one sentence about Mr. Jones, which goes on.",
        "Then it ends, as it has to end.",
    ]
    assert len(row["sentences"]) == 24
    titles = {name: set(split["title"]) for name, split in splits.items()}
    assert len(titles["train"] | titles["test"]) == 22
    # A change here changes what every published figure was measured on.
    assert titles["test"] == PINNED_TEST


PINNED_TEST = {"Book 3", "Book 4"}


def test_sizes_are_taken_or_are_proportions(corpus):
    def sizes(**kwargs):
        return {name: len(split) for name, split in load(corpus, **kwargs).items()}

    assert sizes(train_books=5, validation_books=3, test_books=4) == {"train": 5, "validation": 3, "test": 4}
    assert sizes(train_books=20, validation_books=10, test_books=10) == {"train": 10, "validation": 6, "test": 6}
    assert sizes(test_books=0) == {"train": 22}
    with pytest.raises(InputError, match="too few to divide"):
        sizes(train_books=1, test_books=10**6)


def test_one_author(corpus):
    splits = load(corpus, author="w. w. jacobs", train_books=9, test_books=2)
    assert {name: len(split) for name, split in splits.items()} == {"train": 9, "test": 2}
    assert {author for split in splits.values() for author in split["author"]} == {"W.W. Jacobs"}
    with pytest.raises(InputError, match="no book here is by 'W. W. Jacob'; there are: W.W. Jacobs"):
        load(corpus, author="W. W. Jacob")


def test_parts_of_one_book_are_divided(tmp_path):
    text = "\n\n".join(f"Sentence number {number} stands alone here." for number in range(40))
    write(tmp_path / "corpus" / "1.txt", "The One Book", "Charles Darwin", text=text)
    splits = load(
        tmp_path / "corpus", author="Charles Darwin", parts=10, train_books=7, validation_books=1, test_books=2
    )
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 7, "validation": 1, "test": 2}
    parts = [part for split in splits.values() for part in split["sentences"]]
    assert all(len(part) == 4 for part in parts)
    assert sorted(parts, key=lambda part: int(part[0].split()[2])) == [
        [f"Sentence number {number} stands alone here." for number in range(first, first + 4)]
        for first in range(0, 40, 4)
    ]
    with pytest.raises(InputError, match="parts"):
        load(tmp_path / "corpus", parts=0)


def test_the_seed_decides_and_the_folder_does_not(corpus, tmp_path):
    first, again, other = (set(load(corpus, seed=seed, test_books=90, split="test")["title"]) for seed in (1, 1, 2))
    assert first == again != other
    moved = tmp_path / "elsewhere" / "txt"
    moved.parent.mkdir()
    corpus.rename(moved)
    assert set(load(moved, seed=1, test_books=90, split="test")["title"]) == first


def test_books_that_share_text_are_not_divided(corpus):
    long = {
        name: body(name, 60).replace("\n\n", " It goes on and on and on, and on it goes, for long.\n\n")
        for name in "abc"
    }
    for name, text in long.items():
        write(corpus / f"part {name}.txt", f"Part {name}", text=text)
    write(corpus / "all.txt", "All parts", text="\n\n".join(long.values()))
    for seed in range(4):
        splits = load(corpus, "pairs", seed=seed, test_books=150)
        train, test = ({(row["source"], row["target"]) for row in splits[name]} for name in ("train", "test"))
        assert not {pair for pair in train & test if "on and on and on" in pair[0]}


def test_pairs_are_the_thesis_own(corpus):
    splits = load(corpus, "pairs")
    assert splits["train"].column_names == ["source", "target"] and len(splits["test"]) == 2 * 23
    first, second = splits["test"].select(range(2)).to_list()
    title = " ".join(first["source"].split()[3:5])
    assert first["source"].endswith(f"of {title} begins with one sentence about Mr . Jones , which goes on .")
    assert first["target"].startswith(f"Then it ends , as it has to end . Paragraph 1 of {title} begins")
    assert len(first["target"].split()) == 30
    assert second["source"] == "Then it ends , as it has to end ."
    for row in splits["test"]:
        assert words_of(row["target"]) == row["target"].split()


def test_several_processes_and_streaming_give_the_same_rows(corpus):
    alone, together = load(corpus), load(corpus, num_proc=2)
    assert {name: split.to_list() for name, split in alone.items()} == {
        name: split.to_list() for name, split in together.items()
    }
    streamed = make_builder("gutenberg", data_dir=corpus).as_streaming_dataset()
    assert {name: list(split) for name, split in streamed.items()} == {
        name: split.to_list() for name, split in alone.items()
    }


def test_damaged_books_are_counted_and_shown(corpus, caplog):
    (corpus / "notes.txt").write_text("Only notes.", encoding="utf-8")
    with pytest.raises(
        InputError, match="1 of 23 books are bad.*notes.txt, book .*, begins with no header.*gutenberg.org"
    ):
        load(corpus)
    with caplog.at_level(logging.WARNING):
        assert sum(load(corpus, max_bad_fraction=0.1).num_rows.values()) == 22
    assert "1 of 23 books are bad and left out" in caplog.text


def test_nothing_to_read_is_an_error_that_shows_the_layout(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file.*one .txt file a book.*gutenberg.org"):
        load(tmp_path)
    with pytest.raises(InputError, match="`data_dir` is missing"):
        load(None)
    write(tmp_path / "1.txt", "One")
    with pytest.raises(InputError, match="1 books, .* are too few to divide"):
        load(tmp_path)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("bytes")


pieces = st.sampled_from(
    [
        b"*** START OF THE PROJECT GUTENBERG EBOOK X ***\n",
        b"*** END OF THE PROJECT GUTENBERG EBOOK X ***\n",
        b"*END*THE SMALL PRINT! *END*\n",
        b"End of Project Gutenberg's X\n",
        b"Title: ",
        b"Author: A\n",
        b"\n",
        b"\r",
        b"A line. And more.\n",
        b"\xe9",
        b"\x81",
        b"\0",
    ]
)


@settings(max_examples=80, deadline=None)
@given(content=st.binary(max_size=200) | st.lists(pieces, max_size=16).map(b"".join))
def test_any_bytes_are_read_or_refused(scratch, content):
    (scratch / "a.txt").write_bytes(content)
    builder = make_builder("gutenberg", data_dir=scratch, test_books=0)
    try:
        for split in builder.as_streaming_dataset().values():
            for row in split:
                assert all(sentence.split() for sentence in row["sentences"])
    except InputError as error:
        assert str(scratch / "a.txt") in str(error)
