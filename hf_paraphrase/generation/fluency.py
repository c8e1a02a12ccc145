"""How well a candidate reads, from 0 to 1, as a model finds it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from ..errors import InputError
from ..models.layers.layer_weights import input_device
from ..models.text.encoded_inputs import source_limit
from ..pretrained import load_model, load_tokenizer
from .writers import Judged, ModelWriter


class OwnFluency:
    """How probable the model that wrote a candidate finds it, given the source.

    The geometric mean of the probabilities of its tokens: exp of the mean log-probability, without temperature, noise
    and penalties of the search that found it. A beam search that knows this number is believed; other candidates are
    read once more. It measures how likely the model finds the text: good style, and closeness to its training data. It
    does not measure grammar as people see it: dull candidates get more than lively ones, a rare name costs much, and a
    model that repeats itself is sure of it. The figures of two models do not compare.
    """

    def __init__(self, writer: ModelWriter):
        self.writer = writer

    def __call__(self, judged: Sequence[Judged], batch_size: int) -> list[float | None]:
        """Return a number from 0 to 1 for each candidate; None where a server does not tell it."""
        scores = [one.fluency for one in judged]
        if not self.writer.scores_texts:
            return scores
        left = [place for place, score in enumerate(scores) if score is None]
        pairs = [pair for place in left if (pair := judged[place].pair) is not None] or None
        sources, candidates = [judged[place].source for place in left], [judged[place].candidate for place in left]
        for place, mean in zip(left, self.writer.mean_log_probs(sources, candidates, batch_size, pairs), strict=True):
            scores[place] = math.exp(mean)
        return scores


class CausalFluency:
    """How probable a language model finds a candidate by itself: the inverse of its perplexity.

    The geometric mean of the probabilities of its tokens, of the first too where the tokenizer has a mark of
    beginning. It knows nothing of the source, prefers long and common phrases, and punishes rare names.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase):
        self.model, self.tokenizer = model.eval(), tokenizer

    def __call__(self, judged: Sequence[Judged], batch_size: int) -> list[float]:
        """Return a number from 0 to 1 for each candidate; 0 for one that has no token to predict."""
        ids = [self._encode(one.candidate) for one in judged]
        order = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
        scores = [0.0] * len(ids)
        for start in range(0, len(order), batch_size):
            places = order[start : start + batch_size]
            for place, score in zip(places, self._score([ids[place] for place in places]), strict=True):
                scores[place] = score
        return scores

    def _encode(self, text: str) -> list[int]:
        limit = source_limit(self.model, self.tokenizer)
        ids = self.tokenizer(text, truncation=True, max_length=limit, verbose=False)["input_ids"]
        begin = self.tokenizer.bos_token_id
        return ids if begin is None or ids[:1] == [begin] else [begin, *ids][:limit]

    @torch.inference_mode()
    def _score(self, rows: list[list[int]]) -> list[float]:
        width = max(map(len, rows))
        if width < 2:
            return [0.0] * len(rows)
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows], device=input_device(self.model))
        mask = torch.arange(width, device=ids.device) < torch.tensor([[len(row)] for row in rows], device=ids.device)
        log_probs = self.model(input_ids=ids, attention_mask=mask.long()).logits[:, :-1].float().log_softmax(-1)
        chosen = log_probs.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1).masked_fill(~mask[:, 1:], 0.0)
        counts = mask[:, 1:].sum(1)
        means = chosen.sum(1) / counts.clamp(min=1)
        return means.exp().masked_fill(counts == 0, 0.0).tolist()


def load_causal_fluency(
    path: str | os.PathLike, device: torch.device, trust_remote_code: bool = False
) -> CausalFluency:
    """Load a language model and its tokenizer from a folder or the Hub; InputError where that fails."""
    try:
        model = load_model(AutoModelForCausalLM, path, trust_remote_code)
        tokenizer = load_tokenizer(path, trust_remote_code)
    except (OSError, ValueError) as error:
        where = "holds no" if Path(path).is_dir() else "is not a"
        raise InputError(f"`fluency`: {path} {where} loadable causal language model: {error}") from error
    return CausalFluency(model.to(device), tokenizer)
