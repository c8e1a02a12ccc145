"""Beam search in groups that avoid each other's words, which transformers 5 no longer has."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList, PreTrainedModel, StoppingCriteriaList
from transformers.generation.utils import GenerateBeamOutput

__all__ = ["check_beams", "diverse_beam_search"]


def diverse_beam_search(
    model: PreTrainedModel,
    input_ids: torch.LongTensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    num_beam_groups: int | None = None,
    diversity_penalty: float = 0.5,
    **model_kwargs: Any,
) -> GenerateBeamOutput | torch.LongTensor:
    """Search with groups of beams that avoid each other's words: `generate(custom_generate=diverse_beam_search)`.

    At every step the groups choose one after the other. To group g of a text, a word y costs as much as groups before
    it have chosen that word for their own next position (Vijayakumar et al. 2016, section 4, with Hamming diversity):

        score(y) = log p(y | x, y_<t) - diversity_penalty · |{beams of groups 1 … g-1 that go on by y}|

    and scores add up along a beam. In all else a group is a beam search of transformers' own, with whatever that
    supports, caches included. Readings where the paper leaves a choice: only beams that go on count, so that a group
    may end a sentence where another does; a group that has found all it looks for counts no more.

    Args:
        model: Any model whose `generate()` does beam search.
        input_ids: `(texts * num_beams, length)`, as `generate()` makes them; so too the arguments up to
            `generation_config`, whose `num_beams` are shared out among the groups.
        num_beam_groups: Groups of a text; by default every beam is one.
        diversity_penalty: In nats. At 0, all groups find the same.
        model_kwargs: What `generate()` has prepared for the model.

    Returns:
        What beam search returns: `(texts * num_return_sequences, length)`, for each text the best of all its groups,
        best first; or a dict of it, in which `sequences_scores` are less by the penalties and `scores` are not.

    Raises:
        ValueError: The beams cannot be shared out, the penalty is negative, or sampling is asked for.
    """
    check_beams(generation_config, "diverse beam search")
    beams = generation_config.num_beams
    groups = beams if num_beam_groups is None else num_beam_groups
    if groups < 1 or beams % groups:
        raise ValueError(f"`num_beam_groups` must divide `num_beams`, but {groups} does not divide {beams}")
    if not diversity_penalty >= 0:
        raise ValueError(f"`diversity_penalty` must be at least 0, not {diversity_penalty}")
    config = copy.copy(generation_config)
    # Each group is searched as if it were a text, all of whose beams are wanted.
    config.num_beams = config.num_return_sequences = beams // groups
    config.return_dict_in_generate = True
    search = GroupedSearch(model, groups, diversity_penalty, config.eos_token_id)
    found = search.model._beam_search(input_ids, logits_processor, stopping_criteria, config, **model_kwargs)
    choose_over_groups(found, search.beam_scores.reshape(-1, beams), generation_config, input_ids.shape[1])
    return found if generation_config.return_dict_in_generate else found.sequences


class GroupedSearch:
    """Makes a model's beam search charge groups for each other's words; the model itself stays as it is.

    Args:
        model: Any model whose `generate()` does beam search.
        groups: Groups of a text, which the search takes for texts.
        penalty: What a word costs for each beam of an earlier group that chose it.
        eos_token_id: Ends of a sentence.
    """

    def __init__(
        self, model: PreTrainedModel, groups: int, penalty: float, eos_token_id: int | list[int] | None
    ) -> None:
        # A shallow copy has the model's weights, and methods of its own.
        self.model = copy.copy(model)
        self.model._get_top_k_continuations = self.find_continuations
        self.model._check_early_stop_heuristic = self.check_early_stop
        self.usual_search, self.usual_check = model._get_top_k_continuations, model._check_early_stop_heuristic
        self.groups, self.penalty = groups, penalty
        self.ends = [] if eos_token_id is None else torch.as_tensor(eos_token_id).flatten().tolist()
        self.searching: torch.BoolTensor | None = None
        self.beam_scores: torch.FloatTensor | None = None

    def find_continuations(self, accumulated_log_probs: torch.FloatTensor, num_beams: int, **kwargs: Any) -> tuple:
        """Find the best next words, `accumulated_log_probs` being `(texts * groups, num_beams * vocab_size)`."""
        scores = self.charge(accumulated_log_probs.unflatten(0, (-1, self.groups)), num_beams)
        return self.usual_search(accumulated_log_probs=scores.flatten(0, 1), num_beams=num_beams, **kwargs)

    def charge(self, log_probs: torch.FloatTensor, num_beams: int) -> torch.FloatTensor:
        """Subtract the penalties from `(texts, groups, num_beams * vocab_size)`."""
        texts, vocab_size = len(log_probs), log_probs.shape[-1] // num_beams
        searching = log_probs.new_ones(texts, self.groups)
        if self.searching is not None:
            searching = self.searching.view(texts, self.groups).to(log_probs)
        penalties, scores = log_probs.new_zeros(texts, vocab_size), []
        for group in range(self.groups):
            scores.append(log_probs[:, group] - penalties.repeat(1, num_beams))
            going_on = scores[-1].view(texts, num_beams, vocab_size).clone()
            going_on[..., self.ends] = -torch.inf
            words = going_on.flatten(1).topk(num_beams).indices % vocab_size
            penalties.scatter_add_(1, words, self.penalty * searching[:, group, None].expand_as(words))
        return torch.stack(scores, dim=1)

    def check_early_stop(self, **kwargs: Any) -> torch.BoolTensor:
        """Tell which groups, `(texts * groups, 1)`, may still improve; keep that and the scores of what they found."""
        improvable = self.usual_check(**kwargs)
        is_full = kwargs["is_sent_finished"].all(dim=1, keepdim=True)
        self.searching = improvable & ~is_full if kwargs["early_stopping"] is True else improvable
        self.beam_scores = kwargs["beam_scores"]
        return improvable


def choose_over_groups(
    found: GenerateBeamOutput, scores: torch.FloatTensor, config: GenerationConfig, prompt_length: int
) -> None:
    """Keep the best sequences of each text, by scores `(texts, num_beams)`, and cut what none of them fills."""
    ordered, places = scores.sort(dim=1, descending=True, stable=True)
    first = torch.arange(len(scores), device=scores.device).unsqueeze(1) * scores.shape[1]
    rows = (first + places)[:, : config.num_return_sequences].flatten()
    beam_indices = found.beam_indices[rows]
    generated = int((beam_indices >= 0).sum(dim=1).max())
    found.beam_indices = beam_indices[:, :generated]
    found.sequences = found.sequences[rows, : prompt_length + generated]
    if config.output_scores:
        found.sequences_scores = ordered[:, : config.num_return_sequences].flatten()


def check_beams(config: GenerationConfig, name: str) -> None:
    """Raise ValueError where a search is asked to sample."""
    if config.do_sample:
        raise ValueError(f"{name} draws nothing at random: pass `do_sample=False`")
