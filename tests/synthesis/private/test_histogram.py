"""The histogram method: guarantee, refusals, withheld tasks and accuracy."""

import math
from typing import Any

import numpy as np
import pytest
from experiments.synthesis.density_error import histogram_curve

from crowdveil.errors import SettingsError
from crowdveil.randomness import secure, seeded
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.private.histogram import Histogram, cell_masses
from crowdveil.synthesis.private.noisy_counts import NoisyCounts
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


def test_range_selection_helps_with_wide_bounds() -> None:
    """With bounds ten times too wide, range selection at least halves the error."""
    claims = bimodal(50, 100, bounds=(-45, 55))

    assert mean_ise(Histogram(epsilon=2.0, select_range=True), claims) < 0.5 * mean_ise(Histogram(epsilon=2.0), claims)


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
        method.release(bimodal(3, 20), seeded(1), progress=lambda *call, to=calls: to.append(call))  # type: ignore[misc]
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


def test_numbers_that_are_public_alone_decide_the_bins() -> None:
    """Two crowds that differ in values only have densities of the same shape in every task."""
    first, second = bimodal(4, 50), bimodal(4, 50)
    moved = Claims.from_arrays(second.task, second.worker, np.full(200, 6.0), bounds=(-4, 6))

    found = [Histogram(epsilon=1.0).private_densities(claims, seeded(1))[0] for claims in (first, moved)]

    assert found[0].mass.shape == found[1].mass.shape
    np.testing.assert_array_equal(found[0].task, found[1].task)


def test_weight_outside_a_range_is_kept() -> None:
    """Masses sum to one; the noisy number outside is uniform over the bounds outside the range."""
    noisy = NoisyCounts(np.full((1, 8), 10.0), np.array([20.0]), 1.0, np.array([[0.25, 0.5]]))
    found = cell_masses(noisy, np.array([100.0]))[0]

    np.testing.assert_allclose([found[0], found[1:-1].sum(), found[-1]], [0.2 / 3, 0.8, 0.2 * 2 / 3])


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"records": 0}, "positive"),
        ({"least_claims": 0}, "positive"),
        ({"bins": 9}, "bins must be one of"),
        ({"participation": "protected"}, "expected_claims"),
        ({"participation": "protected", "expected_claims": 5, "unit": "worker"}, "most_claims"),
        ({"most_claims": 0}, "most_claims"),
    ],
)
def test_settings_that_cannot_hold_are_refused(settings: dict[str, Any], rule: str) -> None:
    """A setting that breaks a rule is refused by the constructor."""
    with pytest.raises(SettingsError, match=rule):
        Histogram(**{"epsilon": 1.0, **settings})


def test_bounds_and_numbers_that_depend_on_claims_are_refused() -> None:
    """Bounds taken from the claims, and claims left out for their value, are refused."""
    derived = Claims.from_arrays([0, 0], [0, 1], [1.0, 2.0])
    dropped = Claims.from_arrays([0, 0], [0, 1], [1.0, 9.0], bounds=(0, 5), outside="drop")

    with pytest.raises(SettingsError, match="bounds must be public"):
        Histogram(epsilon=1.0).release(derived, seeded(1))
    with pytest.raises(SettingsError, match="must not depend on their values"):
        Histogram(epsilon=1.0).release(dropped, seeded(1))
    listed = Claims.from_arrays([0, 0], [0, 1], [1.0, 9.0], bounds=(0, 5), outside="drop", tasks=[0])
    hidden = Histogram(epsilon=20.0, participation="protected", expected_claims=2, records=3)
    assert len(hidden.release(listed, seeded(1))) == 3


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
