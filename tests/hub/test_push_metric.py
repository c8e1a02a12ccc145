"""`hf-paraphrase push-metric` with the real client of the Hub, over HTTP, and `evaluate.load` of what it pushed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hf_paraphrase import __version__
from hf_paraphrase.metrics.pinc.scoring import pinc

pytest.importorskip("gradio")

ROOT = Path(__file__).resolve().parents[2]
INPUTS = {"predictions": ["a b c", "d"], "sources": ["a b", "d"]}
LOAD = """
import json, sys
import evaluate
try:
    metric = evaluate.load(sys.argv[1])
except ImportError as error:
    print(json.dumps(str(error)))
else:
    print(json.dumps([metric.name, metric.compute(**json.loads(sys.argv[2]))]))
"""


@pytest.fixture
def load(server, tmp_path):
    """Load a metric from the Hub in another process, with the package or without."""

    def load(repo_id: str, package: str = str(ROOT)):
        variables = {"HF_ENDPOINT": server.endpoint, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
        variables |= {"HF_UPDATE_DOWNLOAD_COUNTS": "0", "PYTHONPATH": package}
        done = subprocess.run(
            [sys.executable, "-P", "-c", LOAD, repo_id, json.dumps(INPUTS)],
            cwd=tmp_path,
            env=os.environ | variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return load


def test_evaluate_loads_what_was_pushed(client, server, load):
    answer = client("push-metric", "pinc", "--repo-id", "you/new_ngrams", "--private")
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
    assert load("you/new_ngrams") == ["pinc", pinc(**INPUTS)]


def test_who_lacks_the_package_is_told(client, load, tmp_path):
    """A package of the same name that cannot be imported stands before the installed one."""
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "hf_paraphrase.py").write_text("raise ImportError")
    assert client("push-metric", "pinc", "--repo-id", "pinc").status == 0  # in the user's own namespace
    assert "pip install hf_paraphrase" in load("you/pinc", str(tmp_path / "without"))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["blue", "--repo-id", "you/blue"], "unknown metric 'blue'; available: bleu"),
        (["pinc", "--repo-id", "you/pinc.1"], "cannot load from you/pinc.1: choose a name without a dot"),
    ],
)
def test_what_cannot_be_pushed_is_told(args, message, client, server):
    answer = client("push-metric", *args)
    assert answer.status == 2 and message in answer.errors
    assert not server.repositories


def test_without_a_token_nothing_is_asked(client, server):
    answer = client("push-metric", "pinc", "--repo-id", "you/pinc", token=None)
    assert answer.status == 2 and "hf auth login" in answer.errors
    assert not server.requests
