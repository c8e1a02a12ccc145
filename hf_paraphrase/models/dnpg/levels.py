"""Levels of words: sampling them, positions of their words, keeping one level unchanged, and output classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput

from ..layers.copying import Copying
from ..layers.encoder_decoder import SET_BY_MODEL, DecoderOutput
from ..layers.lstm_kernels import LstmState, select_states
from ..layers.precision import at_least_single
from ..layers.recurrent import StackedLstm
from .configuration_dnpg import DnpgConfig

LEVELS = ("phrase", "sentence")
PHRASE, SENTENCE = range(2)


class Separator(nn.Module):
    """Scores the levels of every word: LSTM layers in both directions, and a linear map of their outputs."""

    def __init__(self, config: DnpgConfig):
        super().__init__()
        self.lstm = StackedLstm(
            config.hidden_size,
            config.separator_size,
            config.separator_layers,
            dropout=config.dropout,
            bidirectional=True,
        )
        self.score = nn.Linear(self.lstm.output_size, len(LEVELS))

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """Map embeddings `(batch, length, hidden_size)` to scores before the softmax, `(batch, length, 2)`."""
        return self.score(self.lstm(words, mask)[0])


def draw_levels(logits: Tensor, temperature: float | None) -> Tensor:
    """Give every word one level, as a one-hot vector `(batch, length, 2)` through which the separator learns.

    With a temperature it is drawn from logits of that shape, by the straight-through form of the Gumbel-softmax (Jang
    et al. 2017, section 2.2): one-hot forward, and backward the gradient of the softmax of scores and noise. The noise
    is of torch's generator. Without one, the likelier level is taken, without a gradient. Single precision at least.
    """
    logits = at_least_single(logits)
    if temperature is None:
        return nn.functional.one_hot(logits.argmax(-1), len(LEVELS)).to(logits.dtype)
    return nn.functional.gumbel_softmax(logits, tau=temperature, hard=True)


def read_levels(levels: Sequence, ids: Tensor) -> Tensor:
    """Read levels that were set by hand; returns `(batch, source_length)`.

    Args:
        levels: "phrase" and "sentence", or 0 and 1, for each token of one source, or such a list for each source. The
            end token, always the template's, may be omitted.
        ids: The sources, `(batch, source_length)`, without padding.

    Raises:
        ValueError: The number of levels differs from that of tokens, or a level is unknown.
    """
    rows = [levels] if isinstance(levels[0], (str, int)) else levels
    values: dict[str | int, int] = {name: number for number, name in enumerate(LEVELS)}
    values |= {PHRASE: PHRASE, SENTENCE: SENTENCE}
    length = ids.shape[1]
    if len(rows) != len(ids) or any(length - len(row) not in (0, 1) for row in rows):
        raise ValueError(
            f"`source_levels` has levels for {[len(row) for row in rows]} tokens, but the sources have "
            f"{[length] * len(ids)}, the end mark included"
        )
    if not values.keys() >= {level for row in rows for level in row}:
        raise ValueError(f"`source_levels` must hold {LEVELS[0]!r} (0) or {LEVELS[1]!r} (1) for each token")
    rows = [[*(values[level] for level in row), SENTENCE][:length] for row in rows]
    return torch.tensor(rows, device=ids.device)


def count_template_positions(mask: Tensor, is_phrase: Tensor) -> Tensor:
    """Number the places of the template, from 0: each of its words is one, and so is each run of phrase words.

    So the template does not depend on the content or length of its slots. Both masks are `(batch, length)`.
    """
    order, back = _words_first(mask)
    words = is_phrase.gather(1, order)
    goes_on = words & nn.functional.pad(words[:, :-1], (1, 0))
    return ((~goes_on).long().cumsum(1) - 1).gather(1, back)


def attended_words(of_level: Tensor, mask: Tensor) -> Tensor:
    """The attention mask: the words of a level, or all words of a row without any of that level.

    With nothing allowed the softmax would be uniform over padding too. Both masks are `(batch, length)`.
    """
    return of_level | (mask.bool() & ~of_level.any(1, keepdim=True))


def _words_first(mask: Tensor) -> tuple[Tensor, Tensor]:
    """The permutation that moves the words of each row before its padding, and its inverse."""
    order = mask.logical_not().to(torch.uint8).argsort(dim=1, stable=True)
    return order, order.argsort(dim=1)


class Control(NamedTuple):
    """The allowed words if one level is kept unchanged.

    Args:
        levels: Which levels may write, `(batch, target_length, 2)`.
        words: Which words each of them may generate, `(batch, target_length or 1, 2, vocab_size)`.
        allowed: The allowed words, `(batch, target_length, vocab_size)`.
        copied: Which words of the source the phrase level may copy, `(batch, target_length, source_length)`, and then
            it generates none; None for no constraint.
    """

    levels: Tensor
    words: Tensor
    allowed: Tensor
    copied: Tensor | None = None


# How far each row is, as a kept level defines it: of a template, how many words are written and whether a phrase word
# follows them, each `(batch,)`; of phrases, which words of the source are missing, `(batch, source_length)`.
Progress = tuple[Tensor, ...]


class KeptTemplate(NamedTuple):
    """The template of each source, which is to be written word for word, with the end mark behind it.

    Args:
        words: `(batch, source_length + 1)`; the end mark behind the last.
        is_behind_phrase: Whether there is a phrase between a word and the previous template word.
    """

    words: Tensor
    is_behind_phrase: Tensor

    @classmethod
    def of(cls, ids: Tensor, levels: Tensor, eos_token_id: int) -> KeptTemplate:
        """Read templates off sources `(batch, source_length)` by one-hot levels of its words, 0 at padding."""
        ids = nn.functional.pad(ids, (0, 1), value=eos_token_id)
        is_phrase, is_template = (nn.functional.pad(levels[..., level] > 0, (0, 1)) for level in range(2))
        is_template[:, -1] = True
        order, _ = _words_first(is_template)
        count = is_template.sum(1, keepdim=True)
        phrases = is_phrase.long().cumsum(1).gather(1, order)
        is_there = torch.arange(ids.shape[1], device=ids.device) < count
        behind = phrases.diff(dim=1, prepend=torch.zeros_like(phrases[:, :1])) > 0
        return cls(ids.gather(1, order).where(is_there, eos_token_id), behind & is_there)

    def start(self) -> Progress:
        """Nothing is written yet."""
        rows = self.words.new_zeros(len(self.words))
        return rows, rows.bool()

    def follow(self, inputs: Tensor, is_word: Tensor, progress: Progress, vocab_size: int) -> tuple[Control, Progress]:
        """The allowed words after each of `inputs`, `(batch, target_length)`; `is_word` tells them from marks.

        The next word of the template only; or, if a phrase precedes that word in the source, first at least one phrase
        word other than that word and the end token.
        """
        levels, words, (written, in_phrase) = [], [], progress
        for step in range(inputs.shape[1]):
            follows = self._goes_on(written, in_phrase) & (inputs[:, step] == self._next(written))
            is_phrase = is_word[:, step] & ~follows
            written = (written + (follows & is_word[:, step]).long()).clamp(max=self.words.shape[1] - 1)
            in_phrase = (in_phrase | is_phrase) & ~(follows & is_word[:, step])
            may_go_on, following = self._goes_on(written, in_phrase), self._next(written)
            has_slot = self.is_behind_phrase.gather(1, written[:, None]).squeeze(1)
            levels.append(torch.stack((has_slot, may_go_on), dim=-1))
            template = nn.functional.one_hot(following.clamp(max=vocab_size - 1), vocab_size).bool()
            end = nn.functional.one_hot(self.words[:, -1], vocab_size).bool()
            words.append(torch.stack((~(end | template), template), dim=1))
        may_write, may_be = torch.stack(levels, 1), torch.stack(words, 1)
        control = Control(may_write, may_be, (may_be & may_write.unsqueeze(-1)).any(2))
        return control, (written, in_phrase)

    def _next(self, written: Tensor) -> Tensor:
        return self.words.gather(1, written[:, None]).squeeze(1)

    def _goes_on(self, written: Tensor, in_phrase: Tensor) -> Tensor:
        """Whether the template's next word is allowed: there is no slot before it, or the slot is filled."""
        return in_phrase | ~self.is_behind_phrase.gather(1, written[:, None]).squeeze(1)


class KeptPhrases(NamedTuple):
    """The words of each source's phrases, all to be written before the end, in any order.

    Args:
        ids: The source, `(batch, source_length)`.
        is_phrase: Which of its words are a phrase's.
        ends: The end marks, `(ends,)`.
        copies: Whether the model copies; else it generates these words alone.
    """

    ids: Tensor
    is_phrase: Tensor
    ends: Tensor
    copies: bool

    def start(self) -> Progress:
        """Nothing is written yet."""
        return (self.is_phrase,)

    def follow(self, inputs: Tensor, is_word: Tensor, progress: Progress, vocab_size: int) -> tuple[Control, Progress]:
        """The allowed words after each word of the target; arguments as in `KeptTemplate.follow`.

        The phrase level writes only missing words; the sentence level anything, but the end once all are written.
        """
        after_each, (words,) = [], progress
        for step in range(inputs.shape[1]):
            is_same = words & (self.ids == inputs[:, step : step + 1]) & is_word[:, step : step + 1]
            # A repeated word must be written as often.
            words = words & ~(is_same & (is_same.cumsum(1) == 1))
            after_each.append(words)
        missing = torch.stack(after_each, 1)
        may_write = missing.any(2)
        free = missing.new_ones(*may_write.shape, vocab_size)
        allowed = free.clone()
        allowed[..., self.ends] = ~may_write.unsqueeze(2)
        own = free if self.copies else self._mark(missing, vocab_size)
        levels = torch.stack((may_write, torch.ones_like(may_write)), dim=-1)
        copied = missing if self.copies else None
        return Control(levels, torch.stack((own, free), dim=2), allowed, copied), (words,)

    def _mark(self, missing: Tensor, vocab_size: int) -> Tensor:
        """The missing words among those of the vocabulary, `(batch, target_length, vocab_size)`."""
        known = missing & (self.ids < vocab_size).unsqueeze(1)
        columns = self.ids.unsqueeze(1).where(known, vocab_size)
        return missing.new_zeros(*missing.shape[:2], vocab_size + 1).scatter(2, columns, True)[..., :-1]


def own_cache(cache: EncoderDecoderCache | None) -> DnpgCache | None:
    """The part of a DNPG's cache that holds more than keys and values."""
    return None if cache is None else cast(DnpgCache, cache.self_attention_cache)


class DnpgCache(DynamicCache):
    """Keys and values of both decoders, with the aggregator's state and, where a level is kept, how far that is.

    The sentence level's layers come first, then those of the phrase level.
    """

    def __init__(self):
        super().__init__()
        self.state: LstmState | None = None
        self.progress: Progress | None = None

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep, for every beam, what belongs to the hypothesis `beam_idx` that it continues."""
        super().reorder_cache(beam_idx)
        if self.state is not None:
            self.state = select_states(self.state, beam_idx)
        if self.progress is not None:
            self.progress = tuple(part.index_select(0, beam_idx) for part in self.progress)


@dataclass
class DnpgEncoderOutput(BaseModelOutput):
    """Encoder outputs for the decoders; `generate()` repeats its tensors for every beam.

    Args:
        last_hidden_state: States of the phrase level, `(batch, source_length, hidden_size)`, zero at other words.
        sentence_states: The same of the sentence level.
        levels: What each word is, `(batch, source_length, 2)` of zeros and ones, zero at padding.
        level_logits: The separator's scores, of the same shape.
        source_ids: The words, `(batch, source_length)`.
        num_outside_words: Words outside the vocabulary that the batch can copy.
        hidden_states: On request, the embeddings of the phrase level's words and every layer's output.
        attentions: On request, every layer's weights there.
    """

    last_hidden_state: Tensor = SET_BY_MODEL
    sentence_states: Tensor = SET_BY_MODEL
    levels: Tensor = SET_BY_MODEL
    level_logits: Tensor = SET_BY_MODEL
    source_ids: Tensor = SET_BY_MODEL
    num_outside_words: int = SET_BY_MODEL


@dataclass
class DnpgDecoderOutput(DecoderOutput):
    """Decoder outputs, with the aggregator's scores and, if any, copy weights."""

    level_logits: Tensor = SET_BY_MODEL
    copying: Copying | None = None


@dataclass
class DnpgModelOutput(Seq2SeqModelOutput):
    """`Seq2SeqModelOutput`, in which `last_hidden_state` has the states of both levels, `(…, 2 * hidden_size)`.

    Args:
        aggregated_logits: Scores of the levels at every position, `(batch, target_length, 2)`.
        copying: Copy weights of the phrase level, with `copy`.
        control: The constraint, if one level is kept.
        source_levels: As `DnpgSeq2SeqLMOutput` has it; so too the three below.
    """

    last_hidden_state: Tensor = SET_BY_MODEL
    aggregated_logits: Tensor = SET_BY_MODEL
    copying: Copying | None = None
    control: Control | None = None
    source_levels: Tensor | None = None
    target_levels: Tensor | None = None
    source_level_logits: Tensor | None = None
    target_level_logits: Tensor | None = None


@dataclass
class DnpgSeq2SeqLMOutput(Seq2SeqLMOutput):
    """`Seq2SeqLMOutput` whose `logits` are log-probabilities, with the requested outputs of the levels.

    Args:
        source_levels: With `output_levels=True`, the level of each word of the source, `(batch, source_length)`: 0 for
            phrase, 1 for sentence; 0 at padding.
        target_levels: The likelier level of each word to write next, `(batch, target_length)`.
        source_level_logits: The separator's scores, `(batch, source_length, 2)`.
        target_level_logits: The aggregator's scores, `(batch, target_length, 2)`.
        copy_weights: Probability of copying each word of the source, if the phrase level writes, `(batch,
            target_length, source_length)`, with `copy`.
    """

    source_levels: Tensor | None = None
    target_levels: Tensor | None = None
    source_level_logits: Tensor | None = None
    target_level_logits: Tensor | None = None
    copy_weights: Tensor | None = None
