"""Variance of weighted sums: corrections by hand, effective numbers, Welch's test, and p values of many tests."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_ind

import crowdveil
from crowdveil.quality.shares.counts import ReportSums
from crowdveil.quality.shares.differences import with_adjusted
from crowdveil.quality.shares.result import GroupTest
from crowdveil.quality.shares.score import normal_quantile, score_estimates
from crowdveil.quality.shares.weighted import (
    LinearSums,
    combined_strata,
    effective_estimates,
    effective_number,
    linear_sums,
    t_quantile,
)

LABELS, CHANNEL, LEVELS = 2, np.eye(2), np.full(2, 0.95)


def sums(yes: list[float], no: list[float]) -> ReportSums:
    """Return the sums of the weights of people who say yes, and no."""
    power = {k: np.array([[sum(w**k for w in yes), sum(w**k for w in no)]]) for k in (1, 2, 3)}
    second, third = (power[k].sum(axis=1) for k in (2, 3))
    return ReportSums(power[1], power[2], power[2], np.stack((second, third), axis=1))


def linear(yes: list[float], no: list[float]) -> LinearSums:
    """Return the unclipped shares of people without noise."""
    return linear_sums(sums(yes, no), CHANNEL, np.zeros(2, dtype=np.int64), LABELS)


def test_equal_weights_have_the_interval_of_as_many_counts() -> None:
    """Any equal weight gives the clipped score interval of counts, with the t quantile of one unit fewer."""
    level = 2 * float(t_quantile(0.95, np.array([99.0]))[0])
    found = effective_estimates(linear([7.0] * 30, [7.0] * 70), CHANNEL, LABELS, LEVELS)
    wider = math.erf(level / 2 / math.sqrt(2))
    counted = score_estimates(np.array([[30.0, 70.0]]), CHANNEL, LABELS, np.full(2, wider))

    assert 2 * normal_quantile(wider) == pytest.approx(level)
    assert np.allclose(found.low, counted.low, atol=1e-5)
    assert np.allclose(found.high, counted.high, atol=1e-5)
    assert np.allclose(found.standard_error, math.sqrt(0.3 * 0.7 / 100), atol=1e-6)


def test_the_variance_is_corrected_for_few_effective_people() -> None:
    """Four weights by hand: the sum of squares over the expected share of it, and the floor of independent reports."""
    yes, no = [1.0, 4.0], [2.0, 3.0]
    found = linear(yes, no)
    square, cube, total, share = 30.0, 100.0, 10.0, 0.5
    kept = 1 - 2 * cube / (total * square) + square / total**2
    raw = sum(w**2 * (1 - share) ** 2 for w in yes) + sum(w**2 * share**2 for w in no)
    kish = total**2 / square

    assert found.cells[0] == pytest.approx(kish)
    assert found.freedom[0] == pytest.approx(kish - 1)
    assert found.covariance[0, 0, 0] == pytest.approx(raw / total**2 * (1 - 1 / kish) / kept)
    assert found.independent[0, 0, 0] == pytest.approx(share * (1 - share) / kish)


def test_the_effective_number_is_at_most_that_of_the_weights() -> None:
    """A person who stands for most of the population and says no leaves Kish's number; one who says yes, fewer."""
    for yes, no in (([1.0] * 5, [20.0] + [1.0] * 50), ([20.0] + [1.0] * 5, [1.0] * 50)):
        found = linear(yes, no)
        number = effective_number(found, np.eye(2)[None], LABELS, 0)
        assert number[0] <= found.cells[0] + 1e-9


def test_degrees_of_freedom_of_strata_are_joined() -> None:
    """Equal strata add their degrees of freedom; one that decides alone leaves its own."""
    pair = linear_sums(
        ReportSums(*(np.concatenate((one, one)) for one in sums([1.0] * 5, [1.0] * 15))),
        CHANNEL, np.zeros(2, dtype=np.int64), LABELS,
    )  # fmt: skip

    assert combined_strata(pair, np.array([0.5, 0.5])).freedom[0] == pytest.approx(38)
    assert combined_strata(pair, np.array([0.999, 0.001])).freedom[0] == pytest.approx(19, abs=0.01)


def test_two_weighted_groups_have_the_test_of_welch() -> None:
    """With equal weights the p value is that of scipy's t test of unequal variances, but for n in place of n - 1."""
    sizes, yes = (200, 150), (60, 70)
    labels = [label for n, k in zip(sizes, yes, strict=True) for label in ["yes"] * k + ["no"] * (n - k)]
    answers = {"task": ["q"] * 350, "worker": [*range(350)], "label": labels}
    groups = {worker: "a" if worker < 200 else "b" for worker in range(350)}
    (test,) = crowdveil.share(answers, by=groups, weights=dict.fromkeys(range(350), 2)).tests
    said = (np.array(labels) == "yes").astype(float)
    expected = ttest_ind(said[:200], said[200:], equal_var=False)

    assert test.statistic == pytest.approx(expected.statistic**2, rel=0.01)
    assert test.p_value == pytest.approx(expected.pvalue, rel=0.04)


def test_p_values_are_adjusted_for_all_tests() -> None:
    """Holm's values by hand, in any order; an unknown one counts for none."""
    given = [0.04, 0.01, float("nan"), 0.03, 0.9]
    tests = [GroupTest("q", "sex", "yes", 1.0, 1, value) for value in given]
    adjusted = [one.adjusted for one in with_adjusted(tests)]

    assert adjusted == pytest.approx([0.09, 0.04, float("nan"), 0.09, 0.9], nan_ok=True)


def test_simultaneous_differences_share_the_error() -> None:
    """Three groups have three differences, each with the level 1 - .05 / 3 if all hold together with 95 %."""
    answers = {"task": ["q"] * 300, "worker": [*range(300)], "label": ["yes", "no", "no"] * 100}
    groups = {worker: "abc"[worker // 100] for worker in range(300)}
    together = crowdveil.share(answers, by=groups, simultaneous=True).differences
    alone = crowdveil.share(answers, by=groups, level=1 - 0.05 / 3).differences

    assert 3 == len(together)
    assert [one[7:] for one in together] == [one[7:] for one in alone]
