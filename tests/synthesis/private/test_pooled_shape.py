"""The pooled-shape method: guarantee, withheld tasks, and accuracy for tasks with few claims."""

from typing import Any

import numpy as np
import pytest
from experiments.synthesis.density_error import histogram_curve

from crowdveil.errors import SettingsError
from crowdveil.randomness import seeded
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.pooled_shape import PooledShape


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


@pytest.mark.parametrize("settings", [{"epsilon": 0}, {"records": 0}, {"least_claims": 0}, {"most_claims": 0}])
def test_settings_that_cannot_hold_are_refused(settings: dict[str, Any]) -> None:
    """A setting that breaks a rule is refused by the constructor."""
    with pytest.raises(SettingsError):
        PooledShape(**{"epsilon": 1.0, **settings})


def test_bounds_must_be_public() -> None:
    """Bounds taken from the claims are refused."""
    with pytest.raises(SettingsError, match="bounds must be public"):
        PooledShape(epsilon=1.0).release(Claims.from_arrays([0, 0], [0, 1], [1.0, 2.0]), seeded(1))
