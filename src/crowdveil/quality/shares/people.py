"""Public columns of workers: groups, survey weights, clusters and covariates."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.frames import as_table, is_frame
from crowdveil.answers.identifiers import Identifiers
from crowdveil.display.counts import number_of
from crowdveil.errors import SettingsError
from crowdveil.hints import advice
from crowdveil.quality.shares.counts import NO_GROUP

WORKER = "worker"
"""Name of the column of workers."""
SHOWN_NAMES = 3
"""Names in an error."""


class Grouping(NamedTuple):
    """Groups of workers by one public column.

    Attributes:
        by: name of the column; empty for the group of everyone.
        names: of the groups.
        code: group of each worker, NO_GROUP for none; shape (workers,).
    """

    by: str
    names: tuple[str, ...]
    code: NDArray[np.int64]

    def sizes(self) -> NDArray[np.int64]:
        """Return the number of workers in each group."""
        return np.bincount(self.code[self.code != NO_GROUP], minlength=len(self.names))


def everyone(workers: int) -> Grouping:
    """Return the grouping with one group of all workers."""
    return Grouping("", ("",), np.zeros(workers, dtype=np.int64))


def columns_of_workers(given: Any, name: str, workers: Identifiers, title: str = "") -> dict[str, list[Any]]:
    """Return the columns of a table of workers, each in the order of the workers; None where a worker has no value.

    Args:
        given: a frame with the column "worker" and others, or one value for each worker.
        name: name of the argument.
        title: name of the column of a mapping from workers to values, by default that of the argument.
        workers: names of the workers asked.

    Raises:
        SettingsError: no frame and no mapping, no column of workers, a worker twice, or one who was not asked.
    """
    names, columns = _names_and_columns(given, name, title or name)
    place = {str(worker): code for code, worker in enumerate(np.asarray(workers))}
    unknown = [one for one in names if one not in place]
    if unknown:
        raise SettingsError(
            f"{name} must be of workers who were asked",
            value=", ".join(unknown[:SHOWN_NAMES]),
            hint=f"{number_of(len(unknown), 'worker')} {'is' if len(unknown) == 1 else 'are'} unknown: leave them out"
            + advice(", or list all who were asked: {tasks} and {workers}")
            + ".",
        )
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise SettingsError(f"{name} must have one row for each worker", value=twice, hint="Keep one of the rows.")
    found = dict[str, list[Any]]()
    for heading, cells in columns.items():
        own: list[Any] = [None] * len(workers)
        for worker, cell in zip(names, cells, strict=True):
            own[place[worker]] = None if cell is None or cell != cell or cell == "" else cell
        found[heading] = own
    return found


def _names_and_columns(given: Any, name: str, title: str) -> tuple[list[str], dict[str, list[Any]]]:
    """Return the names of workers, as text, and the other columns."""
    if isinstance(given, Mapping) and WORKER not in given:
        return list(map(str, given)), {title: list(given.values())}
    if not is_frame(given):
        hint = "Such as {'worker': ['ann', 'bob'], 'sex': ['f', 'm']}, or {'ann': 'f', 'bob': 'm'}."
        raise SettingsError(f"{name} must be a table of workers", value=type(given).__name__, hint=hint)
    table = as_table(given, source=name)
    others = [column for column in table.column_names if column != WORKER]
    if len(others) == len(table.column_names) or not others:
        rule = f"{name} must have the column {WORKER!r} and another one"
        raise SettingsError(rule, value=", ".join(table.column_names), hint=f"Name the workers' column {WORKER!r}.")
    return list(map(str, table[WORKER].to_pylist())), {column: table[column].to_pylist() for column in others}


def read_groupings(given: Any, workers: Identifiers, *, least: int) -> tuple[tuple[Grouping, ...], tuple[str, ...]]:
    """Return the groups of each column, and notes on workers and groups that are not shown.

    Groups of fewer than `least` workers are joined into one; if it is still smaller, it is not shown.

    Raises:
        SettingsError: as `columns_of_workers`.
    """
    found, notes = list[Grouping](), list[str]()
    for by, cells in columns_of_workers(given, "by", workers, "group").items():
        grouping, said = _grouping_of_column(by, [None if cell is None else str(cell) for cell in cells], least)
        found.append(grouping)
        notes.extend(said)
    return tuple(found), tuple(notes)


def _grouping_of_column(by: str, cells: Sequence[str | None], least: int) -> tuple[Grouping, list[str]]:
    sizes = Counter(cell for cell in cells if cell is not None)
    names = sorted(sizes)
    small = [name for name in names if sizes[name] < least]
    kept = [name for name in names if sizes[name] >= least]
    joined, notes = sum(sizes[name] for name in small), list[str]()
    code = {name: place for place, name in enumerate(kept)}
    if small and joined >= least:
        code |= dict.fromkeys(small, len(kept))
        kept.append(f"others ({', '.join(small[:SHOWN_NAMES])}{', ...' if len(small) > SHOWN_NAMES else ''})")
        notes.append(f"{by}: {number_of(len(small), 'group')} of fewer than {least} workers are joined.")
    elif small:
        groups = f"{number_of(len(small), 'group')} ({number_of(joined, 'worker')})"
        notes.append(f"{by}: {groups} of fewer than {least} workers {'is' if len(small) == 1 else 'are'} not shown.")
    without = sum(cell is None for cell in cells)
    if without:
        notes.append(f"{by}: {number_of(without, 'worker')} without a group {'is' if without == 1 else 'are'} in none.")
    codes = np.array([NO_GROUP if cell is None else code.get(cell, NO_GROUP) for cell in cells], dtype=np.int64)
    return Grouping(by, tuple(kept), codes), notes


def read_weights(given: Any, workers: Identifiers) -> NDArray[np.float64]:
    """Return the survey weight of each worker.

    Raises:
        SettingsError: as `columns_of_workers`, or a worker without a weight, or one that is not positive.
    """
    columns = columns_of_workers(given, "weights", workers)
    cells = _single_column(columns, "weights")
    numbers = np.array([_number_or_nan(cell) for cell in cells])
    wrong = np.flatnonzero(~((numbers > 0) & (numbers < np.inf)))
    if wrong.size:
        cell = cells[wrong[0]]
        raise SettingsError(
            "weights must be positive numbers, one for each worker asked",
            value=f"{'none' if cell is None else cell} of worker {workers[int(wrong[0])]}",
            hint="A weight is the number of people that a worker stands for; leave out who was not asked.",
        )
    return numbers


def read_clusters(given: Any, workers: Identifiers) -> NDArray[np.int64]:
    """Return the code of the cluster of each worker; raises SettingsError as `read_weights`."""
    cells = _single_column(columns_of_workers(given, "clusters", workers), "clusters")
    for worker, cell in zip(np.asarray(workers), cells, strict=True):
        if cell is None:
            hint = "A worker who was sampled alone is a cluster of one."
            raise SettingsError("clusters must have a row for each worker asked", value=str(worker), hint=hint)
    return np.unique([str(cell) for cell in cells], return_inverse=True)[1].ravel()


def _single_column(columns: Mapping[str, list[Any]], name: str) -> list[Any]:
    if len(columns) > 1:
        hint = f"Leave all but one out, beside {WORKER!r}."
        raise SettingsError(f"{name} must be one column", value=", ".join(columns), hint=hint)
    return next(iter(columns.values()))


def _number_or_nan(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return float("nan")


def shares_of_totals(given: Any, grouping: Grouping, notes: Sequence[str]) -> NDArray[np.float64]:
    """Return the share of the population in each group, from known totals.

    Raises:
        SettingsError: totals that are no positive numbers, or not those of the groups.
    """
    if not isinstance(given, Mapping):
        hint = "Such as {'f': 5120, 'm': 4880}."
        raise SettingsError("totals must be a number for each group", value=type(given).__name__, hint=hint)
    totals = {str(name): _number_or_nan(total) for name, total in given.items()}
    wrong = [name for name, total in totals.items() if not 0 < total < np.inf]
    if wrong:
        hint = "Give the number of people in each group."
        raise SettingsError("totals must be positive numbers", value=f"{given.get(wrong[0])} of {wrong[0]}", hint=hint)
    if set(totals) != set(grouping.names) or (grouping.code == NO_GROUP).any():
        raise SettingsError(
            f"totals must be of the groups by {grouping.by!r}, and every worker in one of them",
            value=f"totals of {', '.join(totals)}; groups {', '.join(grouping.names)}",
            hint=" ".join(["Join small groups in the table.", *notes]),
        )
    found = np.array([totals[name] for name in grouping.names])
    return np.asarray(found / found.sum())
