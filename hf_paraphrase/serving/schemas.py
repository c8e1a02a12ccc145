"""Requests and responses of the server, as shown in its OpenAPI pages."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ..generation.protected_text import KEPT
from ..generation.writers import DECODINGS

# What one text may cost: candidates, beams and tokens of an output.
MOST_CANDIDATES, MOST_TOKENS = 100, 512
MOST_KEPT, MOST_KEPT_CHARACTERS = 1000, 200
QUESTION = "How can I learn Spanish quickly?"


def check_characters(text: str) -> str:
    """Refuse halves of surrogate pairs, which JSON can spell and no tokenizer can read."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("half of a surrogate pair, which is not a character")
    return text


Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, AfterValidator(check_characters)]
Texts = Annotated[list[Text], Field(min_length=1)]
# A text with words: without any it has no meaning to compare.
Words = Annotated[Text, Field(pattern=r"\S")]
WordedTexts = Annotated[list[Words], Field(min_length=1)]


class AskedModel(BaseModel):
    """Base of requests: unknown fields are errors, not ignored."""

    model_config = ConfigDict(extra="forbid")


class ParaphraseRequest(AskedModel):
    """Texts to paraphrase, with arguments of `Paraphraser`."""

    texts: Text | Texts = Field(description="A text or several.", examples=[QUESTION])
    n: int = Field(3, ge=1, le=MOST_CANDIDATES, description="Paraphrases of each text, at most.")
    strength: Share | None = Field(
        None, description="How far paraphrases are to differ from the text: 0 as little, 1 as freely as may be."
    )
    min_adequacy: Share | None = Field(None, description="The least adequacy.")
    min_fluency: Share | None = Field(None, description="The least fluency.")
    min_novelty: Share | None = Field(None, description="The least novelty (PINC against the text).")
    diversity: Share | None = Field(None, description="What likeness to the text and to each other costs.")
    keep: list[Annotated[str, Field(min_length=1, max_length=MOST_KEPT_CHARACTERS)]] | None = Field(
        None,
        max_length=MOST_KEPT,
        description=f"What is neither lost nor invented: {', '.join(KEPT)}, and words of your own, in double quotes "
        "if a kind has such a name; all but code and quotes unless this says otherwise.",
    )
    decoding: Literal[DECODINGS] | None = Field(None, description="How candidates are found.")
    num_candidates: int | None = Field(None, ge=1, le=MOST_CANDIDATES, description="Outputs to choose from.")
    num_neighbors: int | None = Field(None, ge=1, le=MOST_CANDIDATES, description="Pairs to edit by (FSET).")
    num_beams: int | None = Field(None, ge=1, le=MOST_CANDIDATES, description="Width of the search.")
    max_new_tokens: int | None = Field(None, ge=1, le=MOST_TOKENS, description="The longest output.")
    temperature: float | None = Field(None, gt=0, le=100, description="Of `sample` and `noise`.")
    top_k: int | None = Field(None, ge=1, description="Of `sample`: the likeliest tokens that are drawn from.")
    top_p: float | None = Field(None, gt=0, le=1, description="Of `sample`: the share of probability drawn from.")
    seed: int | None = Field(None, ge=0, lt=2**31, description="Of all that is drawn at random.")
    stream: bool = Field(False, description="Answer by server-sent events, a text as soon as it is done.")

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"texts": QUESTION, "n": 2},
                {"texts": [QUESTION, "Where can I buy a cheap keyboard?"], "min_novelty": 0.3, "diversity": 0.5},
                {"texts": [QUESTION], "decoding": "beam", "num_candidates": 5, "keep": [], "stream": True},
            ]
        },
    )

    def options(self) -> tuple[tuple[str, Any], ...]:
        """The arguments of `Paraphraser` that are given; the same for requests that may share a batch."""
        given = self.model_dump(exclude={"texts", "stream"}, exclude_none=True)
        return tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in given.items())


class ScoredParaphrase(BaseModel):
    """A paraphrase with its scores, from 0 to 1, as `Paraphrase` has them."""

    text: str
    score: float
    adequacy: float
    fluency: float | None
    novelty: float


class ParaphrasedText(BaseModel):
    """A text and its paraphrases, best first; fewer than requested if no more pass."""

    source: str
    paraphrases: list[ScoredParaphrase]
    refusal: str | None = Field(None, description="Why the model refused the text, if it did.")


class ParaphraseResponse(BaseModel):
    """The paraphrases of each text, in the order of the texts."""

    model: str
    results: list[ParaphrasedText]


class TextPair(AskedModel):
    """Two sentences."""

    text: Words = Field(examples=["Rain is on the way"])
    text_pair: Words = Field(examples=["It is going to rain"])


class MatchRequest(AskedModel):
    """Pairs of sentences to label or score."""

    pairs: list[TextPair] = Field(min_length=1)


class LabelScore(BaseModel):
    """How sure the model is of a label."""

    label: str
    score: float


class MatchResponse(BaseModel):
    """The labels of each pair, the likeliest first, in the order of the pairs."""

    model: str
    results: list[list[LabelScore]]


class EmbeddingRequest(AskedModel):
    """Texts to embed, in OpenAI's format."""

    input: Words | WordedTexts = Field(description="A text or several.", examples=[QUESTION])
    model: str | None = Field(None, description="The name that the server answers with; no other is served.")
    encoding_format: Literal["float", "base64"] = Field("float", description="base64: of little-endian float32.")
    user: str | None = Field(None, description="Not looked at.")


class TextEmbedding(BaseModel):
    """The vector of a text, as the model makes it: its length is not 1 unless the model makes it so."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    """How many tokens were read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingResponse(BaseModel):
    """The vectors of all texts, in their order, in the shape of OpenAI's API."""

    object: Literal["list"] = "list"
    data: list[TextEmbedding]
    model: str
    usage: Usage


class Health(BaseModel):
    """Health status and model of the server."""

    status: Literal["ok"] = "ok"
    model: str
    tasks: list[str]
    waiting: int = Field(description="Texts that wait for their turn.")


class Failure(BaseModel):
    """Why a request was not answered."""

    detail: str
