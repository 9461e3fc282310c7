"""Pooled gaussian: posterior by brute force, blindness to worker ids, and Sun's crowd."""

import numpy as np
import pytest

from crowdveil.channels.alphabet import Scale
from crowdveil.data.reports import Reports
from crowdveil.estimators.unlinked.pooled_gaussian import PooledGaussian
from crowdveil.mechanisms import QuantizedResponse
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd, perturb_cells

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


def test_senders_do_not_matter():
    """Reports from other senders, drawn anew for every task, give the same truths."""
    reports, channel, _ = sun(0.9, (1,), 2.0)
    rng = np.random.default_rng(3)
    counts = np.bincount(reports.task, minlength=len(reports.tasks))
    worker = np.concatenate([rng.permutation(len(reports.workers))[:count] for count in counts])
    other = Reports(reports.task, worker, reports.value, reports.tasks, reports.workers, reports.alphabet)

    np.testing.assert_allclose(
        PUBLIC.fit(other, channel=channel).truth, PUBLIC.fit(reports, channel=channel).truth, atol=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_little_information_costs_little(epsilon):
    """At a small epsilon the error exceeds that of the constant 0 by at most 0.02."""
    reports, channel, truth = sun(0.9, (1,), epsilon)

    assert np.abs(PUBLIC.fit(reports, channel=channel).truth - truth).mean() <= np.abs(truth).mean() + 0.02


def test_participation_is_that_of_the_crowd():
    """The share of answered cells is found within 0.01, the same for every worker."""
    reports, channel, _ = sun(0.9, (1,), 3.0)
    found = PUBLIC.fit(reports, channel=channel).workers.participation

    assert len(set(found.tolist())) == 1
    assert found[0] == pytest.approx(0.1, abs=0.01)
