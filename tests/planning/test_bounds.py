"""The closed form against enumeration and against loops over reports."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.assignment import Assignment
from crowdveil.estimators import Gaussian
from crowdveil.mechanisms import QuantizedResponse, RandomizedResponse
from crowdveil.planning import Campaign, NumberCrowd, bounds
from crowdveil.planning.bayes_error import known_error, report_table
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb, perturb_cells, perturb_in_rounds
from tests.planning.campaigns import SCALE, of_labels, of_numbers

PRIOR = (0.5, 0.3, 0.2)
"""Unequal, so that no two truths tie."""


def table_by_loops(campaign: Campaign, channel: Channel, kind: int, truth: int) -> list[float]:
    """P(report | truth) of one kind, symbol by symbol in the order of the reports' names, then NULL or silence."""
    answers, rate, table = campaign.crowd.tables()[kind, truth], campaign.rate, channel.probabilities
    found = []
    for name in channel.report_alphabet.names:
        column = channel.outputs.index(name)
        chance = sum(rate * answer * table[label, column] for label, answer in enumerate(answers))
        found.append(chance + ((1 - rate) * table[len(answers), column] if channel.participation == "protected" else 0))
    return [*found, 1 - sum(found)]


@pytest.mark.parametrize("participation", ["protected", "public"])
@pytest.mark.parametrize("make", [of_labels, of_numbers])
def test_report_table_equals_its_definition(make, participation) -> None:  # type: ignore[no-untyped-def]
    """Every entry is the sum over answers, and over NULL where it is protected, written as loops."""
    campaign = make(participation=participation)
    channel = QuantizedResponse.for_objective(campaign.cell_objective, 1.5).channel()
    found = report_table(campaign.crowd.tables(), campaign.rate, channel)

    expected = [
        [table_by_loops(campaign, channel, kind, truth) for truth in range(found.shape[1])] for kind in range(2)
    ]

    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_error_of_known_workers_equals_enumeration() -> None:
    """Bayes error of 5 workers through a channel, all 3^5 outcomes enumerated, against 64 x 48 drawn tasks.

    The draws' standard error is `noise`; five of it allow one false alarm in 1e6. One kind: nameless is the same.
    """
    campaign = of_labels(labels=2, workers=5, rate=0.6, abilities=(0.8,), prior=(0.6, 0.4))
    channel = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=2.0).channel()
    chances = report_table(campaign.crowd.tables(), 0.6, channel)[0]
    right = 0.0
    for reports in product(range(3), repeat=5):
        right += max(
            prior * math.prod(chances[truth, report] for report in reports) for truth, prior in enumerate((0.6, 0.4))
        )

    found = bounds(campaign, channel)

    assert abs(found.known - (1 - right)) < 5 * math.sqrt(found.noise)
    assert found.nameless == pytest.approx(found.known, abs=1e-12)


@pytest.mark.parametrize("campaign", [of_labels(), of_numbers()])
def test_knowing_the_workers_helps(campaign: Campaign) -> None:
    """Known workers leave a smaller error than nameless ones; more workers and no channel a smaller one still."""
    channel = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=1.0).channel()
    found, plain = bounds(campaign, channel), bounds(campaign, None)

    assert plain.known < found.known < found.nameless < campaign.crowd.constant_error


@pytest.mark.parametrize("per_task", [15, 6])
def test_known_error_equals_the_posterior_by_loops(per_task: int) -> None:
    """The mean mistake of the exact posterior is that of products over all assigned cells, NULL reports too."""
    campaign = of_labels(tasks=25, workers=15, prior=PRIOR)
    crowd = campaign.crowd
    channel = RandomizedResponse(alphabet=crowd.alphabet, epsilon=1.5).channel()
    made = crowd.make(workers=15, tasks=25, rate=0.5, source=seeded(5))
    assignment = Assignment.balanced(made.answers.tasks, made.answers.workers, per_task, seeded(7))
    asked = np.zeros((25, 15), dtype=bool)
    asked[assignment.task, assignment.worker] = True
    inside = asked[made.answers.task, made.answers.worker]
    columns = {name: getattr(made.answers, name)[inside] for name in ("task", "worker", "value")}
    reports = perturb_cells(replace(made.answers, **columns), channel, seeded(6), assignment=assignment)
    kind = np.searchsorted(crowd.kinds, made.quality)
    chances = report_table(crowd.tables(), 0.5, channel)
    seen = np.full((25, 15), 3)
    seen[reports.task, reports.worker] = reports.value
    wrong = 0
    for task, truth in enumerate(crowd.truths_of(made)):
        likelihood = list(PRIOR)
        for worker in np.flatnonzero(asked[task]):
            likelihood = [likelihood[z] * chances[kind[worker], z, seen[task, worker]] for z in range(3)]
        wrong += int(np.argmax(likelihood)) != truth

    found = known_error(campaign, channel, reports, kind, crowd.truths_of(made), assignment)

    assert wrong > 0
    assert found == pytest.approx(wrong / 25)


def test_exact_posterior_of_numbers_is_that_of_the_estimator() -> None:
    """On a scale, the error of known workers agrees with `Gaussian.fit_known` on the same reports, within 0.02."""
    campaign = of_numbers(tasks=60)
    crowd = campaign.crowd
    mechanism = RandomizedResponse(alphabet=SCALE, epsilon=3.0)
    made = crowd.make(workers=60, tasks=60, rate=0.5, source=seeded(7))
    reports = perturb(made.answers, mechanism, seeded(8))
    kind = np.searchsorted(crowd.kinds, made.quality)
    found = known_error(campaign, mechanism.channel(), reports, kind, crowd.truths_of(made))
    fitted = campaign.estimator.fit_known(  # type: ignore[attr-defined]
        reports, sigma=made.quality, participation=0.5, channel=mechanism.channel(), prior=campaign.prior
    )

    assert 0.05 < found < crowd.constant_error
    assert found == pytest.approx(np.abs(fitted.truth - made.truth).mean(), abs=0.02)


def test_known_error_reads_every_channel_of_rounds() -> None:
    """Through rounds, the error of known workers is that of products over all cells, each through its own channel."""
    campaign = of_numbers(workers=16, tasks=12, rounds=2)
    crowd = campaign.crowd
    assert isinstance(crowd, NumberCrowd)
    made = crowd.make(workers=16, tasks=12, rate=0.5, source=seeded(5))
    first = QuantizedResponse(alphabet=SCALE, epsilon=3.0, cuts=(1, 3)).channel()
    sent = perturb_in_rounds(made.answers, first, seeded(6), epsilon=3.0, rounds=2, estimator=Gaussian())
    assert isinstance(sent.channel, ChannelTable)
    kind = np.searchsorted(crowd.kinds, made.quality[sent.reports.workers - 1])
    of_task, of_worker = sent.channel.groups(sent.reports.tasks, sent.reports.workers)
    tables = [report_table(crowd.tables(), 0.5, channel) for channel in sent.channel.channels]
    names = np.array(sent.reports.alphabet.names)  # type: ignore[union-attr]
    said = {
        (t, w): names[v] for t, w, v in zip(sent.reports.task, sent.reports.worker, sent.reports.value, strict=True)
    }
    losses = []
    for task in range(12):
        scores = crowd.log_prior.copy()
        for worker in range(16):
            index = sent.channel.choice[of_worker[worker]][of_task[task]]
            outputs = sent.channel.channels[index].report_alphabet.names
            symbol = outputs.index(said[task, worker]) if (task, worker) in said else len(outputs)
            scores += np.log(tables[index][kind[worker], :, symbol])
        losses.append(float(crowd.losses(scores[None], made.truth[task : task + 1])[0]))

    found = known_error(campaign, sent.channel, sent.reports, kind, made.truth)

    assert found == pytest.approx(np.mean(losses))


def test_rounds_are_worth_more_than_one_cut() -> None:
    """Known workers asked in rounds err less than through one cut, and as much as in simulated rounds of the same kind.

    Eight simulated campaigns of 20 tasks, their cuts from inference: the means agree within five standard errors.
    """
    campaign = of_numbers(workers=80, sigmas=(0.5, 1.5), rounds=3)
    channel = QuantizedResponse(alphabet=SCALE, epsilon=3.0, cuts=(2,)).channel()
    found, at_once = bounds(campaign, channel), bounds(replace(campaign, rounds=1), channel)
    errors = []
    for run in range(8):
        made = campaign.crowd.make(workers=80, tasks=20, rate=0.5, source=seeded(300 + run))
        sent = perturb_in_rounds(
            made.answers,
            channel,
            seeded(400 + run),
            epsilon=3.0,
            rounds=3,
            estimator=Gaussian(tolerance=0.05),
            prior=campaign.prior,
        )
        kind = np.searchsorted(campaign.crowd.kinds, made.quality[sent.reports.workers - 1])
        errors.append(known_error(campaign, sent.channel, sent.reports, kind, made.truth))

    assert found.known < 0.8 * at_once.known
    assert found.known <= found.nameless
    assert abs(float(np.mean(errors)) - found.known) < 5 * np.std(errors, ddof=1) / np.sqrt(8)
