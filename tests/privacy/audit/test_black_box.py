"""Audits by draws: bounds that hold, their confidence, and claims that files make."""

import json
import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binom

from crowdveil.campaign.statement.claims import audit_file, audit_mechanism
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.privacy.audit.black_box import Pair, audit_black_box
from crowdveil.privacy.audit.confidence import Counts, lower_limit, upper_limit, wilson_limits
from crowdveil.privacy.audit.events import event_with_largest_objective
from crowdveil.randomness import seeded
from crowdveil.standalone.checks import digest
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
        event = event_with_largest_objective(learn, learn, lambda low, high: low - high, UNFAIR)
        first, second = (event.draws_in_event(outputs) for outputs in learn)
        alarms += (
            Counts(first=first, second=second, first_draws=50, second_draws=50).lower_bound_on_epsilon(0.0, UNFAIR / 2)
            > 0
        )

    assert alarms >= 15


@pytest.mark.slow
def test_a_loss_that_equals_the_claim_is_refuted_at_most_at_the_stated_rate():
    """200 audits of randomized response at its exact epsilon: at most 57 alarms (0.2; probability 0.003)."""
    mechanism = RandomizedResponse(alphabet=Categories(("a", "b", "c")), epsilon=1.0)
    exact = mechanism.guarantee.epsilon
    alarms = 0
    for seed in range(200):
        result = audit_mechanism(mechanism, "value", draws=400, alpha=UNFAIR, source=seeded(seed))
        alarms += result.lower_bound_of_epsilon > exact

    assert alarms <= 57


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", PRIVATE, ids=repr)
def test_no_bound_exceeds_the_exact_loss_of_a_mechanism(mechanism):
    """One answer, NULL where protected, and a whole worker; false alarms: 1e-6 per mechanism and neighbours."""
    tasks = mechanism.tasks if "tasks" in {field.name for field in fields(mechanism)} else 6
    cases: tuple[tuple[Any, int], ...] = ((None, 0), ("worker", 1))
    for neighbours, unit in cases:
        exact = mechanism.guarantees(tasks)[unit].epsilon

        result = audit_mechanism(mechanism, neighbours, tasks=tasks, draws=400, alpha=1e-6, source=seeded(5))

        assert exact == result.exact
        assert result.lower_bound_of_epsilon <= exact
        assert result.refuted == (result.claimed_epsilon < exact * (1 - 1e-12))


def test_the_bound_of_a_million_draws_is_tight():
    """Exact epsilon 1, two labels and NULL, 200,000 draws: at least 0.96 (a million gives 0.98); never above 1."""
    mechanism = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0)

    result = audit_mechanism(mechanism, "value", draws=200_000, source=seeded(1))

    assert 0.96 <= result.lower_bound_of_epsilon <= 1.0
    assert "holds: the exact loss is at most 1" == result.verdict


@pytest.mark.slow
def test_rounds_add_up():
    """Three campaigns with the same answers: the claim is three times that of one; the bound exceeds that of one."""
    mechanism = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0, participation="public")

    result = audit_mechanism(mechanism, rounds=3, draws=4000, source=seeded(1))

    assert result.claimed_epsilon == pytest.approx(3.0, rel=1e-9)
    assert 1.5 < result.lower_bound_of_epsilon <= 3.0


@pytest.mark.parametrize("tick", [lambda call: call // 20, lambda call: call % 2], ids=["slow", "parity"])
def test_draws_of_both_inputs_alternate_in_random_order(tick):
    """A box that drifts with time, but not with its input, is not refuted; nor one that counts its calls."""
    calls: list[None] = []

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

    with pytest.raises(SettingsError, match="does not protect participation"):
        audit_mechanism(mechanism, "participation")


def test_constant_outputs_give_no_bound():
    """No column differs, so there is no event."""
    result = audit_black_box([Pair.of_function(lambda _: 7, 0, 1)], epsilon=0.0, draws=40)

    assert (0.0, "", False) == (result.finding.epsilon, result.finding.event, result.refuted)
    assert np.isfinite(result.finding.delta)


@pytest.mark.parametrize(("successes", "draws"), [(0, 10), (1, 10), (5, 1000), (10, 10), (999_000, 1_000_000)])
@pytest.mark.parametrize("alpha", [0.05, 1e-7])
def test_limits_are_quantiles_of_the_beta_distribution(successes, draws, alpha):
    """The two limits agree with the formula of Clopper and Pearson."""
    low = beta.ppf(alpha, successes, draws - successes + 1) if successes else 0.0
    high = beta.isf(alpha, successes + 1, draws - successes) if successes < draws else 1.0

    assert low == pytest.approx(lower_limit(successes, draws, alpha), rel=1e-9)
    assert high == pytest.approx(upper_limit(successes, draws, alpha), rel=1e-9)


@pytest.mark.parametrize("probability", [0.01, 0.3, 0.9])
def test_limits_err_with_probability_at_most_alpha(probability):
    """Exactly, over all counts of 200 draws: the limit is on the wrong side with probability at most alpha."""
    counts = np.arange(201)
    weights = binom.pmf(counts, 200, probability)
    above = np.array([lower_limit(int(count), 200, 0.05) > probability for count in counts])
    below = np.array([upper_limit(int(count), 200, 0.05) < probability for count in counts])

    assert weights[above].sum() <= 0.05
    assert weights[below].sum() <= 0.05


def test_bounds_follow_from_the_limits():
    """Epsilon is the logarithm of a ratio and delta a difference; neither is negative."""
    counts = Counts(first=700, second=10, first_draws=1000, second_draws=1000)
    low, high = lower_limit(700, 1000, 0.005), upper_limit(10, 1000, 0.005)

    assert math.log(low / high) == counts.lower_bound_on_epsilon(0.0, 0.01)
    assert math.log((low - 0.1) / high) == counts.lower_bound_on_epsilon(0.1, 0.01)
    assert low - math.e * high == counts.lower_bound_on_delta(1.0, 0.01)
    assert 0.0 == counts.lower_bound_on_delta(math.inf, 0.01) == counts.lower_bound_on_epsilon(0.9, 0.01)
    assert 0.0 == Counts(first=1, second=900, first_draws=1000, second_draws=1000).lower_bound_on_epsilon(0.0, 0.01)


def test_a_bound_says_the_same_about_epsilon_and_delta():
    """Delta at the claimed epsilon exceeds the claimed delta exactly when epsilon at that delta exceeds the claim."""
    for second in range(0, 400, 7):
        counts = Counts(first=500, second=second, first_draws=1000, second_draws=1000)

        assert (counts.lower_bound_on_delta(1.0, 0.01) > 0.05) == (counts.lower_bound_on_epsilon(0.05, 0.01) > 1.0)


def test_limits_that_rank_events_are_near_the_exact_ones():
    """Wilson's limits, which select events only, are within a few per cent of the exact ones."""
    low, high = wilson_limits(np.array([500]), np.array([30]), (1000, 1000), 0.01)

    assert low[0] == pytest.approx(lower_limit(500, 1000, 0.005), rel=0.05)
    assert high[0] == pytest.approx(upper_limit(30, 1000, 0.005), rel=0.1)


@pytest.fixture
def certificate():
    """Certificate of randomized response with epsilon 1."""
    return RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0).channel().certificate()


@pytest.mark.parametrize("epsilon", [float("nan"), -1.0])
def test_a_claim_that_is_no_loss_is_refused(epsilon, certificate, tmp_path):
    """Such a claim neither holds nor is refuted."""
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(certificate), "utf-8")

    with pytest.raises(SettingsError, match="non-negative"):
        audit_file(file.read_bytes(), source=str(file), epsilon=epsilon)


def test_a_huge_stated_ratio_is_a_claim(certificate, tmp_path):
    """The largest ratio that a certificate can state has its logarithm as the claim."""
    data = certificate | {"ratio": [2**53 - 1, 1]}
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(data | {"sha256": digest(data)}), "utf-8")

    result = audit_file(file.read_bytes(), source=str(file))

    assert pytest.approx(53 * math.log(2)) == result.claimed_epsilon
    assert not result.refuted
