from __future__ import annotations

import gzip
import logging
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.common.text_tables import TextTable
from hf_paraphrase.datasets import corpus_reader as reader_module
from hf_paraphrase.datasets.corpus_reader import MAX_LINE_LENGTH, CorpusReader


@pytest.fixture
def path(tmp_path):
    return tmp_path / "corpus.txt"


def read(path, content: bytes, method: str = "lines", *args, max_bad_fraction: float = 1, **kwargs):
    path.write_bytes(content)
    with CorpusReader(max_bad_fraction, "expected: lines") as reader:
        found = list(getattr(reader, method)(path, *args, **kwargs))
    return found, reader


def test_lines_and_their_numbers(path):
    content = "\ufefffirst\r\n\r\n\nsecond\u2028still\x85\nlast".encode()
    assert read(path, content)[0] == [(1, "first"), (4, "second\u2028still\x85"), (5, "last")]
    assert read(path, gzip.compress(content))[0] == [(1, "first"), (4, "second\u2028still\x85"), (5, "last")]


@pytest.mark.parametrize("size", [1, 3, 7])
def test_blocks_end_anywhere(path, size, monkeypatch):
    monkeypatch.setattr(reader_module, "BLOCK_SIZE", size)
    content = "\ufeffä ö ü\n\n€\nlong line\n\n".encode()
    expected = [(1, "ä ö ü"), (3, "€"), (4, "long line")]
    # A BOM that is cut in two would have to be longer than any file system's reads are short.
    assert read(path, content.removeprefix(b"\xef\xbb\xbf"))[0] == expected


def test_damaged_lines_are_left_out_and_named(path, caplog):
    content = b"good\n\xff\nzero \0\n" + b"x" * (MAX_LINE_LENGTH + 1) + b"\ngood\n" + b"y" * MAX_LINE_LENGTH + b"\n"
    with caplog.at_level(logging.WARNING):
        found, reader = read(path, content)
    assert [number for number, _ in found] == [1, 3, 5, 6]
    assert (reader.lines_read, reader.bad_lines) == (6, 2)
    assert f"2 of 6 lines are bad and left out: {path}, line 2, is not UTF-8 at byte 1" in caplog.text
    assert "line 4, is longer than 1,048,576 bytes" in caplog.text


def test_nul_characters_are_dropped_and_counted(path, caplog):
    with caplog.at_level(logging.WARNING):
        found, reader = read(path, b"a\0b\n\0\n\0c\0\n")
    assert found == [(1, "ab"), (3, "c")] and reader.bad_lines == 0
    assert "4 NUL characters are dropped" in caplog.text
    path.write_bytes(b'{"a": "x\\u0000y", "b": ["\\u0000"], "c": "\\\\u0000"}\n')
    reader = CorpusReader(1, "")
    assert list(reader.cells(TextTable(path, "jsonl"), "abc")) == [(1, ["xy", [""], "\\u0000"])]
    assert reader.nul_characters == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_another_encoding_is_named(path, encoding):
    content = ("\ufeff" * encoding.endswith("be") + "a\tb\n").encode(encoding)
    with pytest.raises(InputError, match="UTF-16 or UTF-32" if encoding != "utf-32-be" else ""):
        read(path, content)


def test_a_gzip_file_may_not_unpack_to_anything(path, monkeypatch):
    content = gzip.compress(b"good\n" * 1000)
    path.write_bytes(content)
    monkeypatch.setenv("HF_PARAPHRASE_MAX_UNPACKED_BYTES", "5000")
    found = list(CorpusReader(1, "").lines(path))
    assert len(found) == 1000
    monkeypatch.setenv("HF_PARAPHRASE_MAX_UNPACKED_BYTES", "4999")
    with pytest.raises(InputError, match="corpus.txt: its unpacked size is .*, above the limit of 4,999"):
        list(CorpusReader(1, "").lines(path))
    path.write_bytes(b"good\n" * 1000)
    assert list(CorpusReader(1, "").lines(path)) == found


def test_a_bomb_takes_neither_minutes_nor_memory(path, monkeypatch):
    # 200 MB in 200 kB, without one end of a line.
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(bytes(1 << 20))
    monkeypatch.setenv("HF_PARAPHRASE_MAX_UNPACKED_BYTES", str(1 << 26))
    reader = CorpusReader(1, "")
    tracemalloc.start()
    with pytest.raises(InputError, match="its unpacked size"):
        list(reader.lines(path))
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()


def test_a_line_without_an_end_takes_no_memory(path, monkeypatch):
    monkeypatch.setattr(reader_module, "BLOCK_SIZE", 10)
    path.write_bytes(b"good\n" + b"x" * 100_000 + b"\ngood\n")
    kept = []
    monkeypatch.setattr(reader_module, "MAX_LINE_LENGTH", 100)
    reader = CorpusReader(1, "")
    with path.open("rb") as file:
        kept = [len(block) for block in reader._whole_lines(path, file)]
    assert max(kept) < 200


def test_too_many_bad_lines_are_an_error(path):
    content = b"a\tb\n" * 97 + b"a\n" * 3
    assert len(read(path, content, "rows", ("x", "y"), max_bad_fraction=0.03)[0]) == 97
    with pytest.raises(
        InputError, match="3 of 100 lines are bad, more than `max_bad_fraction` = 0.02.*line 98, has 1"
    ):
        read(path, content, "rows", ("x", "y"), max_bad_fraction=0.02)


def test_another_file_is_given_up_early(path):
    path.write_bytes(b"no columns\n" * 1_000_000)
    with pytest.raises(InputError, match="more than `max_bad_fraction`"), CorpusReader(0.01, "expected: x") as reader:
        list(reader.rows(path, ("x", "y")))
    assert reader.lines_read < 200_000


def test_reading_a_few_rows_judges_nothing(path):
    path.write_bytes(b"a\tb\nbad\nbad\n")

    def rows():
        with CorpusReader(0, "") as reader:
            yield from reader.rows(path, ("x", "y"))

    assert next(rows()) == (1, ["a", "b"])


def test_empty_file(path):
    with pytest.raises(InputError, match="the file is empty; expected: lines"):
        read(path, b"", max_bad_fraction=0.5)


@pytest.mark.parametrize(
    "content", [b"\x1f\x8b", b"\x1f\x8b rubbish", gzip.compress(b"text\n" * 10_000, mtime=0)[:-20]]
)
def test_damaged_gzip_file(path, content):
    with pytest.raises(InputError, match="damaged gzip file"):
        read(path, content)


def test_rows(path):
    content = b"a\tb\tc\nd\te\nf\ng\th\ti\tj\n\t\t\n"
    found, reader = read(path, content, "rows", ("x", "y", "z"), optional=1)
    assert found == [(1, ["a", "b", "c"]), (2, ["d", "e", ""]), (5, ["", "", ""])]
    assert (reader.lines_read, reader.bad_lines) == (5, 2)


def test_header(path):
    assert read(path, b"X\ty \na\tb\n", "rows", ("x", "Y"), header=True)[0] == [(2, ["a", "b"])]
    with pytest.raises(InputError, match="line 1, is not the header 'x\\\\ty' but 'x,y'; expected"):
        read(path, b"x,y\na,b\n", "rows", ("x", "y"), header=True)


def test_a_stray_quote_costs_no_other_row(path):
    content = b'"a ""b"""\tc\n"stray\td\ne\tf\ng\th\ni "j"\t"k"\nl"\tm\n'
    found, reader = read(path, content, "rows", ("x", "y"), quoted=True)
    rows = [['a "b"', "c"], ['"stray', "d"], ["e", "f"], ["g", "h"], ['i "j"', "k"], ['l"', "m"]]
    assert [row for _, row in found] == rows
    apart, reader = read(path, b'"a\nb\nc\nd"\te\n', "rows", ("x", "y"), quoted=True)
    assert apart == [(4, ['d"', "e"])] and reader.bad_lines == 3


def test_columns_are_the_rows(path):
    content = b" a \tb\tc\n\nonly\nd\t \te\nf\tg\n\xff\tx\ty\n\t\t\nh\ti\tj"
    found, reader = read(path, content, "columns", ("x", "y", "z"), ("y", "x"), optional=1)
    assert [[column.to_pylist() for column in block] for block in found] == [[["b", "g"], ["a", "f"]], [["i"], ["h"]]]
    assert (reader.lines_read, reader.bad_lines) == (7, 4)


@given(st.binary(max_size=200).filter(lambda content: not content.startswith(b"\x1f\x8b")))
def test_columns_and_rows_agree_on_any_bytes(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("reader") / "corpus.txt"
    names = ("x", "y")
    blocks, by_column = read(path, content, "columns", names, names)
    rows, by_row = read(path, content, "rows", names)
    columns = [sum((block[place].to_pylist() for block in blocks), []) for place in (0, 1)]
    assert list(zip(*columns, strict=True)) == [
        (first.strip(), second.strip()) for _, (first, second) in rows if first.strip() and second.strip()
    ]
    assert by_column.lines_read == by_row.lines_read
