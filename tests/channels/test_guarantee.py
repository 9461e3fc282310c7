"""What a mechanism promises, and how often it is spent."""

import math

import pytest

from crowdveil.channels.guarantee import MAX_EPSILON, Guarantee, require_epsilon
from crowdveil.errors import SettingsError


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", -0.1), ("epsilon", math.nan), ("claimed", -1.0), ("claimed", math.nan)]
    + [("delta", value) for value in (-1e-9, 1.1, math.nan)],
)
def test_figures_out_of_range_are_refused(name, value):
    """Epsilon and what is claimed are not negative, delta is a probability, and none is nan."""
    with pytest.raises(SettingsError, match=name):
        Guarantee(**{"epsilon": 1.0, name: value})


def test_infinity_and_zero_are_guarantees():
    """Nothing promised and nothing revealed can both be said."""
    assert (math.inf, 0.0) == (Guarantee(epsilon=math.inf).epsilon, Guarantee(epsilon=0.0).epsilon)


@pytest.mark.parametrize(("delta", "spent"), [(0.01, 0.1), (0.7, 1.0)])
def test_a_worker_pays_for_every_cell(delta, spent):
    """Epsilon and delta of all cells add up; delta is a probability however often it is spent."""
    worker = Guarantee(epsilon=0.5, delta=delta).per_worker(10)

    assert (5.0, pytest.approx(spent), "worker") == (worker.epsilon, worker.delta, worker.unit)


def test_times_multiplies_the_claim():
    """What a paper claims is spent as often."""
    assert 3.0 == Guarantee(epsilon=2.0, claimed=1.0).times(3).claimed


def test_a_release_happens_at_least_once():
    """Zero releases are no guarantee."""
    with pytest.raises(SettingsError, match="number of releases must be"):
        Guarantee(epsilon=1.0).times(0)


def test_text_names_unit_and_participation():
    """Every printed epsilon names both."""
    assert "epsilon = 1.5 per cell, participation public" == str(Guarantee(epsilon=1.5, participation="public"))


def test_text_shows_claim_delta_and_reason():
    """A false claim is printed with the exact epsilon."""
    shown = str(Guarantee(epsilon=math.inf, delta=0.25, claimed=1.0, reason="leaks"))

    assert "epsilon = none (infinite) (claimed 1), delta = 0.25 per cell, participation protected; leaks" == shown


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, -1.0, MAX_EPSILON + 0.001, math.inf, math.nan])
def test_mechanisms_refuse_absurd_epsilons(epsilon):
    """A mechanism is built with epsilon between a millionth and 20 only."""
    with pytest.raises(SettingsError, match="epsilon must be in"):
        require_epsilon(epsilon)


def test_mechanisms_accept_the_largest_epsilon():
    """The limit itself is allowed, and comes back as a float."""
    assert MAX_EPSILON == require_epsilon(20)
