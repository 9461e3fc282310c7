"""Confidences of answers: numbers beside the answers, in the order of the reports."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.ingest.choices import NEVER
from crowdveil.answers.ingest.column_checks import EXAMPLES_SHOWN, CodedColumn, Duplicates, parse_numbers
from crowdveil.answers.ingest.column_readers import ReportColumns
from crowdveil.answers.read_options import ReadOptions
from crowdveil.answers.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.hints import advice


def confidences_of_answers(columns: ReportColumns, reports: Reports, duplicates: Duplicates) -> Reports | None:
    """Return the confidence of each report as a number, over the same tasks and workers; None without their column.

    Args:
        columns: of the reports, as they were read.
        reports: answers.
        duplicates: policy for repeated (task, worker) pairs.

    Raises:
        ReportsError: an answer without a confidence, or with one that is no finite number.
        SettingsError: repeated pairs are kept.
    """
    if columns.weight is None:
        return None
    if duplicates == "all":
        rule = "repeated (task, worker) pairs cannot be kept with confidences"
        raise SettingsError(rule, value=duplicates, hint=advice("Choose {duplicates}.", duplicates="first"))
    answered = np.delete(np.arange(len(columns)), columns.null_rows)
    numbers = _finite_numbers(columns.weight, answered, columns.source)
    value = CodedColumn(numbers, np.arange(len(numbers), dtype=np.int32))
    rows = replace(columns, value=value, value_name="value", skip_empty=False, weight=None).only_rows(answered)
    tasks, workers = np.asarray(reports.tasks), np.asarray(reports.workers)
    options = ReadOptions(kind="numeric", tasks=tasks, workers=workers, duplicates=duplicates, multiple=NEVER)
    return Reports.from_columns(rows, options)


def _finite_numbers(column: CodedColumn, answered: NDArray[np.int64], source: str) -> NDArray[np.float64]:
    """Return the number of each row; refuse answers with none."""
    numbers = np.append(parse_numbers(column.names), np.nan)[column.codes]
    bad = answered[~np.isfinite(numbers[answered])]
    if len(bad):
        cells = np.array([*column.names.tolist(), None], dtype=object)[column.codes[bad[:EXAMPLES_SHOWN]]]
        shown = ["nothing" if cell is None else repr(str(cell)) for cell in cells.tolist()]
        raise ReportsError(
            "the confidence of each answer must be a finite number",
            source=source,
            rows=tuple((bad[:EXAMPLES_SHOWN] + 1).tolist()),
            examples=", ".join(dict.fromkeys(shown)),
            hint=advice("Write numbers, such as 1 for unsure and 3 for sure; or leave {weight} out.", "Write numbers."),
        )
    return numbers
