"""Decoding by DiPS: at every step the beams are the set of candidates that is worth most together."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, LogitsProcessorList, PreTrainedModel, StoppingCriteriaList
from transformers.generation.utils import GenerateBeamOutput

from ..layers.layer_weights import parameter_of
from ..layers.precision import at_least_single
from .found_sentences import DEAD, Frame, HookedSearch, check_beams, forbid_source, keep_best, read_words

# The lengths of n-grams that count, 1 to this, as in the authors' code.
MAX_NGRAM = 3
# Values that differ by less are equal: order of summation, and with it the size of a batch, changes the last digits.
TIE = 1e-9


class WordsOfSource(NamedTuple):
    """Tokens of each source `(texts, length)`, which of them are words, and how close the vocabulary is to them.

    `closeness` is of every word to the nearest word of each source, `(texts, vocab_size)`.
    """

    ids: Tensor
    mask: Tensor
    closeness: Tensor


class SubmodularObjective:
    """F(X) = λ L(X, s) + (1 - λ) D(X) of a set X of candidates V for a text s (Kumar et al. 2019, section 4).

    Fidelity and diversity are

        L = √(Σ_{x∈X} Σ_n β_n |x_n ∩ s_n|) + √(Σ_{x∈X} 1/|x| Σ_{w∈x} max_{v∈s} ψ(w, v))
        D = Σ_n γ_n |∪_{x∈X} x_n| + Σ_{x∈X} Σ_{y∈V} R(x, y),  R(x, y) = 1 - EditDistance(x, y) / (|x| + |y|)

    x_n being the set of n-grams of x. Each of the four terms is divided by its value for all of V, so that their
    weights do not depend on lengths. F is monotone and submodular, so greedy selection reaches at least 1 - 1/e of the
    maximum over sets of that size. Readings where the paper leaves a choice, with its code: n = 1, 2, 3; β_n =
    1/(4-n), γ_n = 1/n; edits insert and delete words, whence R is the length of the longest common subsequence over
    the mean length (under a root in that code). ψ(w, v) = exp(-‖w - v‖²) of embeddings of length 1, which are the
    model's own in place of word2vec.

    Args:
        candidates: `(texts, candidates, length)` tokens, all words.
        available: Mask of candidates, `(texts, candidates)`; the others are not in V.
        fidelity: λ, from 0 to 1.
    """

    def __init__(self, candidates: Tensor, available: Tensor, source: WordsOfSource, fidelity: float = 0.5):
        self.available, self.fidelity = available, fidelity
        in_v = available.double()
        self.grams, in_source, sizes = find_ngrams(candidates, source)
        self.gram_weights = 1 / sizes
        words = source.closeness.gather(1, candidates.flatten(1)).view_as(candidates)
        alike = common_subsequences(candidates) / candidates.shape[2]
        # What each candidate adds to the sums within the roots, and to the last sum.
        self.overlap = (self.grams * (in_source / (MAX_NGRAM + 1 - sizes)).unsqueeze(1)).sum(dim=2) * in_v
        self.closeness = words.double().mean(dim=2) * in_v
        self.alike = (alike * in_v.unsqueeze(1)).sum(dim=2) * in_v
        self.scale = [term.clamp(min=1e-12) for term in self._terms(*self._sums(available))]

    def value(self, chosen: Tensor) -> Tensor:
        """F of the candidates marked in `(texts, candidates)`, `(texts,)`."""
        return self._weigh(*self._sums(chosen)).squeeze(1)

    def value_with_each(self, chosen: Tensor) -> Tensor:
        """F of the candidates marked in `(texts, candidates)` and one more, `(texts, candidates)`."""
        overlap, closeness, covered, alike = self._sums(chosen)
        new = (self.grams @ (self.gram_weights * (1 - self._covered(chosen))).unsqueeze(2)).squeeze(2)
        return self._weigh(overlap + self.overlap, closeness + self.closeness, covered + new, alike + self.alike)

    def _sums(self, chosen: Tensor) -> list[Tensor]:
        overlap, closeness, alike = (
            (chosen * part).sum(dim=1, keepdim=True) for part in (self.overlap, self.closeness, self.alike)
        )
        coverage = (self._covered(chosen) * self.gram_weights).sum(dim=1, keepdim=True)
        return [overlap, closeness, coverage, alike]

    def _covered(self, chosen: Tensor) -> Tensor:
        return (chosen.double().unsqueeze(1) @ self.grams).squeeze(1).clamp(max=1)

    def _terms(self, overlap, closeness, coverage, alike) -> list[Tensor]:
        return [overlap.sqrt(), closeness.sqrt(), coverage, alike]

    def _weigh(self, *sums: Tensor) -> Tensor:
        overlap, closeness, coverage, alike = (
            term / scale for term, scale in zip(self._terms(*sums), self.scale, strict=True)
        )
        return self.fidelity * (overlap + closeness) + (1 - self.fidelity) * (coverage + alike)


def choose_set(objective: SubmodularObjective, size: int) -> Tensor:
    """Choose a set of so many candidates for each text, greedily by the objective; of equals the first.

    Where the likeliest candidates, which stand first, make as good a set, they are it: no set is worth less than they.
    All available candidates are chosen if there are fewer.
    """
    available = objective.available
    chosen = torch.zeros_like(available)
    for _ in range(min(size, available.shape[1])):
        values = objective.value_with_each(chosen).masked_fill(chosen | ~available, -torch.inf)
        is_best = values >= values.amax(dim=1, keepdim=True) - TIE
        chosen = chosen | (is_best & (is_best.cumsum(dim=1) == 1))
    chosen = chosen & available
    likeliest = available & (available.cumsum(dim=1) <= size)
    is_better = objective.value(chosen) > objective.value(likeliest) + TIE
    return torch.where(is_better.unsqueeze(1), chosen, likeliest)


def find_ngrams(candidates: Tensor, source: WordsOfSource) -> tuple[Tensor, Tensor, Tensor]:
    """Say which n-grams each candidate has.

    Returns:
        1 where a candidate has an n-gram, `(texts, candidates, ngrams)`; 1 where the source has it, `(texts, ngrams)`;
        and n, `(texts, ngrams)`. Places that a text has no n-gram for are all 0, but in n, where they are 1.
    """
    parts = []
    for n in range(1, min(MAX_NGRAM, candidates.shape[2]) + 1):
        ours, theirs = number_ngrams(candidates, n, source)
        count = int(max(ours.max(), theirs.max())) + 1
        grams = torch.zeros(*candidates.shape[:2], count, dtype=torch.double, device=candidates.device)
        grams.scatter_(2, ours, 1.0)
        in_source = torch.zeros(len(candidates), count, dtype=torch.double, device=candidates.device)
        in_source.scatter_(1, theirs, 1.0)
        # Number 0 is not an n-gram.
        parts.append((grams[..., 1:], in_source[:, 1:], torch.full_like(in_source[:, 1:], n)))
    has, in_source, lengths = (torch.cat(part, dim=-1) for part in zip(*parts, strict=True))
    return has, in_source, lengths


def number_ngrams(candidates: Tensor, n: int, source: WordsOfSource) -> tuple[Tensor, Tensor]:
    """Number the n-grams of each text's candidates and source from 1; 0 is padding.

    Returns `(texts, candidates, ngrams of each)` and `(texts, ngrams of the source)`, at least one.
    """
    ours = join_tokens(candidates, n)
    theirs = torch.full((len(candidates), 1), -1, device=candidates.device)
    if source.ids.shape[1] >= n:
        whole = source.mask.unfold(1, n, 1).all(dim=2)
        theirs = torch.cat((theirs, join_tokens(source.ids, n).masked_fill(~whole, -1)), dim=1)
    ids = torch.cat((theirs, ours.flatten(1)), dim=1)
    ordered, order = ids.sort(dim=1)
    is_new = nn.functional.pad(ordered[:, 1:] != ordered[:, :-1], (1, 0))
    numbers = torch.empty_like(ids).scatter_(1, order, is_new.long().cumsum(dim=1))
    return numbers[:, theirs.shape[1] :].view_as(ours), numbers[:, : theirs.shape[1]]


def join_tokens(ids: Tensor, n: int) -> Tensor:
    """One number for each n-gram of the last dimension, for up to 2 million tokens."""
    windows = ids.unfold(-1, n, 1)
    joined = windows[..., 0]
    for place in range(1, n):
        joined = (joined << 21) | windows[..., place]
    return joined


def common_subsequences(sequences: Tensor) -> Tensor:
    """Lengths of the longest common subsequences of each two candidates: `(texts, n, length)` -> `(texts, n, n)`."""
    texts, count, length = sequences.shape
    # Of the words of the one sequence so far, with each beginning of the other.
    lengths = torch.zeros(texts, count, count, length + 1, dtype=torch.int32, device=sequences.device)
    for place in range(length):
        same = sequences[:, :, None, place, None] == sequences[:, None, :, :]
        longer = torch.maximum(lengths[..., 1:], lengths[..., :-1] + same)
        lengths[..., 1:] = longer.cummax(dim=3).values
    return lengths[..., -1].double()


def word_closeness(embeddings: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
    """ψ of every word and the nearest word of each source: `(vocab_size, width)` -> `(texts, vocab_size)`.

    Words of a source that are outside the vocabulary have no embedding, and are near none.
    """
    vectors = nn.functional.normalize(at_least_single(embeddings), dim=1)
    closeness = vectors.new_zeros(len(ids), len(vectors))
    for row, words, has_vector in zip(closeness, ids, mask & (ids < len(vectors)), strict=True):
        if has_vector.any():
            cosines = (vectors @ vectors[words[has_vector]].T).amax(dim=1)
            row.copy_(torch.exp(2 * cosines - 2))
            row[words[has_vector]] = 1  # exactly, so that copied words are equals
    return closeness


def dips(
    model: PreTrainedModel,
    input_ids: Tensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    inputs_tensor: Tensor,
    fidelity: float = 0.5,
    candidates_per_beam: int = 3,
    exclude_source: bool = True,
    **model_kwargs: Any,
) -> GenerateBeamOutput | Tensor:
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
    frame = Frame(generation_config, input_ids.device)
    words = read_words(inputs_tensor, frame, "DiPS", generation_config.num_beams, model_kwargs.get("attention_mask"))
    closeness = word_closeness(parameter_of(model.get_input_embeddings()), words, words >= 0)
    config = copy.copy(generation_config)
    config.early_stopping = config.return_dict_in_generate = True
    config.num_return_sequences = config.num_beams
    source = WordsOfSource(words, words >= 0, closeness)
    search = SubmodularSearch(model, source, fidelity, candidates_per_beam, frame, exclude_source)
    found = search.model._beam_search(input_ids, logits_processor, stopping_criteria, config, **model_kwargs)
    excluded = words if exclude_source else None
    keep_best(found, cast(Tensor, search.beam_scores), generation_config, input_ids.shape[1], frame, excluded)
    return found if generation_config.return_dict_in_generate else found.sequences


class SubmodularSearch(HookedSearch):
    """Makes a model's beam search choose its beams as a set; arguments as in `dips`."""

    def __init__(
        self,
        model: PreTrainedModel,
        source: WordsOfSource,
        fidelity: float,
        candidates_per_beam: int,
        frame: Frame,
        exclude_source: bool,
    ) -> None:
        super().__init__(model)
        self.source, self.fidelity, self.frame, self.exclude_source = source, fidelity, frame, exclude_source
        # Each beam has one continuation by each end of a sentence; as many others as beams are needed.
        self.candidates_per_beam = max(candidates_per_beam, 1 + len(frame.ends))

    def change(self, log_probs: Tensor, written: Tensor, length: int) -> Tensor:
        """Mask words outside the chosen set, and end tokens."""
        _, num_beams, vocab_size = log_probs.shape
        if self.exclude_source:
            listed = torch.arange(vocab_size, device=log_probs.device).expand(log_probs.shape)
            log_probs = forbid_source(log_probs, written, self.source.ids, self.frame, listed)
        scores = log_probs.flatten(1)
        width = min(self.candidates_per_beam * num_beams, scores.shape[1])
        log_probs, places = scores.topk(width)
        beams, words = (places // vocab_size).unsqueeze(2), places % vocab_size
        candidates = torch.cat((written.take_along_dim(beams, dim=1), words.unsqueeze(2)), dim=2)
        is_end = torch.isin(words, self.frame.ends)
        # Words that a model copies from outside its vocabulary have no embedding: they are close to none.
        closeness = nn.functional.pad(self.source.closeness, (0, vocab_size - self.source.closeness.shape[1]))
        source = self.source._replace(closeness=closeness)
        objective = SubmodularObjective(candidates, ~is_end & (log_probs > DEAD), source, self.fidelity)
        is_likeliest = torch.arange(width, device=words.device) < num_beams
        kept = choose_set(objective, num_beams) | (is_end & is_likeliest & (log_probs > DEAD))
        chosen = torch.full_like(scores, -torch.inf)
        return chosen.scatter_(1, places, log_probs.masked_fill(~kept, -torch.inf))
