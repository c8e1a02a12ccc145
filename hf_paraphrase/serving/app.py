"""The application: paraphrases, labels of pairs and embeddings over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import secrets
import time
from asyncio import Future
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated, Any

import numpy as np
import prometheus_client as prometheus
from fastapi import Depends, FastAPI, HTTPException, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import __version__
from ..generation.paraphrase_table import Paraphrases
from . import schemas
from .batching import Batcher, QueueFullError
from .limits import Limits
from .served_model import Embedding, ServedModel

logger = logging.getLogger(__name__)

FAILURES: dict[int | str, dict[str, Any]] = {
    401: {"model": schemas.Failure, "description": "The API key is missing or wrong."},
    413: {"model": schemas.Failure, "description": "A text or the request is too long."},
    429: {"model": schemas.Failure, "description": "Too many texts wait; try again later."},
}


SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Service:
    """A model with a queue for each thing that it can do."""

    def __init__(self, served: ServedModel, limits: Limits):
        self.served, self.limits = served, limits
        self.queues: dict[str, Batcher] = {}
        # Of this application alone, were there another one in the process.
        self.registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=self.registry)
        own: dict[str, Any] = {"namespace": "paraphrase", "registry": self.registry}
        self.requests = prometheus.Counter("requests", "Requests that were answered.", ["path", "status"], **own)
        self.seconds = prometheus.Histogram(
            "request_seconds", "From a request to its answer.", ["path"], buckets=SECONDS, **own
        )
        self.batches = prometheus.Histogram("batch_size", "Texts computed together.", ["task"], buckets=SIZES, **own)
        prometheus.Gauge("waiting", "Texts that wait for their turn.", **own).set_function(self.count_waiting)

    @asynccontextmanager
    async def run(self, app: FastAPI) -> AsyncIterator[None]:
        """Process requests; on shutdown, everything still queued."""
        limits = self.limits
        async with AsyncExitStack() as stack:
            thread = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="model"))
            for task in self.served.tasks:
                batcher = Batcher(
                    getattr(self.served, task),
                    thread,
                    max_batch=limits.max_batch,
                    max_wait=limits.max_wait_ms / 1000,
                    max_queue=limits.max_queue,
                    size=lambda value: len(value) if isinstance(value, str) else sum(map(len, value)),
                    observe=self.batches.labels(task).observe,
                )
                self.queues[task] = await stack.enter_async_context(batcher)
            yield

    def count_waiting(self) -> int:
        """How many texts wait for their turn."""
        return sum(queue.num_waiting for queue in self.queues.values())

    async def health(self) -> schemas.Health:
        """Report that the server runs, and its tasks; 503 if its worker is gone."""
        if stopped := [task for task, queue in self.queues.items() if not queue.is_running]:
            raise HTTPException(503, f"the server no longer computes {' and '.join(stopped)}; restart it")
        return schemas.Health(model=self.served.name, tasks=self.served.tasks, waiting=self.count_waiting())

    async def read_metrics(self) -> Response:
        """Counts for Prometheus: requests, seconds, sizes of batches, texts that wait, memory."""
        return Response(prometheus.generate_latest(self.registry), media_type=prometheus.CONTENT_TYPE_LATEST)

    async def paraphrase(self, asked: schemas.ParaphraseRequest, request: Request) -> Any:
        """Paraphrase texts: several of each, scored and chosen, as `Paraphraser` does.

        With `stream` the answer is a stream of server-sent events: `paraphrases` for each text as soon as it is done,
        with its `index`, or `error` with the reason; and in the end `done`.
        """
        texts, options = as_list(asked.texts), asked.options()
        check_size(self.limits, "texts", texts)
        try:
            self.served.paraphrase([], options)  # which refuses what the model does not support, before it is queued
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        futures = self.queues["paraphrase"].submit(texts, options)
        if asked.stream:
            return StreamingResponse(stream_events(texts, futures), media_type="text/event-stream")
        results = await gather(futures, request)
        found = [describe(*both) for both in zip(texts, results, strict=True)]
        return {"model": self.served.name, "results": found}

    async def match(self, asked: schemas.MatchRequest, request: Request) -> Any:
        """Label or score pairs of sentences, as `pipeline("text-classification", top_k=None)` does."""
        pairs = [(pair.text, pair.text_pair) for pair in asked.pairs]
        check_size(self.limits, "pairs", *zip(*pairs, strict=True))
        results = await gather(self.queues["match"].submit(pairs), request)
        return {"model": self.served.name, "results": results}

    async def embed(self, asked: schemas.EmbeddingRequest, request: Request) -> Any:
        """Embed texts, in the shape of OpenAI's API, whose clients take `http://HOST:PORT/v1` as the base address."""
        name, texts = self.served.name, as_list(asked.input)
        if asked.model not in (None, name):
            raise HTTPException(404, f"`model`: {asked.model} is not served here, {name} is")
        check_size(self.limits, "input", texts)
        embeddings = await gather(self.queues["embed"].submit(texts), request)
        return show_embeddings(name, embeddings, asked.encoding_format)


class MeasuredApp:
    """Middleware that counts and times the answers of an application."""

    def __init__(self, app: ASGIApp, service: Service):
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, start = 500, time.perf_counter()

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, note_status)
        finally:
            # Unknown paths are counted together: clients can invent any number.
            path = scope["route"].path if "route" in scope else "other"
            self.service.requests.labels(path, status).inc()
            self.service.seconds.labels(path).observe(time.perf_counter() - start)


class BodyLimit:
    """Middleware that refuses requests whose body is longer than `max_bytes`."""

    def __init__(self, app: ASGIApp, max_bytes: int):
        self.app, self.max_bytes = app, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        count = 0

        async def receive_limited() -> Message:
            nonlocal count
            message = await receive()
            count += len(message.get("body", b""))
            if count > self.max_bytes:
                raise HTTPException(413, f"the request is longer than {self.max_bytes:,} bytes")
            return message

        await self.app(scope, receive_limited, send)


def make_app(served: ServedModel, limits: Limits | None = None, api_key: str | None = None) -> FastAPI:
    """Make the application.

    Args:
        served: The model.
        limits: What is taken.
        api_key: What `Authorization: Bearer …` must hold for all but `/health` and the documentation; None for any.
    """
    service = Service(served, limits or Limits())
    app = FastAPI(
        title=f"hf_paraphrase: {served.name}",
        version=__version__,
        summary="Requests that arrive together are computed together; each gets what it would get alone.",
        lifespan=service.run,
    )
    app.add_middleware(BodyLimit, max_bytes=service.limits.max_bytes)
    app.add_middleware(MeasuredApp, service=service)
    later = {"Retry-After": "1"}
    app.add_exception_handler(QueueFullError, lambda _, error: JSONResponse({"detail": str(error)}, 429, later))
    app.add_exception_handler(RequestValidationError, refuse_request)
    guarded: dict[str, Any] = {"dependencies": [] if api_key is None else [Depends(make_guard(api_key))]}
    app.get("/health")(service.health)
    app.get("/metrics", response_class=Response, **guarded)(service.read_metrics)
    for path, task, answer, response_model in (
        ("/paraphrase", "paraphrase", service.paraphrase, schemas.ParaphraseResponse),
        ("/match", "match", service.match, schemas.MatchResponse),
        ("/v1/embeddings", "embed", service.embed, schemas.EmbeddingResponse),
    ):
        if task in served.tasks:
            app.post(path, response_model=response_model, responses=FAILURES, **guarded)(answer)
        else:
            refusal = f"{served.name} cannot {task}, but it can {' and '.join(served.tasks)}"
            app.post(path, include_in_schema=False, **guarded)(make_refusal(refusal))
    return app


def check_size(limits: Limits, field: str, *columns: Sequence[str]) -> None:
    """Refuse a request that could never be taken, with 413.

    `field` is where its texts stand; `columns` are the texts, of pairs the first ones and the second ones.
    """
    if len(columns[0]) > limits.max_queue:
        raise HTTPException(413, f"`{field}` has {len(columns[0]):,} items; at most {limits.max_queue:,} are taken")
    for texts in columns:
        for number, text in enumerate(texts):
            if len(text) > limits.max_text_length:
                reason = f"{len(text):,} characters; at most {limits.max_text_length:,} are taken"
                raise HTTPException(413, f"`{field}`, number {number} from 0, has a text of {reason}")


def make_guard(api_key: str) -> Callable:
    """Make the dependency that lets nobody pass without the key."""

    async def check_key(
        given: Annotated[HTTPAuthorizationCredentials | None, Security(HTTPBearer(auto_error=False))],
    ) -> None:
        if given is None or not secrets.compare_digest(given.credentials.encode(), api_key.encode()):
            reason = "the API key is missing or wrong: send `Authorization: Bearer KEY`"
            raise HTTPException(401, reason, {"WWW-Authenticate": "Bearer"})

    return check_key


def make_refusal(reason: str) -> Callable:
    """Make what answers in the place of a task that the model cannot do."""

    async def refuse() -> None:
        raise HTTPException(404, reason)

    return refuse


async def refuse_request(request: Request, error: RequestValidationError) -> Response:
    """Report a validation error in FastAPI's format, without the input, which JSON may be unable to represent."""
    mistakes = [{name: mistake[name] for name in ("type", "loc", "msg")} for mistake in error.errors()]
    return Response(json.dumps({"detail": mistakes}), 422, media_type="application/json")


async def gather(futures: Sequence[Future], request: Request) -> list[Any]:
    """Await all results. If the client hangs up, drop what still waits."""
    results = asyncio.gather(*futures)
    # Nobody awaits it after a hang-up, about which asyncio would complain in the log.
    results.add_done_callback(lambda done: done.cancelled() or done.exception())
    hanging_up = asyncio.create_task(wait_for_disconnect(request))
    try:
        await asyncio.wait((results, hanging_up), return_when=asyncio.FIRST_COMPLETED)
        if not results.done():
            raise HTTPException(499, "the client closed the connection")
        return results.result()
    except HTTPException:
        raise
    except Exception as error:
        raise as_answer(error) from error
    finally:
        hanging_up.cancel()
        results.cancel()


async def wait_for_disconnect(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def as_answer(error: BaseException) -> HTTPException:
    """The status of a failed computation: 422 for a ValueError, by which models refuse inputs; else 500."""
    if isinstance(error, ValueError):
        return HTTPException(422, str(error))
    logger.error("the model failed", exc_info=error)
    return HTTPException(500, "the model failed; the server's log says how")


async def stream_events(texts: Sequence[str], futures: Sequence[Future]) -> AsyncIterator[str]:
    """Server-sent events: every text as soon as it is done. Queued work of clients that disconnect is dropped."""
    places = {future: place for place, future in enumerate(futures)}
    try:
        while places:
            done, _ = await asyncio.wait(places, return_when=asyncio.FIRST_COMPLETED)
            for future in sorted(done, key=places.__getitem__):
                place = places.pop(future)
                if (error := future.exception()) is None:
                    yield write_event("paraphrases", {"index": place, **describe(texts[place], future.result())})
                else:
                    yield write_event("error", {"index": place, "detail": as_answer(error).detail})
        yield write_event("done", {"texts": len(texts)})
    finally:
        for future in places:
            future.cancel()


def write_event(name: str, data: dict[str, Any]) -> str:
    """A server-sent event; JSON has no line breaks."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


def describe(source: str, found: Paraphrases) -> dict[str, Any]:
    """A text with its paraphrases, or with the reason why the model refused it."""
    shown = [{name: getattr(one, name) for name in schemas.ScoredParaphrase.model_fields} for one in found]
    return {"source": source, "paraphrases": shown, "refusal": found.refusal}


def show_embeddings(model: str, embeddings: Sequence[Embedding], encoding: str) -> dict[str, Any]:
    """Vectors in the shape of OpenAI's API."""

    def encode(vector: list[float]) -> list[float] | str:
        return vector if encoding == "float" else base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()

    tokens = sum(one.num_tokens for one in embeddings)
    return {
        "data": [{"index": place, "embedding": encode(one.vector)} for place, one in enumerate(embeddings)],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def as_list(texts: str | list[str]) -> list[str]:
    """One text as a list of it."""
    return [texts] if isinstance(texts, str) else texts
