"""Pure, advanced and exact composition of mechanisms: correlated cells enumerated, rounds, several channels."""

import math

import pytest

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms import MatrixFactorizationPublished, RandomizedResponse, TwoLayer
from crowdveil.privacy.composition import composition, pure_profile
from crowdveil.privacy.loss_distribution import channel_profile, composed_epsilon

YES_NO = Categories(("no", "yes"))


@pytest.mark.slow
def test_rows_are_cell_and_worker_over_all_rounds():
    """The sum is cells times rounds times epsilon; the exact figure of the worker is the smallest of the three."""
    mechanism = RandomizedResponse(alphabet=YES_NO, epsilon=0.5)
    cell, worker = composition(mechanism, tasks=50, rounds=4, delta=1e-6)

    assert [("cell", 1, 4), ("worker", 50, 4)] == [(row.unit, row.cells, row.rounds) for row in (cell, worker)]
    assert (2.0, 100.0) == pytest.approx((cell.pure, worker.pure))
    assert worker.exact < worker.advanced < worker.pure
    assert composed_epsilon([(channel_profile(mechanism.channel()), 200)], 1e-6) == worker.exact


def test_a_pure_epsilon_alone_composes_over_rounds():
    """Of a mechanism without a channel, the pure loss per campaign composes as randomized response with that loss."""
    mechanism = TwoLayer(alphabet=YES_NO, low=0.2, high=0.7, answers=200)
    worker = composition(mechanism, tasks=150, rounds=3, delta=1e-6)[1]
    epsilon = mechanism.guarantees(150)[1].epsilon

    assert composed_epsilon([(pure_profile(epsilon), 3)], 1e-6) == worker.exact
    assert 3 * epsilon == pytest.approx(worker.pure)


def test_no_guarantee_stays_none():
    """What has infinite epsilon has no (epsilon, delta) either."""
    mechanism = MatrixFactorizationPublished(alphabet=Scale(0, 9), epsilon=1.0, tasks=4, dimensions=2)

    assert {math.inf} == {row.exact for row in composition(mechanism, tasks=4, delta=1e-6)}
