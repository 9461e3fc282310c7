"""Clipped score intervals: values computed by hand, loops over a grid, and exact coverage over all tables of counts."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multinomial

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.mechanisms import QuantizedResponse, RandomizedResponse
from crowdveil.quality.shares.score import ScoreTest, ShareEstimates, right_inverse, score_estimates
from tests.quality.shares.loops import best_null_share, randomized_response, score_holds

YES_NO = Categories(("yes", "no"))


def channel(epsilon: float, participation: Any = "protected") -> NDArray[np.float64]:
    """Return P(report | answer) of randomized response."""
    return RandomizedResponse(alphabet=YES_NO, epsilon=epsilon, participation=participation).channel().probabilities


def estimates(*counts: tuple[int, ...], epsilon: float = 1.0, level: float = 0.95) -> ShareEstimates:
    """Return the estimates of rows of counts of yes, no and no answer."""
    return score_estimates(np.array(counts, dtype=float), channel(epsilon), 2, np.full(3, level))


def test_shares_and_intervals_are_those_computed_by_hand() -> None:
    """Unclipped shares, standard errors and ends of three samples at epsilon 1 have their known digits."""
    found = estimates((60, 90, 50), (45, 110, 45), (30, 120, 50))

    assert np.allclose(found.of_asked[0], (0.2418, 0.6537, 0.1045), atol=5e-5)
    assert np.allclose(found.unclipped[:, 0], (0.270021, 0.0372, -0.1899), atol=5e-5)
    assert (0.0928, 0.0841) == (round(found.standard_error[0, 0], 4), round(found.standard_error[0, 2], 4))
    assert np.allclose(found.low[:, 0], (0.0934, 0, 0), atol=5e-5)
    assert np.allclose(found.high[:, 0], (0.4541, 0.2074, 0.1814), atol=5e-5)
    assert found.share[2, 0] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("counts", [(60, 90, 50), (30, 120, 50), (4, 9, 12), (150, 20, 10), (2, 3, 40)])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_ends_are_those_of_a_likelihood_in_loops(counts: tuple[int, ...], epsilon: float) -> None:
    """Just inside each end the test written as loops holds the share, and just outside it does not."""
    found, table = estimates(counts, epsilon=epsilon), randomized_response(3, epsilon)
    low, high = float(found.low[0, 0]), float(found.high[0, 0])

    assert score_holds(counts, table, min(low + 1e-4, high))
    assert score_holds(counts, table, max(high - 1e-4, low))
    assert low < 1e-5 or not score_holds(counts, table, low - 1e-4)
    assert high > 1 - 1e-5 or not score_holds(counts, table, high + 1e-4)


@pytest.mark.parametrize("counts", [(60, 90, 50), (30, 120, 50), (7, 3, 2)])
def test_the_share_is_the_maximum_of_a_likelihood_in_loops(counts: tuple[int, ...]) -> None:
    """No share of a grid has a larger likelihood than the estimate, nor one in 10,000 beside it."""
    share, table = round(float(estimates(counts).share[0, 0]), 6), randomized_response(3, 1.0)
    best = best_null_share(counts, table, share)[0]

    assert all(best >= best_null_share(counts, table, step / 50)[0] - 1e-8 for step in range(51))
    assert all(best >= best_null_share(counts, table, min(max(share + off, 0), 1))[0] - 1e-8 for off in (-1e-4, 1e-4))


def coverage(share: float, n: int, epsilon: float, answered: float, *, clipped: bool) -> float:
    """Return the exact coverage: the probability of all tables of counts whose interval holds the share."""
    table = randomized_response(3, epsilon)
    shares = (share * answered, (1 - share) * answered, 1 - answered)
    p = [sum(f * row[y] for f, row in zip(shares, table, strict=True)) for y in range(3)]
    total = 0.0
    for yes in range(n + 1):
        for no in range(n - yes + 1):
            none = n - yes - no
            log = math.lgamma(n + 1) - math.lgamma(yes + 1) - math.lgamma(no + 1) - math.lgamma(none + 1)
            weight = math.exp(log + yes * math.log(p[0]) + no * math.log(p[1]) + none * math.log(p[2]))
            if weight > 1e-7:
                total += weight * score_holds((yes, no, none), table, share, clipped=clipped)
    return total


@pytest.mark.slow
@pytest.mark.parametrize("case", [(0.1, 50, 0.9714, 0.9522)])
def test_exact_coverage_in_loops(case: tuple[float, int, float, float]) -> None:
    """The coverage at epsilon 1 and half of the people answering has its known digits, clipped and not."""
    share, n, clipped, score = case

    assert coverage(share, n, 1.0, 0.5, clipped=True) == pytest.approx(clipped, abs=2e-4)
    assert coverage(share, n, 1.0, 0.5, clipped=False) == pytest.approx(score, abs=2e-4)


def test_without_noise_the_interval_is_that_of_wilson() -> None:
    """Of 30 yes in 100 answers the ends are those of Wilson 1927, to four digits."""
    z, n, p = 1.959963984540054, 100, 0.3
    middle, half = p + z * z / 2 / n, z * math.sqrt(p * (1 - p) / n + z * z / 4 / n / n)

    found = score_estimates(np.array([[30.0, 70.0]]), np.eye(2), 2, np.full(2, 0.95))

    assert found.low[0, 0] == pytest.approx((middle - half) / (1 + z * z / n), abs=1e-5)
    assert found.high[0, 0] == pytest.approx((middle + half) / (1 + z * z / n), abs=1e-5)


def test_public_yes_or_no_is_a_mapped_interval_of_wilson() -> None:
    """Behind a public channel the ends are those of the reports, mapped to shares and held in [0, 1]."""
    table, z, n, p = channel(1.0, "public"), 1.959963984540054, 200, 0.45
    a, b = table[0, 0], table[1, 0]
    middle, half = p + z * z / 2 / n, z * math.sqrt(p * (1 - p) / n + z * z / 4 / n / n)

    found = score_estimates(np.array([[90.0, 110.0]]), table, 2, np.full(2, 0.95))

    for end, sign in ((found.low, -1), (found.high, 1)):
        wilson = (middle + sign * half) / (1 + z * z / n)
        assert end[0, 0] == pytest.approx((wilson - b) / (a - b), abs=1e-5)


def test_intervals_are_never_empty_and_hold_the_share() -> None:
    """Every table of 12 reports has an interval that holds its estimate and is wider than one point."""
    counts = [(yes, no, 12 - yes - no) for yes in range(13) for no in range(13 - yes)]
    found = estimates(*counts)
    known = ~np.isnan(found.share)

    assert (found.high - found.low > 0.01).all()
    assert (found.low <= found.share + 1e-5)[known].all()
    assert (found.share <= found.high + 1e-5)[known].all()


def test_more_reports_than_inputs_are_inverted_by_their_information() -> None:
    """The right inverse solves Q H = I, and its variance is the least: H' diag(p) H = J^-1."""
    rng = np.random.default_rng(3)
    table, p = rng.dirichlet(np.ones(5), size=3), rng.dirichlet(np.ones(5))

    inverse = right_inverse(table, p[None])[0]

    assert np.allclose(table @ inverse, np.eye(3))
    assert np.allclose(inverse.T @ np.diag(p) @ inverse, np.linalg.inv(table / p @ table.T))


def test_labels_of_one_block_have_an_interval_and_no_share() -> None:
    """Labels that are reported alike have no share; the interval of each is from 0 to that of the block."""
    scale = Scale(1, 4, 1)
    blocks: Channel = QuantizedResponse(alphabet=scale, epsilon=3.0, cuts=(2,), participation="public").channel()
    counts = np.array([[60.0, 140.0]])

    found = score_estimates(counts, blocks.probabilities, 4, np.full(4, 0.95))

    assert np.isnan(found.share).all()
    assert np.isnan(found.unclipped).all()
    assert np.allclose(found.low[0], 0, atol=1e-5)
    assert 0.2 < found.high[0, 0] < 0.5 < found.high[0, 2] < 0.9


@pytest.mark.parametrize(
    ("participation", "response", "mean"),
    [("public", 1.0, 0.02), ("protected", 1.0, 0.013), ("protected", 0.8, 0.003), ("protected", 0.5, -0.066)],
)
def test_unclipped_shares_are_right_on_average_with_public_participation_only(
    participation: str, response: float, mean: float
) -> None:
    """Over all reports of 50 people, a share of .02 has the exact means at epsilon 1 that the documents state."""
    table, people = channel(1.0, participation)[:, : 3 if participation == "protected" else 2], 50
    table = table[: table.shape[1]]
    cells = np.array([0.02 * response, 0.98 * response, 1 - response])[: len(table)]
    most = people if len(table) == 3 else 0
    counts = np.array([(a, people - a - b, b)[: len(table)] for b in range(most + 1) for a in range(people + 1 - b)])
    reports = (cells @ table)[None].repeat(len(counts), axis=0)
    unclipped = ScoreTest(counts.astype(float), table, 2, 0).unclipped(reports)[0]
    chance = multinomial.pmf(counts, people, cells @ table)
    known = ~np.isnan(unclipped)

    assert chance[known] @ unclipped[known] / chance[known].sum() == pytest.approx(mean, abs=6e-4)
