"""A corpus on the Hub: Parquet with a card, and back again."""

from __future__ import annotations

from huggingface_hub import DatasetCard

from .repositories import Blob

PUSH = """
from hf_paraphrase.datasets import push_to_hub
sizes = dict(train_size=40, validation_size=8, test_size=9)
result = push_to_hub("synthetic_questions", "you/questions", private={private}, **sizes)
"""
LOAD = """
import datasets
from hf_paraphrase import load_dataset
sizes = dict(train_size=40, validation_size=8, test_size=9)
remote, local = datasets.load_dataset("you/questions"), load_dataset("synthetic_questions", **sizes)
result = [
    {split: len(rows) for split, rows in remote.items()},
    [split for split in local if [row["source"] for row in local[split]] != [row["source"] for row in remote[split]]],
]
"""


def test_a_corpus_there_and_back(client, server):
    assert client.python(PUSH.format(private=True), token="hf_you") == f"{server.endpoint}/datasets/you/questions"
    repository = server.repository("you/questions", "datasets")
    files = repository.files()
    assert repository.private
    assert sum(path.endswith(".parquet") for path in files) == 3
    card = DatasetCard(files["README.md"].content.decode())
    (config,) = card.data["configs"]
    assert [entry["split"] for entry in config["data_files"]] == ["train", "validation", "test"]
    assert "\n## Licence\n" in card.text
    assert client.python(LOAD, token="hf_you") == [{"train": 40, "validation": 8, "test": 9}, []]


def test_a_person_s_card_is_kept(client, server):
    client.python(PUSH.format(private=False), token="hf_you")
    repository = server.repository("you/questions", "datasets")
    mine = repository.files()["README.md"].content + b"\nby hand\n"
    repository.record("main", repository.files() | {"README.md": Blob(mine, False)}, "by hand")
    client.python(PUSH.format(private=False), token="hf_you")
    assert repository.files()["README.md"].content.endswith(b"\nby hand\n")
