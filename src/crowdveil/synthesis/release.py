"""What a trusted curator publishes: synthetic rows, what they promise, and what was withheld and why.

A mode of release is a frozen value of settings with `release(claims, source)`; `Release` is what every mode returns.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.guarantee import Guarantee, Participation, Unit
from crowdveil.data.reports import Reports
from crowdveil.errors import SettingsError
from crowdveil.randomness import Secure, Source
from crowdveil.synthesis.claims import Claims

SECURE = Secure()
"""The source a release uses unless told otherwise: a seed is for experiments."""


class CurvePoint(NamedTuple):
    """One (epsilon, delta) at which a release is differentially private.

    Attributes:
        epsilon: in nats; infinity where nothing is promised.
        delta: in [0, 1]; a point with delta 1 promises nothing either.
        t: the accounting parameter the point belongs to, of no effect on the release; None where there is none.
    """

    epsilon: float
    delta: float
    t: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """All points of one unit: each holds by itself, a reader picks one.

    Attributes:
        unit: "cell": one claim changes; "worker": any of one worker's claims do.
        exact: what is true (proved), in ascending order of t.
        claimed: what the source of the mode says, in the same order; empty if there is no such claim.
        reason: why `exact` is not `claimed`, or why it is infinite; empty if there is nothing to explain.
        participation: "public": neighbours replace claims; "protected": they add, remove or replace them.
    """

    unit: Unit
    exact: tuple[CurvePoint, ...]
    claimed: tuple[CurvePoint, ...] = ()
    reason: str = ""
    participation: Participation = "public"

    def guarantee(self, largest_delta: float) -> Guarantee:
        """Return the point of the smallest epsilon whose delta is at most `largest_delta`; infinity if there is none.

        `claimed` is chosen among the claimed points in the same way.
        """
        held = _smallest(self.exact, largest_delta)
        printed = _smallest(self.claimed, largest_delta)
        return Guarantee(
            epsilon=held.epsilon,
            delta=held.delta,
            unit=self.unit,
            participation=self.participation,
            claimed=printed.epsilon if self.claimed else None,
            reason=self.reason,
        )


class Withheld(NamedTuple):
    """Tasks that released less than asked, for one reason.

    Attributes:
        reason: one clause.
        tasks: how many tasks.
        records: how many records are missing because of it.
    """

    reason: str
    tasks: int
    records: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """Synthetic claims and what is promised about the real ones.

    Attributes:
        mode: name of the mode that made it.
        task: codes into `tasks`, int32, ascending, shape (records,).
        worker: numbers of made-up workers, int32, shape (records,): 0, 1, ... within every task; they say nothing about
            real workers.
        value: synthetic numbers, float64, shape (records,), in the units of the task.
        tasks: names of all tasks, those without a record included.
        curves: one per unit, "cell" and then "worker".
        withheld: what was not released and why.
        simulation: True if the randomness came from a seed; then nothing is protected, whatever the curves say.
    """

    mode: str
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
        """Number of synthetic records."""
        return len(self.value)

    @property
    def worker_names(self) -> NDArray[np.str_]:
        """Names of the made-up workers in code order: "s1", "s2", ..."""
        most = int(self.worker.max(initial=-1)) + 1
        return np.array([f"s{number}" for number in range(1, most + 1)], dtype=np.str_)

    def guarantees(self, largest_delta: float = 1e-6) -> tuple[Guarantee, ...]:
        """Return, for every curve, the smallest epsilon whose delta is at most `largest_delta`."""
        return tuple(curve.guarantee(largest_delta) for curve in self.curves)

    def reports(self) -> Reports:
        """Return the records as `Reports` of free numbers, as truth inference reads them."""
        return Reports(self.task, self.worker, self.value, self.tasks, self.worker_names)


class Mode(Protocol):
    """A way of releasing; implementations are frozen, keyword-only dataclasses of settings."""

    name: ClassVar[str]

    def release(self, claims: Claims, source: Source = SECURE) -> Release:
        """Return synthetic claims for every task that can have them; secure randomness unless told otherwise."""
        ...


def fresh_workers(task: NDArray[np.integer]) -> NDArray[np.int32]:
    """Number the records of every task 0, 1, ...; `task` is ascending, shape (records,)."""
    first = np.searchsorted(task, task, side="left")
    return (np.arange(len(task)) - first).astype(np.int32)


def _smallest(points: tuple[CurvePoint, ...], largest_delta: float) -> CurvePoint:
    held = [point for point in points if point.delta <= largest_delta and point.delta < 1]
    return min(held, default=CurvePoint(float("inf"), 0.0))
