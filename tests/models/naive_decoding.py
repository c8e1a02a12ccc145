"""Diverse decoding of one text, written as plainly as the papers say it: no cache, no batch, lists and sets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

Beam = tuple[list[int], float]

# What a beam search gives to beams that do not exist yet.
DEAD = -1e9


def extensions(model: PreTrainedModel, inputs: dict[str, torch.Tensor], beams: Sequence[Beam]) -> list[Beam]:
    """All beams with one word more, each read anew from its start."""
    written = torch.tensor([words for words, _ in beams])
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            inputs = {name: tensor.expand(len(beams), -1) for name, tensor in inputs.items()}
            logits = model(**inputs, decoder_input_ids=written, use_cache=False).logits
        else:
            logits = model(input_ids=written, use_cache=False).logits
    log_probs = logits[:, -1].float().log_softmax(-1).tolist()
    return [
        ([*words, word], score + log_prob)
        for (words, score), row in zip(beams, log_probs, strict=True)
        for word, log_prob in enumerate(row)
    ]


def best(beams: Sequence[Beam], count: int) -> list[Beam]:
    return sorted(beams, key=lambda beam: -beam[1])[:count]


class Group:
    """One group of beams, and what it has completed."""

    def __init__(self, start: list[int], size: int):
        self.beams: list[Beam] = [(start, 0.0)] + [(start, DEAD)] * (size - 1)
        self.complete: list[Beam] = []
        self.size, self.start, self.searching = size, len(start), True

    def step(self, candidates: list[Beam], eos: int, is_last: bool) -> None:
        """Complete those of the best that end, go on with the best that do not."""
        length = len(candidates[0][0]) - self.start
        if self.searching:
            ended = [
                (words, score / length) for words, score in best(candidates, self.size) if words[-1] == eos or is_last
            ]
            self.complete = best(self.complete + ended, self.size)
        self.beams = best([beam for beam in candidates if beam[0][-1] != eos], self.size)
        if len(self.complete) == self.size and self.beams[0][1] / length <= self.complete[-1][1]:
            self.searching = False


def diverse_beam_search(
    model: PreTrainedModel,
    inputs: dict[str, torch.Tensor],
    start: list[int],
    *,
    eos: int,
    num_beams: int,
    groups: int,
    penalty: float,
    max_new_tokens: int,
    excluded: Sequence[int] | None = None,
) -> list[Beam]:
    """The words after the start, and the scores, of all beams of all groups, best first (Vijayakumar et al. 2016).

    Args:
        excluded: Words of a sentence that is not to be found.
    """
    size = num_beams // groups
    searches = [Group(start, size) for _ in range(groups)]
    for step in range(max_new_tokens):
        chosen: list[int] = []
        taken = [] if excluded is None else [[*start, *excluded, eos]]
        for search in searches:
            candidates = [
                (words, score - penalty * chosen.count(words[-1]))
                for words, score in extensions(model, inputs, search.beams)
            ]
            candidates = [(words, score) for words, score in candidates if words not in taken]
            was_searching = search.searching
            search.step(candidates, eos, step == max_new_tokens - 1)
            if was_searching:
                chosen += [words[-1] for words, _ in search.beams]
                ends = [words for words, _ in best(candidates, size) if words[-1] == eos or step == max_new_tokens - 1]
                taken += ends
        if not any(search.searching for search in searches):
            break
    found = [beam for search in searches for beam in search.complete]
    return [(words[len(start) :], score) for words, score in best(found, num_beams)]


def ngrams(words: Sequence[int], n: int) -> set[tuple[int, ...]]:
    return {tuple(words[place : place + n]) for place in range(len(words) - n + 1)}


def edit_distance(first: Sequence[int], second: Sequence[int]) -> int:
    """Insertions and deletions that make one of the other."""
    table = [[max(i, j) if not i * j else 0 for j in range(len(second) + 1)] for i in range(len(first) + 1)]
    for i, one in enumerate(first, 1):
        for j, other in enumerate(second, 1):
            table[i][j] = table[i - 1][j - 1] if one == other else 1 + min(table[i - 1][j], table[i][j - 1])
    return table[-1][-1]


class Objective:
    """F of sets of candidates for one source (Kumar et al. 2019)."""

    def __init__(
        self,
        candidates: Sequence[Sequence[int]],
        source: Sequence[int],
        embeddings: torch.Tensor,
        fidelity: float,
    ):
        self.candidates, self.source, self.fidelity = candidates, source, fidelity
        self.embeddings = (embeddings / embeddings.norm(dim=1, keepdim=True)).tolist()
        self.whole = self.terms(range(len(candidates)))

    def closeness(self, word: int) -> float:
        vector = self.embeddings[word]
        return max((math.exp(-(math.dist(vector, self.embeddings[other]) ** 2)) for other in self.source), default=0.0)

    def terms(self, chosen: Sequence[int]) -> list[float]:
        texts = [self.candidates[place] for place in chosen]
        overlap = sum(len(ngrams(x, n) & ngrams(self.source, n)) / (4 - n) for x in texts for n in (1, 2, 3))
        closeness = sum(sum(map(self.closeness, x)) / len(x) for x in texts)
        coverage = sum(len(set().union(*(ngrams(x, n) for x in texts))) / n for n in (1, 2, 3))
        alike = sum(1 - edit_distance(x, y) / (len(x) + len(y)) for x in texts for y in self.candidates)
        return [overlap**0.5, closeness**0.5, coverage, alike]

    def __call__(self, chosen: Sequence[int]) -> float:
        parts = [term / whole if whole else 0.0 for term, whole in zip(self.terms(chosen), self.whole, strict=True)]
        return self.fidelity * sum(parts[:2]) + (1 - self.fidelity) * sum(parts[2:])


def choose_set(objective: Objective, size: int) -> list[int]:
    """The places of the chosen: greedily, or the first of them where these are worth as much."""
    chosen: list[int] = []
    while len(chosen) < min(size, len(objective.candidates)):
        others = [place for place in range(len(objective.candidates)) if place not in chosen]
        values = [objective([*chosen, place]) for place in others]
        chosen.append(next(place for place, value in zip(others, values, strict=True) if value > max(values) - 1e-9))
    first = list(range(len(chosen)))
    return sorted(chosen) if objective(chosen) > objective(first) + 1e-9 else first


def dips(
    model: PreTrainedModel,
    inputs: dict[str, torch.Tensor],
    start: list[int],
    source: Sequence[int],
    *,
    eos: int,
    num_beams: int,
    fidelity: float,
    max_new_tokens: int,
    exclude_source: bool,
) -> list[Beam]:
    """The words after the start, and the scores, of the completed sentences, likeliest first (Kumar et al. 2019)."""
    copied = [*start, *source, eos] if exclude_source else None
    embeddings = model.get_input_embeddings().weight.detach()
    beams: list[Beam] = [(start, 0.0)]
    complete: list[Beam] = []
    for step in range(max_new_tokens):
        continued = [beam for beam in extensions(model, inputs, beams) if beam[0] != copied]
        candidates = best(continued, 3 * num_beams)
        going_on = [beam for beam in candidates if beam[0][-1] != eos]
        objective = Objective([words[len(start) :] for words, _ in going_on], source, embeddings, fidelity)
        beams = [going_on[place] for place in choose_set(objective, num_beams)]
        ended = [beam for beam in candidates[:num_beams] if beam[0][-1] == eos]
        if step == max_new_tokens - 1:
            ended = best(ended + beams, num_beams)
        complete = best([*complete, *((words, score / (step + 1)) for words, score in ended)], num_beams)
        if len(complete) == num_beams:
            break
    return [(words[len(start) :], score) for words, score in complete]
