"""Reports of columns in files: rows are divided by task, sorted part by part, and written as encoded blocks.

The names are encoded as those of columns in memory, with one row for each of them. So labels, codes and the order of
rows are the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import nsmallest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.blocks import sort_by_counting, sort_canonically
from crowdveil.answers.columnar_store import ReportChunk, write_encoded
from crowdveil.answers.ingest.column_checks import (
    EXAMPLES_SHOWN,
    MISSING,
    CodedColumn,
    RepeatedPairs,
    encode_ids,
    repeated_pairs,
    resolve_duplicates,
)
from crowdveil.answers.ingest.column_readers import ReportColumns
from crowdveil.answers.ingest.labels import merge_spellings
from crowdveil.answers.ingest.mapped_codes import ReadingLimit, code_parts, return_unused_memory, write_to_disk
from crowdveil.answers.read_options import ReadOptions
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Alphabet
from crowdveil.display.counts import size_text
from crowdveil.errors import ReportsError, SettingsError, results_or_all_errors

ROW: Any = np.dtype([("task", "<i4"), ("worker", "<i4"), ("value", "<i4"), ("row", "<i8")])
"""Row of a part: codes of task and worker, position of the value's name, and position in the source."""
PARTS_IN_LIMIT = 4
"""Parts that the limit would hold."""
BYTES_PER_ROW, CHECKED_BYTES_PER_ROW = 100, 300
"""Upper bounds of bytes per row while a part is sorted, and while rows are checked again for an error."""


@dataclass(frozen=True, kw_only=True)
class _Encoded:
    """Encoded names of columns.

    Attributes:
        tasks, workers: identifiers.
        alphabet: possible values; None for numbers.
        task, worker: code of each name of the columns.
        value: code or number of each name of the values, then of an empty cell.
        skipped: whether each of these is no answer.
    """

    tasks: NDArray[Any]
    workers: NDArray[Any]
    alphabet: Alphabet | None
    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    value: NDArray[Any]
    skipped: NDArray[np.bool_]


def reports_in_parts(columns: ReportColumns, options: ReadOptions, limit: ReadingLimit) -> Reports:
    """Return the reports of columns in files as opened blocks; as `Reports.from_columns`, within a limit of memory.

    Raises:
        ReportsError: as `Reports.from_columns`.
        SettingsError: the limit is too small for the answers to one task, or the disk is full.
    """
    if not len(columns):
        return Reports.from_columns(columns, options)
    columns = options.with_missing_policy(columns)
    try:
        names = _encode_names(columns, options)
    except ReportsError as error:
        raise _error_with_rows(columns, options, limit) or error from None
    return_unused_memory()
    starts = _first_tasks_of_parts(columns, names, limit)
    parts = _divide_rows_by_task(columns, names, starts, limit.folder)
    return_unused_memory()
    chunks = _sorted_chunks(parts, starts, names, options, columns.source)
    write_encoded(limit.folder, chunks, names.tasks, names.workers, names.alphabet)
    return Reports.open(limit.folder).with_asked(options.asked)


def _encode_names(columns: ReportColumns, options: ReadOptions) -> _Encoded:
    """Return the encoded names of columns, as of rows with each of them once; errors lack the rows."""
    skipped, source = columns.no_answer_names, columns.source
    kept = np.flatnonzero(~skipped[:-1])
    counts = np.append(columns.value.counts[kept], 0 if skipped[-1] else columns.value.counts[-1])
    value = _row_of_each_name(columns.value.names[kept], counts)
    if options.merge_labels:
        known = () if options.alphabet is None else options.alphabet.names
        value = merge_spellings(value, known, counts[:-1])
    (tasks, task), (workers, worker), (alphabet, values) = results_or_all_errors(
        lambda: encode_ids(_row_of_each_name(*_names_and_counts(columns.task)), options.tasks, "task", source),
        lambda: encode_ids(_row_of_each_name(*_names_and_counts(columns.worker)), options.workers, "worker", source),
        lambda: options.encode_values(replace(columns, value=value)),
    )
    placed = np.zeros(len(skipped), dtype=values.dtype)
    placed[kept] = values
    return _Encoded(
        tasks=tasks, workers=workers, alphabet=alphabet, task=task, worker=worker, value=placed, skipped=skipped
    )


def _names_and_counts(column: CodedColumn) -> tuple[NDArray[Any], NDArray[np.int64]]:
    return column.names, column.counts


def _row_of_each_name(names: NDArray[Any], counts: NDArray[np.int64]) -> CodedColumn:
    """Return a column with one row for each name, and one without a name if some cells are empty."""
    codes = np.arange(len(names) + bool(counts[-1]), dtype=np.int32)
    codes[len(names) :] = MISSING
    return CodedColumn(names, codes)


def _error_with_rows(columns: ReportColumns, options: ReadOptions, limit: ReadingLimit) -> ReportsError | None:
    """Return the error of the first rows that have one, read in memory; None if no row has one by itself."""
    most = max(1, limit.memory // CHECKED_BYTES_PER_ROW)
    for first in range(0, len(columns), most):
        rows = np.arange(first, min(first + most, len(columns)))
        try:
            Reports.from_columns(columns.only_rows(rows), options)
        except ReportsError as error:
            return error.changed(source=columns.source, rows=tuple(first + row for row in error.rows))
    return None


def _answers(columns: ReportColumns, names: _Encoded) -> Iterator[Any]:
    """Yield the rows of `ROW` with an answer, in parts in the order of the source."""
    for first, (task, worker, value) in code_parts(columns.task.codes, columns.worker.codes, columns.value.codes):
        given = np.flatnonzero(~names.skipped[value])
        rows = np.empty(len(given), dtype=ROW)
        rows["task"], rows["worker"] = names.task[task[given]], names.worker[worker[given]]
        rows["value"], rows["row"] = value[given], given + first
        yield rows


def _first_tasks_of_parts(columns: ReportColumns, names: _Encoded, limit: ReadingLimit) -> NDArray[np.int64]:
    """Return the first task of each part of rows that fits into the limit."""
    most = limit.memory // PARTS_IN_LIMIT // BYTES_PER_ROW
    per_task = np.zeros(len(names.tasks), dtype=np.int64)
    for rows in _answers(columns, names):
        np.add.at(per_task, rows["task"], 1)
    largest = int(per_task.max(initial=0))
    if largest > most:
        least = PARTS_IN_LIMIT * BYTES_PER_ROW * largest
        raise SettingsError(
            f"memory must be at least {size_text(least)} for the {largest:,} answers to one task, "
            f"got {size_text(limit.memory)}",
            value=limit.memory,
            hint="Raise the limit.",
            value_in_rule=True,
        )
    ends, starts = np.cumsum(per_task), [0]
    while starts[-1] < len(per_task):
        before = ends[starts[-1] - 1] if starts[-1] else 0
        starts.append(int(np.searchsorted(ends, before + most, side="right")))
    return np.array(starts)


def _divide_rows_by_task(
    columns: ReportColumns, names: _Encoded, starts: NDArray[np.int64], folder: Path
) -> list[Path]:
    """Return a file for each part, with its rows in the order of the source."""
    paths = [folder / f"{part}.rows" for part in range(len(starts) - 1)]
    for path in paths:
        path.touch()
    for rows in _answers(columns, names):
        part = np.searchsorted(starts, rows["task"], side="right") - 1
        order = np.argsort(part, kind="stable")
        found, begins = np.unique(part[order], return_index=True)
        for number, own in zip(found, np.split(rows[order], begins[1:]), strict=True):
            with paths[number].open("ab") as stream:
                write_to_disk(stream, own)
    return paths


def _sorted_chunks(
    paths: list[Path], starts: NDArray[np.int64], names: _Encoded, options: ReadOptions, source: str
) -> Iterator[ReportChunk]:
    """Yield the sorted rows of each part; files that were read are removed.

    Raises:
        ReportsError: pairs are repeated and the policy is "error"; it counts those of all parts.
    """
    repeated = RepeatedPairs(0, [])
    for path, first, stop in zip(paths, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        rows = np.fromfile(path, dtype=ROW)
        path.unlink()
        task, worker, value = rows["task"] - np.int32(first), rows["worker"].copy(), names.value[rows["value"]]
        sizes = (stop - first, len(names.workers), 1 if names.alphabet is None else names.alphabet.size)
        ordered = sort_by_counting(task, worker, value, sizes)
        if ordered is not None and (not ordered.repeats or options.duplicates == "all"):
            yield ReportChunk(ordered.task + first, ordered.worker, ordered.value)
            continue
        own = CodedColumn(names.tasks[first:stop], task), CodedColumn(names.workers, worker)
        if options.duplicates == "error":
            more = repeated_pairs(*own, rows["row"])
            shown = nsmallest(EXAMPLES_SHOWN, [*repeated.first, *more.first])
            repeated = RepeatedPairs(repeated.number + more.number, shown)
            if repeated.number:
                continue
        kept = resolve_duplicates(*own, options.duplicates, source)
        task, worker, value = sort_canonically(task[kept], worker[kept], value[kept])
        yield ReportChunk(task + np.int32(first), worker, value)
    if repeated.number:
        raise repeated.error(source)
