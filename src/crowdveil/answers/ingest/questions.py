"""Questions of a table of answers: one is chosen, several are never mixed."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.ingest.column_checks import CodedColumn, encode_ids
from crowdveil.answers.ingest.column_readers import ReportColumns
from crowdveil.answers.ingest.row_sources import source_of_kept_rows
from crowdveil.errors import ReportsError
from crowdveil.hints import advice

NAMES_SHOWN, ROWS_SHOWN = 20, 5


def refuse_mixed_questions(columns: ReportColumns, task: NDArray[np.int32]) -> None:
    """Refuse answers of one task to different questions.

    Args:
        columns: of any table; only one with a column of questions can be refused.
        task: codes of the tasks, shape (rows,), all known.

    Raises:
        ReportsError: a task has answers to several questions.
    """
    if columns.question is None:
        return
    names, codes = _coded_questions(columns.question)
    if _has_mixed_task(task, codes):
        raise ReportsError(
            "a task's answers must be to one question",
            source=columns.source,
            examples=f"the questions {_list_of_questions(names)}",
            hint=advice(
                "Choose one, such as {question}.",
                "Keep the rows of one question, or choose it by Reports.from_source(FILE, question=NAME).",
                question=str(names[names != ""][0]),
            ),
        )


def answers_to(columns: ReportColumns, question: str) -> ReportColumns:
    """Return the answers to one question, with the tasks, workers and labels that it has.

    Raises:
        ReportsError: there is no such column, or no such question.
    """
    rule = f"there is no question {question!r}"
    if columns.question is None:
        hint = "A question is chosen in an export, or in a column 'question'."
        raise ReportsError(rule, source=columns.source, examples="no column 'question'", hint=hint)
    names, codes = _coded_questions(columns.question)
    if question == "" or question not in names:
        found = f"the questions {_list_of_questions(names)}"
        raise ReportsError(rule, source=columns.source, examples=found, hint="State one of these.")
    rows = np.flatnonzero(names[codes] == question)
    task, worker, value = (column.restricted_to_rows(rows) for column in (columns.task, columns.worker, columns.value))
    source = source_of_kept_rows(columns.source, rows, f"{columns.source}, question {question!r}")
    weight = None if columns.weight is None else columns.weight.keep(rows)
    return replace(columns, task=task, worker=worker, value=value, source=source, question=None, weight=weight)


def split_by_question(columns: ReportColumns, *, every: bool = False) -> dict[str, ReportColumns]:
    """Return the answers to each question, if a task has answers to several or with `every`; empty otherwise.

    Raises:
        ReportsError: a row without a question, or an invalid task.
    """
    if columns.question is None:
        return {}
    names, codes = _coded_questions(columns.question)
    if not every and not _has_mixed_task(encode_ids(columns.task, None, "task", columns.source)[1], codes):
        return {}
    if "" in names:
        rows = tuple((np.flatnonzero(codes == 0)[:ROWS_SHOWN] + 1).tolist())
        raise ReportsError("every row needs a question", source=columns.source, rows=rows, hint="Complete the rows.")
    return {name: answers_to(columns, name) for name in names.tolist()}


def _coded_questions(question: CodedColumn) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Return the distinct questions as text, and the code of each row; an empty cell is the question ''."""
    names, place = np.unique(np.array([*map(str, question.names.tolist()), ""]), return_inverse=True)
    codes = place[question.codes]
    used, codes = np.unique(codes, return_inverse=True)
    return names[used], codes


def _has_mixed_task(task: NDArray[np.int32], question: NDArray[np.int64]) -> bool:
    """Return whether a task has answers to several questions."""
    first = np.zeros(int(task.max(initial=-1)) + 1, dtype=np.int64)
    first[task] = question
    return bool((first[task] != question).any())


def _list_of_questions(names: NDArray[np.str_]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(repr(str(name)) for name in names[:NAMES_SHOWN]) + more
