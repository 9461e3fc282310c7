"""Histograms, their densities, and noisy counts."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from experiments.synthesis.density_error import histogram_curve
from scipy.stats import beta

from crowdveil.errors import SettingsError
from crowdveil.randomness import secure, seeded
from crowdveil.synthesis.discrete_noise import SENSITIVITY, noisy_counts
from crowdveil.synthesis.original_claims import Claims, ScaledClaims, scaled_claims
from crowdveil.synthesis.private.histogram import Histogram, bin_counts
from crowdveil.synthesis.private.pooled_shape import PooledShape


def bimodal(count: int, each: int, **policy: Any) -> Claims:
    """Claims from half N(-1, .6) and half N(2, .9) within -4 .. 6."""
    generator = np.random.default_rng(7)
    left = generator.random(count * each) < 0.5
    value = np.where(left, generator.normal(-1, 0.6, left.shape), generator.normal(2, 0.9, left.shape))
    bounds = policy.pop("bounds", (-4, 6))
    task, worker = np.repeat(np.arange(count), each), np.tile(np.arange(each), count)
    return Claims.from_arrays(task, worker, value, bounds=bounds, outside="clip", **policy)


def truth(points: np.ndarray) -> np.ndarray:
    """Density of `bimodal`."""
    normal = [np.exp(-(((points - m) / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi)) for m, s in ((-1, 0.6), (2, 0.9))]
    return 0.5 * normal[0] + 0.5 * normal[1]


def mean_ise(method: Histogram, claims: Claims) -> float:
    """Mean integrated squared error over all tasks, by the midpoint rule."""
    low, high = float(claims.low[0]), float(claims.high[0])
    points = low + (np.arange(4000) + 0.5) * (high - low) / 4000
    densities, _ = method.private_densities(claims, seeded(3))
    curves = [histogram_curve(densities, row) for row in range(len(densities.task))]
    errors = [((curve.at(points) - truth(points)) ** 2).mean() for curve in curves]
    return float(np.mean(errors)) * (high - low)


def test_the_error_is_below_that_of_a_plain_noisy_histogram() -> None:
    """At n=100 and epsilon 1 the mean ISE of 100 tasks is below .021 (a plain noisy histogram; here .015)."""
    assert mean_ise(Histogram(epsilon=1.0), bimodal(100, 100)) < 0.021


def test_the_guarantee_does_not_depend_on_the_number_of_records() -> None:
    """Epsilon per claim is as asked whatever the number of records, per worker it counts the claims; delta is 0."""
    few, many = (Histogram(epsilon=1.0, records=m).release(bimodal(3, 20), seeded(1)) for m in (2, 500))

    for made, records in ((few, 2), (many, 500)):
        assert [(g.epsilon, g.delta, g.unit) for g in made.guarantees] == [(1.0, 0, "cell"), (3.0, 0, "worker")]
        assert len(made) == 3 * records
        assert ((made.value >= -4) & (made.value <= 6)).all()
    assert few.simulation
    assert not Histogram(epsilon=1.0).release(bimodal(1, 5), secure()).simulation


def test_progress_reaches_all_tasks() -> None:
    """Progress ends with all tasks done, in either method."""
    for method in (Histogram(epsilon=1.0), PooledShape(epsilon=1.0)):
        calls: list[tuple[int, int]] = []
        method.release(bimodal(3, 20), seeded(1), progress=lambda *call, to=calls: to.append(call))
        assert calls[-1] == (3, 3)


def test_tasks_without_claims_release_nothing() -> None:
    """Who claimed is public: a task without claims, or with too few, is withheld, counted and named as a reason."""
    claims = bimodal(3, 20, tasks=np.arange(5))
    made = Histogram(epsilon=1.0, records=4).release(claims, seeded(1))
    strict = Histogram(epsilon=1.0, records=4, least_claims=21).release(claims, seeded(1))

    assert np.unique(made.task).tolist() == [0, 1, 2]
    assert made.withheld == (("no claim", 2, 8),)
    assert strict.withheld == (("fewer than 21 claims", 5, 20),)
    assert len(strict) == 0


def test_protected_participation_decides_on_noisy_totals() -> None:
    """Whether a task releases anything depends on its noisy total, so some empty ones do and some do not."""
    claims = Claims.from_arrays([0], [0], [0.5], bounds=(0, 1), tasks=np.arange(400))
    method = Histogram(epsilon=1.0, records=1, participation="protected", expected_claims=20)
    made = method.release(claims, seeded(1))

    assert 100 < len(made) < 300
    assert made.withheld[0].tasks == 400 - len(made)
    assert "noisy" in made.withheld[0].reason
    assert {g.participation for g in made.guarantees} == {"protected"}


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"records": 0}, "positive"),
        ({"least_claims": 0}, "positive"),
        ({"participation": "protected"}, "expected_claims"),
        ({"participation": "protected", "expected_claims": 5, "unit": "worker"}, "most_claims"),
        ({"most_claims": 0}, "most_claims"),
    ],
)
def test_settings_that_cannot_hold_are_refused(settings: dict[str, Any], rule: str) -> None:
    """A setting that breaks a rule is refused by the constructor."""
    with pytest.raises(SettingsError, match=rule):
        Histogram(**{"epsilon": 1.0, **settings})


def test_extreme_claims_give_a_release() -> None:
    """Constant claims, single claims, no claims at all and outliers at 6.6e18, clipped, all give a release."""
    value = [5.0, 5.0, 5.0, 6.6e18, 1.0]
    odd = Claims.from_arrays([0, 0, 0, 1, 2], [0, 1, 2, 0, 0], value, bounds=(0, 10), outside="clip")
    none = Claims.from_arrays([], [], [], bounds=(0, 1), tasks=[], workers=[])

    made = Histogram(epsilon=1.0).release(odd, seeded(1))
    assert np.isfinite(made.value).all()
    assert len(made) == 90
    assert odd.clipped == 1
    assert len(Histogram(epsilon=1.0).release(none, seeded(1))) == 0


PLACES = (0.0, 0.2, 0.3, 0.5, 0.8, 1.0)


def crowd(places: tuple[float, ...], tasks: int = 1) -> ScaledClaims:
    """The same few claims on every one of some tasks."""
    return ScaledClaims(tasks, np.repeat(np.arange(tasks), len(places)), np.tile(places, tasks))


def test_counts_change_by_no_more_than_the_sensitivity() -> None:
    """Over all crowds of three claims, replacing one changes counts by at most 2, removing one by 1."""
    replaced = removed = 0
    for places in itertools.product(PLACES, repeat=3):
        before = bin_counts(crowd(places), 4)
        assert before.sum() == 3
        for claim, other in itertools.product(range(3), PLACES):
            rest = (*places[:claim], *places[claim + 1 :])
            replaced = max(replaced, int(np.abs(bin_counts(crowd((*rest, other)), 4) - before).sum()))
            removed = max(removed, int(np.abs(bin_counts(crowd(rest), 4) - before).sum()))

    assert (replaced, removed) == (SENSITIVITY, 1)


def test_bin_counts_equal_a_loop() -> None:
    """Every claim is counted once, in the bin of its position."""
    generator = np.random.default_rng(2)
    claims = ScaledClaims(2, generator.integers(0, 2, 60), generator.random(60))
    expected = np.zeros((2, 5), dtype=int)
    for task, position in zip(claims.task, claims.position, strict=True):
        expected[task, int(position * 5)] += 1

    np.testing.assert_array_equal(expected, bin_counts(claims, 5))


def noisy_loss(noisy: list[np.ndarray]) -> float:
    """Lower bound on epsilon at 99.9 % confidence from two crowds' runs, for the best of 30 preset events.

    Half of the runs choose the event, the other half test it. An event: the first bin holds at least so much, and the
    last at most one less that.
    """
    statistic = [np.minimum(counts[:, 0], 1 - counts[:, -1]) for counts in noisy]
    half = len(statistic[0]) // 2
    gains = {}
    for level in range(-10, 20):
        share = [float((column[:half] >= level).mean()) for column in statistic]
        if min(share) * half > 500:
            gains[level] = math.log(share[0] / share[1])
    level = max(gains, key=lambda level: gains[level])
    hits = [int((column[half:] >= level).sum()) for column in statistic]
    least = beta.ppf(5e-4, hits[0], half - hits[0] + 1)
    most = beta.ppf(1 - 5e-4, hits[1] + 1, half - hits[1])
    return float(math.log(least / most))


@pytest.mark.parametrize(("epsilon", "least", "most"), [(1, 0.8, 1.0), (2, 1.5, 2.0)])
def test_the_attack_proves_nearly_epsilon_and_no_more(epsilon: int, least: float, most: float) -> None:
    """40,000 runs with one claim at either end: the bound is just below epsilon; false-alarm rate 1e-3, seeds fixed."""
    runs = [
        noisy_counts(bin_counts(crowd((0.3, 0.6, end), 40_000), 8), Fraction(epsilon), seeded(seed))[0]
        for seed, end in ((1, 0.01), (2, 0.99))
    ]

    assert least < noisy_loss(runs) <= most


def test_claims_are_scaled_by_task() -> None:
    """Used claims lie in the unit interval of their task's own bounds; others are left out."""
    claims = Claims.from_arrays(
        ["a", "b", "b", "c"], [1, 1, 2, 1], [5.0, 2.0, 4.0, 30.0], bounds=(np.array([0, 0, 20]), np.array([10, 4, 40]))
    )
    found = scaled_claims(claims, np.array([1, 2]), np.array([True, False, True, True]))

    assert found.tasks == 2
    assert found.task.tolist() == [0, 1]
    assert found.position.tolist() == [1.0, 0.5]
