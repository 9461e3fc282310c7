"""Release of synthetic claims: records, privacy curves, and the tasks and records that were withheld.

A release method is a frozen dataclass of settings with a `name` and `release(claims, source) -> Release`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.guarantee import Guarantee, Participation, Unit
from crowdveil.data.reports import Reports
from crowdveil.errors import SettingsError
from crowdveil.randomness import Secure

SECURE = Secure()
"""Default source of randomness of every release; seeds are for simulations."""


class CurvePoint(NamedTuple):
    """A pair (epsilon, delta) for which a release is differentially private.

    Attributes:
        epsilon: in nats; infinity is no guarantee.
        delta: in [0, 1]; 1 is no guarantee.
        t: parameter of the proof that gives this point, without effect on the release; None if there is none.
    """

    epsilon: float
    delta: float
    t: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Privacy curve of one unit; each of its points holds by itself.

    Attributes:
        unit: "cell": neighbours differ in one claim; "worker": in any claims of one worker.
        exact: proved points, in ascending order of t.
        claimed: points that the method's source claims, in the same order; empty if it claims none.
        reason: why `exact` differs from `claimed` or is infinite; empty if there is nothing to explain.
        participation: "public": neighbours replace claims; "protected": they add, remove or replace them.
    """

    unit: Unit
    exact: tuple[CurvePoint, ...]
    claimed: tuple[CurvePoint, ...] = ()
    reason: str = ""
    participation: Participation = "public"

    def guarantee(self, largest_delta: float) -> Guarantee:
        """Return the guarantee with the smallest epsilon at delta <= `largest_delta`, infinity if there is none.

        `claimed` is selected among the claimed points by the same rule.
        """
        exact = _smallest_epsilon(self.exact, largest_delta)
        claimed = _smallest_epsilon(self.claimed, largest_delta)
        return Guarantee(
            epsilon=exact.epsilon,
            delta=exact.delta,
            unit=self.unit,
            participation=self.participation,
            claimed=claimed.epsilon if self.claimed else None,
            reason=self.reason,
        )


class Withheld(NamedTuple):
    """Tasks with fewer records than requested, for one reason.

    Attributes:
        reason: one clause.
        tasks: number of these tasks.
        records: number of missing records.
    """

    reason: str
    tasks: int
    records: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """Synthetic claims and the guarantee for the original ones.

    Attributes:
        method: name of the release method.
        task: codes into `tasks`, int32, ascending, shape (records,).
        worker: synthetic worker codes, int32, shape (records,): 0, 1, ... within every task, unrelated to real workers.
        value: synthetic numbers, float64, shape (records,), in the units of the task.
        tasks: identifiers of all tasks, including those without a record.
        curves: one per unit, "cell" and then "worker".
        withheld: tasks and records that were not released, by reason.
        simulation: True if the randomness came from a seed; then the curves do not hold.
    """

    method: str
    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    value: NDArray[np.float64]
    tasks: NDArray[Any]
    curves: tuple[Curve, ...]
    withheld: tuple[Withheld, ...]
    simulation: bool

    def __post_init__(self) -> None:
        if not len(self.task) == len(self.worker) == len(self.value):
            lengths = len(self.task), len(self.worker), len(self.value)
            raise SettingsError("task, worker and value must have equal lengths", value=lengths)
        for name, dtype in (("task", np.int32), ("worker", np.int32), ("value", np.float64)):
            column = np.array(getattr(self, name), dtype=dtype)
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        """Return the number of synthetic records."""
        return len(self.value)

    @property
    def worker_names(self) -> NDArray[np.str_]:
        """Names of the synthetic workers in code order: "s1", "s2", ..."""
        most = int(self.worker.max(initial=-1)) + 1
        return np.array([f"s{number}" for number in range(1, most + 1)], dtype=np.str_)

    def guarantees(self, largest_delta: float = 1e-6) -> tuple[Guarantee, ...]:
        """Return for every curve the guarantee with the smallest epsilon at delta <= `largest_delta`."""
        return tuple(curve.guarantee(largest_delta) for curve in self.curves)

    def reports(self) -> Reports:
        """Return the records as numeric `Reports`, the input of truth inference."""
        return Reports(self.task, self.worker, self.value, self.tasks, self.worker_names)


def number_workers(task: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return synthetic worker codes 0, 1, ... within every task; `task` is ascending, shape (records,)."""
    first = np.searchsorted(task, task, side="left")
    return (np.arange(len(task)) - first).astype(np.int32)


def _smallest_epsilon(points: tuple[CurvePoint, ...], largest_delta: float) -> CurvePoint:
    usable = [point for point in points if point.delta <= largest_delta and point.delta < 1]
    return min(usable, default=CurvePoint(float("inf"), 0.0))
