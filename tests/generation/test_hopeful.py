"""Candidates that cannot be chosen any more are not judged, and the choice is the same."""

from __future__ import annotations

import random

import pytest

from hf_paraphrase.generation.judges import judges_alone
from hf_paraphrase.generation.paraphrase_choice import Choice, Paraphrase
from hf_paraphrase.generation.writers import Judged


class Judge:
    """Knows the adequacy of every candidate, and counts what it is asked."""

    def __init__(self, adequacies):
        self.adequacies, self.asked = adequacies, []

    def __call__(self, judged, batch_size):
        self.asked += [one.candidate for one in judged]
        return [self.adequacies[one.candidate] for one in judged]


def draw_candidates(draw, count):
    return [
        Paraphrase(
            f"w{place}", fluency=draw.random(), novelty=draw.random(), reason="rule" if draw.random() < 0.2 else None
        )
        for place in range(count)
    ]


def choose(groups, choice, judge, judges_alone):
    groups = [list(group) for group in groups]
    judged = [[Judged("source", one.text) for one in group if one.reason is None] for group in groups]
    choice.judge(groups, judged, judge, 4, judges_alone)
    return [choice.choose("source", group) for group in groups]


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("options", [{}, {"min_adequacy": 0.6}, {"wanted_novelty": 0.3}, {"weights": (1.0, 1.0, 0.0)}])
def test_the_choice_is_that_among_all(n, options):
    draw, saved = random.Random(0), 0
    for _ in range(40):
        groups = [draw_candidates(draw, draw.randint(0, 12)) for _ in range(3)]
        adequacies = {f"w{place}": draw.random() for place in range(12)}
        choice = Choice(n=n, **options)
        judges = Judge(adequacies), Judge(adequacies)
        found = []
        for judge, alone in zip(judges, (True, False), strict=True):
            found.append(choose(groups, choice, judge, alone))
        assert found[0] == found[1]
        assert len(judges[0].asked) <= len(judges[1].asked)
        saved += len(judges[1].asked) - len(judges[0].asked)
    assert saved > 0


@pytest.mark.parametrize("options", [{"diversity": 0.5}, {"return_rejected": True}])
def test_all_are_judged_where_others_count(options):
    group, judge = draw_candidates(random.Random(1), 10), Judge({f"w{place}": 0.5 for place in range(10)})
    choose([group] * 2, Choice(n=1, **options), judge, True)
    assert judge.asked == [one.text for one in group if one.reason is None] * 2


def test_a_function_of_the_callers_is_asked_everything():
    assert not judges_alone(Judge({}))
