"""What holds for every corpus, whatever its files look like."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path

import datasets
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import list_datasets, load_dataset, make_builder
from hf_paraphrase.datasets.builder import CorpusConfig, ParaphraseBuilder
from hf_paraphrase.datasets.loading import find_builder
from hf_paraphrase.datasets.running_text import RunningTextBuilder
from tests.datasets.corpora import FILES, IN_FILE_ORDER, load_arguments, reorder

CASES = [(path, name) for path in list_datasets() for name in find_builder(path).builder_configs]
# Running text: the order of its lines is what it says.
RUNNING_TEXT = {path for path in list_datasets() if issubclass(find_builder(path), RunningTextBuilder)}
# These have no files, or a user's own ones, which `test_pairs` and `test_groups` have in all formats.
NO_FOLDER = {"groups", "pairs", "synthetic_questions"}
# What is read as a whole has no damaged lines, and is published unzipped.
READ_WHOLE = {"gutenberg", "mscoco"}


def each(*without: str):
    """Every corpus in its first configuration, but for some."""
    return pytest.mark.parametrize("path", [path for path in list_datasets() if path not in without])


corpora = pytest.mark.parametrize(("path", "name"), CASES, ids=map("-".join, CASES))
of_records = [case for case in CASES if case[0] not in {*RUNNING_TEXT, "synthetic_questions"}]
corpora_of_records = pytest.mark.parametrize(("path", "name"), of_records, ids=map("-".join, of_records))


def test_every_corpus_has_its_files():
    assert sorted(FILES) == list_datasets()


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def texts(row: dict) -> set[frozenset]:
    """What makes a row the same as another one, in any split."""
    if "sentences" in row:
        return {frozenset(["\n".join(row["sentences"]).casefold()])}
    if "query" in row:
        return {frozenset([row["query"].casefold()])}
    if "sentence1" in row:
        return {frozenset((row["sentence1"].casefold(), row["sentence2"].casefold()))}
    targets = row["references"] if "references" in row else [row["target"]]
    return {frozenset((row["source"].casefold(), target.casefold())) for target in targets}


@corpora
def test_loads(path, name, tmp_path):
    splits = load_dataset(path, name, **load_arguments(path, name, tmp_path))
    assert list(splits) == ["train", "validation", "test"]
    columns = {split: rows.column_names for split, rows in splits.items()}
    if "sentences" in columns["train"]:
        written = ["title", "author", "sentences"] if path in RUNNING_TEXT else ["sentences"]
        assert columns["train"] == columns["validation"] == columns["test"] == written
    elif "source" in columns["train"]:
        own = ["group"] if path == "groups" else []
        assert columns["train"] == columns["validation"] == ["source", "target", *own]
        assert columns["test"][:2] == ["source", "target" if path in RUNNING_TEXT else "references"]
    elif "sentence1" in columns["train"]:
        assert set(map(tuple, columns.values())) == {("sentence1", "sentence2", "label")}
    else:
        assert all(names[:3] == ["query", "candidates", "label"] for names in columns.values())
    # Nothing says which book a line of `books` is from.
    unknown = {"title", "author"} if path == "books" else set()
    for rows in splits.values():
        assert not any(row[column] in (None, "", []) for row in rows for column in {*row} - unknown)


@corpora
def test_streaming_gives_the_same_rows(path, name, tmp_path):
    files = load_arguments(path, name, tmp_path)
    streamed = make_builder(path, name, **files).as_streaming_dataset()
    for split, rows in load_dataset(path, name, **files).items():
        assert [{key: row[key] for key in rows.column_names} for row in streamed[split]] == rows.to_list()


@corpora
def test_no_test_row_is_trained_on(path, name, tmp_path):
    splits = load_dataset(path, name, **load_arguments(path, name, tmp_path))
    tested = set().union(*map(texts, splits["test"]))
    trained = set().union(*map(texts, splits["train"]))
    if name == "li2018":
        assert splits["test"]["in_train"][:] == [bool(texts(row) & trained) for row in splits["test"]]
        assert splits["test"]["in_train"][:] == [False] * 3 + [True] * 2
    else:
        assert not tested & trained
        assert not tested & set().union(*map(texts, splits["validation"]))


@corpora_of_records
def test_order_of_records_changes_nothing(path, name, tmp_path):
    files, reordered = load_arguments(path, name, tmp_path / "a"), load_arguments(path, name, tmp_path / "b")
    written = {file: file.read_bytes() for file in files_in(tmp_path / "b")}
    for file, content in written.items():
        file.write_bytes(reorder(path, content.decode()).encode())
    assert any(file.read_bytes() != content for file, content in written.items())
    again, moved, may_move = load_dataset(path, name, **reordered), False, name in IN_FILE_ORDER.get(path, ())
    for split, rows in load_dataset(path, name, **files).items():
        mine, theirs = rows.to_list(), again[split].to_list()
        if may_move:
            moved |= mine != theirs
            mine, theirs = (sorted(map(texts, found), key=str) for found in (mine, theirs))
            assert len(mine) == len(theirs)
        else:
            assert mine == theirs
    assert moved == may_move, "an opt-out that nothing needs"


@each()
def test_seed_decides(path, tmp_path):
    files = load_arguments(path, None, tmp_path)
    if "seed" not in find_builder(path).BUILDER_CONFIG_CLASS.arguments():
        pytest.skip("the splits are those of the release")
    first, other = (load_dataset(path, split="train", seed=seed, **files).to_list() for seed in (1, 2))
    assert first != other


@each(*READ_WHOLE, "synthetic_questions")
def test_gzipped_files_are_read(path, tmp_path):
    plain, zipped = load_arguments(path, None, tmp_path / "plain"), load_arguments(path, None, tmp_path / "zipped")
    for file in files_in(tmp_path / "zipped"):
        file.write_bytes(gzip.compress(file.read_bytes()))
    for split, rows in load_dataset(path, **plain).items():
        assert rows.to_list() == load_dataset(path, split=split, **zipped).to_list()


@each(*READ_WHOLE, "synthetic_questions")
def test_damaged_lines_are_counted_and_named(path, tmp_path, caplog):
    files = load_arguments(path, None, tmp_path)
    file = files_in(tmp_path)[-1]
    number = file.read_bytes().count(b"\n") + 1
    with file.open("ab") as stream:
        stream.write(b"\xff\xfe broken\nno columns\n" + b"\t\0\t\n" * 30)
    with pytest.raises(InputError, match=f"line {number}, is not UTF-8 at byte 1.*expected") as caught:
        load_dataset(path, max_bad_fraction=0.001, **files)
    assert str(file) in str(caught.value)
    with caplog.at_level(logging.WARNING):
        assert load_dataset(path, max_bad_fraction=0.9, **files)
    assert f"{file}, line {number}, is not UTF-8" in caplog.text


@each("synthetic_questions")
@pytest.mark.parametrize("content", [b"", b"\n\n", b"Other.\nLines.\n"], ids=["empty", "blank", "other"])
def test_wrong_files_show_what_is_expected(path, content, tmp_path):
    if path == "books" and content.strip():
        pytest.skip("any line is a sentence of a book")
    files = load_arguments(path, None, tmp_path)
    for file in files_in(tmp_path):
        file.write_bytes(content)
    with pytest.raises(InputError, match="expected"):
        load_dataset(path, **files)


@each(*NO_FOLDER)
def test_missing_files_show_what_is_expected(path, tmp_path):
    with pytest.raises(InputError, match="`data_dir` is missing.*expected"):
        load_dataset(path)
    with pytest.raises(FileNotFoundError, match="no folder.*expected"):
        load_dataset(path, data_dir=tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="expected"):
        make_builder(path, data_dir=tmp_path)


@each("synthetic_questions")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_bytes_are_read_or_refused(path, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    files = load_arguments(path, None, folder)
    file = data.draw(st.sampled_from(files_in(folder)))
    lines = file.read_bytes().split(b"\n")
    piece = st.one_of(
        st.binary(max_size=40), st.sampled_from(lines), st.sampled_from([b"\t", b'"', b" ||| ", b"\r", b"\0"])
    )
    broken = b"\n".join(data.draw(st.lists(piece, max_size=30)))
    file.write_bytes(data.draw(st.sampled_from([broken, lines[0] + b"\n" + broken, b"\n".join(lines) + broken])))
    try:
        splits = make_builder(path, max_bad_fraction=1, **files).as_streaming_dataset()
        rows = [row for rows in splits.values() for row in rows]
    except InputError:
        return
    for row in rows:
        texts = {name: value for name, value in row.items() if isinstance(value, str)}
        assert not any("\0" in value for value in texts.values())
        assert all(value for name, value in texts.items() if name != "author")  # whom a header need not name


class Careless(ParaphraseBuilder):
    """Passes on whatever there is."""

    BUILDER_CONFIG_CLASS = CorpusConfig

    def _split_generators(self, dl_manager):
        return [datasets.SplitGenerator(name="train")]

    def generate_rows(self):
        yield from ({"source": text, "target": "a", "references": ["b", text]} for text in self.texts)


@pytest.mark.parametrize("blank", ["", " \u3000"])
def test_rows_without_a_text_are_left_out_and_counted(blank, tmp_path, caplog):
    Careless.texts = ["c"] * 199 + [blank]
    builder = Careless(cache_dir=str(tmp_path), max_bad_fraction=0.01)
    assert list(builder.as_streaming_dataset("train").take(300))[-1]["source"] == "c"
    assert "row 200, has no text in source" in caplog.text
    Careless.texts = ["c", blank]
    with pytest.raises(InputError, match="has no text in source"):
        list(Careless(cache_dir=str(tmp_path)).as_streaming_dataset("train"))
