"""Beam search in groups that avoid each other's words, which transformers 5 no longer has."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList, PreTrainedModel, StoppingCriteriaList
from transformers.generation.utils import GenerateBeamOutput

from .beam_search import BeamSearch, is_covered
from .found_sentences import DEAD, Frame, HookedSearch, check_beams, forbid, forbid_source, keep_best, read_words

# What a word costs for each group that has chosen it, in nats, where nobody says otherwise.
DIVERSITY_PENALTY = 0.5


def diverse_beam_search(
    model: PreTrainedModel,
    input_ids: Tensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    inputs_tensor: Tensor,
    num_beam_groups: int | None = None,
    diversity_penalty: float | None = None,
    exclude_source: bool = False,
    **model_kwargs: Any,
) -> GenerateBeamOutput | Tensor:
    """Search with groups of beams that avoid each other's words: `generate(custom_generate=diverse_beam_search)`.

    At every step the groups choose in turn. To group g of a text, a word y costs as much as groups before
    it have chosen that word for their own next position (Vijayakumar et al. 2016, section 4, with Hamming diversity):

        score(y) = log p(y | x, y_<t) - diversity_penalty · |{beams of groups 1 … g-1 that go on by y}|

    and scores add up along a beam. Otherwise a group is a normal beam search with all of transformers' features,
    including caches. Readings where the paper leaves a choice: only beams that go on count, so that a group may end a
    sentence where another does; a group that has found all it looks for counts no more. Beyond the paper, no group
    completes a sentence that a group before it completes at that step: so all that is returned differs, unless the
    words that may follow leave nothing else; then what was found twice comes last.

    Args:
        model: Any model whose `generate()` does beam search.
        input_ids: `(texts * num_beams, length)`, as `generate()` makes them; so too the arguments up to
            `inputs_tensor`, and `generation_config.num_beams` are shared out among the groups.
        inputs_tensor: The texts, `(texts, source_length)`: of a decoder-only model, the prompt.
        num_beam_groups: Groups of a text; by default what `generation_config` says, or else every beam is one.
        diversity_penalty: In nats; by default what `generation_config` says, or else 0.5.
        exclude_source: Complete no sentence of the same tokens as the text. Source and output need one vocabulary.
        model_kwargs: What `generate()` has prepared for the model.

    Returns:
        What beam search returns: `(texts * num_return_sequences, length)`, for each text the best of all its groups,
        best first; or a dict of it, in which `sequences_scores` are less by the penalties and `scores`, if asked for,
        are not.

    Raises:
        ValueError: The beams cannot be shared out, the penalty is negative, sampling is asked for, or the source is to
            be excluded and not given as tokens.
    """
    check_beams(generation_config, "diverse beam search")
    beams, groups, penalty = generation_config.num_beams, num_beam_groups, diversity_penalty
    # `generate()` fills in 1 group and no penalty where nobody says anything.
    if groups is None:
        groups = generation_config.num_beam_groups if (generation_config.num_beam_groups or 1) > 1 else beams
    if penalty is None:
        penalty = generation_config.diversity_penalty or DIVERSITY_PENALTY
    if groups < 1 or beams % groups:
        raise ValueError(f"`num_beam_groups` must divide `num_beams`, but {groups} does not divide {beams}")
    if not penalty >= 0:
        raise ValueError(f"`diversity_penalty` must be at least 0, not {penalty}")
    frame, source = Frame(generation_config, input_ids.device), None
    if exclude_source:
        source = read_words(inputs_tensor, frame, "`exclude_source`", beams, model_kwargs.get("attention_mask"))
    config = copy.copy(generation_config)
    # Each group is searched like a text that returns all its beams.
    config.num_beams = config.num_return_sequences = beams // groups
    config.return_dict_in_generate = True
    search = GroupedSearch(model, groups, penalty, frame, source, config.max_length)
    if is_covered(search.model, config, model_kwargs):
        lean = LeanGroupedSearch(search, input_ids, logits_processor, stopping_criteria, config, model_kwargs)
        found = lean.run()
        scores = found.sequences_scores
    else:
        found = search.model._beam_search(input_ids, logits_processor, stopping_criteria, config, **model_kwargs)
        scores = cast(Tensor, search.beam_scores)
    keep_best(found, scores.reshape(-1, beams), generation_config, input_ids.shape[1], frame, source)
    return found if generation_config.return_dict_in_generate else found.sequences


class GroupedSearch(HookedSearch):
    """Makes a model's beam search charge groups for each other's words.

    Args:
        model: Any model whose `generate()` does beam search.
        groups: Groups of a text, which the search takes for texts.
        penalty: Penalty of a word for each beam of an earlier group that chose it.
        frame: Knows the ends of a sentence.
        source: Words of the texts, `(texts, source_length)`, where no sentence may copy them.
        max_length: Tokens of a sequence that can go on no more.
    """

    def __init__(
        self, model: PreTrainedModel, groups: int, penalty: float, frame: Frame, source: Tensor | None, max_length: int
    ) -> None:
        super().__init__(model)
        self.groups, self.penalty = groups, penalty
        self.frame, self.source, self.max_length = frame, source, max_length
        self.searching: Tensor | None = None

    def find_width(self, num_beams: int) -> int:
        """How many words of each beam are listed: those that are kept, and as many as can be charged or forbidden.

        No other is ever chosen.
        """
        ends = len(self.frame.ends)
        return max(2, 1 + ends) * num_beams + 2 * self.groups * num_beams + ends

    def change(self, log_probs: Tensor, written: Tensor, length: int) -> Tensor:
        """Charge the groups, which the search takes for texts, and drop all but the likeliest words of each beam."""
        found, listed = log_probs.topk(min(self.find_width(log_probs.shape[1]), log_probs.shape[2]))
        parts = (part.unflatten(0, (-1, self.groups)) for part in (found, written, listed))
        charged = self.charge(*parts, is_last=length + 1 >= self.max_length).flatten(0, 1)
        return torch.full_like(log_probs, -torch.inf).scatter_(2, listed, charged)

    def charge(self, log_probs: Tensor, written: Tensor, listed: Tensor, *, is_last: bool = False) -> Tensor:
        """Subtract the penalties, and mask sentences of other groups and the source.

        Args:
            log_probs: Of beams with their next word, `(texts, groups, num_beams, listed)`.
            written: The words before it, `(texts, groups, num_beams, length)`.
            listed: The next words, as `log_probs`.
            is_last: Whether every word is a sentence's last.
        """
        texts, _, num_beams, width = log_probs.shape
        searching = log_probs.new_ones(texts, self.groups, dtype=torch.bool)
        if self.searching is not None:
            searching = self.searching.view(texts, self.groups)
        completed: list[tuple[int, Completed]] = []
        penalties, scores = log_probs.new_zeros(texts, int(listed.max()) + 1), []
        for group, known in enumerate(listed.unbind(1)):
            charged = log_probs[:, group] - penalties.gather(1, known.flatten(1)).view_as(known)
            if self.source is not None:
                charged = forbid_source(charged, written[:, group], self.source, self.frame, known)
            for before, others in completed:
                charged = self._forbid_completed(charged, written[:, group], written[:, before], others, known)
            scores.append(charged)
            if group + 1 < self.groups:
                found = self._completed(charged, searching[:, group], is_last, known)
                if found.valid.any():
                    completed.append((group, found))
            going_on = charged.masked_fill(torch.isin(known, self.frame.ends), -torch.inf)
            words = known.flatten(1).gather(1, going_on.flatten(1).topk(num_beams).indices)
            costs = self.penalty * searching[:, group, None].to(log_probs)
            penalties.scatter_add_(1, words, costs.expand(words.shape))
        return torch.stack(scores, dim=1)

    def _completed(self, scores: Tensor, searching: Tensor, is_last: bool, listed: Tensor) -> Completed:
        """The hypotheses that a group completes, from scores `(texts, num_beams, words)`: its best ones that end."""
        _, num_beams, width = scores.shape
        best, places = scores.flatten(1).topk(num_beams)
        words = listed.flatten(1).gather(1, places)
        is_complete = torch.isin(words, self.frame.ends) | is_last
        return Completed(places // width, words, is_complete & searching.unsqueeze(1) & (best > DEAD))

    def _forbid_completed(
        self, scores: Tensor, written: Tensor, written_before: Tensor, completed: Completed, listed: Tensor
    ) -> Tensor:
        """Keep a group's beams from completing an earlier group's sentence."""
        sentences = written_before.take_along_dim(completed.beams.unsqueeze(2), dim=1)
        is_same = (written.unsqueeze(2) == sentences.unsqueeze(1)).all(dim=3) & completed.valid.unsqueeze(1)
        text, beam, number = is_same.nonzero(as_tuple=True)
        words = completed.words[text, number].unsqueeze(1)
        # One end is as good as another.
        words = torch.where(torch.isin(words, self.frame.ends), self.frame.ends.expand(len(words), -1), words)
        return forbid(scores, text, beam, words, listed)

    def check_early_stop(self, **kwargs: Any) -> Tensor:
        """Which groups, `(texts * groups, 1)`, may still improve; kept with the scores of their hypotheses."""
        improvable = super().check_early_stop(**kwargs)
        is_full = kwargs["is_sent_finished"].all(dim=1, keepdim=True)
        self.searching = improvable & ~is_full if kwargs["early_stopping"] is True else improvable
        return improvable


class LeanGroupedSearch(BeamSearch):
    """A `GroupedSearch` with the lower overhead of this package's beam search."""

    def __init__(self, search: GroupedSearch, *arguments: Any) -> None:
        super().__init__(search.model, *arguments)
        self.search, self.tokens_needed = search, True
        self.copies = search.groups * self.num_beams

    def choose(self, logits: Tensor) -> tuple[Tensor, ...]:
        """Choose the best continuations of each group, after the earlier groups' choices."""
        none, width = logits.new_zeros(len(logits), 1), min(self.search.find_width(self.num_beams), logits.shape[1])
        found = self.rules.find_likeliest(logits, self._tokens_so_far(), none, width)
        log_probs, listed = (
            part.repeat_interleave(self.scores.numel() // len(part), dim=0).view(*self.scores.shape, width)
            for part in found
        )
        written = self.tokens.view(*self.scores.shape, -1)[:, :, self.prompt.shape[1] :]
        parts = (log_probs + self.scores.unsqueeze(2), written, listed)
        grouped = (part.unflatten(0, (-1, self.search.groups)) for part in parts)
        charged = self.search.charge(*grouped, is_last=self.length + 1 >= self.config.max_length).flatten(0, 1)
        best, places = charged.flatten(1).topk(self.kept)
        log_probs, words = (part.flatten(1).gather(1, places) for part in (log_probs, listed))
        return best, log_probs, places // width, words

    def find_leaving(self, is_settled: Tensor) -> Tensor:
        """A text leaves with all its groups."""
        return is_settled.view(-1, self.search.groups).all(dim=1).repeat_interleave(self.search.groups)

    def keep_texts(self, going_on: Tensor) -> None:
        """Continue with a subset of the groups."""
        super().keep_texts(going_on)
        search = self.search
        search.searching = cast(Tensor, search.searching)[going_on]
        if search.source is not None:
            search.source = search.source[going_on[:: search.groups] // search.groups]


class Completed(NamedTuple):
    """Sentences that a group completes at a step: beam and last word of each, and which are any, `(texts, beams)`."""

    beams: Tensor
    words: Tensor
    valid: Tensor
