"""AdultContent2 (825 workers, 11,028 tasks, labels G P R X) through randomized response with NULL protected.

Error rate against 347 gold tasks, ties split, mean over seeds 0, 1, ...; per cell, participation protected, claimed
epsilon = exact epsilon. The best constant, "G" everywhere, scores 0.427, unprotected majority vote 0.238. Seeds are
fixed, so nothing here can fail by chance; over other seeds a mean of 5 has a standard error of about 0.005.
"""

from typing import NamedTuple

import numpy as np
import pytest

from crowdveil import DawidSkene, RandomizedResponse
from crowdveil.answers.reports import Reports
from crowdveil.estimators import WeightedVote
from crowdveil.inference.scores import metrics
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_reports
from tests.real_data import load_or_skip

CONSTANT = 0.427
pytestmark = pytest.mark.slow


class Goal(NamedTuple):
    """What an epsilon must reach: over how many seeds, at most which error; and the error of naive reading."""

    seeds: int
    through_channel: float
    naive: float


GOALS = {
    1.0: Goal(5, 0.437, 0.735),
    2.0: Goal(5, 0.437, 0.628),
    3.0: Goal(5, 0.390, 0.521),
    4.0: Goal(5, 0.310, 0.339),
    5.0: Goal(10, 0.275, 0.280),
}
each_epsilon = pytest.mark.parametrize("epsilon", GOALS)


def mechanism(epsilon: float) -> RandomizedResponse:
    """Return randomized response over the labels of AdultContent2 and NULL."""
    alphabet = load_or_skip("adult2").answers.alphabet
    assert alphabet is not None
    return RandomizedResponse(alphabet=alphabet, epsilon=epsilon)


def reports(epsilon: float, seed: int) -> Reports:
    """Return what all devices would have sent."""
    return perturb_reports(load_or_skip("adult2").answers, mechanism(epsilon), seeded(seed))


def mean_error(epsilon: float, seeds: int, prior: dict[str, float] | None = None) -> float:
    """Return the mean error of Dawid-Skene through the channel."""
    channel, fit = mechanism(epsilon).channel(), DawidSkene(tolerance=1e-4).fit
    estimates = (fit(reports(epsilon, seed), channel=channel, prior=prior) for seed in range(seeds))
    return float(np.mean([metrics.error_rate(estimate, load_or_skip("adult2").gold) for estimate in estimates]))


@each_epsilon
def test_error_through_the_channel(epsilon: float) -> None:
    """With the channel in its likelihood and a learned prior, Dawid-Skene is at least as good as was asked."""
    goal = GOALS[epsilon]

    assert mean_error(epsilon, goal.seeds) <= goal.through_channel


@each_epsilon
def test_error_with_a_public_prior(epsilon: float) -> None:
    """With the label shares as a public prior the same holds (to 0.005 at epsilon 5: 0.2752 over ten seeds)."""
    answers = load_or_skip("adult2").answers
    names = mechanism(epsilon).alphabet.names
    shares = np.bincount(answers.value, minlength=len(names)) / len(answers)
    prior = dict(zip(names, shares.tolist(), strict=True))

    assert mean_error(epsilon, 3, prior) <= GOALS[epsilon].through_channel + (0.005 if epsilon == 5 else 0.0)


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 3.0, 4.0])
def test_reading_reports_as_answers_is_worse(epsilon: float) -> None:
    """The weighted vote that takes reports for answers errs as was found before (to 0.05), more than the goal."""
    goal, gold = GOALS[epsilon], load_or_skip("adult2").gold
    naive = np.mean([metrics.error_rate(WeightedVote().fit(reports(epsilon, seed)), gold) for seed in range(2)])

    assert pytest.approx(goal.naive, abs=0.05) == naive
    assert naive > goal.through_channel
    assert (naive > CONSTANT) == (epsilon <= 3)


def test_the_constant_is_what_errors_are_compared_with() -> None:
    """A score names the best constant, and at epsilon 1 the estimate itself says that no truth differs from it."""
    data = load_or_skip("adult2")

    estimate = DawidSkene(tolerance=1e-4).fit(reports(1.0, 0), channel=mechanism(1.0).channel())
    score = metrics.score(estimate, data.gold)

    assert ("G", 0) == (estimate.baseline.constant, estimate.baseline.moved)
    assert "differs from the constant G" in str(estimate.baseline)
    assert pytest.approx(CONSTANT, abs=5e-4) == score.baseline == score.error
    assert (0.0, "G") == (score.gain_over_constant, score.constant)


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 0.3])
def test_less_than_a_little_information_teaches_nothing(epsilon: float) -> None:
    """At the smallest epsilons no truth differs from the base rate's constant, rather than from noise's own opinion."""
    estimate = DawidSkene(tolerance=1e-4).fit(reports(epsilon, 0), channel=mechanism(epsilon).channel())

    assert 0 == estimate.baseline.moved
