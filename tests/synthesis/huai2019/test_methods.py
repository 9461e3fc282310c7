"""Release methods of Huai et al.: records, withheld tasks, and guarantees."""

import math

import numpy as np
import pytest

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source, seeded
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.huai2019 import accounting
from crowdveil.synthesis.huai2019.accounting import WeightProfile
from crowdveil.synthesis.huai2019.candidates import PrivacyTest
from crowdveil.synthesis.huai2019.kernel_density import Bandwidth
from crowdveil.synthesis.huai2019.methods import HuaiCorrected, HuaiPublished
from crowdveil.synthesis.huai2019.weights import Weighting
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


@pytest.mark.parametrize(
    "method",
    [HuaiPublished(records=7), HuaiCorrected(records=7, test=STRICT, bandwidth=PUBLIC["bandwidth"])],
    ids=lambda m: m.name,
)
def test_tasks_with_fewer_than_k_claims_release_nothing(method: HuaiPublished | HuaiCorrected) -> None:
    """Three claims or none: withheld and counted; the others release what was asked, under fresh names."""
    made = method.release(crowd(), seeded(3))

    assert made.method == method.name
    assert made.reports().per_task.tolist() == [7, 0, 0]
    assert made.worker.tolist() == list(range(7))
    assert [(note.tasks, note.records) for note in made.withheld] == [(2, 14)]
    assert made.simulation


def test_secure_randomness_is_the_default() -> None:
    """Without a source a release is no simulation, and no two are equal."""
    first, second = (HuaiPublished(records=5, **PUBLIC).release(crowd()) for _ in range(2))

    assert not first.simulation
    assert first.value.tolist() != second.value.tolist()


def test_the_paper_s_settings_have_no_guarantee() -> None:
    """Learned weights and bandwidths: exact epsilon infinite at any delta, with the reasons and the claimed curve."""
    cell, worker = HuaiPublished(weighting=Weighting(floor=0.2)).release(crowd(), seeded(1)).guarantees(0.5)

    assert math.isinf(cell.epsilon)
    assert math.isinf(worker.epsilon)
    assert cell.claimed is not None
    assert math.isfinite(cell.claimed)
    assert "combined weights" in cell.reason
    assert "bandwidths" in cell.reason
    assert worker.claimed is None


def test_huai_published_with_public_settings_has_no_guarantee() -> None:
    """The loop, and floating-point records that reveal their seed, leave no finite epsilon."""
    claims, method = crowd(), HuaiPublished(records=2, test=STRICT, attempts=500, **PUBLIC)
    profile = WeightProfile.from_claims(claims, np.concatenate((np.full(60, 1 / 60), np.full(3, 1 / 3))), 20)

    cell, worker = method.release(claims, seeded(1)).curves

    assert math.isinf(cell.guarantee(0.5).epsilon)
    assert math.isinf(worker.guarantee(0.5).epsilon)
    assert "floating-point" in cell.reason
    assert cell.claimed == accounting.published_claim(STRICT, profile)
    assert math.isfinite(cell.guarantee(1e-3).claimed or math.inf)


def test_records_that_never_pass_are_counted() -> None:
    """Where no candidate passes within the attempts, the records are withheld and counted."""
    method = HuaiPublished(records=3, attempts=2, test=PrivacyTest(k=50, gamma=1.1, epsilon0=5.0), **PUBLIC)
    made = method.release(crowd(), seeded(1))

    assert (len(made), [note.records for note in made.withheld]) == (0, [6, 3])


@pytest.mark.parametrize(
    "settings",
    [{"weighting": Weighting()}, {"weighting": Weighting(kind="global")}, {"bandwidth": Bandwidth()}],
)
def test_huai_corrected_refuses_settings_without_finite_epsilon(settings: dict[str, object]) -> None:
    """Learned weights, learned bandwidths and derived bounds are refused with the reason."""
    with pytest.raises(SettingsError, match="follow from the claims"):
        HuaiCorrected(**settings).release(crowd(), seeded(1))  # type: ignore[arg-type]


def test_huai_corrected_refuses_derived_bounds() -> None:
    """Public draws need a public domain."""
    claims = Claims.from_arrays([0] * 5, range(5), [1, 2, 3, 4, 5])
    with pytest.raises(SettingsError, match="bounds follow"):
        HuaiCorrected(bandwidth=PUBLIC["bandwidth"]).release(claims, seeded(1))


def test_huai_corrected_has_a_small_delta_for_large_crowds() -> None:
    """5,000 claims: epsilon 0.056 at delta 1e-6 for a record; no curve of the loop reaches that delta."""
    method = HuaiCorrected(
        test=PrivacyTest(k=400, gamma=2.0, epsilon0=0.05), bandwidth=Bandwidth(rule="share", width=0.02)
    )
    made = method.release(crowd(workers=5000), seeded(1))
    cell, worker = made.guarantees(1e-6)

    assert round(cell.epsilon, 3) == 0.056
    assert cell.delta <= 1e-6
    assert cell.claimed is None
    assert (cell.epsilon, cell.delta) == (worker.epsilon, worker.delta)


def test_huai_corrected_stays_within_the_bounds_and_fills_every_record() -> None:
    """Failed candidates become draws within the bounds; a test that always fails gives a uniform distribution.

    4,000 records: mean and spread of a uniform distribution within 4.5 standard errors.
    """
    hopeless = PrivacyTest(k=60, gamma=1.01, epsilon0=5.0)
    made = HuaiCorrected(records=4000, test=hopeless, bandwidth=PUBLIC["bandwidth"]).release(crowd(), seeded(2))

    assert len(made) == 4000
    assert np.all((made.value >= -10) & (made.value <= 30))
    assert abs(made.value.mean() - 10) < 4.5 * 40 / math.sqrt(12 * 4000)
    assert abs(made.value.std() - 40 / math.sqrt(12)) < 0.4


def test_records_of_public_weights_follow_them() -> None:
    """A worker with nearly all of the public weight gets all the seeds."""
    weights = tuple([1e-9] * 59 + [1.0])
    method = HuaiPublished(
        records=40, test=PrivacyTest(k=1), bandwidth=Bandwidth(rule="given", width=1e-3), kernel="epanechnikov",
        weighting=Weighting(kind="public", workers=weights),
    )  # fmt: skip
    claims = crowd()

    made = method.release(claims, seeded(4))

    np.testing.assert_allclose(made.value[made.task == 0], claims.of_task(0)[59], atol=3e-3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: HuaiPublished(records=0),
        lambda: HuaiPublished(attempts=0),
        lambda: HuaiPublished(kernel="box"),  # type: ignore[arg-type]
        lambda: HuaiCorrected(public_share=0.0),
        lambda: HuaiCorrected(records=0),
        lambda: HuaiCorrected(cells=1),
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


class Counting:
    """A source that counts the words it hands out."""

    simulation = True

    def __init__(self, source: Source) -> None:
        self.source, self.used = source, 0

    def words(self, count: int) -> np.ndarray:
        """Hand out and count."""
        self.used += count
        return self.source.words(count)


def test_work_of_huai_corrected_does_not_depend_on_the_claims() -> None:
    """One attempt a record: the same random words are used up whatever the claims, outliers or none."""
    used = []
    for seed in (1, 2):
        source = Counting(seeded(7))
        HuaiCorrected(records=9, test=STRICT, bandwidth=PUBLIC["bandwidth"]).release(crowd(seed), source)
        used.append(source.used)

    assert used[0] == used[1] > 9 * 5


@pytest.mark.parametrize("left_out", [{"outside": "drop"}, {"missing": "drop"}])
def test_claims_left_out_for_their_value_are_refused(left_out):
    """Of k claims one that is left out would leave too few for a release: the number of records would show it."""
    values = [40.0] * (STRICT.k - 1) + [190.0 if "outside" in left_out else np.nan]
    claims = Claims.from_arrays([0] * STRICT.k, range(STRICT.k), values, bounds=(0, 100), **left_out)
    method = HuaiCorrected(records=2, test=STRICT, bandwidth=PUBLIC["bandwidth"])

    with pytest.raises(SettingsError, match="must not depend on their values"):
        method.release(claims, seeded(1))
