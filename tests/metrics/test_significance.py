from __future__ import annotations

from dataclasses import asdict
from functools import partial
from itertools import product

import numpy as np
import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.metrics.significance import (
    approximate_randomisation,
    bootstrap,
    bootstrap_difference,
    holm,
)
from hf_paraphrase.metrics.sufficient_statistics import SufficientStatistics


def statistics_of(scores, **options) -> SufficientStatistics:
    return SufficientStatistics.from_sentence_scores("mean", scores, "", **options)


@pytest.fixture
def scores() -> np.ndarray:
    return np.random.default_rng(0).normal(50, 10, size=400)


def test_interval_and_variance_of_a_mean(scores: np.ndarray) -> None:
    """The variance of a mean is that of its terms divided by their number; the interval is 1.96 deviations wide."""
    result = bootstrap(statistics_of(scores), n_samples=4000)
    deviation = scores.std() / np.sqrt(len(scores))
    assert result.score == pytest.approx(scores.mean())
    assert result.selection_variance == pytest.approx(deviation**2, rel=0.08)
    assert (result.high - result.low) / 2 == pytest.approx(1.96 * deviation, rel=0.05)
    assert result.optimizer_variance is None


def test_same_seed_same_result_in_any_chunks(scores: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = statistics_of(scores)
    whole = bootstrap(statistics, n_samples=50, seed=3)
    assert bootstrap(statistics, n_samples=50, seed=3) == whole
    assert bootstrap(statistics, n_samples=50, seed=4) != whole
    monkeypatch.setattr("hf_paraphrase.metrics.significance._CHUNK", 3 * len(scores))
    assert asdict(bootstrap(statistics, n_samples=50, seed=3)) == pytest.approx(asdict(whole))


def test_resampled_bleu_is_bleu_of_the_resampled_corpus() -> None:
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(list("abcde"), size=rng.integers(0, 9))) for _ in range(40)]
    predictions, references = texts[:20], [texts[20:][i : i + 2] for i in range(0, 20)]
    statistics = bleu(predictions, references).statistics
    for _ in range(20):
        drawn = rng.integers(0, 20, size=20)
        corpus = bleu([predictions[i] for i in drawn], [references[i] for i in drawn])
        sums = np.bincount(drawn, minlength=20) @ statistics["bleu_4"].rows
        assert statistics["bleu_4"].score_of_sums(sums) == pytest.approx(corpus["bleu_4"])
        assert statistics["bleu_2"].score_of_sums(sums) == pytest.approx(corpus["bleu_2"])


@pytest.mark.parametrize(
    ("prediction", "reference"), [("", "a b"), ("a", "a b c d e"), ("a b c d", "a b c e"), ("a b", "a b"), ("x", "y")]
)
def test_bleu_statistics_where_nothing_matches(prediction: str, reference: str) -> None:
    for max_order in (1, 2, 4):
        statistics = bleu([prediction], [reference], max_order=max_order).statistics
        expected = bleu([prediction], [reference], max_order=max_order)["score"]
        assert statistics[f"bleu_{max_order}"].score == pytest.approx(expected)


def test_variances_over_runs(scores: np.ndarray) -> None:
    runs = [statistics_of(scores + shift) for shift in (-1, 0, 4)]
    result, alone = bootstrap(runs), bootstrap(runs[1])
    assert result.score == pytest.approx(scores.mean() + 1)
    assert result.optimizer_variance == pytest.approx(7)
    assert result.selection_variance == pytest.approx(alone.selection_variance)


def test_randomisation_is_exact_on_a_small_test_set() -> None:
    """All 2⁶ ways of swapping can be listed."""
    ours, theirs = np.array([5, 7, 3, 8, 6, 9.0]), np.array([4, 7, 1, 5, 7, 5.0])
    difference = ours - theirs
    swaps = np.array([signs @ difference for signs in product([1, -1], repeat=6)])
    exact = (np.abs(swaps) >= abs(difference.sum())).mean()
    p = approximate_randomisation(statistics_of(ours), statistics_of(theirs), n_trials=20_000)
    assert p == pytest.approx(exact, abs=0.01)


def test_randomisation_over_runs_is_exact_on_a_small_test_set() -> None:
    """One sentence: three outputs, of which two go to the first system, in three ways; only one differs as much."""
    ours, theirs = [statistics_of([5.0]), statistics_of([4.0])], statistics_of([1.0])
    p = approximate_randomisation(ours, [theirs], n_trials=20_000)
    assert p == pytest.approx(1 / 3, abs=0.02)


def test_p_values(scores: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    same, noisy = statistics_of(scores), statistics_of(scores + rng.normal(0, 5, size=len(scores)))
    better = statistics_of(scores + rng.normal(2, 5, size=len(scores)))
    test = partial(approximate_randomisation, n_trials=999)
    assert test(same, same) == 1
    assert test(same, noisy) > 0.05
    assert test(same, better) == 0.001
    assert test(better, same) == 0.001
    assert test([same, noisy], [better, better]) == 0.001


def test_p_values_are_uniform_where_there_is_no_difference() -> None:
    rng = np.random.default_rng(6)
    p = []
    for seed in range(200):
        ours, theirs = (statistics_of(rng.normal(size=30)) for _ in range(2))
        p.append(approximate_randomisation(ours, theirs, n_trials=99, seed=seed))
    assert 0.02 <= np.mean(np.array(p) <= 0.05) <= 0.09
    assert np.mean(p) == pytest.approx(0.5, abs=0.07)


def test_bad_input_is_named(scores: np.ndarray) -> None:
    statistics = statistics_of(scores)
    with pytest.raises(InputError, match=r"runs\[1\] has 399 sentences, but runs\[0\] 400"):
        bootstrap_difference(statistics, statistics_of(scores[1:]))
    other = SufficientStatistics.from_sentence_scores("other", scores, "")
    with pytest.raises(InputError, match=r"runs\[1\] holds other \(\), but runs\[0\] mean"):
        approximate_randomisation(statistics, other)
    with pytest.raises(InputError, match="runs is empty"):
        bootstrap([])
    with pytest.raises(InputError, match="n_samples must be at least 2"):
        bootstrap(statistics, n_samples=1)
    with pytest.raises(InputError, match="n_trials must be at least 2"):
        approximate_randomisation(statistics, statistics, n_trials=0)


def test_holm_by_hand_and_by_its_steps() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.001]) == pytest.approx([0.5, 0.002])
    assert holm([0.9, 0.9]) == [1, 1] and holm([]) == []
    draws = np.random.default_rng(0).random((200, 7)) ** 3
    for p_values in draws:
        # Holm 1979: go on to the next larger p-value as long as it is below level / tests left.
        rejected = set()
        for step, place in enumerate(np.argsort(p_values)):
            if p_values[place] >= 0.05 / (7 - step):
                break
            rejected.add(place)
        assert {place for place, p_value in enumerate(holm(p_values)) if p_value < 0.05} == rejected


def test_interval_over_runs_and_sentences(scores: np.ndarray) -> None:
    """Runs that differ widen the interval; its variance is about that of the runs' mean and that of the sentences'."""
    runs = [statistics_of(scores + shift) for shift in (-6.0, 0.0, 6.0)]
    of_sentences = bootstrap(runs, n_samples=4000)
    of_both = bootstrap(runs, n_samples=4000, resample_runs=True)
    deviation = np.hypot(scores.std() / np.sqrt(len(scores)), np.std([-6.0, 0.0, 6.0]) / np.sqrt(3))
    assert of_both.score == of_sentences.score
    assert (of_both.high - of_both.low) / 2 == pytest.approx(1.96 * deviation, rel=0.12)
    assert of_both.high - of_both.low > 3 * (of_sentences.high - of_sentences.low)


def test_interval_of_a_difference_uses_the_same_sentences_for_both(scores: np.ndarray) -> None:
    noise = np.random.default_rng(1).normal(1.0, 0.5, size=len(scores))
    difference, low, high = bootstrap_difference(statistics_of(scores + noise), statistics_of(scores), n_samples=4000)
    assert difference == pytest.approx(noise.mean())
    assert (high - low) / 2 == pytest.approx(1.96 * noise.std() / np.sqrt(len(scores)), rel=0.05)
    assert low < difference < high
