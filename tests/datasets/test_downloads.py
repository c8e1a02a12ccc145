from __future__ import annotations

import logging
from pathlib import Path

import datasets
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import addresses, list_datasets, load_dataset, make_builder
from hf_paraphrase.datasets.addresses import DOWNLOADS, RELEASES

from .corpora import ARGUMENTS, write
from .releases import published, release, serve

OPEN = [name for name, known in RELEASES.items() if known.files]
ON_REQUEST = [name for name, known in RELEASES.items() if known.on_request]
# These have no files, or a user's own ones.
WITHOUT = {"pairs", "synthetic_questions"}


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server that stands for all others, in a session that may reach it."""
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    with serve(tmp_path / "released") as server:
        (tmp_path / "released").mkdir()
        monkeypatch.setenv(DOWNLOADS, server.url)
        yield server


def give_out(corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    """Put a small release on the server; the arguments to read it with."""
    monkeypatch.setitem(RELEASES, corpus, release(corpus, tmp_path / "released"))
    numbers = (
        [int(Path(name).stem.removeprefix("pg")) for name in published(corpus)] if corpus == "gutenberg" else None
    )
    return ARGUMENTS.get(corpus, {}) | ({"numbers": numbers} if numbers else {})


def test_the_table_names_corpora():
    assert set(RELEASES) <= set(list_datasets()) - WITHOUT
    assert {"mscoco", "quora", "snli", "wikiqa", "gutenberg", "ppdb", "hotel_reviews", "wikipedia_paragraphs"} <= set(
        OPEN
    )
    assert all(bool(known.files) != bool(known.on_request) and known.licence for known in RELEASES.values())
    assert addresses.locate("mscoco", RELEASES["mscoco"].files[0]).startswith("http://images.cocodataset.org/")


@pytest.mark.parametrize("corpus", OPEN)
def test_what_is_downloaded_reads_as_a_folder_does(corpus, server, tmp_path, monkeypatch, caplog):
    arguments = give_out(corpus, tmp_path, monkeypatch)
    with caplog.at_level(logging.WARNING):
        found = load_dataset(corpus, **arguments)
    (note,) = [record.message for record in caplog.records if "downloading" in record.message]
    assert note.startswith(f"{corpus}: licence: {RELEASES[corpus].licence}; downloading {server.url}/{corpus}/")
    arguments.pop("numbers", None)
    folder = write(tmp_path / "by hand", published(corpus))
    by_hand = load_dataset(corpus, data_dir=folder, **arguments)
    assert {split: rows.to_list() for split, rows in found.items()} == {
        split: rows.to_list() for split, rows in by_hand.items()
    }


def test_a_download_is_made_once(server, cache, tmp_path, monkeypatch):
    give_out("mscoco", tmp_path, monkeypatch)
    first = load_dataset("mscoco", validation_size=4)
    assert len(server.requests) == 1
    # Other rows of the same files, and the same rows again, where the network is gone.
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    assert load_dataset("mscoco", validation_size=4)["train"].to_list() == first["train"].to_list()
    assert load_dataset("mscoco", validation_size=5)["validation"].num_rows == 10
    assert len(server.requests) == 1
    # Of the archive only what is read was unpacked.
    (folder,) = (cache / "downloads").glob("mscoco-*[!k]")
    assert sorted(path.name for path in folder.iterdir()) == ["captions_train2014.json", "captions_val2014.json"]


def test_a_given_folder_wins(server, tmp_path, monkeypatch):
    give_out("quora", tmp_path, monkeypatch)
    load_dataset("quora", data_dir=write(tmp_path / "by hand", published("quora")))
    with pytest.raises(FileNotFoundError, match=r"holds no such file .*quora_duplicate_questions.tsv"):
        load_dataset("quora", data_dir=tmp_path / "released")
    assert not server.requests


def test_a_folder_can_stand_for_the_server(tmp_path, monkeypatch):
    give_out("wikiqa", tmp_path, monkeypatch)
    monkeypatch.setenv(DOWNLOADS, str(tmp_path / "released"))
    assert load_dataset("wikiqa")["train"].num_rows
    archive = tmp_path / "released/wikiqa/WikiQACorpus.zip"
    archive.write_bytes(archive.read_bytes()[:-1])
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "another cache")
    monkeypatch.setattr(datasets.config, "DOWNLOADED_DATASETS_PATH", tmp_path / "another cache/downloads")
    with pytest.raises(InputError, match="it is damaged"):
        load_dataset("wikiqa")
    assert archive.is_file()


def test_the_progress_is_shown(server, tmp_path, monkeypatch, capfd):
    give_out("msrp", tmp_path, monkeypatch)
    load_dataset("msrp")
    shown = capfd.readouterr().err
    assert "msr_paraphrase_train.txt: 100%" in shown and "Generating" not in shown


def test_another_size_or_checksum_is_refused_and_not_kept(server, tmp_path, monkeypatch):
    give_out("quora", tmp_path, monkeypatch)
    file = tmp_path / "released/quora/quora_duplicate_questions.tsv"
    content = file.read_bytes()
    for damaged, message in ((content[:-1], "bytes, not"), (content[:-2] + b"x\n", "has the SHA-256")):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=rf"{server.url}/quora/.*{message}.*`data_dir` is missing.*quoradata"):
            load_dataset("quora")
    file.write_bytes(content)
    assert load_dataset("quora")["train"].num_rows


def test_a_broken_connection_is_noticed_by_the_announced_length(server, tmp_path, monkeypatch):
    """Of a release whose size nobody recorded."""
    arguments = give_out("ppdb", tmp_path, monkeypatch)
    server.cut_off.add("/ppdb/ppdb-2.0-l-all.gz")
    with pytest.raises(InputError, match="(?s)cannot be downloaded .*received .* of .* bytes.*`data_dir` is missing"):
        load_dataset("ppdb", **arguments)
    server.cut_off.clear()
    assert load_dataset("ppdb", **arguments)["train"].num_rows


def test_why_a_server_gave_nothing_is_told(server):
    with pytest.raises(InputError, match=r"WikiQACorpus.zip cannot be downloaded \(\w+: .*404.*`data_dir` is missing"):
        load_dataset("wikiqa")


@pytest.mark.parametrize("content", [b"<html>Moved</html>", b"PK\x03\x04 no archive"])
def test_what_is_no_archive_is_got_anew(server, content, tmp_path, monkeypatch):
    arguments = give_out("hotel_reviews", tmp_path, monkeypatch)
    archive = tmp_path / "released/hotel_reviews/Review_Texts.zip"
    good = archive.read_bytes()
    archive.write_bytes(content)
    with pytest.raises(InputError, match=r"Review_Texts.zip (is a damaged archive|holds none of).*`data_dir`"):
        load_dataset("hotel_reviews", **arguments)
    archive.write_bytes(good)
    assert load_dataset("hotel_reviews", **arguments)["train"].num_rows


@pytest.mark.parametrize("corpus", OPEN)
def test_without_a_network_the_message_is_how_to_get_the_files(corpus):
    arguments = {"numbers": [7]} if corpus == "gutenberg" else {}
    with pytest.raises(
        InputError, match=r"https?://.* cannot be downloaded .*`data_dir` is missing.*expected"
    ) as info:
        load_dataset(corpus, **arguments)
    copy = RELEASES[corpus].copy
    assert (copy or "expected") in str(info.value)


@pytest.mark.parametrize("corpus", ON_REQUEST)
def test_what_is_given_out_on_request_says_so(corpus):
    with pytest.raises(InputError, match=r"`data_dir` is missing.*They cannot be downloaded: "):
        load_dataset(corpus)


def test_splits_that_others_made_are_not_the_release():
    with pytest.raises(InputError, match="^`data_dir` is missing.*li2018_split"):
        load_dataset("quora", "li2018")


def test_books_are_asked_for_by_number():
    with pytest.raises(InputError, match="^`data_dir` is missing.*`numbers` downloads"):
        load_dataset("gutenberg")
    with pytest.raises(InputError, match="`numbers` must be list.int. or null, not"):
        load_dataset("gutenberg", numbers=["x"])


def test_arguments_choose_the_pack():
    assert make_builder("ppdb", size="s", part="lexical").release().files[0].name == "ppdb-2.0-s-lexical.gz"
    assert make_builder("ppdb").release().files[0].name == "ppdb-2.0-l-all.gz"
