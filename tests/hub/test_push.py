"""`hf-paraphrase push` with the real client of the Hub, over HTTP."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries
from huggingface_hub.repocard_data import model_index_to_eval_results

from hf_paraphrase.hub.card import is_edited
from tests.generation.language_models import PROMPT, byte_tokenizer, tiny_llama
from tests.models.tiny import save, tiny_bart

from .repositories import Blob, Repository
from .runs import digest
from .server import Fault

PUSHED = {
    ".eval_results/hf_paraphrase.yaml",
    ".gitattributes",
    "README.md",
    "config.json",
    "configuration_residual_lstm.py",
    "evaluation/results-test.json",
    "generation_config.json",
    "layers.py",
    "model.safetensors",
    "modeling_residual_lstm.py",
    "recipe/config.json",
    "recipe/generation_config.json",
    "recipe/training.yaml",
    "search.py",
    "text.py",
    "tokenizer.json",
    "tokenizer_config.json",
    "training_summary.json",
}


@pytest.fixture
def push(client, server, trained_run):
    """Push the run to you/tiny."""
    return lambda *args, **kwargs: client("push", trained_run, "--repo-id", "you/tiny", *args, **kwargs)


def test_a_language_model_is_asked_as_before_by_whoever_loads_it(client, server, tmp_path):
    folder = save(tiny_llama(), tmp_path / "lm", byte_tokenizer())
    PROMPT.save(tmp_path / "lm" / "prompt.yaml")
    (tmp_path / "lm" / "README.md").write_text("A language model.")
    assert client("push", folder, "--repo-id", "you/lm").status == 0
    found = client.python(
        "from hf_paraphrase import Paraphraser\n"
        "writer = Paraphraser.from_pretrained('you/lm').writer\n"
        "result = [writer.prompt.plain, writer.encoder.is_chat]"
    )
    assert found == [PROMPT.plain, True]
    (tmp_path / "lm" / "prompt.yaml").unlink()
    assert client("push", folder, "--repo-id", "you/lm").status == 0
    assert "prompt.yaml" not in server.repository("you/lm").files()


def test_one_commit_holds_everything(push, server, trained_run):
    before = digest(trained_run)
    answer = push()
    repository = server.repository("you/tiny")
    assert answer.status == 0, answer
    assert answer.output == f"{server.endpoint}/you/tiny/commit/{repository.sha('main')}\n"
    assert list(repository.messages.values()) == ["initial commit", "Upload tiny"]
    files = repository.files()
    assert files.keys() == PUSHED
    for path in files.keys() & before.keys():
        assert files[path].sha256 == before[path], path
    assert files["model.safetensors"].is_large and not repository.private
    assert digest(trained_run) == before


def test_card_and_results_are_valid(push, server):
    push()
    files = server.repository("you/tiny").files()
    card = ModelCard(files["README.md"].content.decode())
    assert 'model="you/tiny", trust_remote_code=True' in card.text
    assert not is_edited(str(card))
    name, results = model_index_to_eval_results(card.data.to_dict()["model-index"])
    assert name == "tiny"
    assert [(one.metric_name, one.metric_value) for one in results][0] == ("bleu_4, beam 5", 20.12)
    entries = parse_eval_result_entries(yaml.safe_load(files[".eval_results/hf_paraphrase.yaml"].content))
    assert [(entry.task_id, entry.value) for entry in entries] == [
        ("bleu_4_beam5", 20.12),
        ("ter_beam5", 60.46),
        ("bleu_4_beam10", 21.5),
        ("ter_beam10", 59.5),
    ]
    assert entries[0].notes == "split test, 3 rows; 95% interval 19.12 to 21.12; case:lc|tok:13a"


def test_pushing_again_sends_nothing(push, server):
    first = push()
    uploads = server.count("^PUT /large/")
    assert uploads == server.count("^POST /verify/") > 0
    again = push()
    assert again.output == first.output and again.status == 0
    assert server.count("^PUT /large/") == uploads
    assert server.count("/commit/") == 1


def test_only_what_changed_is_sent(push, server, client, trained_run, tmp_path):
    push()
    folder = tmp_path / "tiny"
    shutil.copytree(trained_run, folder)
    results = json.loads((folder / "evaluation" / "results-test.json").read_text())
    results["entries"][0]["scores"][0]["score"] = 99.0
    (folder / "evaluation" / "results-test.json").write_text(json.dumps(results))
    before, uploads = server.repository("you/tiny").files(), server.count("^PUT /large/")
    assert client("push", folder, "--repo-id", "you/tiny").status == 0
    after = server.repository("you/tiny").files()
    changed = {path for path in after if after[path] != before.get(path)}
    # The card was written by the first push, and by nobody else: it follows.
    assert changed == {"README.md", "evaluation/results-test.json", ".eval_results/hf_paraphrase.yaml"}
    assert server.count("^PUT /large/") == uploads


FAULTS = {
    "dropped at the start": Fault("POST /api/repos/create"),
    "dropped in the upload": Fault("PUT /large/"),
    "dropped at the commit": Fault("POST .*/commit/", times=2),
    "answer to the commit lost": Fault("POST .*/commit/", done=True),
    "500 at the commit": Fault("POST .*/commit/", status=500, times=3),
    "503 in the upload": Fault("PUT /large/", status=503, times=2),
    "429 before the upload": Fault("POST .*/preupload/", status=429),
    "412, a commit came between": Fault("POST .*/commit/", status=412),
    "429 at the commit": Fault("POST .*/commit/", status=429, retry_after=7),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_passing_faults_are_waited_out(fault, push, server):
    server.faults.append(FAULTS[fault])
    answer = push()
    repository = server.repository("you/tiny")
    assert answer.status == 0, answer
    assert answer.output.endswith(f"{repository.sha('main')}\n")
    assert list(repository.messages.values()) == ["initial commit", "Upload tiny"]
    assert repository.files().keys() >= PUSHED
    assert answer.waits and (7 in answer.waits) == (fault == "429 at the commit")
    assert not FAULTS[fault].times


@pytest.mark.parametrize("status", [None, 500])
def test_a_push_that_fails_for_good_is_finished_later(status, push, server, trained_run):
    before = digest(trained_run)
    server.faults.append(Fault("POST .*/commit/", status=status, times=1000))
    answer = push()
    assert answer.status == 2
    assert answer.errors.splitlines()[-1].startswith("error: the Hub ")
    assert answer.errors.endswith("the same push again finishes it\n")
    assert answer.waits == [1, 2, 4, 8]
    assert server.repository("you/tiny").files().keys() == {".gitattributes"}
    assert digest(trained_run) == before
    server.faults.clear()
    uploads = server.count("^PUT /large/")
    assert push().status == 0
    assert server.repository("you/tiny").files().keys() >= PUSHED
    assert server.count("^PUT /large/") == uploads


@pytest.mark.parametrize("request_", ["POST .*/preupload/", "PUT /large/", "HEAD .*/resolve/"])
def test_what_the_client_has_retried_is_not_tried_again(request_, push, server):
    push()
    repository = server.repository("you/tiny")
    repository.record("main", repository.files() | {"README.md": Blob(request_.encode(), False)}, "by hand")
    server.large.clear()
    server.requests.clear()
    server.faults.append(Fault(request_, status=503, times=1000))
    answer = push()
    assert answer.status == 2
    assert "the Hub " in answer.errors and answer.errors.endswith("; the same push again finishes it\n")
    assert answer.waits == [1, 2, 4, 8, 8]
    assert server.count(request_) == 6 + request_.startswith("HEAD")  # whose first is only to see if it has to be
    assert server.count("/commit/") == 0


def test_a_card_that_breaks_off_is_asked_for_again(push, server):
    """The client retries refusals here, but not a connection that is dropped."""
    push()
    repository = server.repository("you/tiny")
    repository.record("main", repository.files() | {"README.md": Blob(b"another", False)}, "by hand")
    server.faults.append(Fault("HEAD .*/resolve/"))
    answer = push()
    assert answer.status == 0 and answer.waits == [1] and "it is kept" in answer.errors


def test_an_edited_card_is_kept_even_where_an_older_one_is_at_hand(push, server):
    push()
    push()
    repository = server.repository("you/tiny")
    repository.record("main", repository.files() | {"README.md": Blob(b"mine", False)}, "by hand")
    server.faults.append(Fault("HEAD .*/resolve/", status=503))
    assert push().status == 0
    assert repository.files()["README.md"].content == b"mine"


def test_a_commit_that_comes_between_is_not_overwritten(push, server, monkeypatch):
    """Somebody writes a card while ours is on its way: theirs is kept."""
    push()
    repository = server.repository("you/tiny")
    repository.record("main", {path: blob for path, blob in repository.files().items() if path != "config.json"}, "x")
    commit = repository.commit

    def write_a_card_first(*args):
        monkeypatch.undo()
        repository.record("main", repository.files() | {"README.md": Blob(b"mine", False)}, "by hand")
        return commit(*args)

    monkeypatch.setattr(repository, "commit", write_a_card_first)
    answer = push()
    assert answer.status == 0 and "412" in answer.errors and "it is kept" in answer.errors
    assert repository.files()["README.md"].content == b"mine" and "config.json" in repository.files()


def test_a_model_without_a_card_makes_no_repository(client, server, tmp_path):
    save(tiny_bart(), tmp_path / "bart")
    answer = client("push", tmp_path / "bart", "--repo-id", "you/bart")
    assert answer.status == 2 and "no card text for models of type bart; write a README.md" in answer.errors
    assert not server.requests
    (tmp_path / "bart" / "README.md").write_text("---\nlicense: mit\n---\nA BART.\n")
    assert client("push", tmp_path / "bart", "--repo-id", "you/bart").status == 0
    assert server.repository("you/bart").files().keys() >= {"README.md", "model.safetensors", "tokenizer.json"}


def test_permission_denied(push, server, client, trained_run):
    answer = client("push", trained_run, "--repo-id", "you/tiny", token="hf_reader")
    assert answer.status == 2 and not answer.waits
    assert "403" in answer.errors and "the rights to write under the namespace 'you'" in answer.errors
    assert not server.repositories
    push()
    answer = push(token="hf_reader")
    assert answer.status == 2 and "403" in answer.errors


def test_a_token_that_is_not_valid(push, server):
    answer = push(token="hf_expired")
    assert answer.status == 2 and "run `hf auth login`" in answer.errors
    assert "hf_expired" not in answer.errors + answer.output


def test_no_token(push, server):
    answer = push(token=None)
    assert answer.errors == "error: no Hub token found: run `hf auth login`, or set HF_TOKEN\n"
    assert answer.status == 2 and not server.requests


def test_the_token_is_told_to_nobody(push, server):
    server.faults.append(Fault("POST .*/commit/", status=500))
    answer = push()
    assert "hf_you" in server.tokens
    assert "hf_you" not in answer.output + answer.errors
    assert not any(b"hf_you" in blob.content for blob in server.repository("you/tiny").files().values())


@pytest.mark.parametrize(
    ("repo_id", "message"),
    [("you/two/three", "is not a valid repository name"), ("you/-x", "is not a valid repository name")],
)
def test_names_that_no_repository_can_have(repo_id, message, client, server, trained_run):
    answer = client("push", trained_run, "--repo-id", repo_id)
    assert answer.status == 2 and message in answer.errors
    assert not server.requests


def test_a_name_without_namespace_is_in_the_user_s(client, server, trained_run):
    assert client("push", trained_run, "--repo-id", "tiny").status == 0
    assert 'model="you/tiny"' in server.repository("you/tiny").files()["README.md"].content.decode()


def test_private(push, server):
    assert push("--private").status == 0
    assert server.repository("you/tiny").private


def test_a_branch(push, server):
    assert push("--revision", "v1").status == push("--revision", "v1").status == 0
    repository = server.repository("you/tiny")
    assert repository.files("v1").keys() >= PUSHED
    assert repository.files("main").keys() == {".gitattributes"}
    assert len(repository.messages) == 2


def test_a_pull_request_is_opened_once(push, server):
    server.faults.append(Fault("POST .*/commit/", done=True))
    address = f"{server.endpoint}/you/tiny/discussions/1\n"
    assert push("--create-pr").output == push("--create-pr").output == address
    repository = server.repository("you/tiny")
    assert repository.files("refs/pr/1").keys() >= PUSHED
    assert repository.files("main").keys() == {".gitattributes"}
    assert len(repository.pull_requests) == 1


def test_an_open_pull_request_gets_the_commit(push, server):
    server.repositories["models", "you/tiny"] = repository = Repository("models", "you/tiny")
    repository.open_pull_request("main", "by hand", "reader")
    answer = push("--revision", "refs/pr/1")
    assert answer.status == 0, answer
    assert repository.files("refs/pr/1").keys() >= PUSHED
    assert repository.files("main").keys() == {".gitattributes"}
    assert not server.count("POST .*/branch/")


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (["--revision", "refs/pr/7"], "you/tiny has no refs/pr/7; --create-pr alone opens a new pull request"),
        (["--revision", "v1", "--create-pr"], "you/tiny has no v1; --create-pr alone opens a new pull request"),
        (["--revision", "refs/pr/7", "--create-pr"], "refs/pr/7 is a pull request already: leave out --create-pr"),
        (["--revision", "refs/heads/v1"], "--revision refs/heads/v1: name a branch without refs/"),
    ],
)
def test_a_revision_that_cannot_be_pushed_to(options, advice, push, server):
    answer = push(*options)
    assert answer.status == 2 and advice in answer.errors and answer.errors.count("\n") == 1
    assert answer.waits == []


def test_somebody_else_s_repository_can_be_asked(push, client, server, trained_run):
    push()
    server.repository("you/tiny").record("main", {"README.md": Blob(b"by hand", False)}, "cleared")
    options = ["--repo-id", "you/tiny", "--create-pr"]
    answer = client("push", trained_run, *options, token="hf_reader")
    assert answer.status == 0, answer
    assert server.repository("you/tiny").pull_requests[0]["author"] == {"name": "reader"}


def test_what_is_there_already(push, server):
    """Other files stay; weights and indexes of an older push would be read in place of the new ones and go."""
    push("--replace-card")
    repository = server.repository("you/tiny")
    old = {"LICENSE": Blob(b"free", False), "model-00001-of-2.safetensors": Blob(b"old", True)}
    old |= {"retriever/index.faiss": Blob(b"old", True), "README.md": Blob(b"---\nlicense: mit\n---\nmine", False)}
    repository.record("main", repository.files() | old, "by hand")
    answer = push()
    assert answer.status == 0
    assert "a card that a person edited: it is kept" in answer.errors
    files = repository.files()
    assert files["README.md"].content.endswith(b"mine") and files["LICENSE"].content == b"free"
    assert not files.keys() & {"model-00001-of-2.safetensors", "retriever/index.faiss"}
    assert push("--replace-card").status == 0
    assert not is_edited(repository.files()["README.md"].content.decode())


def test_the_folder_s_own_card_is_taken(client, server, trained_run, tmp_path):
    folder = tmp_path / "tiny"
    shutil.copytree(trained_run, folder)
    shown = client("push", folder, "--repo-id", "you/tiny", "--dry-run")
    assert shown.status == 0 and not server.repositories
    (folder / "README.md").write_text(f"{shown.output}\nby hand\n")
    assert client("push", folder, "--repo-id", "you/tiny").status == 0
    assert server.repository("you/tiny").files()["README.md"].content == (folder / "README.md").read_bytes()


def test_a_card_that_is_no_card(client, server, trained_run, tmp_path):
    folder = tmp_path / "tiny"
    shutil.copytree(trained_run, folder)
    (folder / "README.md").write_text("---\n- a list\n---\n")
    answer = client("push", folder, "--repo-id", "you/tiny")
    assert answer.status == 2 and "error: not pushed: Invalid metadata in README.md" in answer.errors


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("config.json", "holds no config.json: it is not a checkpoint, or its training has not finished"),
        ("model.safetensors", "holds no weights as model.safetensors"),
        ("tokenizer_config.json", "holds a model but no tokenizer"),
        ("modeling_residual_lstm.py", "modeling_residual_lstm.py is missing, which a config file there names"),
    ],
)
def test_half_a_checkpoint_is_not_pushed(missing, message, client, server, trained_run, tmp_path):
    folder = tmp_path / "tiny"
    shutil.copytree(trained_run, folder)
    (folder / missing).unlink()
    answer = client("push", folder, "--repo-id", "you/tiny")
    assert answer.status == 2 and message in answer.errors
    assert not server.requests


def test_no_folder(client, server, tmp_path):
    answer = client("push", tmp_path / "nowhere", "--repo-id", "you/tiny")
    assert answer.status == 2 and "there is no checkpoint folder" in answer.errors
