"""Paraphrases from a model that embeds sentences: sample candidates, embed them again, rank them by distance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor
from transformers import (
    GenerationMixin,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from ..layers.layer_weights import input_device
from ..layers.precision import at_least_single


class ParaphraseCandidate(NamedTuple):
    """One of the sentences that may say what another does.

    Args:
        text: The sentence.
        distance: Euclidean, between the last layer's vectors of it and of the source.
        is_copy: It is the source, but for white space.
        temperature: Of the softmax that it was sampled from.
        noise: Weight of the noise on the sentence vectors that it was written from.
    """

    text: str
    distance: float
    is_copy: bool
    temperature: float
    noise: float


class EmbeddingParaphraser(PreTrainedModel, GenerationMixin):
    """Mixin, before a family's base class, for models that write from sentence vectors alone.

    Their encoder returns `sentence_states`, `(batch, num_layers, width)`, and their
    `embed_words(input_ids, attention_mask)` the vectors of words, a word a row. Switch dropout off before, as for
    `generate()`.
    """

    def embed_words(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Encode words, one in each row of `(words, length)`; returns `(words, width)`."""
        raise NotImplementedError

    @torch.inference_mode()
    def paraphrase(
        self,
        texts: str | Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        num_candidates: int = 40,
        temperature: float | Literal["uniform"] = "uniform",
        noise: float | Literal["uniform"] = "uniform",
        seed: int | None = None,
        batch_size: int = 160,
        max_new_tokens: int = 256,
    ) -> list[ParaphraseCandidate] | list[list[ParaphraseCandidate]]:
        """Write candidates of every text, with temperatures and noise of their own, and rank them (Traynor 2018, 4.5).

        A text's result depends on `seed` and its position in `texts`, not on its batch.

        Args:
            tokenizer: The model's.
            num_candidates: Candidates of each text; equal ones are returned once, empty ones not.
            temperature: Of the softmax; 0 always takes the likeliest character. "uniform" draws one from U(0, 1) for
                every candidate.
            noise: w of the noise `N(0, (w std(s))²)` on a sentence vector s; "uniform" as above.
            seed: Decides what is drawn; None to ask torch's generator.
            max_new_tokens: Most symbols of a candidate.

        Returns:
            For one text its different candidates, the nearest first; for several one such list each. Texts without
            words have none.

        Raises:
            ValueError: An argument that cannot be.
        """
        if isinstance(texts, str):
            options = (num_candidates, temperature, noise, seed, batch_size, max_new_tokens)
            return cast(list[list[ParaphraseCandidate]], self.paraphrase([texts], tokenizer, *options))[0]
        check_candidates(num_candidates, batch_size, temperature, noise)
        seed = int(torch.randint(2**62, ())) if seed is None else seed
        results: list[list[ParaphraseCandidate]] = [[] for _ in texts]
        places = [place for place, text in enumerate(texts) if text.strip()]
        at_once = max(1, batch_size // num_candidates)
        for start in range(0, len(places), at_once):
            part = places[start : start + at_once]
            draws = [Draws(seed, place, num_candidates, temperature, noise, input_device(self)) for place in part]
            found = self._candidates([texts[place] for place in part], tokenizer, draws, max_new_tokens)
            for place, candidates in zip(part, found, strict=True):
                results[place] = candidates
        return results

    def _candidates(
        self, texts: list[str], tokenizer: PreTrainedTokenizerBase, draws: list[Draws], max_new_tokens: int
    ) -> list[list[ParaphraseCandidate]]:
        count = len(draws[0].temperatures)
        inputs = tokenizer(texts, padding=True, return_tensors="pt", verbose=False).to(input_device(self))
        encoded = self.get_encoder()(**inputs, return_dict=True)
        vectors = encoded.sentence_states
        perturbed = [draw.perturb(vector) for draw, vector in zip(draws, vectors, strict=True)]
        encoded.sentence_states = torch.cat(perturbed)
        encoded.last_hidden_state = encoded.last_hidden_state.repeat_interleave(count, dim=0)
        # Without input ids, `generate` would make these itself, on a device that offloaded weights do not have.
        ids = vectors.new_full(encoded.last_hidden_state.shape[:2], -100, dtype=torch.long)
        written = self.generate(
            inputs=ids,
            encoder_outputs=encoded,
            logits_processor=LogitsProcessorList([Sampler(draws)]),
            do_sample=False,
            num_beams=1,
            num_return_sequences=1,
            max_new_tokens=max_new_tokens,
        )
        outputs = tokenizer.batch_decode(written, skip_special_tokens=True)
        sources = [
            tokenizer.decode(tokenizer(text, verbose=False)["input_ids"], skip_special_tokens=True) for text in texts
        ]
        rows = [outputs[start : start + count] for start in range(0, len(outputs), count)]
        groups = [{text: row.index(text) for text in row if text.strip()} for row in rows]
        found = [text for group in groups for text in group]
        if not found:
            return [[] for _ in texts]
        embedded, results = self.sentence_embeddings(found, tokenizer).split(list(map(len, groups))), []
        columns = (sources, at_least_single(vectors[:, -1]), draws, groups, embedded)
        for source, vector, draw, group, part in zip(*columns, strict=True):
            drawn = ((float(draw.temperatures[number]), float(draw.noise[number])) for number in group.values())
            triples = zip(group, (part - vector).norm(dim=-1).tolist(), drawn, strict=True)
            candidates = [
                ParaphraseCandidate(text, distance, text == source, *numbers) for text, distance, numbers in triples
            ]
            results.append(sorted(candidates, key=lambda candidate: candidate.distance))
        return results

    @torch.inference_mode()
    def sentence_embeddings(
        self, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, batch_size: int = 256, layer: int = -1
    ) -> Tensor:
        """The sentence vectors of texts (Traynor 2018, section 4.2.5); returns `(texts, width)`, float32.

        Sentences of similar length share a batch. `layer` is the one that has the vector; the thesis takes the last.
        """

        def embed(part: list[str]) -> Tensor:
            inputs = tokenizer(part, padding=True, return_tensors="pt", verbose=False).to(input_device(self))
            return self.get_encoder().encode_sentences(**inputs)[:, layer]

        return in_batches(texts, batch_size, embed)

    @torch.inference_mode()
    def word_embeddings(
        self, words: Sequence[str], tokenizer: PreTrainedTokenizerBase, batch_size: int = 4096
    ) -> Tensor:
        """The word encoder's vectors of words (Traynor 2018, section 4.2.4); returns `(words, width)`, float32.

        Words are runs of letters, or of anything else but white space, as the tokenizer splits a text into.

        Raises:
            ValueError: One of them is not a single word.
        """
        for word in words:
            if len(tokenizer.split_words(word)) != 1:
                raise ValueError(f"{word!r} is not a single word: {tokenizer.split_words(word)}")

        def embed(part: list[str]) -> Tensor:
            inputs = tokenizer(part, add_special_tokens=False, padding=True, return_tensors="pt", verbose=False)
            inputs = inputs.to(input_device(self))
            return self.embed_words(inputs["input_ids"], inputs["attention_mask"])

        return in_batches(words, batch_size, embed)


class Draws:
    """The random numbers for the candidates of one text, from its own generator."""

    def __init__(
        self, seed: int, place: int, count: int, temperature: float | str, noise: float | str, device: torch.device
    ):
        # Mixed, not added: text 1 of seed 0 is not text 0 of seed 1. The generator looks at the lowest 32 bits alone.
        self.generator = torch.Generator().manual_seed(hash((seed, place)) % 2**63)
        self.device = device
        self.temperatures, self.noise = (
            torch.rand(count, generator=self.generator) if value == "uniform" else torch.full((count,), float(value))
            for value in (temperature, noise)
        )

    def perturb(self, sentence_states: Tensor) -> Tensor:
        """Repeat the vectors of a text, `(num_layers, width)`, for every candidate, with its noise."""
        repeated = sentence_states.unsqueeze(0).repeat(len(self.noise), 1, 1)
        return perturb(repeated, self.noise.to(repeated), self.generator)

    def gumbel(self, width: int) -> Tensor:
        """Gumbel noise for every candidate's next symbol, `(count, width)`."""
        uniform = torch.rand(len(self.noise), width, generator=self.generator).clamp_(min=1e-10)
        return (-(-uniform.log()).log()).to(self.device)


class Sampler(LogitsProcessor):
    """Samples every row by its own temperature and generator: the likeliest symbol after Gumbel noise is a sample.

    The rows are the candidates of each text's `draws`, in order.
    """

    def __init__(self, draws: Sequence[Draws]):
        self.draws = draws

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        noise = torch.cat([draw.gumbel(scores.shape[1]) for draw in self.draws])
        temperatures = torch.cat([draw.temperatures for draw in self.draws]).to(scores.device)
        # Not divided by the temperature, which may be 0.
        return scores + temperatures.unsqueeze(1) * noise


def perturb(sentence_states: Tensor, weight: float | Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Add noise `N(0, (w std(s))²)` to every sentence vector s (Traynor 2018, section 4.5).

    `weight` is w, one for all or one for each row; `generator` draws on the CPU, and without one torch's own does.
    """
    if isinstance(weight, Tensor):
        weight = weight.view(-1, 1, 1)
    deviation = sentence_states.detach().std(dim=-1, keepdim=True, correction=0)
    if generator is None:
        noise = torch.randn_like(sentence_states)
    else:
        noise = torch.randn(sentence_states.shape, generator=generator).to(sentence_states)
    return sentence_states + noise * (weight * deviation)


def in_batches(texts: Sequence[str], batch_size: int, embed: Callable[[list[str]], Tensor]) -> Tensor:
    """Embed texts, the longest first; the rows come back in the texts' order, in float32."""
    if not len(texts):
        return torch.zeros(0, 0)
    order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    parts = [
        at_least_single(embed([texts[place] for place in order[start : start + batch_size]]))
        for start in range(0, len(order), batch_size)
    ]
    vectors = torch.cat(parts)
    return torch.empty_like(vectors).index_copy_(0, torch.tensor(order, device=vectors.device), vectors)


def check_candidates(num_candidates: int, batch_size: int, temperature: float | str, noise: float | str) -> None:
    """Raise ValueError for numbers that cannot be."""
    for name, count in (("num_candidates", num_candidates), ("batch_size", batch_size)):
        if count < 1:
            raise ValueError(f"`{name}` must be at least 1, not {count}")
    for name, value in (("temperature", temperature), ("noise", noise)):
        if value != "uniform" and (isinstance(value, str) or not value >= 0):
            raise ValueError(f'`{name}` must be "uniform" or a number of at least 0, not {value!r}')
