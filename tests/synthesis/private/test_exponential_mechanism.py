"""The exponential mechanism, densities of histograms, and shapes pooled over tasks."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from experiments.synthesis.density_error import histogram_curve

from crowdveil.randomness import seeded
from crowdveil.synthesis.original_claims import Claims, ScaledClaims
from crowdveil.synthesis.private import pooled_shape
from crowdveil.synthesis.private.exponential_mechanism import (
    BOTTOM,
    CELLS_PER_SPREAD,
    LEVELS,
    TOP,
    exponential_weights,
    fullest_range_counts,
    sample_proportional,
    select_private_locations,
    triangular_kernel_scores,
)
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.histogram_density import (
    BIN_CHOICES,
    CELLS,
    HistogramDensities,
    cosine_density,
)
from crowdveil.synthesis.private.pooled_shape import PooledShape
from tests.chi_square import chi_square_p_value


def scaled(positions: list[float], tasks: int = 1) -> ScaledClaims:
    """The same claims on every task."""
    return ScaledClaims(tasks, np.repeat(np.arange(tasks), len(positions)), np.tile(positions, tasks))


def test_scores_are_sums_of_triangles() -> None:
    """Every cell's score equals a loop over claims, for several tasks."""
    generator = np.random.default_rng(1)
    claims = ScaledClaims(3, np.sort(generator.integers(0, 3, 40)), generator.random(40))
    expected = np.zeros((3, 32), dtype=int)
    for task, place in zip(claims.task, claims.position, strict=True):
        for cell in range(32):
            expected[task, cell] += max(0, CELLS_PER_SPREAD - abs(cell - int(place * 32)))

    np.testing.assert_array_equal(expected, triangular_kernel_scores(claims, 32))


def test_no_score_changes_by_more_than_the_top() -> None:
    """Over all crowds of two claims at 9 places, a changed claim changes no score by more than the triangle's top."""
    places = [k / 8 for k in range(9)]
    worst = 0
    for one, two, other in itertools.product(places, repeat=3):
        before = triangular_kernel_scores(scaled([one, two]), 32)
        worst = max(worst, int(np.abs(triangular_kernel_scores(scaled([one, other]), 32) - before).max()))
        worst = max(worst, int(np.abs(triangular_kernel_scores(scaled([one]), 32) - before).max()))

    assert worst == CELLS_PER_SPREAD


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0, 20.0])
def test_locations_of_neighbours_are_private(epsilon: float) -> None:
    """Exact integer probabilities of all locations differ by at most exp(epsilon), over all crowds of three claims."""
    places = [k / 6 for k in range(7)]
    worst = 0.0
    for rest in itertools.combinations_with_replacement(places, 2):
        tables = []
        for claims in ([*rest, place] for place in places):
            integers = exponential_weights(
                triangular_kernel_scores(scaled(claims), 16), epsilon=epsilon, score_sensitivity=CELLS_PER_SPREAD
            )[0]
            tables.append(np.log(integers / integers.sum()))
        worst = max(worst, *(float(np.abs(a - b).max()) for a, b in itertools.combinations(tables, 2)))

    assert 0.3 * min(epsilon, 5) < worst <= epsilon


def test_probabilities_are_bounded_and_drawn() -> None:
    """Far candidates keep the least weight, no budget makes all alike; 50,000 draws pass a chi-square test at 1e-4."""
    score = np.array([[8, 6, 0, 8]])
    integers = exponential_weights(score, epsilon=2.0, score_sensitivity=8)
    drawn = sample_proportional(np.repeat(integers, 50_000, axis=0), seeded(5))

    assert exponential_weights(10**6 * score, epsilon=20.0, score_sensitivity=8).tolist() == [
        [TOP, BOTTOM, BOTTOM, TOP]
    ]
    assert exponential_weights(score, epsilon=1e-6, score_sensitivity=8).tolist() == [[TOP] * 4]
    assert chi_square_p_value(np.bincount(drawn, minlength=4), integers[0] / integers.sum()) > 1e-4


def test_largest_range_counts_equal_a_loop() -> None:
    """For every level, the claims in the fullest range of each task, half a width apart, are summed."""
    generator = np.random.default_rng(2)
    claims = ScaledClaims(4, np.sort(generator.integers(0, 4, 50)), generator.random(50))
    expected = []
    for level in range(1, LEVELS + 1):
        starts = np.arange(2 ** (level + 1) - 1) * 2.0**-level / 2
        held = [
            [int(((mine >= low) & (mine < low + 2.0**-level)).sum()) for low in starts]
            for mine in (claims.position[claims.task == task] for task in range(4))
        ]
        expected.append(sum(map(max, held)))

    assert expected == fullest_range_counts(claims).tolist()


def test_without_claims_all_locations_are_equally_likely() -> None:
    """The location of a task without claims is uniform."""
    found = select_private_locations(scaled([], tasks=2000), 0, 1.0, seeded(4))

    assert 150 < np.bincount((found * CELLS_PER_SPREAD).astype(int), minlength=CELLS_PER_SPREAD).min()


MASS = np.array([[0.1, 0.0, 0.5, 0.0, 0.2, 0.2], [0.0, 0.25, 0.25, 0.25, 0.25, 0.0]])
DENSITIES = HistogramDensities(
    task=np.array([3, 7]),
    low=np.array([0.0, -1.0]),
    high=np.array([10.0, 1.0]),
    range_low=np.array([2.0, -1.0]),
    range_high=np.array([6.0, 1.0]),
    mass=MASS,
)


def test_every_record_is_distributed_as_the_density() -> None:
    """20,000 draws of 5 records, one position of them, pass a chi-square test at 1e-4; fixed seed."""
    many = HistogramDensities(
        task=np.arange(20_000),
        **{
            name: np.repeat(getattr(DENSITIES, name)[:1], 20_000) for name in ("low", "high", "range_low", "range_high")
        },
        mass=np.repeat(MASS[:1], 20_000, axis=0),
    )
    drawn = many.stratified_samples(5, seeded(1))[:, 2]
    counts = np.histogram(drawn, bins=[0, 2, 3, 4, 5, 6, 10])[0]

    assert counts[[1, 3]].sum() == 0
    assert chi_square_p_value(counts[[0, 2, 4, 5]], MASS[0][[0, 2, 4, 5]]) > 1e-4


def test_records_spread_over_the_density() -> None:
    """Of 20 records every cell gets its share to within one, and none leaves the bounds."""
    drawn = DENSITIES.stratified_samples(20, seeded(2))

    assert drawn.shape == (2, 20)
    assert abs(int(((drawn[0] >= 3) & (drawn[0] < 4)).sum()) - 10) <= 1
    assert ((drawn >= DENSITIES.low[:, None]) & (drawn <= DENSITIES.high[:, None])).all()
    assert (np.diff(drawn, axis=1) < 0).any(), "records are shuffled"


def slow_smooth(counts: list[float], variance: float, total: float) -> list[float]:
    """docs/explanation/synthesis/private.md, post-processing, for one task and one number at a time."""
    bins = len(counts)
    root = math.sqrt(2)
    theta = [
        sum(c / total * root * math.cos(math.pi * j * (b + 0.5) / bins) for b, c in enumerate(counts))
        for j in range(1, bins)
    ]
    v = bins * variance / total**2 + 1 / total
    cutoffs = [1 + k / 2 for k in range(22)] + [12 + 4 * k for k in range(1000) if 12 + 4 * k < 2 * (bins - 1) + 2]
    families = [[max(0.0, 1 - (j / cutoff) ** 2) for j in range(1, bins)] for cutoff in cutoffs]
    risks = [
        sum((1 - w) ** 2 * t**2 + (2 * w - 1) * v for w, t in zip(family, theta, strict=True)) for family in families
    ]
    weights = [math.exp(-(risk - min(risks)) / (2 * v)) for risk in risks]
    factor = [
        sum(weight * family[j] for weight, family in zip(weights, families, strict=True)) / sum(weights) * min(1, 2 / v)
        for j in range(bins - 1)
    ]
    series = []
    for cell in range(CELLS):
        height = 1.0
        for j in range(1, bins):
            blur = math.sin(math.pi * j / (2 * CELLS)) / (math.pi * j / (2 * CELLS))
            blur /= math.sin(math.pi * j / (2 * bins)) / (math.pi * j / (2 * bins))
            wave = root * math.cos(math.pi * j * (cell + 0.5) / CELLS)
            height += factor[j - 1] * theta[j - 1] * blur * wave
        series.append(height / CELLS)
    return slow_nearest(series)


def slow_nearest(row: list[float]) -> list[float]:
    """The nearest masses by bisection on what is taken off every cell."""
    low, high = min(row) - 1.0, max(row)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(0.0, x - middle) for x in row) > 1 else (low, middle)
    return [max(0.0, x - low) for x in row]


@pytest.mark.parametrize("bins", [8, 12, 32])
def test_smoothing_equals_the_equations(bins: int) -> None:
    """The vectorised smoother equals the equations written as loops, for several tasks at once."""
    generator = np.random.default_rng(bins)
    counts = generator.integers(-5, 30, size=(3, bins)).astype(float)
    variance, total = np.array([8.0, 0.5, 200.0]), np.array([90.0, 200.0, 20.0])

    expected = [slow_smooth(list(counts[k]), variance[k], total[k]) for k in range(3)]

    np.testing.assert_allclose(cosine_density(counts, variance, total), expected, atol=1e-9)


@pytest.mark.parametrize("bins", BIN_CHOICES)
def test_every_number_of_bins_divides_the_cells(bins: int) -> None:
    """Cells refine bins, and a flat histogram stays flat."""
    flat = cosine_density(np.full((1, bins), 100.0 / bins), np.array([1.0]), np.array([100.0]))

    assert CELLS % bins == 0
    np.testing.assert_allclose(flat, 1 / CELLS)


def scattered(count: int, each: int, **policy: Any) -> tuple[Claims, np.ndarray]:
    """Claims N(location, 1) of tasks whose locations are anywhere in 5 .. 95, bounds 0 .. 100; and the locations."""
    generator = np.random.default_rng(3)
    location = generator.uniform(5, 95, count)
    value = np.repeat(location, each) + generator.normal(size=count * each)
    task, worker = np.repeat(np.arange(count), each), np.tile(np.arange(each), count)
    return Claims.from_arrays(task, worker, value, bounds=(0, 100), **policy), location


def near(method: PooledShape | Histogram, claims: Claims, location: np.ndarray) -> float:
    """Share of the records within 3 of their task's location."""
    made = method.release(claims, seeded(1))
    return float((np.abs(made.value - location[made.task]) < 3).mean())


def test_few_claims_per_task_are_enough_together() -> None:
    """At 12 claims a task and epsilon 2, most records are near the location; those of histograms are not."""
    claims, location = scattered(300, 12)

    assert near(PooledShape(epsilon=2.0), claims, location) > 0.7
    assert near(Histogram(epsilon=2.0), claims, location) < 0.45


def test_a_tiny_budget_gives_nearly_flat_densities() -> None:
    """At epsilon 0.01 records are spread over the bounds: no spike in a wrong place."""
    claims, location = scattered(100, 5)
    densities, _ = PooledShape(epsilon=0.01).private_densities(claims, seeded(1))

    assert near(PooledShape(epsilon=0.01), claims, location) < 0.15
    assert max(histogram_curve(densities, row).at(np.linspace(0, 100, 500)).max() for row in range(100)) < 0.1


def test_spread_locations_and_shapes_share_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three steps together spend no more than the budget of a task, and next to all of it."""
    spent = []

    def counted(function: Any, place: int) -> Any:
        return lambda *given: spent.append(float(given[place])) or function(*given)

    for name, place in (
        ("select_common_spread", 1),
        ("select_private_locations", 2),
        ("_noisy_shape_per_group", 4),
    ):
        monkeypatch.setattr(pooled_shape, name, counted(getattr(pooled_shape, name), place))
    PooledShape(epsilon=2.0).release(scattered(4, 6)[0], seeded(1))

    assert len(spent) == 3
    assert 2.0 - 1e-5 < sum(spent) <= 2.0


def test_the_guarantee_covers_locations_spread_and_shapes() -> None:
    """Epsilon per claim is as asked, per worker times the claims; under unit worker the worker's is as asked."""
    claims, _ = scattered(4, 6)
    per_claim, per_worker = (
        PooledShape(epsilon=2.0, unit=unit).release(claims, seeded(1)) for unit in ("cell", "worker")
    )

    assert [(g.epsilon, g.delta) for g in per_claim.guarantees] == [(2.0, 0), (8.0, 0)]
    assert [(g.epsilon, g.delta) for g in per_worker.guarantees] == [(0.5, 0), (2.0, 0)]


def test_small_tasks_and_empty_crowds() -> None:
    """Tasks below least_claims are withheld and counted; without claims there is nothing to release."""
    claims, _ = scattered(4, 6, tasks=np.arange(6))
    made = PooledShape(epsilon=1.0, records=2).release(claims, seeded(1))
    none = PooledShape(epsilon=1.0).release(
        Claims.from_arrays([], [], [], bounds=(0, 1), tasks=[], workers=[]), seeded(1)
    )

    assert made.withheld == (("no claim", 2, 4),)
    assert len(none) == 0


def test_records_stay_within_the_bounds() -> None:
    """Claims at a bound have records on its inner side only."""
    claims = Claims.from_arrays(np.repeat(np.arange(50), 8), np.tile(np.arange(8), 50), np.zeros(400), bounds=(0, 7))
    made = PooledShape(epsilon=5.0).release(claims, seeded(1))

    assert made.value.min() >= 0
    assert made.value.max() <= 7
