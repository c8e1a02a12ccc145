"""`hf-paraphrase push` with the real client of the Hub, over HTTP, and `evaluate.load` of what it pushed."""

from __future__ import annotations

import pytest

from hf_paraphrase import __version__
from hf_paraphrase.metrics.pinc.scoring import pinc

pytest.importorskip("gradio")

INPUTS = {"predictions": ["a b c", "d"], "sources": ["a b", "d"]}
LOAD = f"""
import evaluate
evaluate.config.HF_UPDATE_DOWNLOAD_COUNTS = False  # counting asks a server outside
metric = evaluate.load("you/new_ngrams")
result = metric.name, metric.compute(**{INPUTS!r})
"""


def test_evaluate_loads_what_was_pushed(client, server):
    answer = client("push", "pinc", "--repo-id", "you/new_ngrams", "--private")
    assert answer.status == 0, answer
    assert answer.output == f"{server.endpoint}/spaces/you/new_ngrams\n"
    repository = server.repository("you/new_ngrams", "spaces")
    assert repository.private
    files = {path: blob.content.decode() for path, blob in repository.files().items()}
    assert files.keys() - {".gitattributes"} == {"new_ngrams.py", "README.md", "app.py", "requirements.txt"}
    assert files["app.py"].endswith("launch_metric('pinc')\n")
    assert files["requirements.txt"] == f"hf-paraphrase[demo,metrics]=={__version__}\n"
    assert 'evaluate.load("you/new_ngrams")' in files["README.md"]
    repository.private = False
    assert client.python(LOAD) == ["pinc", pinc(**INPUTS)]


def test_a_space_without_a_namespace_is_the_users_own(client, server):
    answer = client("push", "pinc", "--repo-id", "pinc")
    assert answer.output == f"{server.endpoint}/spaces/you/pinc\n"
    files = server.repository("you/pinc", "spaces").files()
    assert 'evaluate.load("you/pinc")' in files["README.md"].content.decode()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["blue", "--repo-id", "you/blue"], "blue is not a checkpoint folder; nor is it a metric: bleu"),
        (["pinc", "--repo-id", "you/pinc.1"], "cannot load from you/pinc.1: choose a name without a dot"),
    ],
)
def test_what_cannot_be_pushed_is_told(args, message, client, server):
    answer = client("push", *args)
    assert answer.status == 2 and message in answer.errors
    assert not server.repositories


def test_without_a_token_nothing_is_asked(client, server):
    answer = client("push", "pinc", "--repo-id", "you/pinc", token=None)
    assert answer.status == 2 and "hf auth login" in answer.errors
    assert not server.requests
