"""Language models behind an address: faults lose no row, and what a server cannot do is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from datasets import Dataset

from hf_paraphrase import Paraphraser
from hf_paraphrase.augmentation import augment
from hf_paraphrase.augmentation.run import Augmentation, run_augmentation
from hf_paraphrase.common.errors import InputError

from .chat_server import ChatServer, serving

TEXTS = [f"the dog number {number} sat" for number in range(12)]
EASY = {"n": 1, "adequacy": "jaccard", "min_adequacy": 0, "keep": (), "num_candidates": 1}


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The offline mode of the Hub's client is on, as in all tests, and no test waits."""
    waited = []
    monkeypatch.setattr("time.sleep", waited.append)
    return waited


def reword(body: dict, number: int) -> str:
    return f'Here is a paraphrase: "{body["messages"][-1]["content"].splitlines()[-1].replace("dog", "puppy")}"'


def flaky(body: dict, number: int) -> str | int:
    """Fails one of three requests, each time in another way."""
    return (500, 429, 503)[number // 3 % 3] if number % 3 == 0 else reword(body, number)


def test_a_server_that_fails_one_of_three_requests_loses_no_row(waits: list[float]) -> None:
    server = ChatServer(flaky)
    with serving(server) as address:
        paraphraser = Paraphraser.from_pretrained("small", backend=address)
        rows = augment(Dataset.from_dict({"text": TEXTS}), paraphraser, **EASY)
    assert rows["paraphrase"] == [text.replace("dog", "puppy") for text in TEXTS] and rows["error"] == [None] * 12
    assert len(server.requests) == 12 + len(waits) and waits
    assert paraphraser.writer.tokens == {"prompt": 120, "completion": 36}
    assert {body["model"] for body in server.requests} == {"small"}


def test_tokens_are_counted_on_the_card(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("\n".join(["text", *TEXTS]))
    with serving(ChatServer(flaky)) as address:
        asked = {name: value for name, value in EASY.items() if name != "n"} | {"keep": []}
        texts = {"input": str(tmp_path / "texts.csv"), "column": "text", "n": 1, "tasks": 2}
        run_augmentation(Augmentation(model="m", backend=address, **texts, options=asked), str(tmp_path / "out"))
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| prompt tokens | 120 |" in card and "| completion tokens | 36 |" in card


def test_batches_are_in_flight_at_once() -> None:
    """No request is answered before four are there."""
    with serving(ChatServer(reword, at_once=4)) as address:
        groups = Paraphraser.from_pretrained("m", backend=address)(TEXTS, batch_size=4, **EASY)
    assert all(len(group) == 1 for group in groups)


def test_candidates_of_a_text_have_seeds_of_their_own() -> None:
    server = ChatServer(lambda body, number: f"puppy {body['seed']}")
    with serving(server) as address:
        paraphraser = Paraphraser.from_pretrained("m", backend=address)
        first, again = (paraphraser(TEXTS[0], **{**EASY, "num_candidates": 3}) for _ in range(2))
    assert first == again and len({body["seed"] for body in server.requests}) == 3
    assert {body["temperature"] for body in server.requests} == {0.8}


@pytest.mark.parametrize("logprob", [None, -0.5])
def test_fluency_is_what_the_server_tells(logprob: float | None) -> None:
    with serving(ChatServer(lambda body, number: "the puppy sat", logprob)) as address:
        paraphraser = Paraphraser.from_pretrained("m", backend=address)
        (found,) = paraphraser(TEXTS[0], **EASY)
        if logprob is None:
            with pytest.raises(InputError, match="gives no log-probabilities"):
                paraphraser(TEXTS[0], min_fluency=0.1, **EASY)
    assert found.fluency == (None if logprob is None else pytest.approx(math.exp(logprob)))
    assert 0 < found.score <= 1


def test_adequacy_is_judged_by_the_released_model() -> None:
    with serving(ChatServer(lambda body, number: "the puppy sat down")) as address:
        paraphraser = Paraphraser.from_pretrained("m", backend=address)
        (found,) = paraphraser("The dog sat down.", **{**EASY, "adequacy": "round_trip"})
    assert 0 < found.adequacy < 1


def test_the_key_comes_from_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_hub")
    server = ChatServer(reword)
    with serving(server) as address:
        Paraphraser.from_pretrained("m", backend=address)(TEXTS[0], **EASY)
        monkeypatch.setenv("HF_PARAPHRASE_API_KEY", "mine")
        Paraphraser.from_pretrained("m", backend=address)(TEXTS[0], **EASY)
    assert server.keys == {"Bearer none", "Bearer mine"}


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (503, OSError, "503"),
        (401, OSError, "HF_PARAPHRASE_API_KEY"),
        (404, OSError, "a model 'm'"),
        (400, InputError, "400"),
    ],
)
def test_what_fails_for_good_is_named(status: int, error: type[Exception], message: str) -> None:
    with serving(ChatServer(lambda body, number: status)) as address, pytest.raises(error, match=message) as caught:
        Paraphraser.from_pretrained("m", backend=address)(TEXTS[0], **EASY)
    assert address in str(caught.value)
    with pytest.raises(OSError, match="could not be reached"):
        Paraphraser.from_pretrained("m", backend=address)(TEXTS[0], **EASY)


@pytest.mark.parametrize(
    "options", [{"decoding": "beam"}, {"num_beams": 3}, {"num_neighbors": 1}, {"max_source_length": 9}, {"top_k": 5}]
)
def test_what_a_server_cannot_do_is_refused_by_name(options: dict) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        Paraphraser.from_pretrained("m", backend="http://127.0.0.1:9/v1")("a", **options)


def test_an_address_needs_a_host() -> None:
    with pytest.raises(InputError, match="has no host"):
        Paraphraser.from_pretrained("m", backend="http:///v1")


def test_a_server_that_is_not_there_is_told_at_once(waits: list[float]) -> None:
    with serving(ChatServer(reword)) as address:
        paraphraser = Paraphraser.from_pretrained("small", backend=address)
    with pytest.raises(ConnectionError, match=r"could not be reached \(ConnectError\); is the server running\?"):
        paraphraser("a text", **EASY)
    assert not waits
