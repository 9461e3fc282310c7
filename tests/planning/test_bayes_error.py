"""Bayes errors against enumeration, and against loops over reports."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from crowdveil.answers.assignment import Assignment
from crowdveil.channels.channel import DENOMINATOR, Channel
from crowdveil.estimators.gaussian.estimator import fit_known
from crowdveil.mechanisms import QuantizedResponse, RandomizedResponse
from crowdveil.planning import PlannedCampaign, bayes_errors
from crowdveil.planning.bayes_error import known_classes_error, report_given_truth
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells, perturb_reports
from tests.planning.campaigns import SCALE, of_labels, of_numbers

PRIOR = (0.5, 0.3, 0.2)
"""Unequal, so that no two labels tie."""


def table_by_loops(campaign: PlannedCampaign, channel: Channel, kind: int, truth: int) -> list[float]:
    """P(report | truth) of one kind, symbol by symbol in the order of the reports' names, then NULL or silence."""
    answers, rate, table = (
        campaign.crowd.answer_probabilities()[kind, truth],
        campaign.answered_cell_share,
        channel.probabilities,
    )
    found = []
    for name in channel.report_alphabet.names:
        column = channel.outputs.index(name)
        chance = sum(rate * answer * table[label, column] for label, answer in enumerate(answers))
        found.append(chance + ((1 - rate) * table[len(answers), column] if channel.participation == "protected" else 0))
    return [*found, 1 - sum(found)]


@pytest.mark.parametrize("participation", ["protected", "public"])
@pytest.mark.parametrize("make", [of_labels, of_numbers])
def test_report_table_equals_its_definition(make, participation) -> None:
    """Every entry is the sum over answers, and over protected NULL, written as loops."""
    campaign = make(participation=participation)
    channel = QuantizedResponse.for_objective(campaign.own_cell_objective, 1.5).channel()
    found = report_given_truth(campaign.crowd.answer_probabilities(), campaign.answered_cell_share, channel)

    expected = [
        [table_by_loops(campaign, channel, kind, truth) for truth in range(found.shape[1])] for kind in range(2)
    ]

    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_error_of_known_workers_equals_enumeration() -> None:
    """Bayes error of 5 workers through a channel, all 3^5 outcomes enumerated, against 64 x 48 drawn tasks.

    The standard error of the draws is the root of `sampling_variance`; five of
    it allow one false alarm in 1e6. With one class, both errors are equal.
    """
    campaign = of_labels(labels=2, workers=5, rate=0.6, abilities=(0.8,), prior=(0.6, 0.4))
    channel = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=2.0).channel()
    chances = report_given_truth(campaign.crowd.answer_probabilities(), 0.6, channel)[0]
    right = 0.0
    for reports in product(range(3), repeat=5):
        right += max(
            prior * math.prod(chances[truth, report] for report in reports) for truth, prior in enumerate((0.6, 0.4))
        )

    found = bayes_errors(campaign, channel)

    assert abs(found.known_classes - (1 - right)) < 5 * math.sqrt(found.sampling_variance)
    assert found.unknown_classes == pytest.approx(found.known_classes, abs=1e-12)


@pytest.mark.parametrize("campaign", [of_labels(), of_numbers()])
def test_known_classes_reduce_the_error(campaign: PlannedCampaign) -> None:
    """Known classes give a smaller error than unknown ones, and no channel a still smaller one."""
    channel = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=1.0).channel()
    found, plain = bayes_errors(campaign, channel), bayes_errors(campaign, None)

    assert plain.known_classes < found.known_classes < found.unknown_classes < campaign.crowd.constant_error


@pytest.mark.parametrize("per_task", [15, 6])
def test_known_error_equals_the_posterior_by_loops(per_task: int) -> None:
    """The error equals that of products over all assigned cells, where NULL reports tell answers apart too."""
    campaign = of_labels(tasks=25, workers=15, prior=PRIOR)
    crowd = campaign.crowd
    eighths = (4, 1, 1, 2), (1, 4, 2, 1), (1, 1, 3, 3), (1, 1, 1, 5)
    rows = tuple(tuple(DENOMINATOR // 8 * entry for entry in row) for row in eighths)
    channel = Channel(crowd.alphabet, "protected", (*crowd.alphabet.names, "NULL"), rows)
    made = crowd.simulate(workers=15, tasks=25, rate=0.5, source=seeded(5))
    assignment = Assignment.balanced(made.answers.tasks, made.answers.workers, per_task, seeded(7))
    asked = np.zeros((25, 15), dtype=bool)
    asked[assignment.task, assignment.worker] = True
    inside = asked[made.answers.task, made.answers.worker]
    columns = {name: getattr(made.answers, name)[inside] for name in ("task", "worker", "value")}
    reports = perturb_cells(replace(made.answers, **columns), channel, seeded(6), assignment=assignment)
    kind = np.searchsorted(crowd.qualities, made.quality)
    chances = report_given_truth(crowd.answer_probabilities(), 0.5, channel)
    seen = np.full((25, 15), 3)
    seen[reports.task, reports.worker] = reports.value
    wrong = 0
    for task, truth in enumerate(crowd.truths_of(made)):
        likelihood = list(PRIOR)
        for worker in np.flatnonzero(asked[task]):
            likelihood = [likelihood[z] * chances[kind[worker], z, seen[task, worker]] for z in range(3)]
        wrong += int(np.argmax(likelihood)) != truth

    found = known_classes_error(campaign, channel, reports, kind, crowd.truths_of(made), assignment)

    assert wrong > 0
    assert found == pytest.approx(wrong / 25)


def test_exact_posterior_of_numbers_is_that_of_the_estimator() -> None:
    """On a scale, the error agrees with `Gaussian.fit_known` on the same reports within 0.02."""
    campaign: Any = of_numbers(tasks=60)
    crowd = campaign.crowd
    mechanism = RandomizedResponse(alphabet=SCALE, epsilon=3.0)
    made = crowd.simulate(workers=60, tasks=60, rate=0.5, source=seeded(7))
    reports = perturb_reports(made.answers, mechanism, seeded(8))
    kind = np.searchsorted(crowd.qualities, made.quality)
    found = known_classes_error(campaign, mechanism.channel(), reports, kind, crowd.truths_of(made))
    fitted = fit_known(
        campaign.estimator_of_simulated_fits,
        reports,
        sigma=made.quality,
        participation=0.5,
        channel=mechanism.channel(),
        prior=campaign.prior,
    )

    assert 0.05 < found < crowd.constant_error
    assert found == pytest.approx(np.abs(fitted.truth - made.truth).mean(), abs=0.02)
