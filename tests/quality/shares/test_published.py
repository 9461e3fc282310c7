"""Older designs of randomized response as channels: their privacy, efficiency, and published estimates."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil import Categories, RandomizedResponse
from crowdveil.quality.shares.score import score_estimates
from crowdveil.quality.shares.variance import unit_variance


def design(yes: float, no: float) -> NDArray[np.float64]:
    """Return the channel of a design: P(report yes | carrier) and P(report yes | other)."""
    return np.array([[yes, 1 - yes], [no, 1 - no]])


WARNER = design(0.7, 0.3)
FORCED = design(2 / 3 + 1 / 6, 1 / 6)
UNEQUAL = design(3 / 4 + 1 / 6, 1 / 6)
RARE = design(0.5 + 0.5 / 12, 0.5 / 12)
UNRELATED = design(0.5 + 0.5 * 2 / 3, 0.5 * 2 / 3)
ROWS = {
    "forced 2/3, 1/6, 1/6": (FORCED, 1.609, (1.0, 1.0)),
    "forced 3/4, 1/6, 1/12": (UNEQUAL, 2.303, (0.66, 0.79)),
    "unrelated .5, prevalence 1/12": (RARE, 2.565, (0.54, 0.48)),
    "unrelated .5, prevalence 2/3": (UNRELATED, 1.386, (0.57, 0.66)),
    "Warner .7": (WARNER, math.log(7 / 3), (1.0, 1.0)),
}
"""Channel, epsilon, and efficiency against our channel of the same epsilon at shares of .1 and .3."""


def epsilon_of(channel: NDArray[np.float64]) -> float:
    """Return ln of the largest ratio of two entries of a column."""
    return float(np.log(channel.max(axis=0) / channel.min(axis=0)).max())


@pytest.mark.parametrize("name", ROWS)
def test_older_designs_have_their_epsilon_and_efficiency(name: str) -> None:
    """Privacy and efficiency of a design are those of the table of the catalogue; none is better than ours."""
    channel, epsilon, efficiencies = ROWS[name]
    ours = RandomizedResponse(alphabet=Categories(("yes", "no")), epsilon=epsilon_of(channel), participation="public")
    found = []
    for share in (0.1, 0.3):
        shares = np.array([share, 1 - share])
        variance = unit_variance(ours.channel().probabilities, shares, 2, 0)
        found.append(variance / unit_variance(channel, shares, 2, 0))

    assert epsilon == pytest.approx(epsilon_of(channel), abs=5e-4)
    assert efficiencies == tuple(round(value, 2) for value in found)


def test_the_design_of_mangat_protects_nobody_who_denies() -> None:
    """Carriers always say yes, so that a no excludes them: the ratio of the column is infinite."""
    mangat = design(1.0, 0.3)

    assert 0.0 == mangat[0, 1]
    assert mangat[1, 1] > 0


def estimate(channel: NDArray[np.float64], yes: int, n: int) -> tuple[float, float, float, float]:
    """Return the share of carriers, its standard error, and its interval."""
    found = score_estimates(np.array([[yes, n - yes]], dtype=float), channel, 2, np.full(2, 0.95))
    return tuple(float(value[0, 0]) for value in (found.unclipped, found.standard_error, found.low, found.high))  # type: ignore[return-value]


def test_forced_response_in_nigeria() -> None:
    """831 of 2,435 said yes (Blair, Imai and Zhou 2015): .2619 with standard error .0144."""
    assert (0.2619, 0.0144) == tuple(round(value, 4) for value in estimate(FORCED, 831, 2435)[:2])


def test_warner_and_unrelated_question_of_samples() -> None:
    """60 of 125 with p = .7, and 165 of 411 with an unrelated question: estimates and score intervals."""
    share, _, low, high = estimate(WARNER, 60, 125)
    assert (0.4500, 0.2358, 0.6672) == (round(share, 4), round(low, 4), round(high, 4))

    share, _, low, high = estimate(UNRELATED, 165, 411)
    assert (0.1363, 0.0437, 0.2324) == (round(share, 4), round(low, 4), round(high, 4))


def test_stochastic_lie_detector_of_minarets() -> None:
    """373 of 564 and 398 of 692 (Heck and Moshagen 2018): .870695 (.041118), by the difference of two groups.

    With P(yes) = pi t + (1 - pi) (1 - p) the honesty t of carriers is free, so pi follows from the difference only.
    """
    groups = ((373, 564, 1 / 6), (398, 692, 5 / 6))
    (first, second), gap = (yes / n for yes, n, _ in groups), groups[1][2] - groups[0][2]
    error = math.sqrt(sum(yes / n * (1 - yes / n) / (n - 1) for yes, n, _ in groups)) / gap

    assert 0.870695 == round(1 - (first - second) / gap, 6)
    assert 0.041118 == round(error, 6)
