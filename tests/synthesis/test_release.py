"""Releases: fresh workers, curves and the guarantee read off them."""

import math

import numpy as np
import pytest

from crowdveil.errors import SettingsError
from crowdveil.synthesis.release import Curve, CurvePoint, Release, number_workers

CURVE = Curve(
    unit="cell",
    exact=(CurvePoint(3.0, 1e-9, 1), CurvePoint(2.0, 1e-3, 2), CurvePoint(1.0, 1.0, 3)),
    claimed=(CurvePoint(1.5, 1e-9, 1), CurvePoint(0.5, 1e-2, 2)),
    reason="why",
)


def test_the_smallest_epsilon_within_delta_is_read_off() -> None:
    """Exact and claimed epsilon are chosen at the same largest delta, each on its own curve."""
    strict, loose = CURVE.guarantee(1e-6), CURVE.guarantee(0.01)

    assert (strict.epsilon, strict.delta, strict.claimed) == (3.0, 1e-9, 1.5)
    assert (loose.epsilon, loose.delta, loose.claimed) == (2.0, 1e-3, 0.5)
    assert (loose.unit, loose.participation, loose.reason) == ("cell", "public", "why")


def test_a_delta_of_one_is_no_guarantee() -> None:
    """Delta 1 is never sold as a finite epsilon, however large a delta is accepted."""
    worthless = Curve(unit="worker", exact=(CurvePoint(1.0, 1.0, 1),))

    assert math.isinf(worthless.guarantee(1.0).epsilon)
    assert worthless.guarantee(1.0).claimed is None


def test_workers_are_numbered_within_their_task() -> None:
    """The first record of every task belongs to synthetic worker 0, and the release reads as reports."""
    task = np.array([0, 0, 2, 2, 2])
    made = Release(
        method="test",
        task=task,
        worker=number_workers(task),
        value=np.arange(5.0),
        tasks=np.array(["a", "b", "c"]),
        curves=(CURVE,),
        withheld=(),
        simulation=True,
    )

    assert made.worker.tolist() == [0, 1, 0, 1, 2]
    assert made.worker_names.tolist() == ["s1", "s2", "s3"]
    assert made.reports().per_task.tolist() == [2, 0, 3]
    assert [guarantee.epsilon for guarantee in made.guarantees(0.5)] == [2.0]


def test_columns_have_one_length() -> None:
    """A release with more tasks than values is refused."""
    with pytest.raises(SettingsError, match="equal lengths"):
        Release(
            method="test",
            task=np.zeros(2),
            worker=np.zeros(2),
            value=np.zeros(1),
            tasks=np.array(["a"]),
            curves=(),
            withheld=(),
            simulation=True,
        )
