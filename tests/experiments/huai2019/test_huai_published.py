"""Release methods of Huai et al.: records, withheld tasks, and guarantees."""

import math

import numpy as np
import pytest
from experiments.papers.huai2019.algorithm1 import accounting
from experiments.papers.huai2019.algorithm1.accounting import WeightProfile
from experiments.papers.huai2019.algorithm1.candidates import PrivacyTest
from experiments.papers.huai2019.algorithm1.huai_published import HuaiPublished
from experiments.papers.huai2019.algorithm1.kernel_density import Bandwidth
from experiments.papers.huai2019.algorithm1.weights import Weighting

from crowdveil.errors import SettingsError
from crowdveil.randomness import seeded
from crowdveil.synthesis.claims import Claims
from tests.real_data import load_or_skip

PUBLIC = {"bandwidth": Bandwidth(rule="given", width=0.5), "weighting": Weighting(kind="uniform")}
STRICT = PrivacyTest(k=20, gamma=2.0, epsilon0=0.5)


def crowd(seed: int = 1, workers: int = 60) -> Claims:
    """Three tasks: all workers, three workers, no worker; one in ten claims is an outlier."""
    random = np.random.default_rng(seed)
    task = np.array([0] * workers + [1] * 3)
    value = np.clip(random.normal(size=len(task)) + (random.random(len(task)) < 0.1) * 20, -10, 30)
    return Claims.from_arrays(
        task, [*range(workers), 0, 1, 2], value, tasks=[0, 1, 2], bounds=(-10, 30), workers=list(range(workers))
    )


def test_tasks_with_fewer_than_k_claims_release_nothing() -> None:
    """Three claims or none: withheld and counted; the others release what was asked, under fresh names."""
    made = HuaiPublished(records=7).release(crowd(), seeded(3))

    assert made.method == "huai-published"
    assert made.reports().per_task.tolist() == [7, 0, 0]
    assert made.reports().worker.tolist() == list(range(7))
    assert [(note.tasks, note.records) for note in made.withheld] == [(2, 14)]
    assert made.simulation


def test_secure_randomness_is_the_default() -> None:
    """Without a source a release is no simulation, and no two are equal."""
    first, second = (HuaiPublished(records=5, **PUBLIC).release(crowd()) for _ in range(2))

    assert not first.simulation
    assert first.value.tolist() != second.value.tolist()


def test_the_paper_s_settings_have_no_guarantee() -> None:
    """Learned weights and bandwidths: exact epsilon infinite, with the reasons and the claimed epsilon."""
    cell, worker = HuaiPublished().release(crowd(), seeded(1)).guarantees

    assert math.isinf(cell.epsilon)
    assert math.isinf(worker.epsilon)
    assert cell.claimed is not None
    assert "combined weights" in cell.reason
    assert "bandwidths" in cell.reason
    assert worker.claimed is None


def test_huai_published_with_public_settings_has_no_guarantee() -> None:
    """The loop, and floating-point records that reveal their seed, leave no finite epsilon."""
    claims, method = crowd(), HuaiPublished(records=2, test=STRICT, attempts=500, **PUBLIC)
    profile = WeightProfile.from_claims(claims, np.concatenate((np.full(60, 1 / 60), np.full(3, 1 / 3))), 20)

    cell, worker = method.release(claims, seeded(1)).guarantees
    claimed = accounting.published_claim(STRICT, profile)

    assert math.isinf(cell.epsilon)
    assert math.isinf(worker.epsilon)
    assert "floating-point" in cell.reason
    assert cell.claimed == accounting.smallest_epsilon(claimed)
    assert math.isfinite(accounting.smallest_epsilon(claimed, 1e-3))


def test_records_that_never_pass_are_counted() -> None:
    """Where no candidate passes within the attempts, the records are withheld and counted."""
    method = HuaiPublished(records=3, attempts=2, test=PrivacyTest(k=50, gamma=1.1, epsilon0=5.0), **PUBLIC)
    made = method.release(crowd(), seeded(1))

    assert (len(made), [note.records for note in made.withheld]) == (0, [6, 3])


@pytest.mark.parametrize(
    "make",
    [
        lambda: HuaiPublished(records=0),
        lambda: HuaiPublished(attempts=0),
        lambda: HuaiPublished(kernel="box"),  # type: ignore[arg-type]
    ],
)
def test_bad_settings_are_refused(make) -> None:
    """Invalid settings are refused by the constructor."""
    with pytest.raises(SettingsError):
        make()


def test_constant_and_absurd_tasks_go_through() -> None:
    """Equal claims release (nearly) themselves, and one claim of 6.6e18 does not spoil its task."""
    claims = Claims.from_arrays([0] * 8 + [1] * 8, [*range(8)] * 2, [7.0] * 8 + [6.6e18, 1, 2, 3, 2, 1, 2, 3])
    made = HuaiPublished(records=20).release(claims, seeded(1))

    np.testing.assert_allclose(made.value[made.task == 0], 7, atol=1e-6)
    assert np.all(np.abs(made.value[made.task == 1]) < 10)
    assert len(made) == 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "releasing"), [("population_cut", 194), ("population_tf", 145), ("weather_temperature", 4560)]
)
def test_real_claims_go_through(name: str, releasing: int) -> None:
    """Outliers and long tail included, every task is released or counted; 2 to 3 in 10 claims have weight 0."""
    claims, method = Claims.from_reports(load_or_skip(name).answers), HuaiPublished(records=3)
    calls: list[int] = []
    made = method.release(claims, seeded(1), progress=lambda done, of: calls.append(done))
    weight = method.densities(claims).weight[claims.per_task[claims.task] >= 5]

    assert releasing == len(claims.tasks) - made.withheld[0].tasks
    assert len(made) + sum(note.records for note in made.withheld) == 3 * len(claims.tasks)
    assert np.isfinite(made.value).all()
    assert 0.2 < (weight == 0).mean() < 0.3
    assert calls
