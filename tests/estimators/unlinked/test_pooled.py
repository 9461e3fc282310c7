"""Pooled estimators of reports without names."""

import numpy as np
import pytest

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.estimators.unlinked.pooled_dawid_skene import PooledDawidSkene
from crowdveil.estimators.unlinked.pooled_gaussian import PooledGaussian
from crowdveil.mechanisms import QuantizedResponse, RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd, perturb_cells

LABELS = Categories(("a", "b", "c"))


def crowd(seed: int, tasks: int = 60, workers: int = 40, share: float = 0.5, ability: float = 0.7) -> tuple:
    """Answers of workers with one ability, and the truths."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, tasks, p=(0.6, 0.3, 0.1))
    task, worker = np.nonzero(rng.random((tasks, workers)) < share)
    answer = np.where(rng.random(len(task)) < ability, truth[task], rng.integers(0, 3, len(task)))
    names = np.array([f"t{k}" for k in range(tasks)]), np.array([f"w{k}" for k in range(workers)])
    return Reports(task, worker, answer, *names, LABELS), truth


def unlinked(reports: Reports, seed: int) -> Reports:
    """The same reports from other senders, drawn anew for every task."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(reports.task, minlength=len(reports.tasks))
    worker = np.concatenate([rng.permutation(len(reports.workers))[:count] for count in counts])
    return Reports(reports.task, worker, reports.value, reports.tasks, reports.workers, LABELS)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_senders_do_not_matter(epsilon):
    """Reports sent by others, task by task, give the same posterior."""
    channel = RandomizedResponse(alphabet=LABELS, epsilon=epsilon).channel()
    sent = perturb_cells(crowd(0)[0], channel, seeded(1))

    expected = PooledDawidSkene().fit(sent, channel=channel).posterior

    np.testing.assert_allclose(
        PooledDawidSkene().fit(unlinked(sent, 2), channel=channel).posterior, expected, atol=1e-9
    )


def test_a_step_equals_the_equations():
    """Without a channel, one more EM step written as loops leaves the converged posterior unchanged."""
    reports, _ = crowd(3)
    method = PooledDawidSkene(tolerance=1e-10)
    estimate = method.fit(reports)
    sums = np.full((3, 3), method.smoothing)
    for task, value in zip(reports.task, reports.value, strict=True):
        for truth in range(3):
            sums[truth, value] += estimate.posterior[task, truth]
    confusion = sums / sums.sum(axis=1, keepdims=True)
    prior = estimate.posterior.mean(axis=0)
    expected = np.tile(prior, (len(reports.tasks), 1))
    for task, value in zip(reports.task, reports.value, strict=True):
        expected[task] *= confusion[:, value]

    np.testing.assert_allclose(estimate.posterior, expected / expected.sum(axis=1, keepdims=True), atol=1e-6)


SCALE = Scale(0, 9)
PUBLIC = PooledGaussian(prior_mean=0.0, prior_deviation=1.0)


def sun(sparsity: float, cuts: tuple[int, ...], epsilon: float, seed: int = 0) -> tuple:
    """Sun's crowd behind blocks with protected participation: reports, channel, truths."""
    crowd = numeric_crowd(workers=2000, tasks=200, sparsity=sparsity, scale=SCALE, source=seeded(seed))
    channel = QuantizedResponse(alphabet=SCALE, epsilon=epsilon, cuts=cuts).channel()
    return perturb_cells(crowd.answers, channel, seeded(1000 + seed)), channel, crowd.truth


@pytest.mark.slow
@pytest.mark.parametrize(("sparsity", "cuts", "target"), [(0.9, (1,), 0.125), (0.5, (1, 2), 0.042)])
def test_suns_crowd_without_names(sparsity, cuts, target):
    """At local epsilon 3 the error is at most 0.125 (sparsity 0.9) and 0.042 (0.5), over two seeds; constant 0.36."""
    errors = []
    for seed in (0, 1):
        reports, channel, truth = sun(sparsity, cuts, 3.0, seed)
        errors.append(np.abs(PUBLIC.fit(reports, channel=channel).truth - truth).mean())

    assert np.mean(errors) <= target


def test_senders_of_numbers_do_not_matter():
    """Reports from other senders, drawn anew for every task, give the same truths."""
    reports, channel, _ = sun(0.9, (1,), 2.0)
    rng = np.random.default_rng(3)
    counts = np.bincount(reports.task, minlength=len(reports.tasks))
    worker = np.concatenate([rng.permutation(len(reports.workers))[:count] for count in counts])
    other = Reports(reports.task, worker, reports.value, reports.tasks, reports.workers, reports.alphabet)

    np.testing.assert_allclose(
        PUBLIC.fit(other, channel=channel).truth, PUBLIC.fit(reports, channel=channel).truth, atol=1e-6
    )


def test_participation_is_that_of_the_crowd():
    """The share of answered cells is found within 0.01, the same for every worker."""
    reports, channel, _ = sun(0.9, (1,), 3.0)
    found = PUBLIC.fit(reports, channel=channel).workers.participation

    assert len(set(found.tolist())) == 1
    assert found[0] == pytest.approx(0.1, abs=0.01)
