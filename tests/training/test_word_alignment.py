from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from hf_paraphrase.training.tasks.decompose import align_words, choose_words


def lists(columns):
    return [column.tolist() for column in columns]


def test_a_corpus_worked_by_hand():
    """(a b, x y) and (a, x), one iteration; N is not a word.

    Each word of the first pair answers to N, a and b by a third, x of the second to N and a by a half. So a has
    counts of 5/6 of x and 1/3 of y, t(x|a) = 5/7 and t(y|a) = 2/7; N has the same, and t(x|b) = t(y|b) = 1/2. y
    chooses b; x is as likely by N as by a, and chooses the word. The other direction is the same with x and y for a
    and b.
    """
    a, b, x, y = 4, 7, 4, 5
    assert lists(choose_words([[a, b], [a]], [[x, y], [x]], 1)[0]) == [[0, 1], [0]]
    for strengths in align_words([[a, b], [a]], [[x, y], [x]], iterations=1):
        np.testing.assert_allclose(np.concatenate(strengths), [25 / 49, 1 / 4, 25 / 49])


def naive_table(sources, targets, iterations):
    """t[e, f] of IBM model 1, e being None for no word."""
    table = defaultdict(lambda: 1.0)
    for _ in range(iterations):
        counts, totals = defaultdict(float), defaultdict(float)
        for source, target in zip(sources, targets, strict=True):
            for f in target:
                total = sum(table[e, f] for e in (None, *source))
                for e in (None, *source):
                    counts[e, f] += table[e, f] / total
                    totals[e] += table[e, f] / total
        table = {(e, f): count / totals[e] for (e, f), count in counts.items()}
    return table


def naive_choices(sources, targets, iterations):
    table, choices = naive_table(sources, targets, iterations), []
    for source, target in zip(sources, targets, strict=True):
        choices.append([])
        for f in target:
            best, place = 0.0, -1
            for number, e in enumerate(source):
                if table[e, f] > best * (1 + 1e-9):
                    best, place = table[e, f], number
            choices[-1].append((place, best) if best >= table[None, f] * (1 - 1e-9) else (-1, 0.0))
    return choices


@pytest.mark.parametrize("iterations", [1, 4])
def test_equals_the_naive_model_in_both_directions(iterations):
    random = np.random.default_rng(0)
    sources, targets = ([random.integers(0, 9, random.integers(1, 6)).tolist() for _ in range(40)] for _ in range(2))
    of_sources, of_targets = align_words(sources, targets, iterations)
    ahead = naive_choices(sources, targets, iterations)
    back = naive_choices(targets, sources, iterations)
    linked = 0
    for row, (forward, backward) in enumerate(zip(ahead, back, strict=True)):
        for place, (source, strength) in enumerate(forward):
            is_mutual = source >= 0 and backward[source][0] == place
            linked += is_mutual
            expected = strength * backward[source][1] if is_mutual else 0.0
            assert of_targets[row][place] == pytest.approx(expected)
            if is_mutual:
                assert of_sources[row][source] == of_targets[row][place]
    assert linked == sum((strengths > 0).sum() for strengths in of_sources) > 40


def test_equals_the_model_of_nltk():
    translate = pytest.importorskip("nltk.translate")
    random = np.random.default_rng(1)
    # No word twice in a sentence: there, nltk divides by the sum of both.
    sources, targets = ([random.permutation(9)[: random.integers(1, 6)].tolist() for _ in range(40)] for _ in range(2))
    pairs = [translate.AlignedSent(target, source) for source, target in zip(sources, targets, strict=True)]
    expected = translate.IBMModel1(pairs, 5).translation_table
    places, strengths = choose_words(sources, targets, iterations=5)
    linked = 0
    for source, target, *chosen in zip(sources, targets, places, strengths, strict=True):
        for word, place, strength in zip(target, *chosen, strict=True):
            found = expected[word]
            assert max(found[e] for e in (None, *source)) == pytest.approx(
                found[None if place < 0 else source[place]], rel=1e-6
            )
            if place >= 0:
                assert strength == pytest.approx(found[source[place]], rel=1e-6)
                linked += 1
    assert linked > 40


def test_a_side_without_words_has_no_links():
    of_sources, of_targets = map(lists, align_words([[1, 2], []], [[3], [4]]))
    assert of_sources[1] == [] and of_targets[1] == [0.0]
