"""Beam search with the results of transformers' own, at lower overhead."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    EosTokenCriteria,
    GenerationConfig,
    GenerationMixin,
    LogitsProcessorList,
    MaxLengthCriteria,
    PreTrainedModel,
    StaticCache,
    StoppingCriteriaList,
)
from transformers.cache_utils import DynamicLayer
from transformers.generation.utils import GenerateBeamEncoderDecoderOutput, GenerateBeamOutput

from ..layers.products import prepacked
from .found_sentences import DEAD
from .scoring_rules import ScoringRules

# Finished texts leave the batch once they are this share of it, since the caches are copied each time; where beams
# share their source's part of them, at once.
LEAVING_PART = 8
# They stop a sentence by its length or its last token.
OF_LAST_TOKEN = (EosTokenCriteria, MaxLengthCriteria)
# Methods that the search calls or does the work of. A model with its own is searched by its own.
METHODS = (
    "_beam_search",
    "_check_early_stop_heuristic",
    "_expand_inputs_for_generation",
    "_get_running_beams_for_next_iteration",
    "_get_top_k_continuations",
    "_update_finished_beams",
    "_update_model_kwargs_for_generation",
)
OF_EVERY_STEP = ("output_attentions", "output_hidden_states", "output_logits", "output_scores")


@dataclass
class FoundSentences(GenerateBeamEncoderDecoderOutput):
    """What beam search of transformers returns in a dict, and how probable the model alone finds each sentence.

    Args:
        mean_log_probs: The mean log-probability of the tokens that were written, end mark included, without the
            penalties of the search, `(texts * num_return_sequences,)`; None where a processor changes scores.
    """

    mean_log_probs: Tensor | None = None


@torch.no_grad()
def beam_search(
    model: PreTrainedModel,
    input_ids: Tensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    **model_kwargs: Any,
) -> GenerateBeamOutput | Tensor:
    """Do what beam search of transformers does, faster: `generate(custom_generate=beam_search)`.

    Words, scores and their order are the same, but for sums that differ in the last digits where a batch has fewer
    rows. All beams of a text start as one row; the likeliest words are found among the logits, of which only theirs
    are normalized; what is forbidden by length alone is masked in place; hypotheses are pointers, followed once at the
    end; caches are reordered where beams changed places, the source's part of them never; linear layers multiply by
    packed weights; and texts that can find no better sentence leave the batch. What this does not cover (`is_covered`)
    is left to transformers.

    Args:
        model: Any model whose `generate()` does beam search.
        input_ids: `(texts * num_beams, length)`, as `generate()` makes them; so too the other arguments.
        model_kwargs: What `generate()` has prepared for the model.

    Returns:
        What beam search returns: `(texts * num_return_sequences, length)`, or a dict of it that has
        `sequences_scores` whether `output_scores` asks for them or not, and no scores of single steps.
    """
    if generation_config.num_beams == 1 or not is_covered(model, generation_config, model_kwargs):
        config, usual = copy.copy(generation_config), cast(Any, model)
        usual_search = usual._sample
        if config.num_beams > 1:
            config.output_scores, usual_search = config.return_dict_in_generate, usual._beam_search
        return usual_search(input_ids, logits_processor, stopping_criteria, config, **model_kwargs)
    search = BeamSearch(model, input_ids, logits_processor, stopping_criteria, generation_config, model_kwargs)
    with prepacked(model):
        found = search.run()
    return found if generation_config.return_dict_in_generate else found.sequences


def is_covered(model: PreTrainedModel, config: GenerationConfig, model_kwargs: dict[str, Any]) -> bool:
    """Whether `beam_search` runs the search itself.

    It does for an encoder-decoder with the usual methods, without sampling, from an empty cache that grows, where
    nothing of single steps is to be returned.
    """
    cache = model_kwargs.get("cache")
    has_own = any(getattr(type(model), name) is not getattr(GenerationMixin, name) for name in METHODS)
    return (
        model.config.is_encoder_decoder
        and not has_own
        and not config.do_sample
        and not config.low_memory
        and config.prefill_chunk_size is None
        and not any(getattr(config, name) for name in OF_EVERY_STEP)
        and (cache is None or cache.get_seq_length() == 0)
        and not isinstance(getattr(cache, "self_attention_cache", cache), StaticCache)
    )


class Finished(NamedTuple):
    """The best complete sentences of texts; empty slots have a score of -1e9 and no step.

    Args:
        scores: `(texts, num_beams)`.
        words: The beam that each continued, its last token, and the log-probability of all its tokens by the model
            alone, `(texts, num_beams, 3)`.
        steps: When it was completed, `(texts, num_beams, 1)`, from 0.
        valid: Which are complete, `(texts, num_beams)`.
    """

    scores: Tensor
    words: Tensor
    steps: Tensor
    valid: Tensor


class BeamSearch:
    """A search in progress; arguments as in `beam_search`."""

    def __init__(
        self,
        model: Any,
        input_ids: Tensor,
        processors: LogitsProcessorList,
        criteria: StoppingCriteriaList,
        config: GenerationConfig,
        model_kwargs: dict[str, Any],
    ) -> None:
        self.model, self.criteria, self.config, self.kwargs = model, criteria, config, model_kwargs
        self.rules, self.num_beams = ScoringRules(processors), config.num_beams
        texts, device = len(input_ids) // self.num_beams, input_ids.device
        ends = config._eos_token_tensor
        self.kept = max(2, 1 + (0 if ends is None else len(ends))) * self.num_beams
        self.copies = self.num_beams  # rows of a source
        tensors = {name for name, value in model_kwargs.items() if isinstance(value, Tensor)}
        self.shares_sources = getattr(model, "shares_sources", False) and tensors <= {"attention_mask"}
        self.prompt, self.length = input_ids, input_ids.shape[1]
        looks_back = not all(type(criterion) in OF_LAST_TOKEN for criterion in criteria)
        self.may_leave = not (looks_back or self.rules.need_all_rows)
        self.tokens_needed = looks_back or self.rules.need_tokens or not model_kwargs.get("use_cache")
        self.tokens_needed |= (
            type(model).prepare_inputs_for_generation is not GenerationMixin.prepare_inputs_for_generation
        )
        self.looks_back, self.tokens = looks_back, input_ids
        self.texts = torch.arange(texts, device=device)
        # Beams that do not exist yet cost so much that only what the first leads to is found.
        self.scores = input_ids.new_full((texts, self.num_beams), -1e9, dtype=torch.float)
        self.scores[:, 0] = 0.0
        self.log_probs = torch.zeros_like(self.scores, dtype=torch.double)
        self.improvable = torch.ones(texts, 1, dtype=torch.bool, device=device)
        none = torch.full_like(self.scores, -1e9)
        self.finished = Finished(
            none,
            torch.full((texts, self.num_beams, 3), -1, dtype=torch.double, device=device),
            torch.full((texts, self.num_beams, 1), -1, device=device),
            torch.zeros_like(none, dtype=torch.bool),
        )
        self.hypotheses = Hypotheses(self.finished)

    def run(self) -> FoundSentences:
        """Search, and return what `generate()` does in a dict."""
        while self.step():
            pass
        found = self.hypotheses.read(self.prompt, self.config)
        if not self.rules.keep_scores:
            found.mean_log_probs = None
        return found

    def step(self) -> bool:
        """Generate one token, and return whether to continue."""
        scores, log_probs, parents, words = self.choose(self._read_logits())
        log_probs = self.log_probs.gather(1, parents) + log_probs
        stops = self._find_stops(parents, words)
        # In double precision, which has room for both numbers and log-probabilities.
        pointers = torch.stack((parents.double(), words.double(), log_probs), dim=2)
        steps = torch.full_like(words, len(self.hypotheses.steps)).unsqueeze(2)
        running, self.scores, _ = self.model._get_running_beams_for_next_iteration(
            scores, pointers, steps, stops, self.num_beams
        )
        self._finish(scores, pointers, steps, stops)
        parents, words = running[..., :2].long().unbind(2)
        self.log_probs = running[..., 2]
        self.hypotheses.append(self.texts, parents, words)
        self.length += 1
        self.improvable = self.model._check_early_stop_heuristic(
            running_beam_scores=self.scores, max_length=self.config.max_length, **self._so_far()
        )
        is_open = self.model._beam_search_has_unfinished_sequences(
            self.improvable, self.finished.valid, stops, self.config.early_stopping
        )
        if not is_open:
            self.hypotheses.keep(self.texts, self.finished)
            return False
        self._move_on(parents, words)
        return True

    def choose(self, logits: Tensor) -> tuple[Tensor, ...]:
        """Choose the best continuations of each text.

        Args:
            logits: Of the beams' next words, `(texts * num_beams, vocab_size)`; at first, while all beams of a text
                are the same, one row a text will do.

        Returns:
            The scores of the chosen, best first, the log-probabilities of their last words, the beams they continue,
            and these words, each `(texts, kept)`.
        """
        before, size = self.scores[:, : len(logits) // len(self.texts)], logits.shape[1]
        log_probs, places = self.rules.find_likeliest(logits, self._tokens_so_far(), before, self.kept)
        parents = places // size
        return before.gather(1, parents) + log_probs, log_probs, parents, places % size

    def _read_logits(self) -> Tensor:
        """Let the model read the last tokens; its logits are as in `choose`."""
        is_first = not self.hypotheses.steps
        kwargs, tokens = self.kwargs, self.tokens
        if is_first:  # all beams of a text are still the same
            rows = torch.arange(0, len(tokens), self.copies, device=tokens.device)
            kwargs, tokens = select_rows(kwargs, rows), tokens[rows]
            if self.shares_sources:
                self.kwargs = kwargs
        inputs = self.model.prepare_inputs_for_generation(
            tokens,
            next_sequence_length=1 if kwargs.get("use_cache") and not is_first else None,
            is_first_iteration=is_first,
            **kwargs,
        )
        outputs = self.model(**inputs, return_dict=True)
        self.kwargs = self.model._update_model_kwargs_for_generation(outputs, self.kwargs, is_encoder_decoder=True)
        logits = outputs.logits[:, -1].to(self.prompt.device, torch.float32)
        if is_first:
            rows = torch.arange(len(logits), device=logits.device).repeat_interleave(self.copies)
            self._reorder_cache(rows, None if self.shares_sources else rows)
            if not hasattr(self.model, "_reorder_cache"):
                keep_by_time(self.kwargs.get("cache"))
            if self.rules.processors or logits.shape[1] < self.kept:  # one row may have too few words
                logits = logits[rows]
        return logits

    def _tokens_so_far(self) -> Tensor:
        """The generated tokens, `(rows, length)`; if not needed, any tokens of that length."""
        return self.tokens if self.tokens_needed else self.tokens[:, -1:].expand(-1, self.length)

    def _find_stops(self, parents: Tensor, words: Tensor) -> Tensor:
        """Which continuations end a sentence, `(texts, kept)`."""
        ids = words.reshape(-1, 1)
        if self.looks_back:
            rows = parents + self.num_beams * torch.arange(len(parents), device=parents.device).unsqueeze(1)
            ids = torch.cat((self.tokens[rows.flatten()], ids), dim=1)
        else:
            ids = ids.expand(-1, self.length + 1)
        return self.criteria(ids, None).view(words.shape)

    def _finish(self, log_probs: Tensor, pointers: Tensor, steps: Tensor, stops: Tensor) -> None:
        """Keep the best of the previously and newly finished hypotheses; transformers does so with whole sequences."""
        words, scores, steps, valid = self.model._update_finished_beams(
            sequences=self.finished.words,
            topk_running_sequences=pointers,
            topk_log_probs=log_probs,
            beam_indices=self.finished.steps,
            topk_running_beam_indices=steps,
            next_token_hits_stopping_criteria=stops,
            top_num_beam_mask=torch.arange(self.kept, device=stops.device) < self.num_beams,
            num_beams=self.num_beams,
            **self._so_far(),
        )
        self.finished = Finished(scores, words, steps, valid)

    def _so_far(self) -> dict[str, Any]:
        """What transformers asks for both to finish sentences and to judge which texts may still improve."""
        return {
            "beam_scores": self.finished.scores,
            "is_sent_finished": self.finished.valid,
            "is_early_stop_heuristic_unsatisfied": self.improvable,
            "cur_len": self.length,
            "decoder_prompt_len": self.prompt.shape[1],
            "length_penalty": self.config.length_penalty,
            "early_stopping": self.config.early_stopping,
        }

    def _move_on(self, parents: Tensor, words: Tensor) -> None:
        """Reorder rows, caches and tokens to the surviving beams."""
        going_on = self._find_going_on()
        if going_on is not None:
            self.hypotheses.keep(self.texts, self.finished)
            parents, words = parents[going_on], words[going_on]
            self.keep_texts(going_on)
        firsts = self.num_beams * (torch.arange(len(parents), device=parents.device) if going_on is None else going_on)
        rows = (firsts.unsqueeze(1) + parents).flatten()
        sources = None
        if going_on is not None:
            texts = self.copies // self.num_beams  # of a source
            sources = going_on[::texts] // texts if self.shares_sources else rows
            self.kwargs = select_rows(self.kwargs, sources)
        if going_on is not None or not torch.equal(rows, torch.arange(len(rows), device=rows.device)):
            self._reorder_cache(rows, sources)
            self.tokens = self.tokens[rows] if self.tokens_needed else self.tokens
        words = words.reshape(-1, 1)
        self.tokens = torch.cat((self.tokens, words), dim=1) if self.tokens_needed else words

    def keep_texts(self, going_on: Tensor) -> None:
        """Continue with a subset of the texts."""
        self.texts, self.scores, self.log_probs, self.improvable = (
            part[going_on] for part in (self.texts, self.scores, self.log_probs, self.improvable)
        )
        self.finished = Finished(*(part[going_on] for part in self.finished))

    def _find_going_on(self) -> Tensor | None:
        """The places of texts that may still improve; None while too few others have come together to leave.

        A text is finished once it is full, with `early_stopping=True`, or cannot improve.
        """
        if not self.may_leave:
            return None
        is_full = (self.finished.valid & (self.finished.scores > DEAD)).all(dim=1)
        is_settled = is_full if self.config.early_stopping is True else is_full & ~self.improvable.squeeze(1)
        settled = self.find_leaving(is_settled)
        count = int(settled.sum())
        if not count or (count * LEAVING_PART < len(settled) and not self.shares_sources):
            return None
        return (~settled).nonzero().squeeze(1)

    def find_leaving(self, is_settled: Tensor) -> Tensor:
        """Which texts may leave, `(texts,)`, of those for which all is settled."""
        return is_settled

    def _reorder_cache(self, rows: Tensor, sources: Tensor | None) -> None:
        """Select these rows of the cache, and of its source part those of `sources`; None to leave that as it is."""
        cache = self.kwargs.get("cache")
        if cache is None:
            return
        if hasattr(self.model, "_reorder_cache"):
            self.kwargs["cache"] = self.model._reorder_cache(cache, rows)
        elif isinstance(cache, EncoderDecoderCache):
            for part, places in ((cache.self_attention_cache, rows), (cache.cross_attention_cache, sources)):
                if places is not None:
                    part.reorder_cache(places)
        else:
            cache.reorder_cache(rows)


def select_rows(model_kwargs: dict[str, Any], rows: Tensor) -> dict[str, Any]:
    """The arguments of a model for some rows: tensors are of rows, in encoder outputs too, as `generate()` has it."""
    selected = dict(model_kwargs)
    for name, value in model_kwargs.items():
        if isinstance(value, Tensor):
            selected[name] = value.index_select(0, rows.to(value.device))
    if model_kwargs.get("encoder_outputs") is not None:
        outputs = model_kwargs["encoder_outputs"]
        selected["encoder_outputs"] = type(outputs)(**select_rows(dict(outputs), rows))
    return selected


class Hypotheses:
    """The history of a search: at every step, the parent and the token of each beam."""

    def __init__(self, finished: Finished) -> None:
        self.finished = Finished(*(part.clone() for part in finished))
        self.steps: list[tuple[Tensor, Tensor]] = []

    def append(self, texts: Tensor, parents: Tensor, words: Tensor) -> None:
        """Add a step of some texts, `(texts, num_beams)`."""
        everywhere = parents.new_zeros(self.finished.scores.shape)
        self.steps.append((everywhere.index_copy(0, texts, parents), everywhere.index_copy(0, texts, words)))

    def keep(self, texts: Tensor, finished: Finished) -> None:
        """Keep what some texts have found."""
        for all_of_it, part in zip(self.finished, finished, strict=True):
            all_of_it[texts] = part

    def read(self, prompt: Tensor, config: GenerationConfig) -> FoundSentences:
        """Follow the pointers of the best sentences back, and write them behind their prompts as `generate()` does.

        The prompts are `(texts * num_beams, length)`; the config says how many sentences of a text are wanted.
        """
        count, num_beams = config.num_return_sequences, config.num_beams
        last_steps = self.finished.steps[:, :count, 0]
        beams, words = self.finished.words[:, :count, :2].long().unbind(2)
        length = int(last_steps.max()) + 1
        pad, ends = config._pad_token_tensor, config._eos_token_tensor
        # The precedence is transformers': padding by token 0 becomes the end of a sentence.
        fill = pad or ends[0] if ends is not None else -1
        written = torch.full((*words.shape, length), int(fill), device=words.device)
        followed = torch.full_like(written, -1)
        for step in reversed(range(length)):
            before = (part.gather(1, beams.clamp(min=0)) for part in self.steps[step])
            beams, words = (torch.where(step < last_steps, *pair) for pair in zip(before, (beams, words), strict=True))
            is_written = step <= last_steps
            written[..., step] = torch.where(is_written, words, written[..., step])
            followed[..., step] = torch.where(is_written, beams, -1)
        firsts = num_beams * torch.arange(len(words), device=words.device).view(-1, 1, 1)
        followed = torch.where(followed < 0, followed, followed + firsts)
        prompts = prompt.view(len(words), num_beams, -1)[:, :count]
        mean_log_probs = self.finished.words[:, :count, 2] / (last_steps + 1)
        return FoundSentences(
            sequences=torch.cat((prompts, written), dim=2).flatten(0, 1),
            sequences_scores=self.finished.scores[:, :count].flatten(),
            beam_indices=followed.flatten(0, 1).int(),
            mean_log_probs=mean_log_probs.float().flatten(),
        )


def keep_by_time(cache: object) -> None:
    """Replace the self-attention layers of a transformers cache by `BeamLayer`s, if they grow in the usual way."""
    if not isinstance(cache, EncoderDecoderCache) or type(cache.self_attention_cache) is not DynamicCache:
        return
    own = cache.self_attention_cache
    if not own.offloading:
        own.layers = [BeamLayer(layer) if type(layer) is DynamicLayer else layer for layer in own.layers]


class BeamLayer(DynamicLayer):
    """Keys and values stored token by token.

    So one pass over them puts beams in order and makes room for a token, where otherwise each takes a copy.
    """

    def __init__(self, layer: DynamicLayer):
        super().__init__()
        self.device, self.is_initialized = layer.device, True
        keys, values = cast(Tensor, layer.keys), cast(Tensor, layer.values)
        self.keys, self.values = (by_row(by_time(part).contiguous()) for part in (keys, values))
        self.rows: Tensor | None = None

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep the rows `beam_idx`, from the next token on."""
        self.rows = beam_idx if self.rows is None else self.rows.index_select(0, beam_idx)

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs) -> tuple[Tensor, Tensor]:
        """Add tokens, `(rows, heads, tokens, head_size)`, and return all."""
        keys, values = cast(Tensor, self.keys), cast(Tensor, self.values)
        self.keys, self.values = self._joined(keys, key_states), self._joined(values, value_states)
        self.rows = None
        return self.keys, self.values

    def _joined(self, states: Tensor, new: Tensor) -> Tensor:
        old, new = by_time(states), by_time(new)
        joined = old.new_empty(len(old) + len(new), *new.shape[1:])
        if self.rows is None:
            joined[: len(old)] = old
        else:
            torch.index_select(old, 1, self.rows, out=joined[: len(old)])
        joined[len(old) :] = new
        return by_row(joined)


def by_time(states: Tensor) -> Tensor:
    """`(rows, heads, tokens, head_size)` -> `(tokens, rows, heads, head_size)`."""
    return states.permute(2, 0, 1, 3)


def by_row(states: Tensor) -> Tensor:
    """`(tokens, rows, heads, head_size)` -> `(rows, heads, tokens, head_size)`."""
    return states.permute(1, 2, 0, 3)
