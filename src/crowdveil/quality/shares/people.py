"""Public columns of workers: groups, survey weights, clusters and covariates."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.facts.label_notes import ABSENT
from crowdveil.answers.frames import as_table, is_frame
from crowdveil.answers.ingest.column_checks import number_or_nan
from crowdveil.answers.ingest.column_readers import NO_ANSWER
from crowdveil.answers.ingest.labels import spelling_groups
from crowdveil.answers.reports import Reports
from crowdveil.display.counts import number_of, verb_of
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


def columns_of_workers(given: Any, name: str, reports: Reports, title: str = "") -> dict[str, list[Any]]:
    """Return the columns of a table of workers, each in the order of the workers; None where a worker has no value.

    Args:
        given: a frame with the column "worker" and others, or one value for each worker.
        name: what the columns hold, such as "groups".
        reports: have the names of the workers asked.
        title: name of the column of a mapping from workers to values, by default what it holds.

    Raises:
        SettingsError: no frame and no mapping, no column of workers, a column without a name, a worker twice, or one
            who was not asked.
    """
    names, columns = _names_and_columns(given, name, title or name)
    workers = reports.workers
    place = {str(worker): code for code, worker in enumerate(np.asarray(workers))}
    unknown = [one for one in names if one not in place]
    if unknown:
        raise SettingsError(
            f"{name} must be of workers who were asked",
            value=", ".join(unknown[:SHOWN_NAMES]),
            hint=f"{number_of(len(unknown), 'worker')} {verb_of(len(unknown), 'is', 'are')} unknown: leave them out"
            + ("" if reports.asked.cells_known else advice(", or list all who were asked: {tasks} and {workers}"))
            + ".",
        )
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise SettingsError(f"{name} must have one row for each worker", value=twice, hint="Keep one of the rows.")
    found = dict[str, list[Any]]()
    for heading, cells in columns.items():
        own: list[Any] = [None] * len(workers)
        for worker, cell in zip(names, cells, strict=True):
            own[place[worker]] = None if cell is None or cell != cell or cell in NO_ANSWER else cell
        found[heading] = own
    return found


def cell_text(cell: Any) -> str:
    """Return a cell as text; a whole number without decimals, since an empty cell in its column made it a float.

    >>> cell_text(1.0), cell_text(1.5), cell_text("1.0")
    ('1', '1.5', '1.0')
    """
    return str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)


def absent_note(column: str, cells: Sequence[Any], kind: str) -> tuple[str, ...]:
    """Return a note on texts that stand for no value in other programs, such as "NA"; empty without any."""
    found = sorted({cell for cell in cells if isinstance(cell, str) and cell.strip().lower() in ABSENT})
    if not found:
        return ()
    listed = ", ".join(map(repr, found[:SHOWN_NAMES]))
    return (f"{column}: read as {kind}: {listed}. If this stands for no value, leave the cells empty.",)


def _names_and_columns(given: Any, name: str, title: str) -> tuple[list[str], dict[str, list[Any]]]:
    """Return the names of workers, as text, and the other columns."""
    columns = isinstance(given, Mapping) and any(isinstance(one, list | tuple) for one in given.values())
    if isinstance(given, Mapping) and WORKER not in given and not columns:
        return list(map(cell_text, given)), {title: list(given.values())}
    _require_distinct_columns(given, name)
    if not is_frame(given):
        hint = "Such as {'worker': ['ann', 'bob'], 'sex': ['f', 'm']}, or {'ann': 'f', 'bob': 'm'}."
        raise SettingsError(f"{name} must be a table of workers", value=type(given).__name__, hint=hint)
    table = as_table(given, source=name)
    others = [column for column in table.column_names if column != WORKER]
    if len(others) == len(table.column_names) or not others:
        rule = f"{name} must have the column {WORKER!r} and another one"
        raise SettingsError(rule, value=", ".join(table.column_names), hint=f"Name the workers' column {WORKER!r}.")
    if not all(column.strip() for column in others):
        hint = "Name it, or leave it out: programs write the numbers of rows in such a column."
        raise SettingsError(f"each column of {name} must have a name", value="", hint=hint)
    return list(map(cell_text, table[WORKER].to_pylist())), {column: table[column].to_pylist() for column in others}


def _require_distinct_columns(given: Any, name: str) -> None:
    """Refuse a frame of pandas, or a table of Arrow, in which two columns have one name."""
    from narwhals.dependencies import is_pandas_dataframe, is_pyarrow_table

    headings = given.columns if is_pandas_dataframe(given) else given.column_names if is_pyarrow_table(given) else ()
    twice = next((one for one, times in Counter(headings).items() if times > 1), None)
    if twice is not None:
        raise SettingsError(f"{name} must have one column of each name", value=twice, hint="Leave one of them out.")


def read_groupings(given: Any, reports: Reports, *, least: int) -> tuple[tuple[Grouping, ...], tuple[str, ...]]:
    """Return the groups of each column, and notes on workers and groups that are not shown.

    Groups of fewer than `least` workers are joined into one; if it is still smaller, it is not shown.

    Raises:
        SettingsError: as `columns_of_workers`.
    """
    found, notes = list[Grouping](), list[str]()
    for by, cells in columns_of_workers(given, "groups", reports, "group").items():
        texts = [None if cell is None else cell_text(cell) for cell in cells]
        grouping, said = _grouping_of_column(by, texts, least)
        found.append(grouping)
        notes += [*_similar_groups_note(by, texts), *absent_note(by, texts, "a group"), *said]
    return tuple(found), tuple(notes)


def _similar_groups_note(by: str, cells: Sequence[str | None]) -> list[str]:
    """Return a note on groups that differ only in spaces, case, Unicode form or number format; empty without any."""
    sizes = Counter(cell for cell in cells if cell is not None)
    names = sorted(sizes)
    similar = spelling_groups(names)
    if not similar:
        return []
    listed = "; ".join(
        ", ".join(f"{names[place]!r} ({number_of(sizes[names[place]], 'worker')})" for place in places[:SHOWN_NAMES])
        for places in similar[:SHOWN_NAMES]
    )
    more = f"; and {len(similar) - SHOWN_NAMES} more" if len(similar) > SHOWN_NAMES else ""
    return [f"{by}: these are read as different groups: {listed}{more}. Use one spelling for each group."]


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


def read_weights(given: Any, reports: Reports) -> NDArray[np.float64]:
    """Return the survey weight of each worker.

    Raises:
        SettingsError: as `columns_of_workers`, or a worker without a weight, or one that is not positive.
    """
    columns = columns_of_workers(given, "weights", reports)
    cells = _single_column(columns, "weights")
    numbers = np.array([number_or_nan(cell) for cell in cells])
    wrong = np.flatnonzero(~((numbers > 0) & (numbers < np.inf)))
    if wrong.size:
        cell = cells[wrong[0]]
        comma = " Write decimals with a point." if isinstance(cell, str) and "," in cell else ""
        raise SettingsError(
            "weights must be positive numbers, one for each worker asked",
            value=f"{'none' if cell is None else cell} of worker {reports.workers[int(wrong[0])]}",
            hint=f"A weight is the number of people that a worker stands for; leave out who was not asked.{comma}",
        )
    return _in_safe_range(numbers)


def _in_safe_range(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return positive numbers over a power of two, so that the largest is near 1 and no sum or square is infinite."""
    return np.asarray(np.ldexp(numbers, -int(np.frexp(numbers.max(initial=0.0))[1])))


def read_clusters(given: Any, reports: Reports) -> NDArray[np.int64]:
    """Return the code of the cluster of each worker; raises SettingsError as `read_weights`."""
    cells = _single_column(columns_of_workers(given, "clusters", reports), "clusters")
    for worker, cell in zip(np.asarray(reports.workers), cells, strict=True):
        if cell is None:
            hint = "A worker who was sampled alone is a cluster of one."
            raise SettingsError("clusters must have a row for each worker asked", value=str(worker), hint=hint)
    return np.unique([cell_text(cell) for cell in cells], return_inverse=True)[1].ravel()


def _single_column(columns: Mapping[str, list[Any]], name: str) -> list[Any]:
    if len(columns) > 1:
        hint = f"Leave all but one out, beside {WORKER!r}."
        raise SettingsError(f"{name} must be one column", value=", ".join(columns), hint=hint)
    return next(iter(columns.values()))


def shares_of_totals(given: Any, grouping: Grouping, notes: Sequence[str]) -> NDArray[np.float64]:
    """Return the share of the population in each group, from known totals.

    Raises:
        SettingsError: totals that are no positive numbers, or not those of the groups.
    """
    if not isinstance(given, Mapping):
        hint = "Such as {'f': 5120, 'm': 4880}."
        raise SettingsError("totals must be a number for each group", value=type(given).__name__, hint=hint)
    totals = {cell_text(name): number_or_nan(total) for name, total in given.items()}
    wrong = [name for name, total in totals.items() if not 0 < total < np.inf]
    if wrong:
        found = next(total for name, total in given.items() if cell_text(name) == wrong[0])
        hint = "Give the number of people in each group."
        raise SettingsError("totals must be positive numbers", value=f"{found} of {wrong[0]}", hint=hint)
    without = int((grouping.code == NO_GROUP).sum())
    missing = [f"no total of {name!r}" for name in grouping.names if name not in totals]
    missing += [f"no group {name!r}" for name in totals if name not in grouping.names]
    missing += [f"{number_of(without, 'worker')} in none of the groups"] * (without > 0)
    if missing:
        raise SettingsError(
            f"totals must be of the groups by {grouping.by!r}, and every worker in one of them",
            value="; ".join(missing[:SHOWN_NAMES]),
            hint=" ".join([advice("Join small groups in the table, or lower {min_group}."), *notes]),
        )
    numbers = _in_safe_range(np.array([totals[name] for name in grouping.names]))
    return np.asarray(numbers / numbers.sum())
