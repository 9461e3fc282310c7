"""Logistic regression through a channel: values by hand, derivatives in loops, coverage, and refusals."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import crowdveil
from crowdveil import Categories, Channel, RandomizedResponse, Reports, seeded
from crowdveil.errors import SettingsError
from tests.quality.shares.loops import randomized_response

YES_NO = Categories(("yes", "no"))
COUNTS = {-1: (40, 70, 40), 0: (55, 60, 35), 1: (75, 45, 30)}
"""Reports of yes, no and no answer at epsilon 2, by covariate."""


def table_of(counts: dict[int, tuple[int, int, int]], epsilon: float) -> tuple[Reports, Channel, dict[str, list[int]]]:
    """Return reports, channel and covariates of people with these counts."""
    covariate, names = [], []
    for x, numbers in counts.items():
        for name, number in zip(("yes", "no", None), numbers, strict=True):
            covariate += [x] * number
            names += [name] * number
    sent = [worker for worker, name in enumerate(names) if name]
    reports = Reports.from_arrays(
        ["q"] * len(sent), sent, [names[worker] for worker in sent],
        alphabet=YES_NO, tasks=["q"], workers=[*range(len(names))],
    )  # fmt: skip
    channel = RandomizedResponse(alphabet=YES_NO, epsilon=epsilon).channel()
    return reports, channel, {"worker": [*range(len(names))], "x": covariate}


def test_coefficients_have_their_known_digits() -> None:
    """Estimates, standard errors, log-likelihood and the test of the slope of three groups of 150 people."""
    reports, channel, covariates = table_of(COUNTS, 2.0)
    found = crowdveil.share_regression(reports, covariates, "yes", channel=channel)
    estimates = [round(one.estimate, 4) for one in found.coefficients]

    assert [-0.0774, 0.7638, 1.4957, 0.3274] == estimates
    assert (0.1605, 0.2044) == tuple(round(one.standard_error, 4) for one in found.coefficients[:2])
    assert -474.6582 == round(found.log_likelihood, 4)
    assert 15.9923 == round(found.coefficients[1].statistic, 4)
    assert ["answer", "answer", "response", "response"] == [one.model for one in found.coefficients]


@pytest.mark.slow
def test_the_maximum_is_that_of_a_likelihood_in_loops() -> None:
    """A search without derivatives over the likelihood written as loops finds the same coefficients."""
    reports, channel, covariates = table_of(COUNTS, 2.0)
    found, table = crowdveil.share_regression(reports, covariates, "yes", channel=channel), randomized_response(3, 2.0)

    def loss(free: Any) -> float:
        total = 0.0
        for x, counts in COUNTS.items():
            yes, answered = (1 / (1 + math.exp(-free[place] - free[place + 1] * x)) for place in (0, 2))
            shares = (answered * yes, answered * (1 - yes), 1 - answered)
            for report, count in enumerate(counts):
                total -= count * math.log(sum(f * row[report] for f, row in zip(shares, table, strict=True)))
        return total

    best = minimize(loss, np.zeros(4), method="Powell", options={"xtol": 1e-10, "ftol": 1e-14})

    assert np.allclose(best.x, [one.estimate for one in found.coefficients], atol=1e-3)
    assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-6)


def test_without_noise_it_is_the_logistic_regression() -> None:
    """Log-odds of two groups of answers, with the standard errors of a two by two table."""
    answers = {"task": ["q"] * 200, "worker": [*range(200)], "label": ["yes"] * 25 + ["no"] * 75 + ["yes", "no"] * 50}
    sex = {"worker": [*range(200)], "sex": ["f"] * 100 + ["m"] * 100}
    first, second = crowdveil.share_regression(answers, sex, "yes").coefficients

    assert (first.estimate, second.estimate) == pytest.approx((math.log(1 / 3), math.log(3)))
    assert second.standard_error == pytest.approx(math.sqrt(1 / 25 + 1 / 75 + 1 / 50 + 1 / 50))
    assert "sex: m" == second.name


def test_weights_have_the_errors_of_the_sandwich() -> None:
    """Equal weights have nearly the model's errors; weights of 4 are not four times as many people."""
    reports, channel, covariates = table_of(COUNTS, 2.0)
    plain = crowdveil.share_regression(reports, covariates, "yes", channel=channel).coefficients
    for weight in (1, 4):
        given = dict.fromkeys(covariates["worker"], weight)
        weighted = crowdveil.share_regression(reports, covariates, "yes", channel=channel, weights=given).coefficients

        assert [one.estimate for one in weighted] == pytest.approx([one.estimate for one in plain], abs=1e-6)
        assert [one.standard_error for one in weighted] == pytest.approx(
            [one.standard_error for one in plain], rel=0.02
        )


@pytest.mark.slow
def test_intervals_hold_where_the_response_follows_the_covariate() -> None:
    """Of 200 samples of 1,500 people (epsilon 2) 90 % hold the slope .7; at 95 % fewer would in one of 500 counts."""
    table = RandomizedResponse(alphabet=YES_NO, epsilon=2.0).channel()
    held, rng = 0, np.random.default_rng(11)
    for run in range(200):
        x = rng.normal(size=1500)
        yes, answers = (
            rng.random(1500) < 1 / (1 + np.exp(0.5 - 0.7 * x)),
            rng.random(1500) < 1 / (1 + np.exp(-1 - 0.8 * x)),
        )
        sent = table.sample(np.where(answers, np.where(yes, 0, 1), 2), seeded(run))
        kept = np.flatnonzero(sent < 2)
        reports = Reports.from_arrays(
            ["q"] * len(kept), kept, np.array(YES_NO.names)[sent[kept]],
            alphabet=YES_NO, tasks=["q"], workers=[*range(1500)],
        )  # fmt: skip
        given = {"worker": [*range(1500)], "x": x.tolist()}
        slope = crowdveil.share_regression(reports, given, "yes", channel=table).coefficients[1]
        held += slope.low <= 0.7 <= slope.high

    assert held >= 180


ANSWERS = {"task": ["q"] * 20, "worker": [*range(20)], "label": ["yes", "no"] * 10}


@pytest.mark.parametrize(
    ("given", "label", "message"),
    [
        ({"worker": [*range(20)], "x": [1] * 20}, "yes", "no covariate may follow from the others"),
        ({"worker": [*range(20)], "x": [*range(20)]}, "maybe", "a regression is of one of two labels"),
        ({"worker": [30], "x": [1]}, "yes", "covariates must be of workers who were asked"),
        ({"worker": [*range(20)], "x": [0, 1] * 10}, "yes", "a covariate separates the answers"),
        ({"worker": [*range(20)], "x": [f"{place:02}x" for place in range(20)]}, "yes", "separates"),
    ],
)
def test_covariates_that_break_a_rule_are_refused(given: dict[str, list[Any]], label: str, message: str) -> None:
    """A constant, an unknown label or worker, and a covariate that separates the answers are refused with a hint."""
    with pytest.raises(SettingsError) as refused:
        crowdveil.share_regression(ANSWERS, given, label)

    assert message in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize(("scale", "shift"), [(1e9, 0.0), (5e6, 2e7), (1.0, 1e6), (1e-9, 0.0)])
def test_the_unit_of_a_covariate_changes_nothing_else(scale: float, shift: float) -> None:
    """Slope, error and test of an income in millions, or of one near 0, are those of its standard unit."""
    reports, channel, covariates = table_of(COUNTS, 2.0)
    plain = crowdveil.share_regression(reports, covariates, "yes", channel=channel).coefficients
    other = covariates | {"x": [scale * x + shift for x in covariates["x"]]}
    found = crowdveil.share_regression(reports, other, "yes", channel=channel).coefficients

    for place in (1, 3):
        assert found[place].estimate * scale == pytest.approx(plain[place].estimate, rel=1e-5)
        assert found[place].standard_error * scale == pytest.approx(plain[place].standard_error, rel=1e-5)
    assert found[1].p_value == pytest.approx(plain[1].p_value, rel=1e-5)
    assert found[0].estimate == pytest.approx(plain[0].estimate - plain[1].estimate * shift / scale, rel=1e-5)


@pytest.mark.parametrize("cell", ["nan", "inf"])
def test_covariates_are_finite(cell: str) -> None:
    """Texts that read as numbers without a value are refused, not computed with."""
    reports, channel, covariates = table_of(COUNTS, 2.0)
    given = covariates | {"x": [cell, *map(str, covariates["x"][1:])]}
    with pytest.raises(SettingsError, match=f"finite numbers, got '{cell} in x'"):
        crowdveil.share_regression(reports, given, "yes", channel=channel)
