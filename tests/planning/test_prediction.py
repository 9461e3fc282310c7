"""Predictions against measured errors, departures of real sets, and errors as text."""

import csv
import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from crowdveil.answers.assignment import Assignment
from crowdveil.inference.scores.metrics import score
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.planning import PlannedCampaign, Prediction, predict_campaign_error, prediction
from crowdveil.planning.plan_sentences import expected_error_text, real_crowd_interval, two_digits
from crowdveil.planning.prediction import (
    DEPARTURES,
    LABEL_DEPARTURES,
    Departure,
    predict_from_bayes_errors,
    widen_interval,
)
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells
from tests.planning.campaigns import of_labels, of_numbers

ASSIGNED = of_labels(tasks=120, rate=0.2, assigned_per_task=10)


def measured(campaign: PlannedCampaign, mechanism: RandomizedResponse, seed: int) -> float:
    """Return the error of one complete campaign."""
    made = campaign.crowd.simulate(
        workers=campaign.workers,
        tasks=campaign.tasks,
        rate=campaign.answered_cell_share,
        source=seeded(seed),
    )
    answers, assignment, channel = made.answers, None, mechanism.channel()
    if campaign.assigned_per_task is not None:
        assignment = Assignment.balanced(answers.tasks, answers.workers, campaign.assigned_per_task, seeded(seed + 2))
        asked = set(zip(assignment.task.tolist(), assignment.worker.tolist(), strict=True))
        cells = zip(answers.task.tolist(), answers.worker.tolist(), strict=True)
        inside = np.array([cell in asked for cell in cells])
        columns = {name: getattr(answers, name)[inside] for name in ("task", "worker", "value")}
        answers = replace(answers, **columns)
    reports = perturb_cells(answers, channel, seeded(seed + 1), assignment=assignment)
    estimate = campaign.estimator_of_simulated_fits.fit(
        reports, channel=channel, assignment=assignment, prior=campaign.prior
    )
    return score(estimate, made.gold).error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("campaign", "epsilon"), [(of_labels(), 2.0), (of_labels(participation="public"), 1.0), (ASSIGNED, 3.0)]
)
def test_measured_errors_lie_in_the_interval(campaign: PlannedCampaign, epsilon: float) -> None:
    """Of 40 fresh campaigns at least 30 lie in the 90 % interval (false alarm below 0.002 if exactly 90 % do)."""
    mechanism = RandomizedResponse(
        alphabet=campaign.crowd.alphabet, epsilon=epsilon, participation=campaign.participation
    )
    found = predict_campaign_error(campaign, mechanism)
    errors = [measured(campaign, mechanism, 500 + 3 * run) for run in range(40)]

    assert sum(found.low <= error <= found.high for error in errors) >= 30
    assert found.high - found.low < 0.4
    assert found.known_classes <= found.error < campaign.crowd.constant_error
    assert 1 <= found.simulated <= 3
    assert found.simulated_tasks == campaign.tasks


def test_one_simulation_is_enough_if_the_target_is_out_of_reach() -> None:
    """One simulation is made if even known classes miss the target, with a wider interval and all callbacks."""
    campaign, calls = of_labels(workers=12), list[int]()
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=1.0)
    whole = predict_campaign_error(campaign, mechanism, seeds=3)
    found = predict_campaign_error(campaign, mechanism, target=0.01, on_simulation=lambda: calls.append(1))

    assert (3, 1, 3) == (whole.simulated, found.simulated, len(calls))
    assert found.low <= whole.error <= found.high


def test_ends_of_an_interval_are_whole_tasks() -> None:
    """For labels both ends are whole numbers of wrong tasks, and the error lies between them."""
    campaign = of_labels()
    found = predict_campaign_error(campaign, None, seeds=2)

    assert found.low * 60 == pytest.approx(round(found.low * 60))
    assert found.high * 60 == pytest.approx(round(found.high * 60))
    assert found.low <= found.error <= found.high


def test_some_of_many_tasks_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit on reports reduces the tasks, never below the minimum; the interval is then wider."""
    campaign = of_numbers(tasks=40)
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=2.0)
    whole = predict_campaign_error(campaign, mechanism, seeds=2)
    monkeypatch.setattr(prediction, "MAX_REPORTS_NUMBERS", 1)
    part = predict_campaign_error(campaign, mechanism, seeds=2)

    assert (40, 10) == (whole.simulated_tasks, part.simulated_tasks)
    assert part.high - part.low > whole.high - whole.low


def test_predictions_without_simulation_lie_between_the_bayes_errors() -> None:
    """Relative excess 0 is the error with known classes, 1 that with unknown ones, and it can be read back."""
    campaign = of_labels(workers=20)
    channel = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=2.0).channel()
    ends = [predict_from_bayes_errors(campaign, channel, share) for share in (0.0, 1.0)]

    assert ends[0].error == ends[0].known_classes < ends[1].error == pytest.approx(ends[1].unknown_classes)
    assert predict_from_bayes_errors(campaign, channel, 0.3).consensus_position == pytest.approx(0.3)
    assert ends[0].simulated == 0


def test_groups_are_simulated_if_assignments_are_unsupported() -> None:
    """Numbers with 15 of 60 workers per task: one group of 15 workers and 5 tasks is simulated."""
    campaign = of_numbers(assigned_per_task=15, rate=0.2)
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=4.0)
    found = predict_campaign_error(campaign, mechanism, seeds=2)

    assert (
        campaign.fits_worker_groups_separately != campaign.estimator_of_simulated_fits.capabilities.reads_channel_tables
    )
    assert found.simulated_tasks == (5 if campaign.fits_worker_groups_separately else 20)
    assert found.error < campaign.crowd.constant_error


ROOT = Path(__file__).parent.parent.parent
MEASURED = ROOT / "experiments" / "utility" / "results" / "real_sets.csv"
PAGE = (ROOT / "experiments" / "utility" / "README.md").read_text("utf-8")


class PlannedCase(NamedTuple):
    """Predicted error of a real set under one condition, its interval if the crowd is as assumed, and the measured one.

    `constant` is the planned error of the best public constant.
    """

    planned: float
    low: float
    high: float
    constant: float
    measured: float


def departure_of(name: str, cases: Sequence[PlannedCase]) -> Departure:
    """Return the departure of a set from its plans."""
    below = [(case.low - case.measured) / case.low for case in cases if case.low > 0]
    above = [(case.measured - case.high) / (case.constant - case.high) for case in cases if case.high < case.constant]
    underestimated = sum(case.measured > case.planned for case in cases)
    return Departure(name, max([0.0, *below]), max([0.0, *above]), underestimated, len(cases))


def cases() -> dict[str, list[PlannedCase]]:
    """Return plans and measured errors of each real set."""
    found: dict[str, list[PlannedCase]] = {}
    with MEASURED.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            columns = (row[name] for name in ("planned", "low", "high", "planned_constant", "measured"))
            found.setdefault(row["set"], []).append(PlannedCase(*map(float, columns)))
    return found


def without(name: str) -> list[Departure]:
    """Return the departures of all other sets from which intervals of such answers are widened."""
    labels = name in {one.name for one in LABEL_DEPARTURES}
    return [one for one in (LABEL_DEPARTURES if labels else DEPARTURES) if one.name != name]


def covered(case: PlannedCase, departures: list[Departure]) -> bool:
    """Return whether the measured error lies in the widen_interval interval."""
    low, high = widen_interval(case.low, case.high, case.constant, departures)
    return low <= case.measured <= high


def rounded_up(one: Departure) -> Departure:
    """Return a departure in thousandths, rounded up."""
    up = {side: math.ceil(getattr(one, side) * 1000 - 1e-9) / 1000 for side in ("below", "above")}
    return replace(one, **up)


def test_departures_are_those_of_the_experiment() -> None:
    """`DEPARTURES` follows from the measured errors, set by set, and is documented with the errors."""
    assert list(DEPARTURES) == [rounded_up(departure_of(name, found)) for name, found in cases().items()]
    for one in DEPARTURES:
        found = cases()[one.name]
        figures = " | ".join(f"{case.planned:.3g} | {case.measured:.3g}" for case in (found[1], found[4]))
        inside = sum(covered(case, without(one.name)) for case in found)
        assert f"| {one.name} | {figures} | {one.below:.2f} | {one.above:.2f} | {inside} |" in PAGE


def test_widened_intervals_cover_the_real_sets() -> None:
    """All 65 measured errors lie in the widened intervals, 8 of them in the intervals for a crowd as assumed."""
    every = [case for found in cases().values() for case in found]

    assert 65 == len(every)
    assert 8 == sum(case.low <= case.measured <= case.high for case in every)
    assert 65 == sum(covered(case, list(DEPARTURES)) for case in every)


def test_coverage_of_a_left_out_set_is_documented() -> None:
    """Widened by the other sets only, intervals cover 60 of 65 errors, and all five of 10 of 13 sets."""
    inside = {name: [covered(case, without(name)) for case in found] for name, found in cases().items()}
    whole, every = sum(map(all, inside.values())), sum(sum(one) for one in inside.values())

    assert (10, 60) == (whole, every)
    assert f"{every} of 65 measured errors, and all five of {whole} of 13 sets" in PAGE


def test_an_interval_is_widened_by_the_largest_departures() -> None:
    """The ends of 0.1 to 0.3 move by half of the lower end, and by a quarter of the distance to the constant 0.5."""
    sets = [
        Departure("a", 0.5, 0.0, 0, 1),
        Departure("b", 0.1, 0.25, 1, 1),
    ]

    assert (pytest.approx(0.05), pytest.approx(0.35)) == widen_interval(0.1, 0.3, 0.5, sets)
    assert (0.1, 0.3) == widen_interval(0.1, 0.3, 0.5, [])
    assert (pytest.approx(0.3), 0.7) == widen_interval(0.6, 0.7, 0.5, sets)


FOUND = Prediction(
    error=0.12345, consensus_error=0.12345, low=0.0987, high=0.1501, real_low=0.0123, real_high=0.4567, less_than=None,
    information=0.1,
    known_classes=0.1, unknown_classes=0.2, simulated=1, simulated_tasks=60,
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "nearest", "down", "up"),
    [
        (0.0, "0", "0", "0"),
        (0.1, "0.10", "0.10", "0.10"),
        (0.123, "0.12", "0.12", "0.13"),
        (0.0996, "0.10", "0.099", "0.10"),
        (0.00021, "0.00021", "0.00021", "0.00021"),
        (1.0, "1.0", "1.0", "1.0"),
        (39.4, "39", "39", "40"),
        (12345.6, "12,000", "12,000", "13,000"),
    ],
)
def test_numbers_have_two_digits(value: float, nearest: str, down: str, up: str) -> None:
    """A number has two significant digits in each direction of rounding, and no exponent."""
    assert nearest == two_digits(value)
    assert (down, up) == (two_digits(value, ROUND_FLOOR), two_digits(value, ROUND_CEILING))


def test_unresolved_errors_are_bounds() -> None:
    """A bound replaces the error, rounded up; ends of intervals are rounded outwards."""
    assert ("0.12", "0.012 to 0.46") == (expected_error_text(FOUND), real_crowd_interval(FOUND))
    assert "less than 0.0022" == expected_error_text(replace(FOUND, error=4.38e-10, less_than=0.00213))
    assert "< 0.0022" == expected_error_text(replace(FOUND, error=4.38e-10, less_than=0.00213), "<")


def test_a_bound_follows_from_simulated_and_drawn_tasks() -> None:
    """Without a wrong task among n, the bound is 3 / n, or the Bayes error with unknown classes if that is less."""
    campaign = of_labels(workers=300)
    found = predict_campaign_error(campaign, RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=8.0))
    simulated = 2.9957 / (found.simulated * found.simulated_tasks)

    assert found.error < 1e-6
    assert min(max(found.unknown_classes, 2.9957 / 3072), simulated) == pytest.approx(found.less_than, rel=1e-3)
    assert found.real_high >= (found.less_than or 1.0)


def test_predictions_without_simulation_have_a_bound() -> None:
    """Without simulation, the 3072 drawn tasks resolve an error; a resolved error has no bound."""
    campaign = of_labels(workers=300)
    channel = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=8.0).channel()
    noisy = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=1.0).channel()

    assert predict_from_bayes_errors(campaign, channel, 0.0).less_than == pytest.approx(2.9957 / 3072, rel=1e-3)
    assert predict_from_bayes_errors(of_labels(), noisy, 0.0).less_than is None


def test_errors_of_numbers_are_resolved_to_the_grid_of_truths() -> None:
    """Grid points are an eighth of a step apart: a mean absolute error below 1/32 is shown as that bound."""
    found = predict_from_bayes_errors(of_numbers(workers=100_000), None, 0.0)

    assert found.error < 1 / 32
    assert found.less_than == pytest.approx(1 / 32)
    assert predict_from_bayes_errors(of_numbers(), None, 0.5).less_than is None
