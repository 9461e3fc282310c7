"""The release of Huai et al.: records, and that it has no guarantee."""

import math
from typing import Any

import numpy as np
import pytest
from experiments.papers.huai2019.algorithm1.accounting import WeightProfile, published_claim, smallest_epsilon
from experiments.papers.huai2019.algorithm1.candidates import PrivacyTest
from experiments.papers.huai2019.algorithm1.huai_published import HuaiPublished
from experiments.papers.huai2019.algorithm1.kernel_density import Bandwidth
from experiments.papers.huai2019.algorithm1.weights import Weighting
from experiments.papers.huai2019.crowds import crowd as exhibited_crowd
from experiments.papers.huai2019.crowds import published

from crowdveil.randomness import seeded
from crowdveil.synthesis.original_claims import Claims
from tests.real_data import load_or_skip

PUBLIC: dict[str, Any] = {"bandwidth": Bandwidth(rule="given", width=0.5), "weighting": Weighting(kind="uniform")}


def crowd() -> Claims:
    """Four tasks with 60, four, five and no claims; one in ten claims is an outlier."""
    random = np.random.default_rng(1)
    task = np.array([0] * 60 + [1] * 4 + [2] * 5)
    value = np.clip(random.normal(size=69) + (random.random(69) < 0.1) * 20, -10, 30)
    workers = [*range(60), *range(4), *range(5)]
    return Claims.from_arrays(task, workers, value, tasks=range(4), bounds=(-10, 30), workers=range(60))


def test_tasks_with_fewer_than_k_claims_release_nothing() -> None:
    """Four claims or none release nothing; the others what was asked, unless no candidate passes."""
    made = HuaiPublished(records=7).release(crowd(), seeded(3)).reports()
    never = HuaiPublished(attempts=2, test=PrivacyTest(k=50, gamma=1.1, epsilon0=5.0), **PUBLIC)

    assert made.per_task.tolist() == [7, 0, 7, 0]
    assert made.worker.tolist() == [*range(7)] * 2
    assert len(never.release(crowd(), seeded(1))) == 0


@pytest.mark.parametrize(
    ("public", "reasons"), [({}, ("combined weights", "bandwidths")), (PUBLIC, ("the loop", "floating-point"))]
)
def test_no_settings_have_a_guarantee(public: dict, reasons: tuple[str, ...]) -> None:
    """Learned weights and bandwidths, or the loop and floating-point records; the claim of a claim is named."""
    test = PrivacyTest(k=20, gamma=2.0, epsilon0=0.5)
    method, claims = HuaiPublished(records=2, test=test, **public), crowd()
    profile = WeightProfile.from_claims(claims, method.densities(claims).weight, 20)

    cell, worker = method.release(claims, seeded(1)).guarantees

    assert math.isinf(cell.epsilon)
    assert math.isinf(worker.epsilon)
    assert (cell.claimed, worker.claimed) == (smallest_epsilon(published_claim(test, profile)), None)
    assert [] == [reason for reason in reasons if reason not in cell.reason]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "releasing"), [("population_cut", 194), ("population_tf", 145), ("weather_temperature", 4560)]
)
def test_real_claims_go_through(name: str, releasing: int) -> None:
    """Outliers and long tail included, every task with five claims releases; 2 to 3 in 10 claims have weight 0."""
    load_or_skip(name)
    claims, method = exhibited_crowd(name, 1), published("combined", 3)
    made = method.release(claims, seeded(1))
    weight = method.densities(claims).weight[claims.per_task[claims.task_of_each_claim] >= 5]

    assert releasing == len(np.unique(made.task))
    assert np.isfinite(made.value).all()
    assert 0.2 < (weight == 0).mean() < 0.3
