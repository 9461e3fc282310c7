"""Where reports hold little information, no expectation-maximization may do worse than the majority vote.

Wang & Xu's case at the size of Duchenne: 64 workers, 2,134 tasks, 17,729 answers of two labels, abilities uniform on
[0.4, 0.9], answers behind randomized response. Seeds are fixed; over seeds an error has a deviation of about 0.012.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

from crowdveil import DawidSkene, MajorityVote, OneCoin, RandomizedResponse
from crowdveil.channels.alphabet import Categories
from crowdveil.estimators import Estimator
from crowdveil.inference.scores import metrics
from crowdveil.published import PrivateDawidSkene
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, perturb_reports

SEEDS = 3
SHRUNK = PrivateDawidSkene(shrinkage=5.0, tolerance=1e-4)
METHODS: tuple[Estimator[Any, Any], ...] = (DawidSkene(tolerance=1e-4), OneCoin(tolerance=1e-4), SHRUNK)


def counts(generator: np.random.Generator, workers: int) -> np.ndarray:
    """Draw how many answers each worker gives: log-normal shares of 17,729."""
    share = generator.lognormal(0.0, 1.0, workers)
    return 17_729 * share / share.sum()


@cache
def scores(method: Estimator[Any, Any], epsilon: float) -> tuple[float, float]:
    """Return error and log-loss, means over seeds."""
    found = []
    for seed in range(SEEDS):
        crowd = categorical_crowd(
            workers=64,
            tasks=2134,
            labels=Categories(("0", "1")),
            answers_per_worker=counts,
            ability=lambda generator, size: generator.uniform(0.4, 0.9, size),
            source=seeded(seed),
        )
        alphabet = crowd.answers.alphabet
        assert alphabet is not None
        mechanism = RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation="public")
        estimate = method.fit(
            perturb_reports(crowd.answers, mechanism, seeded(900 + seed)), channel=mechanism.channel()
        )
        score = metrics.score(estimate, crowd.gold)
        found.append((score.error, score.log_loss))
    error, loss = np.mean(found, axis=0).tolist()
    return error, loss


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_no_method_is_worse_than_the_vote(method: Estimator[Any, Any], epsilon: float) -> None:
    """Shrunk to the crowd, every model of workers errs less than the vote does."""
    assert scores(method, epsilon)[0] < scores(MajorityVote(), epsilon)[0]


def test_shrinkage_is_pseudo_reports_and_a_learned_centre() -> None:
    """P(report right) is the share of right reports, shrinkage / gain^2 pseudo-reports of the crowd's ability added."""
    labels = Categories(("0", "1", "2"))
    mechanism = RandomizedResponse(alphabet=labels, epsilon=1.0, participation="public")
    crowd = categorical_crowd(workers=6, tasks=40, labels=labels, sparsity=0.3, source=seeded(3))
    reports = perturb_reports(crowd.answers, mechanism, seeded(4))
    one = PrivateDawidSkene(shrinkage=5.0, max_steps=1).fit(reports, channel=mechanism.channel())
    two = PrivateDawidSkene(shrinkage=5.0).fit(reports, channel=mechanism.channel())
    keep, flip = np.exp(1) / (np.exp(1) + 2), 1 / (np.exp(1) + 2)
    gain, ability = keep - flip, 0.7 + 0.3 / 3
    for worker in range(6):
        own = reports.worker == worker
        right = one.posterior[reports.task[own], reports.value[own]].sum()
        extra = 5.0 / gain**2
        share = (right + extra * (flip + gain * ability)) / (own.sum() + extra)
        assert pytest.approx((share - flip) / gain, abs=1e-9) == one.workers.quality[worker]

    assert two.converged
    assert (np.diff(two.log_likelihoods) >= -1e-9).all()
    published = PrivateDawidSkene().fit(reports, channel=mechanism.channel())
    assert np.ptp(two.workers.quality) < np.ptp(published.workers.quality)
