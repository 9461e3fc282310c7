"""Release of synthetic claims: records, guarantees, and the tasks and records that were withheld.

A release method is a frozen dataclass of settings with a `name` and `release(claims, source) -> Release`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Reports
from crowdveil.channels.guarantee import Guarantee
from crowdveil.errors import SettingsError
from crowdveil.randomness import Secure

SECURE = Secure()
"""Default source of randomness of every release; seeds are for simulations."""


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
        value: synthetic numbers, float64, shape (records,), in the units of the task.
        tasks: identifiers of all tasks, including those without a record.
        guarantees: for any change of one claim ("cell"), and of all claims of one worker.
        withheld: tasks and records that were not released, by reason.
        simulation: True if the randomness came from a seed; then the guarantees do not hold.
    """

    method: str
    task: NDArray[np.int32]
    value: NDArray[np.float64]
    tasks: NDArray[Any]
    guarantees: tuple[Guarantee, Guarantee]
    withheld: tuple[Withheld, ...]
    simulation: bool

    def __post_init__(self) -> None:
        if len(self.task) != len(self.value):
            raise SettingsError("task and value must have equal lengths", value=(len(self.task), len(self.value)))
        for name, dtype in (("task", np.int32), ("value", np.float64)):
            column = np.array(getattr(self, name), dtype=dtype)
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        """Return the number of synthetic records."""
        return len(self.value)

    def reports(self) -> Reports:
        """Return the records as numeric `Reports`, the input of truth inference.

        Their synthetic workers "s1", "s2", ... are counted within every task, and unrelated to the real ones.
        """
        worker = np.arange(len(self.task)) - np.searchsorted(self.task, self.task, side="left")
        names = np.array([f"s{number}" for number in range(1, int(worker.max(initial=-1)) + 2)], dtype=np.str_)
        return Reports(self.task, worker.astype(np.int32), self.value, self.tasks, names)
