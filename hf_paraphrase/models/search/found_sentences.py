"""Shared by this package's searches: equality of sentences, and which hypotheses are returned."""

from __future__ import annotations

import copy
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, PreTrainedModel

# A beam with less than this continues nothing: beam search starts all beams of a text but one at -1e9, and returns
# that where it has found nothing.
DEAD = -1e8


class Frame:
    """The tokens that begin, end and fill a text, and texts without them."""

    def __init__(self, config: GenerationConfig, device: torch.device):
        ends = [] if config.eos_token_id is None else torch.as_tensor(config.eos_token_id).flatten().tolist()
        others = (getattr(config, f"{name}_token_id") for name in ("pad", "bos", "decoder_start"))
        ids = ends + [token for token in others if token is not None]
        self.ends = torch.tensor(ends, device=device, dtype=torch.long)
        self.ids = torch.tensor(ids, device=device, dtype=torch.long)

    def words(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Move the words of texts `(*, length)` to their front, -1 behind them."""
        is_word = ~torch.isin(ids, self.ids) & (ids >= 0)
        if mask is not None:
            is_word = is_word & mask
        order = is_word.logical_not().to(torch.uint8).argsort(dim=-1, stable=True)
        return ids.masked_fill(~is_word, -1).gather(-1, order)

    def until_end(self, ids: Tensor) -> Tensor:
        """Generated sentences `(*, length)` with -1 from their first end on."""
        return ids.masked_fill(torch.isin(ids, self.ends).long().cumsum(dim=-1) > 0, -1)


class HookedSearch:
    """A model's beam search, whose scores of words a subclass changes; the model itself stays as it is."""

    def __init__(self, model: PreTrainedModel) -> None:
        # A shallow copy has the model's weights, and methods of its own.
        self.model, usual = cast(Any, copy.copy(model)), cast(Any, model)
        self.model._get_top_k_continuations = self.find_continuations
        self.model._check_early_stop_heuristic = self.check_early_stop
        self.usual_search, self.usual_check = usual._get_top_k_continuations, usual._check_early_stop_heuristic
        self.beam_scores: Tensor | None = None

    def find_continuations(self, accumulated_log_probs: Tensor, running_sequences: Tensor, **kwargs: Any) -> tuple:
        """Find the best next words of `(texts, num_beams, max_length)` by `(texts, num_beams * vocab_size)` scores."""
        length, scores = kwargs["cur_len"], accumulated_log_probs.unflatten(1, (kwargs["num_beams"], -1))
        scores = self.change(scores, running_sequences[:, :, kwargs["decoder_prompt_len"] : length], length)
        return self.usual_search(
            accumulated_log_probs=scores.flatten(1), running_sequences=running_sequences, **kwargs
        )

    def change(self, log_probs: Tensor, written: Tensor, length: int) -> Tensor:
        """Return the scores by which words are chosen.

        Args:
            log_probs: Of beams with one word more, `(texts, num_beams, vocab_size)`.
            written: The words before it, `(texts, num_beams, length of these)`.
            length: Tokens of a beam so far, the prompt's included.
        """
        raise NotImplementedError

    def check_early_stop(self, **kwargs: Any) -> Tensor:
        """Which texts may still improve; keeps the scores of their hypotheses."""
        self.beam_scores = kwargs["beam_scores"]
        return self.usual_check(**kwargs)


def same(first: Tensor, second: Tensor) -> Tensor:
    """Which texts have the same words: `(texts, m, length)` and `(texts, n, length)` -> `(texts, m, n)`."""
    width = max(first.shape[-1], second.shape[-1])
    first, second = (nn.functional.pad(words, (0, width - words.shape[-1]), value=-1) for words in (first, second))
    return (first.unsqueeze(2) == second.unsqueeze(1)).all(dim=-1)


def forbid(scores: Tensor, text: Tensor, beam: Tensor, words: Tensor, listed: Tensor) -> Tensor:
    """Mask next words, unless a beam could not continue at all.

    Args:
        scores: `(texts, beams, listed)`.
        text: The texts of some beams, `(forbidden,)`.
        beam: These beams, `(forbidden,)`.
        words: The masked next words, `(forbidden, words)`.
        listed: The words that have the scores, as these.
    """
    if not len(text):
        return scores
    is_meant = (listed[text, beam].unsqueeze(2) == words.unsqueeze(1)).any(dim=2)
    # A beam may occur several times.
    forbidden = torch.zeros_like(listed).index_put_((text, beam), is_meant.long(), accumulate=True) > 0
    others = scores.masked_fill(forbidden, -torch.inf)
    return torch.where(others.isfinite().any(dim=-1, keepdim=True), others, scores)


def forbid_source(scores: Tensor, written: Tensor, source: Tensor, frame: Frame, listed: Tensor) -> Tensor:
    """Let no beam, `written` so far, end in a copy of the source; arguments as in `forbid`."""
    text, beam, _ = same(frame.words(written), source.unsqueeze(1)).nonzero(as_tuple=True)
    return forbid(scores, text, beam, frame.ends.expand(len(text), -1), listed)


def keep_best(
    found: Any, scores: Tensor, config: GenerationConfig, prompt_length: int, frame: Frame, source: Tensor | None
) -> None:
    """Keep the best sentences of each text among all its beams, which are changed, and cut what none of them fills.

    Duplicates of better ones, copies of the `source`, where it is given, and incomplete hypotheses come last.
    """
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    written = frame.until_end(found.sequences[:, prompt_length:]).unflatten(0, scores.shape)
    written = written.take_along_dim(order.unsqueeze(2), dim=1)
    comes_last = same(written, written).tril(-1).any(dim=2) | (scores < DEAD)
    if source is not None:
        comes_last |= same(frame.words(written), source.unsqueeze(1)).squeeze(2)
    places = comes_last.to(torch.uint8).argsort(dim=1, stable=True)[:, : config.num_return_sequences]
    first = torch.arange(len(scores), device=scores.device).unsqueeze(1) * scores.shape[1]
    rows = (first + order.gather(1, places)).flatten()
    beam_indices = found.beam_indices[rows]
    generated = int((beam_indices >= 0).sum(dim=1).max())
    found.beam_indices = beam_indices[:, :generated]
    found.sequences = found.sequences[rows, : prompt_length + generated]
    found.sequences_scores = scores.gather(1, places).flatten()
    if found.get("mean_log_probs") is not None:
        found["mean_log_probs"] = found["mean_log_probs"][rows]


def check_beams(config: GenerationConfig, name: str) -> None:
    """Raise ValueError where a search is asked to sample."""
    if config.do_sample:
        raise ValueError(f"{name} draws nothing at random: pass `do_sample=False`")


def read_words(ids: Tensor, frame: Frame, name: str, num_beams: int, attention_mask: Tensor | None = None) -> Tensor:
    """The words of the source; the mask, `num_beams` rows of it a text, is 0 at padding.

    Raises:
        ValueError: The texts are given as embeddings or encoder outputs; `name` is what needs them.
    """
    if ids.is_floating_point() or ids.dim() != 2 or (ids < 0).any():
        raise ValueError(f"{name} compares outputs with the text: pass `input_ids`, not embeddings or encoder outputs")
    return frame.words(ids, None if attention_mask is None else attention_mask[::num_beams].bool())
