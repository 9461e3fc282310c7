"""Predictions, and whether they come true."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil.data.assignment import Assignment
from crowdveil.estimators import Gaussian
from crowdveil.evaluation.metrics import score
from crowdveil.mechanisms import QuantizedResponse, RandomizedResponse
from crowdveil.planning import Campaign, predict
from crowdveil.planning import simulation as trials_module
from crowdveil.planning.simulation import closed_form, simulated_tasks
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells, perturb_in_rounds
from tests.planning.campaigns import of_labels, of_numbers

ASSIGNED = of_labels(tasks=120, rate=0.2, assigned_per_task=10)


def measured(campaign: Campaign, mechanism: RandomizedResponse, seed: int) -> float:
    """The error of one whole campaign."""
    made = campaign.crowd.make(workers=campaign.workers, tasks=campaign.tasks, rate=campaign.rate, source=seeded(seed))
    answers, assignment, channel = made.answers, None, mechanism.channel()
    if campaign.assigned_per_task is not None:
        assignment = Assignment.balanced(answers.tasks, answers.workers, campaign.assigned_per_task, seeded(seed + 2))
        asked = set(zip(assignment.task.tolist(), assignment.worker.tolist(), strict=True))
        cells = zip(answers.task.tolist(), answers.worker.tolist(), strict=True)
        inside = np.array([cell in asked for cell in cells])
        columns = {name: getattr(answers, name)[inside] for name in ("task", "worker", "value")}
        answers = replace(answers, **columns)
    reports = perturb_cells(answers, channel, seeded(seed + 1), assignment=assignment)
    estimate = campaign.estimator.fit(reports, channel=channel, assignment=assignment, prior=campaign.prior)
    return score(estimate, made.gold).error


@pytest.mark.parametrize(
    ("campaign", "epsilon"), [(of_labels(), 2.0), (of_labels(participation="public"), 1.0), (ASSIGNED, 3.0)]
)
def test_measured_errors_lie_in_the_interval(campaign: Campaign, epsilon: float) -> None:
    """Of 40 fresh campaigns at least 30 lie in the 90 % interval (false alarm below 0.002 if exactly 90 % do)."""
    mechanism = RandomizedResponse(
        alphabet=campaign.crowd.alphabet, epsilon=epsilon, participation=campaign.participation
    )
    found = predict(campaign, mechanism)
    errors = [measured(campaign, mechanism, 500 + 3 * run) for run in range(40)]

    assert sum(found.low <= error <= found.high for error in errors) >= 30
    assert found.high - found.low < 0.4
    assert found.known <= found.error < campaign.crowd.constant_error
    assert 1 <= found.simulated <= 3
    assert found.simulated_tasks == campaign.tasks


def test_measured_errors_in_rounds_lie_in_the_interval() -> None:
    """Of 12 fresh campaigns in 3 rounds at least 8 lie in the 90 % interval (false alarm below 0.005).

    The middle is below what the same workers reach in one round.
    """
    campaign = of_numbers(workers=90, sigmas=(0.5, 1.5), rounds=3)
    mechanism = QuantizedResponse(alphabet=campaign.crowd.alphabet, epsilon=3.0, cuts=(2,))
    found, at_once = predict(campaign, mechanism), predict(replace(campaign, rounds=1), mechanism)
    errors = []
    for run in range(12):
        made = campaign.crowd.make(workers=90, tasks=20, rate=campaign.rate, source=seeded(900 + run))
        sent = perturb_in_rounds(
            made.answers,
            mechanism.channel(),
            seeded(800 + run),
            epsilon=3.0,
            rounds=3,
            estimator=Gaussian(),
            prior=campaign.prior,
        )
        estimate = Gaussian().fit(sent.reports, channel=sent.channel, prior=campaign.prior)
        errors.append(score(estimate, made.gold).error)

    assert sum(found.low <= error <= found.high for error in errors) >= 8
    assert found.error < 0.8 * at_once.error
    assert found.high < at_once.high


def test_one_simulation_is_enough_where_it_cannot_matter() -> None:
    """A needed error that even known workers miss ends at one simulation, with a wider interval and as many ticks."""
    campaign, ticks = of_labels(workers=12), list[int]()
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=1.0)
    whole = predict(campaign, mechanism, seeds=3)
    found = predict(campaign, mechanism, needed=0.01, tick=lambda: ticks.append(1))

    assert (3, 1, 3) == (whole.simulated, found.simulated, len(ticks))
    assert found.low <= whole.error <= found.high


def test_ends_of_an_interval_are_errors_that_can_be_measured() -> None:
    """For labels both ends are whole numbers of wrong tasks, and the error lies between them."""
    campaign = of_labels()
    found = predict(campaign, None, seeds=2)

    assert found.low * 60 == pytest.approx(round(found.low * 60))
    assert found.high * 60 == pytest.approx(round(found.high * 60))
    assert found.low <= found.error <= found.high


def test_a_part_of_the_tasks_is_simulated_where_all_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are cut to what the limit of reports allows, never below the fewest; the interval is then wider."""
    campaign = of_numbers(tasks=40)
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=2.0)
    whole = predict(campaign, mechanism, seeds=2)
    monkeypatch.setattr(trials_module, "REPORTS_OF_NUMBERS", 1)
    part = predict(campaign, mechanism, seeds=2)

    assert (40, 10) == (whole.simulated_tasks, part.simulated_tasks)
    assert part.high - part.low > whole.high - whole.low


def test_reports_per_task_are_counted() -> None:
    """With 1 report allowed per worker, as many tasks are simulated as each worker makes reports on one."""
    campaign = of_labels(tasks=10_000, workers=1_000, rate=0.5, participation="public")

    assert trials_module.REPORTS_OF_LABELS // 500 == simulated_tasks(campaign, None)


def test_the_closed_form_lies_between_known_and_nameless_workers() -> None:
    """Share 0 is the error of known workers, share 1 that of nameless ones, and the share can be read back."""
    campaign = of_labels(workers=20)
    channel = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=2.0).channel()
    ends = [closed_form(campaign, channel, share) for share in (0.0, 1.0)]

    assert ends[0].error == ends[0].known < ends[1].error == pytest.approx(ends[1].nameless)
    assert closed_form(campaign, channel, 0.3).share == pytest.approx(0.3)
    assert ends[0].simulated == 0


def test_groups_are_simulated_where_no_assignment_is_read() -> None:
    """Numbers with 15 of 60 workers per task: one group of 15 workers and 5 tasks stands for all four."""
    campaign = of_numbers(assigned_per_task=15, rate=0.2)
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=4.0)
    found = predict(campaign, mechanism, seeds=2)

    assert campaign.grouped != campaign.estimator.capabilities.reads_channel_tables
    assert found.simulated_tasks == (5 if campaign.grouped else 20)
    assert found.error < campaign.crowd.constant_error
