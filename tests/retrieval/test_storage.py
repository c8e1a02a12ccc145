from __future__ import annotations

import json
import shutil
from pathlib import Path

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi

from hf_paraphrase import ParaphraseRetriever
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.retrieval import retriever as retriever_module
from hf_paraphrase.retrieval import storage
from tests.retrieval.corpus import PAIRS, count_letters, random_pairs

CONFIG = "retriever_config.json"
ENCODERS = pytest.mark.parametrize("encoder", ["jaccard", count_letters], ids=["jaccard", "vectors"])


@pytest.fixture
def folder(tmp_path) -> Path:
    ParaphraseRetriever.from_pairs(PAIRS, count_letters).save_pretrained(tmp_path / "retriever")
    return tmp_path / "retriever"


def load(folder: Path) -> ParaphraseRetriever:
    return ParaphraseRetriever.from_pretrained(folder, encoder=count_letters)


def change_config(folder: Path, **values) -> None:
    config = json.loads((folder / CONFIG).read_text()) | values
    (folder / CONFIG).write_text(json.dumps(config))


def accept(folder: Path) -> None:
    """Make the config's checksums those of the files, so that only what is in them can be wrong."""
    names = [path.name for path in folder.iterdir() if path.name != CONFIG]
    change_config(folder, checksums={name: storage.hash_file(folder / name) for name in names})


@pytest.mark.parametrize("compare", ["source", "pair"])
@ENCODERS
def test_what_is_loaded_is_what_was_saved(encoder, compare, tmp_path):
    pairs = random_pairs(60)
    retriever = ParaphraseRetriever.from_pairs(pairs, encoder, compare=compare)
    retriever.add([("how", "👍 你好")])
    retriever.save_pretrained(tmp_path)
    again = ParaphraseRetriever.from_pretrained(tmp_path, encoder=encoder)
    texts = [source for source, _ in pairs]
    assert again.retrieve(texts, 5) == retriever.retrieve(texts, 5)
    assert again.fingerprint == retriever.fingerprint
    for each in (retriever, again):
        each.add([("one more", "pair")])
    assert again.retrieve(texts, 5) == retriever.retrieve(texts, 5)
    files = {"pairs.parquet", CONFIG} | ({"index.faiss"} if encoder != "jaccard" else set())
    assert {path.name for path in tmp_path.iterdir()} == files


def test_the_options_of_the_index_are_kept(tmp_path):
    options = {"index": "IVF2,Flat", "search_parameters": "nprobe=2"}
    retriever = ParaphraseRetriever.from_pairs(PAIRS, count_letters, **options)
    retriever.save_pretrained(tmp_path)
    again = load(tmp_path)
    assert [len(pairs) for pairs in again.retrieve(["how"] * 2, 5)] == [5, 5]
    assert again.index.description == "IVF2,Flat"
    config = json.loads((tmp_path / CONFIG).read_text())
    assert (config["encoder"], config["count"], config["dimension"]) == (None, 5, 26)


def test_saving_replaces_a_retriever_but_nothing_else(folder):
    ParaphraseRetriever.from_pairs(PAIRS[:2], "jaccard").save_pretrained(folder)
    assert len(ParaphraseRetriever.from_pretrained(folder)) == 2
    (folder.parent / "precious.txt").write_text("keep me")
    with pytest.raises(FileExistsError, match="holds other files, such as precious.txt"):
        ParaphraseRetriever.from_pairs(PAIRS, "jaccard").save_pretrained(folder.parent)
    assert (folder.parent / "precious.txt").exists()


def test_a_loaded_retriever_can_be_saved_where_it_came_from(folder):
    retriever = load(folder)
    retriever.add([("new", "pair")])
    retriever.save_pretrained(folder)
    assert len(load(folder)) == len(PAIRS) + 1


def test_an_interrupted_save_leaves_the_old_retriever(folder, monkeypatch):
    retriever = load(folder)
    retriever.add([("new", "pair")])
    monkeypatch.setattr(faiss, "write_index", lambda index, path: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        retriever.save_pretrained(folder)
    assert len(load(folder)) == len(PAIRS)
    assert [path.name for path in folder.parent.iterdir()] == ["retriever"]


def test_nothing_to_save(tmp_path):
    with pytest.raises(InputError, match="has no pairs"):
        ParaphraseRetriever.from_pairs([], "jaccard").save_pretrained(tmp_path / "retriever")
    assert not (tmp_path / "retriever").exists()


def draw_vectors(texts: list[str]) -> np.ndarray:
    """An encoder of texts, at random in 512 directions: eight for each byte of a code."""
    return np.stack([np.random.default_rng(list(text.encode())).normal(size=512) for text in texts])


def test_compressed_vectors_are_saved_and_their_encoder_is_known_again(tmp_path):
    """By the score of a sentence against itself, which is an estimate."""
    pairs = [(f"sentence {number}", "target") for number in range(2000)]
    retriever = ParaphraseRetriever.from_pairs(pairs, draw_vectors, "ivf_pq")
    retriever.save_pretrained(tmp_path)
    assert json.loads((tmp_path / CONFIG).read_text())["first_score"] < 1 - storage.TOLERANCE
    again = ParaphraseRetriever.from_pretrained(tmp_path, encoder=draw_vectors)
    texts = [source for source, _ in pairs[:100]]
    assert again.retrieve(texts, 5) == retriever.retrieve(texts, 5)
    assert again.fingerprint == retriever.fingerprint
    with pytest.raises(InputError, match="whose vectors differ from those of"):
        ParaphraseRetriever.from_pretrained(tmp_path, encoder=lambda texts: draw_vectors(texts)[:, ::-1])


def test_vectors_beside_codes_are_saved_and_grow(tmp_path):
    pairs = [(f"sentence {number}", "target") for number in range(2000)]
    retriever = ParaphraseRetriever.from_pairs(pairs, draw_vectors, "ivf_pq_refine")
    retriever.save_pretrained(tmp_path / "first")
    assert (tmp_path / "first/vectors.f16").stat().st_size == 2000 * 512 * 2
    again = ParaphraseRetriever.from_pretrained(tmp_path / "first", encoder=draw_vectors)
    texts = [source for source, _ in pairs[:50]]
    assert again.retrieve(texts, 5) == retriever.retrieve(texts, 5)
    again.add([("one more", "target")])
    again.save_pretrained(tmp_path / "second")
    (found,) = ParaphraseRetriever.from_pretrained(tmp_path / "second", encoder=draw_vectors).retrieve(["one more"])
    assert found[0].row == 2000 and found[0].score == pytest.approx(1, abs=1e-3)
    (tmp_path / "first/vectors.f16").write_bytes(b"1" * 1001)
    accept(tmp_path / "first")
    with pytest.raises(InputError, match="vectors.f16 has 1001 bytes, not some vectors of 1024"):
        ParaphraseRetriever.from_pretrained(tmp_path / "first", encoder=draw_vectors)


def test_a_folder_of_an_earlier_version_says_no_score(folder):
    config = json.loads((folder / CONFIG).read_text())
    assert config.pop("first_score") == pytest.approx(1)
    (folder / CONFIG).write_text(json.dumps(config))
    assert load(folder).retrieve([PAIRS[0][0]])[0][0].target == PAIRS[0][1]


@pytest.mark.parametrize("name", ["pairs.parquet", "index.faiss"])
def test_damaged_and_missing_files_are_named(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name} is not the file that {CONFIG} is about: its SHA-256 differs"):
        load(folder)
    (folder / name).write_bytes(b"something else")
    accept(folder)
    with pytest.raises(InputError, match=f"{name} is not a "):
        load(folder)
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"{name} is missing"):
        load(folder)


def test_files_of_two_retrievers(folder, tmp_path):
    other = tmp_path / "other"
    ParaphraseRetriever.from_pairs(PAIRS[:4], count_letters).save_pretrained(other)
    shutil.copy(other / "index.faiss", folder)
    with pytest.raises(InputError, match="SHA-256 differs"):
        load(folder)
    accept(folder)
    with pytest.raises(InputError, match="index.faiss has 4 vectors, but retriever_config.json says 5"):
        load(folder)
    shutil.copy(other / "pairs.parquet", folder)
    accept(folder)
    with pytest.raises(InputError, match="pairs.parquet has 4 pairs, but retriever_config.json says 5"):
        load(folder)


def test_a_parquet_file_of_something_else(folder):
    pq.write_table(pa.table({"text": ["a"]}), folder / "pairs.parquet")
    accept(folder)
    with pytest.raises(InputError, match="pairs.parquet has the columns text, not source and"):
        load(folder)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dimension": 3}, "index.faiss has 26 numbers a vector, but retriever_config.json says 3"),
        ({"count": 6}, "pairs.parquet has 5 pairs, but retriever_config.json says 6"),
        ({"encoder": "jaccard"}, f"{CONFIG} is damaged: checksums must be those of pairs.parquet"),
        ({"checksums": {}}, f"{CONFIG} is damaged: checksums"),
        ({"checksums": {"../../etc/passwd": "0"}}, f"{CONFIG} is damaged: checksums"),
        ({"checksums": None}, f"{CONFIG} is damaged"),
    ],
)
def test_a_config_that_says_something_else(folder, values, message):
    change_config(folder, **values)
    with pytest.raises(InputError, match=message):
        load(folder)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "null", '{"encoder": "jaccard"}'])
def test_a_damaged_config(folder, content):
    (folder / CONFIG).write_text(content)
    with pytest.raises(InputError, match=f"{CONFIG} is damaged"):
        load(folder)


def test_the_encoder_must_be_that_of_the_index(folder, tmp_path):
    with pytest.raises(
        InputError, match=r"made with a function as its encoder: pass it, `from_pretrained\(…, encoder"
    ):
        ParaphraseRetriever.from_pretrained(folder)
    with pytest.raises(InputError, match="is from a function, whose vectors differ from those of"):
        ParaphraseRetriever.from_pretrained(folder, encoder=lambda texts: count_letters(texts)[:, ::-1])
    with pytest.raises(InputError, match="makes vectors of 5 numbers, but the index has 26"):
        ParaphraseRetriever.from_pretrained(folder, encoder=lambda texts: count_letters(texts)[:, :5])
    with pytest.raises(InputError, match="made with a function, not with 'jaccard'"):
        ParaphraseRetriever.from_pretrained(folder, encoder="jaccard")
    ParaphraseRetriever.from_pairs(PAIRS, "jaccard").save_pretrained(tmp_path / "jaccard")
    with pytest.raises(InputError, match="made with 'jaccard', not with <function"):
        ParaphraseRetriever.from_pretrained(tmp_path / "jaccard", encoder=count_letters)


def test_no_retriever(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"holds no retriever: there is no {CONFIG}"):
        ParaphraseRetriever.from_pretrained(tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no retriever"):
        ParaphraseRetriever.from_pretrained(tmp_path, subfolder="retriever")
    with pytest.raises(FileNotFoundError, match="no/where is neither a folder nor a Hub repository within reach"):
        ParaphraseRetriever.from_pretrained("no/where")


def test_a_retriever_in_a_repository(folder, tmp_path, monkeypatch):
    """Pushing hands the files to `upload_folder`, and loading takes them from where `snapshot_download` puts them."""
    hub, calls = tmp_path / "hub", []

    def create_repo(self, repo_id, **kwargs):
        calls.append((repo_id, kwargs))
        return type("Url", (), {"repo_id": f"me/{repo_id}"})

    def upload_folder(self, *, folder_path, path_in_repo, **kwargs):
        calls.append(kwargs)
        shutil.copytree(folder_path, hub / path_in_repo)

    monkeypatch.setattr(HfApi, "create_repo", create_repo)
    monkeypatch.setattr(HfApi, "upload_folder", upload_folder)
    load(folder).push_to_hub("questions", subfolder="retriever", private=True)
    assert calls[0] == ("questions", {"private": True, "exist_ok": True})
    assert calls[1]["repo_id"] == "me/questions"

    def snapshot_download(repo_id, *, allow_patterns, revision, token, cache_dir, local_files_only):
        assert repo_id == "me/questions"
        names = ("pairs.parquet", "index.faiss", "vectors.f16", CONFIG, "encoder/*")
        assert allow_patterns == [f"retriever/{name}" for name in names]
        return str(hub)

    monkeypatch.setattr(retriever_module, "snapshot_download", snapshot_download)
    again = ParaphraseRetriever.from_pretrained("me/questions", encoder=count_letters, subfolder="retriever")
    assert again.retrieve(["how"], 3) == load(folder).retrieve(["how"], 3)


@ENCODERS
def test_loading_makes_the_same_vectors_in_another_precision(encoder, tmp_path):
    ParaphraseRetriever.from_pairs(PAIRS, encoder).save_pretrained(tmp_path)
    noisy = encoder if encoder == "jaccard" else lambda texts: count_letters(texts) + 1e-3 * np.random.rand(26)
    assert len(ParaphraseRetriever.from_pretrained(tmp_path, encoder=noisy)) == len(PAIRS)


@pytest.mark.parametrize("name", ["pairs.parquet", "index.faiss"])
def test_what_is_damaged_under_a_right_checksum(name, folder):
    """A byte changed or the end cut off, at many places: the retriever loads, or an error names what is damaged."""
    whole = (folder / name).read_bytes()
    refused = 0
    for place in range(0, len(whole), max(1, len(whole) // 40)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        for content in (damaged, whole[:place]):
            (folder / name).write_bytes(content)
            accept(folder)
            try:
                load(folder).retrieve(["how"], 2)
            except InputError:
                refused += 1
    assert refused > 40


def test_a_length_in_an_index_asks_for_no_more_memory_than_the_file_has(folder):
    content = bytearray((folder / "index.faiss").read_bytes())
    content[37 + 3] = 0x75  # of 130 numbers in all, two thousand million
    (folder / "index.faiss").write_bytes(content)
    accept(folder)
    limit = faiss.get_deserialization_vector_byte_limit()
    with pytest.raises(InputError, match="index.faiss is not a FAISS index.*limit"):
        load(folder)
    assert faiss.get_deserialization_vector_byte_limit() == limit
