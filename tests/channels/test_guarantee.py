"""What a mechanism promises, and how promises add up."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_two_releases_add_up():
    """Epsilon and delta add; participation is protected only if both protect it; the first reason is kept."""
    first = Guarantee(epsilon=1.0, delta=0.1, reason="why")
    second = Guarantee(epsilon=0.5, delta=0.2, participation="public", claimed=0.4, reason="other")

    both = first.compose(second)

    assert (1.5, "cell", "public", None, "why") == (
        both.epsilon,
        both.unit,
        both.participation,
        both.claimed,
        both.reason,
    )
    assert pytest.approx(0.3) == both.delta


def test_protected_releases_stay_protected():
    """Two protected releases compose to a protected one, with the other's reason if there is only that."""
    both = Guarantee(epsilon=1.0).compose(Guarantee(epsilon=1.0, reason="other"))

    assert ("protected", "other") == (both.participation, both.reason)


def test_composed_delta_is_at_most_one():
    """Delta is a probability however often it is spent."""
    assert 1.0 == Guarantee(epsilon=1.0, delta=0.7).compose(Guarantee(epsilon=1.0, delta=0.7)).delta
    assert 1.0 == Guarantee(epsilon=1.0, delta=0.7).times(2).delta


def test_different_units_do_not_compose():
    """A cell's promise and a worker's are about different things."""
    with pytest.raises(SettingsError, match="units are equal"):
        Guarantee(epsilon=1.0).compose(Guarantee(epsilon=1.0, unit="worker"))


@given(st.floats(0, 10), st.integers(1, 8))
def test_times_is_repeated_composition(epsilon, count):
    """`times(n)` equals n-fold `compose`."""
    one = Guarantee(epsilon=epsilon, delta=0.01)
    composed = one
    for _ in range(count - 1):
        composed = composed.compose(one)

    assert pytest.approx(composed.epsilon) == one.times(count).epsilon
    assert pytest.approx(composed.delta) == one.times(count).delta


def test_times_multiplies_the_claim():
    """What a paper claims is spent as often."""
    assert 3.0 == Guarantee(epsilon=2.0, claimed=1.0).times(3).claimed


def test_a_release_happens_at_least_once():
    """Zero releases are no guarantee."""
    with pytest.raises(SettingsError, match="number of releases must be"):
        Guarantee(epsilon=1.0).times(0)


def test_a_worker_pays_for_every_cell():
    """The worker's guarantee is that of all cells."""
    worker = Guarantee(epsilon=0.5).per_worker(10)

    assert (5.0, "worker") == (worker.epsilon, worker.unit)


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
