from __future__ import annotations

import socket

import pytest
from huggingface_hub import constants

from hf_paraphrase.common import hub_access
from hf_paraphrase.common.hub_access import describe_absence, reach_hub, use_cache_without_network
from tests.cli.runner import run


@pytest.fixture
def online(monkeypatch):
    """Nobody asked the Hub yet, and nobody forbids it."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub_access, "_problem", "")
    monkeypatch.setattr(hub_access, "_next_probe", 0.0)


@pytest.fixture
def silent(monkeypatch):
    """A Hub that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", 0.1)
        yield


def test_a_silent_hub_is_left_alone_until_it_answers(online, silent, monkeypatch):
    use_cache_without_network("you/model")
    assert constants.HF_HUB_OFFLINE
    assert f"{constants.ENDPOINT} cannot be reached (timed out)" in describe_absence("you/model")
    monkeypatch.setattr(hub_access, "reach_hub", lambda: None)
    use_cache_without_network("you/model")
    assert constants.HF_HUB_OFFLINE, "asked again at once"
    monkeypatch.setattr(hub_access, "_next_probe", 0.0)
    use_cache_without_network("you/model")
    assert not constants.HF_HUB_OFFLINE
    assert "check its name" in describe_absence("you/model")


def test_the_hub_is_asked_only_where_it_may_know(online, monkeypatch, tmp_path):
    def fail() -> None:
        raise AssertionError

    monkeypatch.setattr(hub_access, "reach_hub", fail)
    for path in (tmp_path, tmp_path / "none", "how do i cook ?"):
        use_cache_without_network(path)
    use_cache_without_network("you/model", local_files_only=True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    use_cache_without_network("you/model")
    with pytest.raises(AssertionError):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        use_cache_without_network("you/model")


def test_a_push_does_not_wait_without_end(online, silent):
    with pytest.raises(hub_access.TransportError):
        reach_hub()


@pytest.mark.parametrize("command", [("info",), ("paraphrase", "a text"), ("space", "--output", "x")])
def test_offline_mode_is_said_in_one_line(command, capsys):
    name, *options = command
    assert run(name, "you/model", *options) == 2
    error = capsys.readouterr().err
    assert "nor a Hub repository within reach; HF_HUB_OFFLINE is set: unset it" in error and error.count("\n") == 1
    assert run(name, "/no/such/folder", *options) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: /no/such/folder is neither a checkpoint folder nor a Hub repository: there is no")
    assert error.count("\n") == 1
