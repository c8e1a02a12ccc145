from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import load_dataset, make_builder
from hf_paraphrase.datasets.corpus_reader import CorpusReader


def wikitext(articles: int = 30) -> str:
    """Articles in the form of WikiText, of two sections with a paragraph each."""
    return "".join(
        f" \n = Article {number} <unk> = \n \n The dog 's house {number} is old . It is a co @-@ star of J. Smith . \n"
        f" = = Section = = \n \n It cost 1 @,@ 500 in {number} . They didn 't know . \n"
        for number in range(articles)
    )


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "wiki.train.tokens").write_text(wikitext(), encoding="utf-8")
    return folder


def load(folder, **kwargs):
    return load_dataset("wikipedia_paragraphs", data_dir=folder, **{"min_words": 5, "max_unknown": 0.2, **kwargs})


def documents(folder, **kwargs) -> list[list[str]]:
    return [row for split in load(folder, **kwargs).values() for row in split["sentences"]]


def test_paragraphs_without_headings_in_ordinary_words(corpus):
    found = documents(corpus)
    assert len(found) == 60
    assert ["the dog's house 7 is old .", "it is a co-star of j . smith ."] in found
    assert ["it cost 1 , 500 in 7 .", "they didn't know ."] in found


def test_raw_text_gives_the_same_words(corpus, tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    lines = [
        f"The dog's house {number} is old. It is a co-star of J. Smith.\nIt cost 1,500 in {number}. They didn't know."
        for number in range(30)
    ]
    (folder / "extract.txt").write_text("\n".join(lines), encoding="utf-8")
    assert sorted(documents(folder)) == sorted(documents(corpus))


def test_unknown_words_of_the_source_stay_and_count(tmp_path):
    (tmp_path / "wiki.valid.tokens").write_text(
        "".join(f" A {'<unk> ' * (number % 2)}paragraph of few words is number {number} . \n" for number in range(40)),
        encoding="utf-8",
    )
    assert {" ".join(row).count("<unk>") for row in documents(tmp_path)} == {0, 1}
    assert {" ".join(row).count("<unk>") for row in documents(tmp_path, max_unknown=0.05)} == {0}


def test_what_is_no_heading_stays(tmp_path):
    line = " = 5 is the result of that , as everybody knows . \n"
    (tmp_path / "a.txt").write_text(line * 3 + " x = y = z and so on and on . \n", encoding="utf-8")
    assert len(documents(tmp_path)) == 4


def test_the_defaults_are_the_papers():
    config = make_builder("wikipedia_paragraphs").config
    assert (config.min_words, config.max_words, config.vocabulary_size, config.max_unknown) == (50, 250, 120_000, 0.04)
    assert (config.train_size, config.test_size) == (500_000, 50_000)


def test_all_kinds_of_files_are_read(corpus, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    text = wikitext().encode()
    middle = text.index(b" \n = Article 15")
    (folder / "wiki.valid.raw").write_bytes(b"\xef\xbb\xbf" + text[:middle].replace(b"\n", b"\r\n"))
    (folder / "wiki.test.txt.gz").write_bytes(gzip.compress(text[middle:]))
    (folder / "README").write_text("It is not read .", encoding="utf-8")
    whole = load(corpus)
    for name, split in load(folder).items():
        assert sorted(split["sentences"]) == sorted(whole[name]["sentences"])


def test_streaming_gives_the_same_rows(corpus):
    builder = make_builder("wikipedia_paragraphs", data_dir=corpus, min_words=5, max_unknown=0.2)
    streamed = {name: [row["sentences"] for row in split] for name, split in builder.as_streaming_dataset().items()}
    assert {name: rows for name, rows in streamed.items() if rows} == {
        name: split["sentences"][:] for name, split in load(corpus).items()
    }


def test_damaged_lines_and_missing_files(corpus, tmp_path):
    (corpus / "bad.txt").write_bytes(b"A l\xffne .\n" * 3)
    with pytest.raises(InputError, match="3 of .* lines are bad.*bad.txt, line 1, is not UTF-8.*one paragraph a line"):
        load(corpus)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no such file.*one paragraph a line, as in WikiText.*wikitext"):
        load(tmp_path / "empty")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("bytes")


pieces = st.sampled_from([b" = ", b"= ", b"word", b" . ", b"\n", b"\r", b" @-@ ", b" 's", b"\xff", b"\0", b"<unk>"])


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=200) | st.lists(pieces, max_size=20).map(b"".join))
def test_any_bytes_are_read_or_refused(scratch, content):
    path = scratch / "a.txt"
    path.write_bytes(content)
    builder = make_builder("wikipedia_paragraphs", data_dir=scratch, min_words=1, max_unknown=1.0)
    reader = CorpusReader(1.0, "")
    try:
        assert all(isinstance(text, str) for text in builder.texts(reader, path))
        assert reader.bad_lines <= reader.lines_read
        for split in builder.as_streaming_dataset().values():
            for row in split:
                assert all(sentence.split() for sentence in row["sentences"])
    except InputError as error:
        assert str(scratch) in str(error)
