"""Sums of reports by task and group of workers, with survey weights, and their second moments over sampled units.

A row is a task (or all tasks, pooled) and a group of workers. Estimates need the weighted sums of its reports by
symbol, and for their variance the sums of x x' over units, where x holds the weighted sums of one unit: a cell, or a
worker whose tasks are pooled, or a cluster of workers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.blocks import Block
from crowdveil.answers.reports import Reports
from crowdveil.em.observation_model import NO_IMPLICIT_NULL, ObservationModel

NO_GROUP = -1
"""Code of a worker in no group."""


class ReportSums(NamedTuple):
    """Sums of reports, and of their products over units.

    Attributes:
        total: weighted sums, indexed [task, group, report].
        squares: sums of x x' over units: indexed [task, group, report, report], or [task, group, report] where units
            are single cells, so that x x' is diagonal.
        units: number of units, indexed [task, group].
    """

    total: NDArray[np.float64]
    squares: NDArray[np.float64]
    units: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """Cells of a collection, by symbol of their reports.

    Attributes:
        reports: listed reports, coded by symbol.
        model: P(symbol | answer), and the cells with implicit NULL.
        symbols: names of the inputs: labels; then NULL if participation is protected.
    """

    reports: Reports
    model: ObservationModel
    symbols: tuple[str, ...]

    def counts(self, group: NDArray[np.int64], groups: int) -> NDArray[np.float64]:
        """Return the number of reports, indexed [task, group, report]; `group` has the code of each worker."""
        return self.sums(group, groups, None).total

    def sums(self, group: NDArray[np.int64], groups: int, weight: NDArray[np.float64] | None) -> ReportSums:
        """Return sums in which units are single cells; `weight` is that of each worker, None for 1."""
        each = np.ones(len(group)) if weight is None else weight
        total = self._weighted(group, groups, each)
        plain = total if weight is None else self._weighted(group, groups, np.ones(len(group)))
        squares = total if weight is None else self._weighted(group, groups, each**2)
        return ReportSums(total, squares, plain.sum(axis=2))

    def unit_sums(
        self, group: NDArray[np.int64], groups: int, weight: NDArray[np.float64] | None, unit: NDArray[np.int64],
        *, pooled: bool,
    ) -> ReportSums:  # fmt: skip
        """Return sums over units, by task or pooled over tasks; `unit` has the code of each worker."""
        each = np.ones(len(group)) if weight is None else weight
        symbols, found = len(self.model.channel), list[ReportSums]()
        wide = unit.astype(np.int64) * groups + group
        size = (int(unit.max(initial=0)) + 1) * groups
        pooled_sums = np.zeros((size, symbols))
        for block, tasks in self._tasks():
            sums = self._unit_sums_of_tasks(block, tasks, wide, size, each, group != NO_GROUP)
            if pooled:
                pooled_sums += sums
            else:
                found.append(_moments_over_units(sums, groups))
        if pooled:
            found.append(_moments_over_units(pooled_sums, groups))
        return ReportSums(*(np.stack(part) for part in zip(*found, strict=True)))

    def _weighted(self, group: NDArray[np.int64], groups: int, each: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of one number of each worker over the reports, indexed [task, group, report]."""
        model, parts = self.model, list[NDArray[np.float64]]()
        listed, used = model.listed_symbol_count, group != NO_GROUP
        cells = self._implicit_null_cells(group, groups, each)
        for block in self.reports.blocks():
            kept = used[block.worker]
            task, worker = block.task[kept].astype(np.int64), block.worker[kept]
            key = (task * groups + group[worker]) * listed + block.value[kept]
            sums = np.bincount(key, each[worker], minlength=block.tasks * groups * listed)
            sums = sums.reshape(block.tasks, groups, listed)
            implicit = cells[model.task_group[block.first : block.stop]]
            implicit = implicit - sums @ model.replaced_nulls()
            parts.append(np.concatenate((sums, implicit), axis=2))
        return np.concatenate(parts)

    def _implicit_null_cells(
        self, group: NDArray[np.int64], groups: int, each: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the sums over all workers with each implicit NULL, indexed [task group, group, implicit NULL]."""
        model, used = self.model, group != NO_GROUP
        cells = np.zeros((model.task_groups, groups, model.implicit_null_count))
        for task_group in range(model.task_groups):
            chosen = model.choice[model.worker_group, task_group]
            kept = used & (chosen != NO_IMPLICIT_NULL)
            np.add.at(cells[task_group], (group[kept], chosen[kept]), each[kept])
        return cells

    def _tasks(self) -> Iterator[tuple[Block, int]]:
        """Yield each task alone as a block, with its code."""
        for block in self.reports.blocks():
            for place in range(block.tasks):
                yield block.slice_tasks(slice(place, place + 1)), block.first + place

    def _unit_sums_of_tasks(
        self, block: Block, task: int, wide: NDArray[np.int64], size: int, each: NDArray[np.float64],
        used: NDArray[np.bool_],
    ) -> NDArray[np.float64]:  # fmt: skip
        """Return the sums of one task by unit and group, indexed [unit and group, report]."""
        model, kept = self.model, used[block.worker]
        worker, listed = block.worker[kept], model.listed_symbol_count
        sums = np.bincount(wide[worker] * listed + block.value[kept], each[worker], minlength=size * listed)
        sums = sums.reshape(size, listed)
        chosen = model.choice[model.worker_group, model.task_group[task]]
        asked = np.zeros((size, model.implicit_null_count))
        silent = used & (chosen != NO_IMPLICIT_NULL)
        np.add.at(asked, (wide[silent], chosen[silent]), each[silent])
        return np.concatenate((sums, asked - sums @ model.replaced_nulls()), axis=1)


def _moments_over_units(sums: NDArray[np.float64], groups: int) -> ReportSums:
    """Return the sums and second moments of each group, from those of each unit and group."""
    by_group = sums.reshape(-1, groups, sums.shape[1])
    return ReportSums(
        by_group.sum(axis=0),
        np.einsum("ugx,ugy->gxy", by_group, by_group),
        np.abs(by_group).any(axis=2).sum(axis=0).astype(float),
    )


def asked_cells(
    cells: Cells, group: NDArray[np.int64], groups: int, assignment: Assignment | None, *, known: bool,
    weight: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the weight of the cells asked, indexed [task, group]; where it is not known, that of the reports.

    Args:
        cells: the reports.
        group, groups: code of the group of each worker, and number of groups.
        weight: of each worker; None for 1, so that the result is the number of cells.
        assignment: the cells that were asked, if not all.
        known: whether the lists of tasks and workers hold all who were asked.
    """
    reports, kept = cells.reports, group != NO_GROUP
    each = np.ones(len(group)) if weight is None else weight
    if assignment is not None:
        workers = len(reports.workers)
        task, worker = np.divmod(assignment.recoded_cells(reports.tasks, reports.workers), workers)
        task, worker = task[kept[worker]], worker[kept[worker]]
        key = task * groups + group[worker]
        counted = np.bincount(key, each[worker], minlength=len(reports.tasks) * groups)
        return counted.astype(np.float64).reshape(-1, groups)
    if known or cells.model.protected:
        sizes = np.bincount(group[kept], each[kept], minlength=groups).astype(np.float64)
        return np.broadcast_to(sizes, (len(reports.tasks), groups)).copy()
    return cells.sums(group, groups, weight).total.sum(axis=2)
