"""Claims, budgets of a release, and discrete noise."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.rounding import lower_exact_value
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import discrete_laplace as device
from crowdveil.randomness import seeded
from crowdveil.synthesis.budgets import allocated_budgets
from crowdveil.synthesis.discrete_noise import (
    discrete_laplace_variance,
    round_epsilon_down,
    sample_discrete_laplace_array,
    uniform_below,
)
from crowdveil.synthesis.original_claims import Claims
from tests.chi_square import chi_square_p_value
from tests.strategies import small_numeric_reports

ROWS = (["a", "a", "b", "b"], ["v", "w", "v", "w"])


@pytest.mark.slow
@given(small_numeric_reports())
def test_claims_hold_every_report_in_order(reports: Reports) -> None:
    """The claims of a task are its reports."""
    claims = Claims.from_reports(reports, bounds=(-1e99, 1e99))

    assert claims.value.tolist() == reports.value.tolist()
    assert claims.task_of_each_claim.tolist() == reports.task.tolist()
    assert claims.worker.tolist() == reports.worker.tolist()
    assert claims.per_worker.tolist() == reports.per_worker.tolist()
    for task in range(len(reports.tasks)):
        mine = reports.value[reports.task == task].tolist()
        assert mine == claims.claims_of_task(task).tolist()


@pytest.mark.parametrize("values", [[-3.0, 0.5, 2.0], [1.0, -1.0], [9.0]])
def test_claims_outside_are_clipped_and_counted(values: list[float]) -> None:
    """Every row is a claim within the bounds, and those that were moved are counted."""
    rows = range(len(values))
    claims = Claims.from_arrays(rows, rows, values, bounds=(-1, 1), outside="clip")

    assert claims.value.tolist() == np.clip(values, -1, 1).tolist()
    assert claims.clipped == sum(abs(one) > 1 for one in values)


def test_bounds_must_be_public() -> None:
    """Without bounds and without a scale claims are refused: bounds taken from the claims would reveal two of them."""
    with pytest.raises(SettingsError, match="bounds must be public"):
        Claims.from_arrays(*ROWS, [1, 2, 3, 4])


def test_outside_given_bounds_is_refused_by_default() -> None:
    """A claim outside the user's bounds is an error by default."""
    with pytest.raises(ReportsError, match=r"within the bounds.*11.*1 in all.*'clip'"):
        Claims.from_arrays(*ROWS, [1, 2, 11, 3], bounds=(0, 10))


def test_bounds_may_differ_by_task() -> None:
    """Arrays of bounds are read in the order of the tasks."""
    claims = Claims.from_arrays(*ROWS, [1, 9, 1, 9], bounds=([0, 5], [5, 10]), outside="clip")

    assert claims.value.tolist() == [1, 5, 5, 9]
    assert claims.clipped == 2


@pytest.mark.parametrize("bounds", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1), ([0], [1]), (0, 2e100)])
def test_bad_bounds_are_refused(bounds: tuple[Any, Any]) -> None:
    """Bounds are finite, in order, and one pair for all tasks or one for each."""
    with pytest.raises(SettingsError, match="bounds must be"):
        Claims.from_arrays(*ROWS, [1, 2, 3, 4], bounds=bounds)


def test_a_scale_is_a_public_bound() -> None:
    """Answers on a scale bring its ends as bounds, known without looking at the claims."""
    reports = Reports.from_arrays(*ROWS, [1, 2, 3, 4], alphabet=Scale(0, 9))
    claims = Claims.from_reports(reports)

    assert (claims.low.tolist(), claims.high.tolist()) == ([0, 0], [9, 9])


def test_labels_are_no_claims() -> None:
    """Labels without numbers are refused."""
    with pytest.raises(SettingsError, match="claims must be numbers"):
        Claims.from_reports(Reports.from_arrays(*ROWS, ["x", "y", "x", "y"], alphabet=Categories(("x", "y"))))


def test_repeated_pairs_are_refused_by_default() -> None:
    """Two claims of one worker on one task need a policy."""
    thrice = Claims.from_arrays(
        ["a", "a", "b", "a"], ["v", "v", "v", "v"], [1, 2, 3, 4], bounds=(0, 9), duplicates="all"
    )

    assert thrice.per_task.tolist() == [3, 1]
    with pytest.raises(ReportsError, match="repeat"):
        Claims.from_arrays(["a", "a"], ["v", "v"], [1, 2], bounds=(0, 9))


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1, max_size=30, unique=True)


def crowd(pairs: list[tuple[int, int]]) -> Claims:
    """Claims of 0.5 for pairs of task and worker."""
    task, worker = zip(*pairs, strict=True)
    return Claims.from_arrays(task, worker, np.full(len(pairs), 0.5), bounds=(0, 1))


@settings(max_examples=60)
@given(PAIRS, st.floats(0.01, 10), st.none() | st.integers(1, 4))
def test_no_worker_pays_more_than_epsilon(pairs: list[tuple[int, int]], epsilon: float, most: int | None) -> None:
    """Under unit worker, the budgets of the tasks of a worker's used claims add up to at most epsilon."""
    claims = crowd(pairs)
    budgets = allocated_budgets(claims, epsilon=epsilon, unit="worker", participation="public", most_claims=most)
    used = budgets.sample_used(claims, seeded(1))
    spent = np.bincount(claims.worker, weights=budgets.task_epsilon[claims.task_of_each_claim] * used)
    cell, worker = budgets.guarantees()

    assert spent.max() <= worker.epsilon * (1 + 1e-12) <= epsilon * (1 + 1e-12)
    assert lower_exact_value(cell.epsilon) >= max(budgets.exact_task_epsilon.values())
    assert cell.epsilon == pytest.approx(budgets.task_epsilon.max(), rel=1e-15)
    assert np.bincount(claims.worker, weights=used).max() <= (most or len(pairs))


@settings(max_examples=30)
@given(PAIRS, st.floats(0.01, 10))
def test_per_claim_every_task_spends_everything(pairs: list[tuple[int, int]], epsilon: float) -> None:
    """Under unit cell all tasks have the same budget, and a worker pays it once per claim."""
    claims = crowd(pairs)
    budgets = allocated_budgets(claims, epsilon=epsilon, unit="cell", participation="public", most_claims=None)
    cell, worker = budgets.guarantees()

    assert epsilon - 2**-20 < cell.epsilon <= epsilon
    assert worker.epsilon == pytest.approx(cell.epsilon * claims.per_worker.max())


def test_tasks_of_light_workers_get_more() -> None:
    """A task whose workers claim little has more to spend than one with a busy worker."""
    budgets = allocated_budgets(
        crowd([(0, 0), (1, 1), (2, 1), (3, 1)]), epsilon=3.0, unit="worker", participation="public", most_claims=None
    )

    assert budgets.task_epsilon.tolist() == [3.0, 1.0, 1.0, 1.0]


def test_tasks_without_claims_have_no_loss() -> None:
    """The loss per claim is the largest budget of a task with a claim; one without could have spent all of epsilon."""
    claims = Claims.from_arrays([0, 1], [0, 0], [0.5, 0.5], bounds=(0, 1), tasks=[0, 1, 2])
    budgets = allocated_budgets(claims, epsilon=3.0, unit="worker", participation="public", most_claims=None)

    assert budgets.task_epsilon.tolist() == [1.5, 1.5, 3.0]
    assert [one.epsilon for one in budgets.guarantees()] == [1.5, 3.0]


def test_protected_participation_depends_on_no_claim() -> None:
    """The division of protected workers is by most_claims alone; without it nothing is bounded."""
    claims = crowd([(0, 0), (1, 1), (2, 1)])
    split = allocated_budgets(claims, epsilon=3.0, unit="worker", participation="protected", most_claims=2)
    open_ended = allocated_budgets(claims, epsilon=3.0, unit="cell", participation="protected", most_claims=None)

    assert split.task_epsilon.tolist() == [1.5, 1.5, 1.5]
    assert [one.epsilon for one in split.guarantees()] == [1.5, 3.0]
    assert math.isinf(open_ended.guarantees()[1].epsilon)
    assert "most_claims" in open_ended.guarantees()[1].reason
    assert {one.participation for one in split.guarantees()} == {"protected"}


def test_claims_that_are_used_are_drawn_anew() -> None:
    """Of a worker's three claims any two may be the ones that are used."""
    claims = crowd([(0, 0), (1, 0), (2, 0)])
    budgets = allocated_budgets(claims, epsilon=3.0, unit="cell", participation="protected", most_claims=2)
    used = [budgets.sample_used(claims, seeded(seed)) for seed in range(30)]

    assert {int(chosen.sum()) for chosen in used} == {2}
    assert len({tuple(chosen.tolist()) for chosen in used}) == 3
    assert [one.epsilon for one in budgets.guarantees()] == [3.0, 6.0]


def cells(scale: Fraction, reach: int) -> np.ndarray:
    """Probabilities of ..., -reach, ..., reach, ... with both tails gathered."""
    q = math.exp(-1 / float(scale))
    inner = [(1 - q) / (1 + q) * q ** abs(z) for z in range(-reach, reach + 1)]
    tail = q ** (reach + 1) / (1 + q)
    return np.array([tail, *inner, tail])


@pytest.mark.parametrize(
    "scale",
    [Fraction(2), Fraction(7, 5), Fraction(2) / round_epsilon_down(0.7), Fraction(1, 2)],
    ids=str,
)
def test_noise_has_the_discrete_laplace_distribution(scale: Fraction) -> None:
    """100,000 draws pass a chi-square test at 1e-4: false-alarm rate 1e-4 a case, fixed seed."""
    reach = max(1, int(3 * scale))
    drawn = sample_discrete_laplace_array(scale, 100_000, seeded(11))
    counts = np.bincount(np.clip(drawn, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)

    assert chi_square_p_value(counts, cells(scale, reach)) > 1e-4


@given(st.fractions(min_value=Fraction(1, 50), max_value=100, max_denominator=1000))
def test_variance_is_that_of_the_devices_noise(scale: Fraction) -> None:
    """The variance agrees with that of the draw-by-draw sampler that devices use."""
    assert math.isclose(discrete_laplace_variance(scale), device.discrete_laplace_variance(scale), rel_tol=1e-12)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 1 << 62), min_size=1, max_size=50))
def test_uniform_integers_stay_below_their_bounds(bounds: list[int]) -> None:
    """Every integer is in 0 .. bound - 1, up to a bound of 2**62."""
    drawn = uniform_below(np.array(bounds), seeded(3))

    assert ((drawn >= 0) & (drawn < np.array(bounds))).all()


@pytest.mark.parametrize("unit", [1, 1 << 58])
def test_uniform_integers_are_uniform(unit: int) -> None:
    """60,000 draws below 6 units pass a chi-square test at 1e-4, with one word and with two; fixed seed."""
    counts = np.bincount(uniform_below(np.full(60_000, 6 * unit), seeded(4)) // unit, minlength=6)

    assert chi_square_p_value(counts, np.full(6, 1 / 6)) > 1e-4


@given(st.floats(1e-5, 20))
def test_a_budget_never_exceeds_what_was_asked(epsilon: float) -> None:
    """A budget is rounded down, by less than 2**-20."""
    assert 0 <= epsilon - float(round_epsilon_down(epsilon)) < 2**-20


def test_impossible_settings_are_refused() -> None:
    """No budget without a positive finite epsilon, no noise without a positive scale of moderate size."""
    for epsilon in (0.0, 1e-9, math.inf, math.nan):
        with pytest.raises(SettingsError, match="epsilon must be finite and at least 1e-6"):
            round_epsilon_down(epsilon)
    for scale in (Fraction(0), Fraction(-1), Fraction(1 << 40)):
        with pytest.raises(SettingsError, match="noise scale"):
            sample_discrete_laplace_array(scale, 1, seeded(1))
