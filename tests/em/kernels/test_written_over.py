"""Steps that write their posterior over the one before: the same numbers, and the largest change from the same pass."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crowdveil.channels.alphabet import Scale
from crowdveil.em.kernels.dispatch import encode
from crowdveil.em.kernels.interface import ScoreTables
from crowdveil.em.kernels.numpy_backend import EncodedBlock, largest_change
from tests.estimators.dense import LABELS, random_reports

TASKS, WORKERS = 300, 20
Take = Callable[[EncodedBlock, Any, Any], Any]


def coin(coded: EncodedBlock, rng: Any, before: Any) -> Any:
    """Soft-max votes."""
    return coded.one_coin_step(rng.uniform(0, 2, WORKERS), np.log([0.2, 0.3, 0.5]), gold(rng), before)


def election(coded: EncodedBlock, rng: Any, before: Any) -> Any:
    """Hold an election."""
    return coded.plurality_step(rng.uniform(0, 2, WORKERS), 1e-9, 3, gold(rng), before)


def table(coded: EncodedBlock, rng: Any, before: Any) -> Any:
    """Soft-max scores of two groups of tasks."""
    tables = ScoreTables(rng.normal(size=(3 * WORKERS, 3)), rng.normal(size=(2, 3)))
    return coded.confusion_step(tables, np.arange(TASKS) % 2, gold(rng), before)


def mean(coded: EncodedBlock, rng: Any, before: Any) -> Any:
    """Average numbers; tasks without reports are nan."""
    return coded.mean_step(rng.uniform(0, 2, WORKERS), 1e-12, np.where(gold(rng) >= 0, 2.0, np.nan), before)


def gold(rng: Any) -> Any:
    """Return the truth of a few tasks."""
    return np.where(rng.random(TASKS) < 0.05, rng.integers(0, 3, TASKS), -1)


@pytest.mark.slow
@pytest.mark.parametrize("take", [coin, election, table, mean])
@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_a_step_may_write_over_the_one_before(take: Take, compiled: bool) -> None:
    """Over the old posterior or in a place of its own, a step gives the same bits; only compiled ones write over it."""
    scale = Scale(1, 3)
    reports = random_reports(np.random.default_rng(0), scale if take is mean else LABELS, TASKS, WORKERS, share=0.15)
    (block,) = reports.blocks()
    points = scale.values if take is mean else None
    coded = encode(block, WORKERS, 3, points, compiled=compiled)
    before = take(coded, np.random.default_rng(1), None)[0]
    kept = before.copy()

    own = take(coded, np.random.default_rng(2), None)
    over = take(coded, np.random.default_rng(2), before)

    for one, other in zip(own[:-1], over[:-1], strict=True):
        np.testing.assert_array_equal(one, other)
    assert own.change is None
    assert (over[0] is before) == compiled
    if compiled:
        assert largest_change(own[0], kept) == over.change > 0.01
    else:
        assert over.change is None
        np.testing.assert_array_equal(before, kept)


@pytest.mark.slow
def test_a_posterior_that_does_not_lie_row_by_row_stays() -> None:
    """Where the old posterior cannot be written over as it lies, the new one gets a place of its own."""
    reports = random_reports(np.random.default_rng(0), LABELS, TASKS, WORKERS, share=0.15)
    coded = encode(next(iter(reports.blocks())), WORKERS, 3, compiled=True)
    before = np.asfortranarray(coin(coded, np.random.default_rng(1), None).posterior)
    kept = before.copy()

    step = coin(coded, np.random.default_rng(2), before)

    assert step.change is None
    np.testing.assert_array_equal(before, kept)
    np.testing.assert_array_equal(step.posterior, coin(coded, np.random.default_rng(2), None).posterior)
