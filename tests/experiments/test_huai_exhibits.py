"""Judge of synthetic claims and counts of candidates in the exhibits of Huai et al."""

import numpy as np
import pytest
from experiments.papers.huai2019.crowds import FLOORPLAN, TEST, crowd, lengths, published
from experiments.papers.huai2019.figure3 import density_mean, true_curve
from experiments.papers.huai2019.figure5 import count_until_pass
from experiments.papers.huai2019.judge import Judge

from crowdveil.randomness import seeded
from crowdveil.synthesis.huai2019.methods import trial_tasks


@pytest.fixture(scope="module")
def judge() -> Judge:
    """Judge of about ten tasks of the simulated crowd."""
    return Judge(crowd(FLOORPLAN, 1), published("combined"), published("uniform"), most=10)


def test_originals_are_their_own_density(judge: Judge) -> None:
    """Released unchanged, the claims have error 0 by equal weights and more by combined ones."""
    assert judge.errors(judge.original, "uniform").mean < 1e-20
    assert judge.errors(judge.original, "combined").mean > 1e-4
    assert judge.truth_gap(judge.original).mean_absolute == 0


def test_judged_tasks_have_enough_claims(judge: Judge) -> None:
    """Judged tasks are spread over all that have k claims."""
    assert 10 <= len(judge.tasks) <= 20
    assert (judge.claims.per_task[judge.tasks] >= TEST.k).all()


def test_counted_candidates_are_those_of_the_release(judge: Judge) -> None:
    """The count draws the same candidates as the published loop, and compares each with all claims of its task."""
    sampler, task = judge.combined.densities(judge.claims), trial_tasks(judge.claims, TEST, 2)
    passed: list[int] = []
    sampler.until_pass(task, 1000, seeded(3), progress=lambda done, _: passed.append(len(task) - done))

    candidates, comparisons = count_until_pass(sampler, task, seeded(3))

    assert candidates == len(task) + sum(passed)
    assert comparisons >= candidates * judge.claims.per_task.min()


def test_true_density_is_that_of_reliable_claims() -> None:
    """The density of reliable claims has the true length as mean, and lengths do not depend on the claims."""
    assert np.isclose(density_mean(true_curve(7.0)), 7.0)
    assert lengths(1).tolist() == lengths(1).tolist()
    assert (lengths(1) != lengths(2)).all()
