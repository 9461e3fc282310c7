"""Audits by draws: the rate of false alarms, every registered mechanism, and refused settings."""

import math
from dataclasses import fields

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.privacy.audit.black_box import Pair, audit_black_box
from crowdveil.privacy.audit.confidence import Counts
from crowdveil.privacy.audit.events import find_event
from crowdveil.privacy.audit.stated_claims import audit_mechanism
from crowdveil.randomness import seeded
from tests.mechanisms.examples import EXAMPLES as CASES

PRIVATE = [case for case in CASES if math.isfinite(case.guarantees(6)[0].epsilon)]
UNFAIR = 0.2
"""Rate of false alarms in the simulations: large, so that it can be measured."""


def coins(seed: int) -> Pair:
    """Return a pair whose outputs, 20 fair bits, do not depend on the input: epsilon is 0."""
    generator = seeded(seed).generator

    def draw(count):
        return generator.integers(0, 2, size=(count, 20))

    return Pair("nothing", draw, draw)


@pytest.mark.slow
def test_a_true_claim_is_refuted_at_most_at_the_stated_rate():
    """120 audits of epsilon 0 at alpha 0.2: at most 37 alarms, which a rate of 0.2 exceeds with probability 0.003."""
    alarms = sum(audit_black_box([coins(seed)], epsilon=0.0, draws=200, alpha=UNFAIR).refuted for seed in range(120))

    assert alarms <= 37


def test_a_bound_from_the_draws_of_the_search_would_be_wrong():
    """The same audits without held-out draws: the event found last is bounded on its own draws, and nearly all err."""
    alarms = 0
    for seed in range(20):
        learn = coins(seed).draw(50)
        event = find_event(learn, learn, lambda low, high: low - high, UNFAIR)
        first, second = (event.count(outputs) for outputs in learn)
        alarms += Counts(first=first, second=second, first_draws=50, second_draws=50).epsilon(0.0, UNFAIR / 2) > 0

    assert alarms >= 15


@pytest.mark.slow
def test_a_loss_that_equals_the_claim_is_refuted_at_most_at_the_stated_rate():
    """200 audits of randomized response at its exact epsilon: at most 57 alarms (0.2; probability 0.003)."""
    mechanism = RandomizedResponse(alphabet=Categories(("a", "b", "c")), epsilon=1.0)
    exact = mechanism.guarantee.epsilon
    alarms = 0
    for seed in range(200):
        result = audit_mechanism(mechanism, "value", draws=400, alpha=UNFAIR, source=seeded(seed))
        alarms += result.bound > exact

    assert alarms <= 57


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", PRIVATE, ids=repr)
def test_no_bound_exceeds_the_exact_loss_of_a_mechanism(mechanism):
    """One answer, NULL where protected, and a whole worker; false alarms: 1e-6 per mechanism and neighbours."""
    tasks = mechanism.tasks if "tasks" in {field.name for field in fields(mechanism)} else 6
    for neighbours, unit in ((None, 0), ("worker", 1)):
        exact = mechanism.guarantees(tasks)[unit].epsilon

        result = audit_mechanism(mechanism, neighbours, tasks=tasks, draws=400, alpha=1e-6, source=seeded(5))

        assert exact == result.exact
        assert result.bound <= exact
        assert result.refuted == (result.claimed_epsilon < exact * (1 - 1e-12))


def test_the_bound_of_a_million_draws_is_tight():
    """Exact epsilon 1, two labels and NULL, 200,000 draws: at least 0.96 (a million gives 0.98); never above 1."""
    mechanism = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0)

    result = audit_mechanism(mechanism, "value", draws=200_000, source=seeded(1))

    assert 0.96 <= result.bound <= 1.0
    assert "holds: the exact loss is at most 1" == result.verdict


@pytest.mark.slow
def test_rounds_add_up():
    """Three campaigns with the same answers: the claim is three times that of one; the bound exceeds that of one."""
    mechanism = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0, participation="public")

    result = audit_mechanism(mechanism, rounds=3, draws=4000, source=seeded(1))

    assert result.claimed_epsilon == pytest.approx(3.0, rel=1e-9)
    assert 1.5 < result.bound <= 3.0


@pytest.mark.parametrize("tick", [lambda call: call // 20, lambda call: call % 2], ids=["slow", "parity"])
def test_draws_of_both_inputs_alternate_in_random_order(tick):
    """A box that drifts with time, but not with its input, is not refuted; nor one that counts its calls."""
    calls = []

    def clock(_):
        calls.append(None)
        return tick(len(calls))

    assert not audit_black_box([Pair.of_function(clock, 0, 1)], epsilon=0.1, draws=400).refuted


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"draws": 39}, "at least 40 draws"),
        ({"alpha": 0.0}, "alpha must be in"),
        ({"alpha": 1.0}, "alpha must be in"),
        ({"epsilon": -1.0}, "claimed epsilon"),
        ({"epsilon": math.nan}, "claimed epsilon"),
        ({"delta": 2.0}, "claimed delta"),
        ({"pairs": []}, "a pair of neighbouring inputs"),
    ],
)
def test_settings_out_of_range_are_refused(settings, rule):
    """An audit that could not mean anything does not start."""
    with pytest.raises(SettingsError, match=rule):
        audit_black_box(**({"pairs": [coins(0)], "epsilon": 1.0} | settings))


def test_a_box_that_always_fails_is_no_audit():
    """If no draw gives an output, nothing was compared; the first failure is shown."""

    def box(value):
        raise ValueError(f"cannot read {value}")

    with pytest.raises(SettingsError, match="ValueError: cannot read 0"):
        audit_black_box([Pair.of_function(box, 0, 1)], epsilon=1.0, draws=40)


def test_public_participation_has_no_neighbours_in_participation():
    """Nothing is claimed about it."""
    mechanism = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0, participation="public")

    with pytest.raises(SettingsError, match="promises nothing"):
        audit_mechanism(mechanism, "participation")


def test_constant_outputs_give_no_bound():
    """No column differs, so there is no event."""
    result = audit_black_box([Pair.of_function(lambda _: 7, 0, 1)], epsilon=0.0, draws=40)

    assert (0.0, "", False) == (result.finding.epsilon, result.finding.event, result.refuted)
    assert np.isfinite(result.finding.delta)
