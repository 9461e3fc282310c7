"""Reports that have grown since a fit, in that fit's order of tasks and workers; new ones come after the old."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import ReportsError
from crowdveil.estimate import Estimate
from crowdveil.incremental.saved_fit import SavedFit
from crowdveil.reports import Reports
from crowdveil.storage.names import NameList


@dataclass(frozen=True, eq=False)
class Grown:
    """All reports, old tasks and workers first.

    Attributes:
        reports: in the new order.
        task, worker: the place of each task and worker of the original reports in it; None where the order is theirs.
    """

    reports: Reports
    task: NDArray[np.int64] | None = None
    worker: NDArray[np.int64] | None = None

    @property
    def task_names(self) -> list[str]:
        """Names of tasks as text, in the new order."""
        return [str(name) for name in self.reports.tasks]

    @property
    def worker_names(self) -> list[str]:
        """Names of workers as text, in the new order."""
        return [str(name) for name in self.reports.workers]

    def restored(self, estimate: Estimate, original: Reports) -> Estimate:
        """Return the estimate in the order of the original reports."""
        if self.task is None or self.worker is None:
            return estimate
        workers: Any = estimate.workers
        table = {field.name: getattr(workers, field.name) for field in fields(workers)}
        table = {name: column[self.worker] for name, column in table.items() if isinstance(column, np.ndarray)}
        return replace(
            estimate,
            tasks=original.tasks,
            posterior=estimate.posterior[self.task],
            reports_per_task=estimate.reports_per_task[self.task],
            worker_names=original.workers,
            workers=replace(estimate.workers, **table),
            reports_per_worker=estimate.reports_per_worker[self.worker],
            low=None if estimate.low is None else estimate.low[self.task],
            high=None if estimate.high is None else estimate.high[self.task],
        )


def grown(reports: Reports, saved: SavedFit | None) -> Grown:
    """Put reports into the order of a saved fit.

    Raises:
        ReportsError: a task or worker of the saved fit is missing.
    """
    if saved is None:
        return Grown(reports)
    task = _places(reports.tasks, saved.tasks, "task")
    worker = _places(reports.workers, saved.workers, "worker")
    if (np.diff(task) == 1).all() and (np.diff(worker) == 1).all():
        return Grown(reports)
    ordered = Reports(
        task[reports.task].astype(np.int32),
        worker[reports.worker].astype(np.int32),
        reports.value,
        reports.tasks[np.argsort(task)],
        reports.workers[np.argsort(worker)],
        reports.alphabet,
        reports.public_lists,
    )
    return Grown(ordered, task, worker)


def _places(names: NameList, saved: list[str], what: str) -> NDArray[np.int64]:
    """Return the place of each name: that of the saved one, or after all of them."""
    known = {name: place for place, name in enumerate(saved)}
    places = np.array([known.pop(str(name), -1) for name in names.tolist()], dtype=np.int64)
    if known:
        raise ReportsError(
            f"a fit goes on with every {what} that it knows, {len(known):,} are missing",
            examples=", ".join(list(known)[:3]),
            way_out=f"Give all reports, old ones included, or list every {what}; or fit from the start.",
        )
    new = places < 0
    places[new] = len(saved) + np.arange(int(new.sum()))
    return places
