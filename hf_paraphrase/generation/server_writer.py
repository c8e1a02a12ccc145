"""Candidates by a language model behind an OpenAI-compatible address: vLLM, TGI, llama.cpp, Ollama."""

from __future__ import annotations

import math
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import torch
from huggingface_hub import ChatCompletionOutputComplete, InferenceClient, get_session
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import hf_raise_for_status

from ..common.errors import InputError
from ..common.hub_access import TransportError, retry_request
from .engine import WholeTexts
from .prompts import Prompt
from .protected_text import find_kept
from .seeded_sampling import seed_of
from .writers import Ask, Candidate, ModelWriter, Pairs, Texts

# Where the key is, if a server asks for one. The token for the Hub is never sent.
API_KEY = "HF_PARAPHRASE_API_KEY"
OPTIONS = {"temperature": 0.8, "top_p": 0.95, "max_new_tokens": None}
SECONDS = 600.0
# A token has a character at least, but for the marks around an answer.
MORE_TOKENS = 64
REFUSED = (401, 403, 404)


def is_address(backend: str | None) -> bool:
    """Whether a backend is a server."""
    return isinstance(backend, str) and backend.startswith(("http://", "https://"))


class ServerWriter(ModelWriter):
    """Writes by asking a server for one answer a candidate, many at a time.

    What fails on the way is asked again, with waits. A text's seeds are its own, but whether the same seed gives the
    same answer is the server's matter.

    Args:
        address: Such as "http://localhost:8080/v1".
        model: The name of a model there.

    Attributes:
        tokens: The tokens read and written so far, "prompt" and "completion", as the server counts them.

    Raises:
        InputError: The address has no host.
    """

    def __init__(self, address: str, model: str, prompt: Prompt):
        if not urlsplit(address).hostname:
            raise InputError(f"`backend`: {address!r} has no host; an address is like http://localhost:8080/v1")
        # Nothing that runs here.
        nothing: Any = None
        self.model = self.tokenizer = self.retriever = nothing
        self.prefix, self.ignores_case, self.scores_texts = "", False, False
        self.address, self.name, self.prompt = address, model, prompt
        self.reads_strength = bool(prompt.strength)
        # With no token the client would send that for the Hub.
        self.client = _Client(base_url=address, token=os.environ.get(API_KEY) or "none", timeout=SECONDS)
        self.tokens: Counter[str] = Counter()
        self._lock, self._was_reached = Lock(), False

    @property
    def device(self) -> torch.device:
        """Where the models run that judge its answers."""
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def default_decoding(self, n: int) -> str:
        """The one that there is."""
        return "sample"

    def cutter(self, max_source_length: int | None = None, quiet: bool = False) -> WholeTexts:
        """Texts stay whole: only the server knows its tokens."""
        if max_source_length is not None:
            raise InputError("`max_source_length` counts tokens, which a server does not tell")
        return WholeTexts()

    def check(self, ask: Ask) -> None:
        """Refuse options that a server does not support."""
        if ask.decoding != "sample":
            raise InputError(f"`decoding={ask.decoding!r}` is not available with a server, which has 'sample'")
        if ask.num_neighbors is not None:
            raise InputError("`num_neighbors`: a server edits by no retrieved pair")
        for name in ask.generate_kwargs:
            if name not in OPTIONS:
                raise InputError(f"`{name}` is not available with a server; there are: {', '.join(OPTIONS)}")

    def write(self, texts: Texts, pairs: Pairs, ask: Ask) -> list[list[Candidate]]:
        """Write candidates of texts, with as many requests at a time as texts in a batch."""
        self._reach()
        jobs = [(text, number) for text in texts for number in range(ask.num_candidates)]
        pool = ThreadPoolExecutor(max_workers=ask.batch_size)
        try:
            answers = iter(list(pool.map(lambda job: self._ask(job[0], job[1], ask), jobs)))
        finally:
            pool.shutdown(cancel_futures=True)  # where one failed for good, the others are not sent
        return [[one for _ in range(ask.num_candidates) for one in next(answers)] for _ in texts]

    def _reach(self) -> None:
        """Send one request, so that an unreachable server is reported at once and not after all retries."""
        if not self._was_reached:
            try:
                self.client.session.head(self.address, timeout=SECONDS)
            except TransportError as error:
                raise ConnectionError(f"{self._describe(error)}; is the server running?") from error
            self._was_reached = True

    def _ask(self, text: str, number: int, ask: Ask) -> list[Candidate]:
        kept = [part for kind in ask.keep for part in find_kept(text, kind)]
        options = {**OPTIONS, **{name: value for name, value in ask.generate_kwargs.items() if value is not None}}
        longest = options.pop("max_new_tokens") or 2 * len(text) + MORE_TOKENS
        messages = self.prompt.messages(text, ask.strength, list(dict.fromkeys(kept)))
        options |= {"model": self.name, "max_tokens": longest, "logprobs": True}
        options["seed"] = seed_of(ask.seed + number, text) % 2**31
        try:
            answer = retry_request(lambda: self.client.chat_completion(messages, **options), self._describe)
        except TransportError as error:
            status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
            # If the server refuses a text, only that text fails; other errors fail the whole call.
            kind = InputError if status and status < 500 and status not in REFUSED else ConnectionError
            raise kind(self._describe(error)) from error
        with self._lock:
            self.tokens["prompt"] += getattr(answer.usage, "prompt_tokens", None) or 0
            self.tokens["completion"] += getattr(answer.usage, "completion_tokens", None) or 0
        return self._read(answer.choices[0], text, longest)

    def _read(self, choice: ChatCompletionOutputComplete, text: str, longest: int) -> list[Candidate]:
        answer = choice.message.content or ""
        if choice.finish_reason == "length":
            return [Candidate(" ".join(answer.split()), reason=f"was cut off after {longest} tokens")]
        known = [one.logprob for one in (choice.logprobs.content or ())] if choice.logprobs else []
        fluency = math.exp(sum(known) / len(known)) if known else None
        read = self.prompt.read_answer(answer, text)
        # What was taken off has counted.
        return [Candidate(one, fluency=fluency if one == answer.strip() else None) for one in read]

    def _describe(self, error: BaseException) -> str:
        if not isinstance(error, HfHubHTTPError):
            return f"{self.address} could not be reached ({type(error).__name__})"
        status, reason = error.response.status_code, error.response.reason_phrase
        hint = {401: f"; set {API_KEY} to a valid key", 404: f"; has it a model {self.name!r}?"}.get(status, "")
        return f"{self.address} answered {status} {reason}{hint}"


class _Client(InferenceClient):
    """Sends requests with its own client: the Hub's refuses every address in offline mode."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.session = type(get_session())(follow_redirects=True)

    def _inner_post(self, request_parameters: Any, *, stream: bool = False) -> bytes:
        request = {"json": request_parameters.json, "headers": request_parameters.headers}
        response = self.session.post(request_parameters.url, timeout=self.timeout, **request)
        hf_raise_for_status(response)
        return response.content
