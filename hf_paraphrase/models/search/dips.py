"""Decoding by DiPS: at every step the beams are the set of candidates that is worth most together."""

from __future__ import annotations

import copy
from typing import Any, cast

import torch
from torch import nn
from transformers import GenerationConfig, LogitsProcessorList, PreTrainedModel, StoppingCriteriaList
from transformers.generation.utils import GenerateBeamOutput

from ..layers.layer_weights import parameter_of
from .found_sentences import DEAD, Frame, check_beams, forbid_source, keep_best, read_words
from .submodular_objective import SubmodularObjective, WordsOfSource, choose_set, word_closeness

__all__ = ["dips"]


def dips(
    model: PreTrainedModel,
    input_ids: torch.Tensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    inputs_tensor: torch.Tensor,
    fidelity: float = 0.5,
    candidates_per_beam: int = 3,
    exclude_source: bool = True,
    **model_kwargs: Any,
) -> GenerateBeamOutput | torch.Tensor:
    """Search for paraphrases that are true to the text and unlike each other: `generate(custom_generate=dips)`.

    Of k beams the 3k likeliest continuations are the candidates V, and the next beams are the k of them that are worth
    most as a set, by the `SubmodularObjective` (Kumar et al. 2019, algorithm 2). If plain beam search's set has a
    higher value than the greedy one, it is used. Readings where the paper leaves a choice:
    candidates that end a sentence are not in V, since they add no word, but are complete if they are among the k
    likeliest, as in beam search; the search stops when k sentences are complete, as `early_stopping=True` says. Beyond
    the paper, whose fidelity is highest for the text itself, no sentence is completed that is a copy of it.

    Source and output need one vocabulary, as paraphrases have.

    Args:
        model: Any model whose `generate()` does beam search.
        input_ids: `(texts * num_beams, length)`, as `generate()` makes them; so too the other arguments up to
            `inputs_tensor`.
        inputs_tensor: The texts to paraphrase, `(texts, source_length)`: of a decoder-only model, the prompt.
        fidelity: λ: at 1 the set only stays true to the text, at 0 it is only diverse.
        candidates_per_beam: Continuations in V for each beam.
        exclude_source: Complete no sentence of the same tokens as the text; where nothing else may follow, such a copy
            comes last.
        model_kwargs: What `generate()` has prepared for the model.

    Returns:
        What beam search returns: `(texts * num_return_sequences, length)`, for each text the likeliest of the k
        sentences, likeliest first, or a dict of it.

    Raises:
        ValueError: An argument that cannot be, a source that is not given as tokens, or sampling is asked for.
    """
    check_beams(generation_config, "DiPS")
    if not 0 <= fidelity <= 1:
        raise ValueError(f"`fidelity` must be from 0 to 1, not {fidelity}")
    if candidates_per_beam < 1:
        raise ValueError(f"`candidates_per_beam` must be at least 1, not {candidates_per_beam}")
    mask = model_kwargs.get("attention_mask")
    mask = None if mask is None else mask[:: generation_config.num_beams]
    frame = Frame(generation_config, input_ids.device)
    words = read_words(inputs_tensor, mask, frame, "DiPS")
    closeness = word_closeness(parameter_of(model.get_input_embeddings()), words, words >= 0)
    config = copy.copy(generation_config)
    config.early_stopping = config.return_dict_in_generate = True
    config.num_return_sequences = config.num_beams
    source = WordsOfSource(words, words >= 0, closeness)
    search = SubmodularSearch(model, source, fidelity, candidates_per_beam, frame, exclude_source)
    found = search.model._beam_search(input_ids, logits_processor, stopping_criteria, config, **model_kwargs)
    excluded = words if exclude_source else None
    keep_best(found, cast(torch.Tensor, search.beam_scores), generation_config, input_ids.shape[1], frame, excluded)
    return found if generation_config.return_dict_in_generate else found.sequences


class SubmodularSearch:
    """Makes a model's beam search choose its beams as a set; the model itself stays as it is.

    Args:
        model: Any model whose `generate()` does beam search.
        source: The texts to paraphrase.
        fidelity: λ of the objective.
        candidates_per_beam: Continuations to choose from, for each beam.
        frame: Knows the ends of a sentence.
        exclude_source: Complete no copy of the source.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        source: WordsOfSource,
        fidelity: float,
        candidates_per_beam: int,
        frame: Frame,
        exclude_source: bool,
    ) -> None:
        # A shallow copy has the model's weights, and methods of its own.
        self.model = cast(Any, copy.copy(model))
        self.model._get_top_k_continuations = self.find_continuations
        self.model._check_early_stop_heuristic = self.check_early_stop
        usual = cast(Any, model)
        self.usual_search, self.usual_check = usual._get_top_k_continuations, usual._check_early_stop_heuristic
        self.source, self.fidelity, self.frame, self.exclude_source = source, fidelity, frame, exclude_source
        # Each beam has one continuation by each end of a sentence; as many others as beams are needed.
        self.candidates_per_beam = max(candidates_per_beam, 1 + len(frame.ends))
        self.beam_scores: torch.Tensor | None = None

    def find_continuations(
        self,
        accumulated_log_probs: torch.Tensor,
        running_sequences: torch.Tensor,
        cur_len: int,
        decoder_prompt_len: int,
        num_beams: int,
        **kwargs: Any,
    ) -> tuple:
        """Find the next words: words outside the chosen set, and end tokens, are masked.

        Args:
            accumulated_log_probs: `(texts, num_beams * vocab_size)`.
            running_sequences: `(texts, num_beams, max_length)`.
        """
        vocab_size = accumulated_log_probs.shape[1] // num_beams
        written = running_sequences[:, :, decoder_prompt_len:cur_len]
        if self.exclude_source:
            log_probs = accumulated_log_probs.unflatten(1, (num_beams, -1))
            accumulated_log_probs = forbid_source(log_probs, written, self.source.ids, self.frame).flatten(1)
        width = min(self.candidates_per_beam * num_beams, accumulated_log_probs.shape[1])
        log_probs, places = accumulated_log_probs.topk(width)
        beams, words = (places // vocab_size).unsqueeze(2), places % vocab_size
        candidates = torch.cat((written.take_along_dim(beams, dim=1), words.unsqueeze(2)), dim=2)
        is_end = torch.isin(words, self.frame.ends)
        # Words that a model copies from outside its vocabulary have no embedding: they are close to none.
        closeness = nn.functional.pad(self.source.closeness, (0, vocab_size - self.source.closeness.shape[1]))
        source = self.source._replace(closeness=closeness)
        objective = SubmodularObjective(candidates, ~is_end & (log_probs > DEAD), source, self.fidelity)
        is_likeliest = torch.arange(width, device=words.device) < num_beams
        kept = choose_set(objective, num_beams) | (is_end & is_likeliest & (log_probs > DEAD))
        chosen = torch.full_like(accumulated_log_probs, -torch.inf)
        chosen.scatter_(1, places, log_probs.masked_fill(~kept, -torch.inf))
        return self.usual_search(
            accumulated_log_probs=chosen,
            running_sequences=running_sequences,
            cur_len=cur_len,
            decoder_prompt_len=decoder_prompt_len,
            num_beams=num_beams,
            **kwargs,
        )

    def check_early_stop(self, **kwargs: Any) -> torch.Tensor:
        """Which texts may still improve; keeps the scores of their hypotheses."""
        self.beam_scores = kwargs["beam_scores"]
        return self.usual_check(**kwargs)
