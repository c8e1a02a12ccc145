from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import numpy as np
import pytest
import torch
from fastapi import HTTPException

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.paraphrase_table import Paraphrases
from hf_paraphrase.released import RELEASED
from hf_paraphrase.serving.app import Service
from hf_paraphrase.serving.limits import Limits
from hf_paraphrase.serving.served_model import ServedModel, load_served_model
from tests.generation.paraphrasers import PARAPHRASERS, make_paraphraser, random_sentences
from tests.models.tiny import save, tiny_matcher, word_tokenizer

from .running import RunningServer, run_app

FIELDS = ("text", "score", "adequacy", "fluency", "novelty")


@pytest.fixture(scope="module")
def bart():
    with run_app(make_paraphraser("bart"), Limits(max_text_length=40, max_queue=20)) as server:
        yield server


def expected(name: str, text: str, **options: Any) -> list[dict[str, Any]]:
    """What the package says of one text alone."""
    return [{field: getattr(one, field) for field in FIELDS} for one in make_paraphraser(name)(text, **options)]


def same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> bool:
    """Whether paraphrases are the same, but for the last digits of scores."""
    return found == [{**one, **{name: pytest.approx(one[name], abs=1e-4) for name in FIELDS[1:]}} for one in wanted]


@pytest.mark.parametrize("name", PARAPHRASERS)
def test_every_paraphraser_can_be_served(name):
    texts = random_sentences(5)
    with run_app(make_paraphraser(name)) as server:
        answer = server.post("/paraphrase", texts=texts, n=2, seed=3).json()
    assert answer["model"] == "tiny"
    assert [found["source"] for found in answer["results"]] == texts
    for text, found in zip(texts, answer["results"], strict=True):
        assert same(found["paraphrases"], expected(name, text, n=2, seed=3))
    assert any(found["paraphrases"] for found in answer["results"])


def test_health_tells_of_a_worker_that_is_gone():
    async def inner() -> None:
        service = Service(ServedModel("tiny", match=lambda pairs, options: pairs), Limits())
        async with service.run(None):
            assert (await service.health()).tasks == ["match"]
            task = service.queues["match"].task
            task.cancel()
            await asyncio.wait([task])
            with pytest.raises(HTTPException, match="no longer computes match") as refused:
                await service.health()
            assert refused.value.status_code == 503

    asyncio.run(inner())


def test_a_text_may_stand_alone_or_be_blank(bart):
    (alone,) = bart.post("/paraphrase", texts="the cat sat on the mat").json()["results"]
    assert same(alone["paraphrases"], expected("bart", "the cat sat on the mat"))
    assert bart.post("/paraphrase", texts=["", " "]).json()["results"] == [
        {"source": "", "paraphrases": [], "refusal": None},
        {"source": " ", "paraphrases": [], "refusal": None},
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"n": 1, "min_adequacy": 0.2, "diversity": 0.5},
        {"n": 2, "strength": 0.8},
        {"decoding": "sample", "seed": 5, "temperature": 0.7, "top_k": 5, "keep": []},
        {"decoding": "diverse_beam", "num_candidates": 6, "keep": ["names"], "max_new_tokens": 4},
    ],
)
def test_options_are_those_of_the_paraphraser(bart, options):
    text = "how do i learn to cook ?"
    (found,) = bart.post("/paraphrase", texts=text, **options).json()["results"]
    assert same(found["paraphrases"], expected("bart", text, **options))


@pytest.mark.parametrize(
    ("asked", "status", "reason"),
    [
        ({"texts": "the cat", "n": 0}, 422, "greater than or equal to 1"),
        ({"texts": "the cat", "n": "many"}, 422, "valid integer"),
        ({"texts": "the cat", "strength": 1.5}, 422, "less than or equal to 1"),
        ({"texts": []}, 422, "at least 1 item"),
        ({"texts": ["the cat", 3]}, 422, "valid string"),
        ({}, 422, "Field required"),
        ({"texts": "the cat", "encoder": "somebody/elses"}, 422, "Extra inputs are not permitted"),
        ({"texts": "the cat", "keep": ["number"]}, 422, "near to the kind 'numbers'"),
        ({"texts": "the cat", "decoding": "noise"}, 422, "for a model that embeds sentences"),
        ({"texts": "the cat", "n": 9, "num_candidates": 3}, 422, "`num_candidates` must be at least `n`"),
        ({"texts": "the cat", "num_neighbors": 3}, 422, "edits by no retrieved pair"),
        ({"texts": ["the cat", "a" * 41]}, 413, "`texts`, number 1 from 0, has a text of 41 characters; at most 40"),
        ({"texts": ["a"] * 21}, 413, "`texts` has 21 items; at most 20 are taken"),
    ],
)
def test_bad_input_is_refused_with_a_reason(bart, asked, status, reason):
    answer = bart.post("/paraphrase", **asked)
    assert answer.status_code == status
    assert reason in json.dumps(answer.json()["detail"], ensure_ascii=False)


HOSTILE = {
    b"{": "JSON decode error",
    b"\xff\xfe": "JSON decode error",
    b"": "Field required",
    b'{"texts": "the \\ud83d cat"}': "half of a surrogate pair",
    b'{"texts": ["a"], "\\ud800": 1}': "unicode",
    b'{"texts": "a", "min_novelty": NaN}': "than or equal to",
    b'{"texts": "a", "temperature": Infinity}': "less than or equal to 100",
    b'{"texts": "a", "n": 1e400}': "finite",
    b'{"texts": "a", "seed": 99999999999999999999999}': "less than",
}


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: body[:40].decode(errors="replace"))
def test_what_is_no_request_is_refused_with_a_reason(bart, body):
    header = {"Content-Type": "application/json"}
    answer = bart.client.post("/paraphrase", content=body, headers=header)
    assert answer.status_code in (400, 422)
    assert HOSTILE[body] in json.dumps(answer.json()["detail"])


def test_what_is_nowhere_is_refused(bart):
    assert bart.client.get("/paraphrase").status_code == 405
    assert bart.client.get("/elsewhere").status_code == 404


def test_a_long_request_is_not_read_to_its_end():
    limits = Limits(max_text_length=2, max_queue=2)
    with run_app(make_paraphraser("bart"), limits) as server:
        answer = server.client.post("/paraphrase", content=b'{"texts": "' + b"a" * limits.max_bytes)
        assert answer.status_code == 413
        assert answer.json() == {"detail": f"the request is longer than {limits.max_bytes:,} bytes"}
        # Of a text in the most wasteful form that JSON has, as many as are taken fit.
        longest = json.dumps({"texts": ["\N{GRINNING FACE}" * 2] * 2}).encode()
        header = {"Content-Type": "application/json"}
        assert server.client.post("/paraphrase", content=longest, headers=header).status_code == 200


def test_what_another_task_is_for_is_told(bart):
    answer = bart.post("/match", pairs=[])
    assert (answer.status_code, answer.json()) == (404, {"detail": "tiny cannot match, but it can paraphrase"})


def test_a_full_queue_is_told():
    limits = Limits(max_queue=3, max_batch=8, max_wait_ms=300.0)
    with run_app(make_paraphraser("bart"), limits) as server:
        texts = ["the cat", "a dog"]
        with server.client.stream("POST", "/paraphrase", json={"texts": texts, "stream": True}) as first:
            refused = server.post("/paraphrase", texts=texts)
            assert refused.status_code == 429
            assert refused.headers["retry-after"] == "1"
            assert "room for 1 of 3, not for 2 more" in refused.json()["detail"]
            assert server.client.get("/health").json()["waiting"] == 2
            assert first.read().count(b"event: paraphrases") == 2
        assert server.post("/paraphrase", texts=texts).status_code == 200


def read_events(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Server-sent events."""
    lines = [event.split("\n") for event in text.split("\n\n") if event]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in lines]


def test_texts_are_streamed_as_they_are_done():
    texts = ["the cat sat on the mat", "a dog", "how do i learn faster ?"]
    with run_app(make_paraphraser("bart"), Limits(max_batch=1)) as server:
        answer = server.post("/paraphrase", texts=texts, stream=True, n=2)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, end = read_events(answer.text)
    assert end == ("done", {"texts": 3})
    assert [(name, data["index"], data["source"]) for name, data in events] == [
        ("paraphrases", place, text) for place, text in enumerate(texts)
    ]
    for text, (_, data) in zip(texts, events, strict=True):
        assert same(data["paraphrases"], expected("bart", text, n=2))


def test_an_error_of_the_model_is_one_in_the_stream_or_of_the_answer():
    def refuse(texts, options):
        if "spoilt" in texts:
            raise RuntimeError("out of order")
        if "strange" in texts:
            raise ValueError("no such word")
        return [Paraphrases(source=text) for text in texts]

    with run_app(ServedModel("broken", refuse)) as server:
        events = read_events(server.post("/paraphrase", texts=["well", "strange"], stream=True).text)
        assert ("paraphrases", {"index": 0, "source": "well", "paraphrases": [], "refusal": None}) in events
        assert ("error", {"index": 1, "detail": "no such word"}) in events
        answer = server.post("/paraphrase", texts=["well", "strange"])
        assert (answer.status_code, answer.json()) == (422, {"detail": "no such word"})
        events = read_events(server.post("/paraphrase", texts=["well", "spoilt"], stream=True).text)
        assert ("error", {"index": 1, "detail": "the model failed; the server's log says how"}) in events
        answer = server.post("/paraphrase", texts=["spoilt"])
        assert (answer.status_code, answer.json()["detail"]) == (500, "the model failed; the server's log says how")
        assert server.post("/paraphrase", texts=["well"]).status_code == 200


@pytest.fixture(scope="module")
def matcher_folder(tmp_path_factory) -> str:
    labels = {0: "different", 1: "paraphrase"}
    folder = tmp_path_factory.mktemp("matcher")
    return save(tiny_matcher(2, labels), folder, word_tokenizer(model_max_length=32))


def test_pairs_are_matched_as_the_pipeline_does(matcher_folder):
    from transformers import pipeline

    import hf_paraphrase  # noqa: F401

    pairs = [(one, other) for one, other in zip(random_sentences(9), random_sentences(9, seed=1), strict=True)]
    inputs = [{"text": one, "text_pair": other} for one, other in pairs]
    pipe = pipeline("text-classification", model=matcher_folder, device="cpu")
    with run_app(load_served_model(matcher_folder, 4), Limits(max_batch=4)) as server:
        answer = server.post("/match", pairs=inputs).json()
        assert server.client.get("/health").json()["tasks"] == ["match"]
        assert server.post("/match", pairs=[{"text": " ", "text_pair": "a"}]).status_code == 422
        too_long = server.post("/match", pairs=[{"text": "a", "text_pair": "a" * 1001}])
        assert too_long.status_code == 413 and "1,001 characters" in too_long.json()["detail"]
    assert answer["model"] == matcher_folder
    for given, found in zip(inputs, answer["results"], strict=True):
        wanted = pipe(given, top_k=None)
        assert [one["label"] for one in found] == [one["label"] for one in wanted]
        assert [one["score"] for one in found] == pytest.approx([one["score"] for one in wanted], abs=1e-5)


@pytest.fixture(scope="module")
def embedder():
    with run_app(make_paraphraser("hierarchical_lm")) as server:
        yield server


def test_embeddings_have_the_shape_of_openais(embedder):
    texts = ["the cat sat", "a dog", "how do i learn ?"]
    paraphraser = make_paraphraser("hierarchical_lm")
    wanted = paraphraser.model.sentence_embeddings(texts, paraphraser.tokenizer).numpy()
    answer = embedder.post("/v1/embeddings", input=texts, model="tiny").json()
    assert answer["object"] == "list" and answer["model"] == "tiny"
    assert [(row["object"], row["index"]) for row in answer["data"]] == [("embedding", place) for place in range(3)]
    np.testing.assert_allclose([row["embedding"] for row in answer["data"]], wanted, atol=1e-5)
    tokens = sum(len(ids) for ids in paraphraser.tokenizer(texts)["input_ids"])
    assert answer["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    # OpenAI's Python client asks for base64 unless it is told otherwise.
    (row,) = embedder.post("/v1/embeddings", input=texts[1], encoding_format="base64").json()["data"]
    np.testing.assert_allclose(np.frombuffer(base64.b64decode(row["embedding"]), "<f4"), wanted[1], atol=1e-5)
    assert embedder.client.get("/health").json()["tasks"] == ["paraphrase", "embed"]


@pytest.mark.parametrize(
    ("asked", "status", "reason"),
    [
        ({"input": "a", "model": "text-embedding-3"}, 404, "text-embedding-3 is not served here, tiny is"),
        ({"input": [1, 2]}, 422, "valid string"),
        ({"input": ["a", " "]}, 422, "should match pattern"),
        ({"input": []}, 422, "at least 1 item"),
        ({"input": "a", "dimensions": 3}, 422, "Extra inputs"),
        ({"input": "a" * 1001}, 413, "1,001 characters"),
    ],
)
def test_what_cannot_be_embedded_is_refused(embedder, asked, status, reason):
    answer = embedder.post("/v1/embeddings", **asked)
    assert answer.status_code == status and reason in json.dumps(answer.json())


def test_an_autoencoder_embeds_documents():
    from hf_paraphrase.analysis.document_vectors import embed_documents

    paraphraser = make_paraphraser("hierarchical_autoencoder")
    wanted = embed_documents(paraphraser.model, paraphraser.tokenizer, ["the cat sat", "a dog"])
    with run_app(paraphraser) as server:
        rows = server.post("/v1/embeddings", input=["the cat sat", "a dog"]).json()["data"]
    np.testing.assert_allclose([row["embedding"] for row in rows], wanted, atol=1e-5)


def test_a_sentence_encoder_embeds(tmp_path):
    from hf_paraphrase.retrieval.encoders import load_encoder

    folder = save(tiny_matcher(2).bert, tmp_path)
    served = load_served_model(folder)
    assert served.tasks == ["embed"]
    found = served.embed(["the cat sat", "a dog"])
    np.testing.assert_allclose(
        [one.vector for one in found], load_encoder(folder)(["the cat sat", "a dog"]), atol=1e-6
    )
    assert [one.num_tokens for one in found] == [4, 3]


def test_the_precision_of_what_is_served(matcher_folder, monkeypatch):
    monkeypatch.setattr(
        "hf_paraphrase.serving.served_model.serve_paraphraser", lambda name, paraphraser, _: paraphraser
    )
    assert load_served_model(RELEASED, dtype="bfloat16").model.dtype == torch.bfloat16
    with pytest.raises(InputError, match="dtype is the precision of models that paraphrase"):
        load_served_model(matcher_folder, dtype="bfloat16")


def test_a_key_is_asked_for():
    with run_app(make_paraphraser("bart"), api_key="sésame") as server:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic sésame".encode()}):
            for path in ("/paraphrase", "/match", "/v1/embeddings"):
                refused = server.client.post(path, json={"texts": "a cat"}, headers=headers)
                assert refused.status_code == 401 and "Authorization: Bearer" in refused.json()["detail"]
                assert refused.headers["www-authenticate"] == "Bearer"
            assert server.client.get("/metrics", headers=headers).status_code == 401
        assert server.client.get("/health").status_code == 200


def test_a_key_opens():
    with run_app(make_paraphraser("bart"), api_key="sesame") as server:
        headers = {"Authorization": "Bearer sesame"}
        assert server.client.post("/paraphrase", json={"texts": "a cat"}, headers=headers).status_code == 200
        assert server.client.get("/metrics", headers=headers).status_code == 200


def test_what_was_served_is_counted():
    with run_app(make_paraphraser("bart"), Limits(max_batch=4)) as server:
        server.post("/paraphrase", texts=["the cat", "a dog", "the mat"])
        server.post("/paraphrase", texts=[])
        server.client.get("/no/such/path")
        lines = server.client.get("/metrics").text.splitlines()
    assert 'paraphrase_requests_total{path="/paraphrase",status="200"} 1.0' in lines
    assert 'paraphrase_requests_total{path="/paraphrase",status="422"} 1.0' in lines
    assert 'paraphrase_requests_total{path="other",status="404"} 1.0' in lines
    assert 'paraphrase_request_seconds_count{path="/paraphrase"} 2.0' in lines
    assert 'paraphrase_batch_size_bucket{le="2.0",task="paraphrase"} 0.0' in lines
    assert 'paraphrase_batch_size_bucket{le="4.0",task="paraphrase"} 1.0' in lines
    assert "paraphrase_waiting 0.0" in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)


def test_every_example_of_the_documentation_works(bart, embedder, matcher_folder):
    shown = set()
    with run_app(load_served_model(matcher_folder)) as matcher:
        for server in (bart, embedder, matcher):
            for path, asked in find_examples(server):
                answer = server.post(path, **asked)
                assert answer.status_code == 200, (path, asked, answer.text)
                shown.add(path)
            assert server.client.get("/docs").status_code == 200
    assert shown == {"/paraphrase", "/match", "/v1/embeddings"}


def find_examples(server: RunningServer) -> list[tuple[str, dict[str, Any]]]:
    """The examples of requests in a server's own description, by their path."""
    document = server.client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]

    def of_schema(reference: str) -> list[dict[str, Any]]:
        schema = schemas[reference.rpartition("/")[2]]
        return schema.get("examples") or [{name: of_field(schema["properties"][name]) for name in schema["required"]}]

    def of_field(field: dict[str, Any]) -> Any:
        if "items" in field:
            return of_schema(field["items"]["$ref"])
        return field["examples"][0]

    return [
        (path, example)
        for path, methods in document["paths"].items()
        if "post" in methods
        for body in [methods["post"]["requestBody"]["content"]["application/json"]["schema"]]
        for example in of_schema(body["$ref"])
    ]
