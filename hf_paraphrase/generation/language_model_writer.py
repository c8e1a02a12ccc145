"""Candidates by a causal language model, which a prompt asks for paraphrases."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from transformers import (
    DynamicCache,
    LogitsProcessor,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    StoppingCriteriaList,
)

from ..common.errors import InputError
from ..models.layers.layer_weights import input_device
from ..models.text.encoded_inputs import source_limit
from .engine import SourceCutter, run_by_length
from .prompts import Prompt, PromptEncoder
from .protected_text import find_kept
from .seeded_sampling import sample_seeded
from .writers import Ask, Candidate, ModelWriter, Pairs, Texts

# Where neither the caller nor the model's generation config says otherwise: lively, but of likely words.
SAMPLING = {"temperature": 0.8, "top_p": 0.95, "top_k": 50}
LENGTHS = ("max_new_tokens", "min_new_tokens")
# The arguments of each decoding.
OPTIONS_OF = {
    "sample": (*LENGTHS, *SAMPLING, "min_p", "repetition_penalty"),
    "beam": (*LENGTHS, "num_beams", "length_penalty", "repetition_penalty", "no_repeat_ngram_size"),
}
# An answer is not much longer than its text.
TOKENS_A_TOKEN, MORE_TOKENS = 2, 32
# Most tokens of an answer are a multiple, so that few texts of a batch differ in it.
TOKENS_STEP = 16


class LanguageModelWriter(ModelWriter):
    """Writes by sampling answers to a prompt, a chat where the tokenizer has a template.

    What all prompts begin with is read once. A text's samples depend on its seed and the text alone.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompt: Prompt):
        super().__init__(model, tokenizer)
        self.replaces_unknown, self.prompt = False, prompt
        self.reads_strength = bool(prompt.strength)
        self.encoder = PromptEncoder(tokenizer, prompt)
        ends = model.generation_config.eos_token_id
        ends = {tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None}
        self.ends = [*sorted(ends), *self.encoder.lines]
        self.pad = next((one for one in (tokenizer.pad_token_id, *self.ends) if one is not None), 0)
        self.marks = set(tokenizer.all_special_ids)
        self._read: dict[tuple[int, ...], DynamicCache | None] = {}

    def default_decoding(self, n: int) -> str:
        """How candidates are found unless the caller says so."""
        return "sample"

    def cutter(self, max_source_length: int | None = None, quiet: bool = False) -> SourceCutter:
        """Truncates texts to leave room for prompt and answer."""
        limit = source_limit(self.model, self.tokenizer)
        positions = getattr(self.model.config, "max_position_embeddings", None)
        if positions:
            room = (positions - len(self.encoder.encode("", None, ())) - MORE_TOKENS) // (1 + TOKENS_A_TOKEN)
            if room < 1:
                raise InputError(f"`prompt`: it fills the {positions} positions of the model; give fewer examples")
            limit = min(limit, room)
        longest = limit if max_source_length is None else max_source_length
        return SourceCutter(self.model, self.tokenizer, longest, quiet=quiet)

    def check(self, ask: Ask) -> None:
        """Refuse what this writer cannot do."""
        if ask.decoding not in OPTIONS_OF:
            known = " and ".join(OPTIONS_OF)
            raise InputError(f"`decoding={ask.decoding!r}` is not available with a language model, which has {known}")
        super().check(ask)

    def write(self, texts: Texts, pairs: Pairs, ask: Ask) -> list[list[Candidate]]:
        """Write candidates of texts."""
        prompted = [self._prompted(text, ask) for text in texts]

        def generate(rows: list[int]) -> list[list[Candidate]]:
            return self._write_batch([texts[row] for row in rows], [prompted[row] for row in rows], ask)

        return run_by_length(self.model, generate, list(map(len, texts)), ask.batch_size)

    def mean_log_probs(self, sources: Texts, targets: Texts, batch_size: int, pairs: Pairs = None) -> list[float]:
        """How probable the model finds each target as the answer to its source, the end of the answer included."""

        def measure(rows: list[int]) -> list[float]:
            prompts = [self.encoder.encode(sources[row], None, ()) for row in rows]
            return self._score(prompts, [self.encoder.encode_answer(targets[row]) for row in rows])

        lengths = [len(source) + len(target) for source, target in zip(sources, targets, strict=True)]
        return run_by_length(self.model, measure, lengths, batch_size)

    def _request(self, ask: Ask) -> dict[str, Any]:
        """The arguments of `generate()`."""
        options = {"pad_token_id": self.pad, "eos_token_id": self.ends or None}
        options["num_return_sequences"] = count = ask.num_candidates
        known = OPTIONS_OF[ask.decoding]
        given = {name: value for name, value in ask.generate_kwargs.items() if value is not None}
        if unknown := [name for name in given if name not in known]:
            raise InputError(
                f"`{unknown[0]}` is not available with a language model and `decoding={ask.decoding!r}`; there are: "
                f"{', '.join(known)}"
            )
        if ask.decoding == "beam":
            return {**options, "do_sample": False, **given, "num_beams": max(given.get("num_beams", 1), count)}
        decided = self.model.generation_config.to_diff_dict()
        usual = {name: value for name, value in SAMPLING.items() if name not in decided}
        return {**options, **usual, **given, "do_sample": True, "num_beams": 1}

    def _write_batch(self, texts: list[str], prompted: list[tuple[list[int], int]], ask: Ask) -> list[list[Candidate]]:
        options, count, prompts = self._request(ask), ask.num_candidates, [prompt for prompt, _ in prompted]
        expanded = max(count, options["num_beams"])
        shared, cache = self._share(prompts, len(texts) * expanded, ask.strength)
        ids, mask = self._pad(prompts, shared)
        log_probs = LogProbs()
        if ask.decoding == "sample":
            options |= {"custom_generate": sample_seeded, "seed": ask.seed, "recorder": log_probs}
        longest = [options.get("max_new_tokens", most) for _, most in prompted]
        own = OwnLength(longest, ids.shape[1])
        options |= {"max_new_tokens": max(longest), "stopping_criteria": StoppingCriteriaList([own])}
        if cache is not None:
            options["cache"] = cache
        written = cast(Any, self.model).generate(input_ids=ids, attention_mask=mask, **options)[:, ids.shape[1] :]
        means = log_probs.means(written, self.ends) if ask.decoding == "sample" else [None] * len(written)
        rows = iter(zip(written.tolist(), means, strict=True))
        return [
            [one for _ in range(count) for one in self._read_answer(text, limit, *next(rows))]
            for text, limit in zip(texts, longest, strict=True)
        ]

    def _read_answer(self, text: str, most: int, ids: list[int], mean: float | None) -> Iterator[Candidate]:
        """The paraphrases in generated tokens, which end in padding."""
        ids = ids[:most]
        words = ids[: next((place for place, one in enumerate(ids) if one in self.ends), most)]
        answer = cast(str, self.tokenizer.decode(words, skip_special_tokens=True))
        if len(words) == len(ids):
            yield Candidate(" ".join(answer.split()), reason=f"was cut off after {most} tokens")
            return
        for found in self.prompt.read_answer(answer, text):
            # What was taken off has counted in the mean, and so have marks within, or another end.
            is_whole = answer == (found if self.encoder.is_chat else f" {found}")
            is_whole = is_whole and ids[len(words)] == self.encoder.end and not self.marks.intersection(words)
            known = math.exp(mean) if is_whole and mean is not None else None
            yield Candidate(found, fluency=known)

    def _prompted(self, text: str, ask: Ask) -> tuple[list[int], int]:
        """Tokens of the prompt for a text, and most tokens of an answer."""
        kept = [part for kind in ask.keep for part in find_kept(text, kind)] if self.prompt.keep else []
        length = len(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
        ids = self.encoder.encode(text, ask.strength, list(dict.fromkeys(kept)))
        steps = math.ceil((TOKENS_A_TOKEN * length + MORE_TOKENS) / TOKENS_STEP)
        return ids, steps * TOKENS_STEP

    def _pad(self, rows: list[list[int]], shared: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Put padding between what rows share and what they do not; tokens and mask, where the model is."""
        width = max(map(len, rows))
        padded = [row[:shared] + [self.pad] * (width - len(row)) + row[shared:] for row in rows]
        mask = [[1] * shared + [0] * (width - len(row)) + [1] * (len(row) - shared) for row in rows]
        device = input_device(self.model)
        return torch.tensor(padded, device=device), torch.tensor(mask, device=device)

    def _share(
        self, rows: list[list[int]], count: int, strength: float | None = None
    ) -> tuple[int, DynamicCache | None]:
        """The length of the rows' common prefix, never all of one, and the model's cache for it, `count` times."""
        begin, length = self._beginning(rows, strength)
        if not length:
            return 0, None
        if begin not in self._read:
            self._read[begin] = self._read_prefix(begin)
        cache = copy.deepcopy(self._read[begin])
        if cache is None:
            return 0, None
        cache.crop(length - len(begin))
        cache.batch_repeat_interleave(count)
        return length, cache

    def _beginning(self, rows: list[list[int]], strength: float | None) -> tuple[tuple[int, ...], int]:
        """What all prompts of a strength begin with, and how much of it some rows share, at most all but one."""
        # Where the prompts of two texts part.
        one, other = (self.encoder.encode(text, strength, ()) for text in ("1", "?"))
        begin = tuple(one[: _common(one, other)])
        return begin, min(min(_common(row, begin), len(row) - 1) for row in rows)

    def _read_prefix(self, ids: tuple[int, ...]) -> DynamicCache | None:
        """The model's cache for a prefix; None where it keeps anything but keys and values of all tokens."""
        if not cast(Any, self.model)._supports_default_dynamic_cache():
            return None
        cache = DynamicCache(config=self.model.config)
        if any(type(layer).__name__ != "DynamicLayer" for layer in cache.layers):
            return None
        tokens = torch.tensor([list(ids)], device=input_device(self.model))
        self.model(input_ids=tokens, cache=cache, use_cache=True)
        return cache

    def _score(self, prompts: list[list[int]], answers: list[list[int]]) -> list[float]:
        shared, cache = self._share(prompts, len(prompts))
        rows = [prompt + answer for prompt, answer in zip(prompts, answers, strict=True)]
        ids, mask = self._pad(rows, shared)
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        longest = max(map(len, answers))
        inputs = {"input_ids": ids[:, shared:], "position_ids": positions[:, shared:], "attention_mask": mask}
        logits = self.model(**inputs, cache=cache, use_cache=cache is not None).logits
        logits, targets = logits[:, -longest - 1 : -1].float(), ids[:, -longest:]
        chosen = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)
        counts = torch.tensor([len(answer) for answer in answers], device=ids.device)
        is_answer = torch.arange(longest, 0, -1, device=ids.device) <= counts.unsqueeze(1)
        return (chosen.masked_fill(~is_answer, 0.0).sum(1) / counts.clamp(min=1)).tolist()


class LogProbs(LogitsProcessor):
    """Records the model's log-probabilities of the generated tokens, before temperature and noise."""

    def __init__(self):
        self.last: tuple[torch.Tensor, torch.Tensor] | None = None
        self.steps: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self._note(input_ids[:, -1])
        self.last = scores.clone(), scores.logsumexp(-1)
        return scores

    def means(self, written: torch.Tensor, ends: Sequence[int]) -> list[float]:
        """The mean log-probability of each row up to its first end mark, that included."""
        self._note(written[:, -1])
        steps = torch.stack(self.steps, 1)
        is_end = torch.isin(written, torch.tensor(ends, device=written.device)).long()
        is_written = is_end.cumsum(1) - is_end == 0
        return (steps.masked_fill(~is_written, 0.0).sum(1) / is_written.sum(1)).tolist()

    def _note(self, chosen: torch.Tensor) -> None:
        if self.last is not None:
            scores, total = self.last
            self.steps.append(scores.gather(1, chosen.unsqueeze(1)).squeeze(1) - total)


class OwnLength(StoppingCriteria):
    """Ends the rows of each text at its own length limit, so that outputs do not depend on the batch."""

    def __init__(self, longest: Sequence[int], begun: int):
        self.longest, self.begun = torch.tensor(longest), begun

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        is_done = self.longest <= input_ids.shape[1] - self.begun
        # Beam search asks of more rows than it has beams.
        return is_done.repeat_interleave(len(input_ids) // len(is_done)).to(input_ids.device)


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many first tokens two rows share."""
    parted = (place for place, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
    return next(parted, min(len(one), len(other)))
