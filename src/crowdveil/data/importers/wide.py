"""Wide tables: one row per task, one column per worker.

Any table may look like one, so it is never recognised: its user states that it is one.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, final

from crowdveil.channels.alphabet import NULL
from crowdveil.data.importers.export_file import ExportFile
from crowdveil.data.importers.imported_answers import is_free_text
from crowdveil.data.importers.importer import Importer, Submission
from crowdveil.data.importers.personal_columns import is_personal
from crowdveil.data.ingest.column_readers import ANSWERS, OTHER_NAMES, normal_name
from crowdveil.errors import ReportsError
from crowdveil.presentation.hints import advice

ANSWER = "answer"
TASK_NAMES = {*ANSWERS["task"], *OTHER_NAMES["task"], "id", ""}
_OTHERS = """gold gold_label gold_standard golden truth ground_truth groundtruth true_label correct correct_label
correct_answer consensus majority majority_vote adjudicated final final_label mean average avg median mode total sum
count std stdev sd variance agreement entropy kappa difficulty weight priority length split fold"""
ROLE_NAMES = frozenset(name for role in ("worker", "value") for name in (*ANSWERS[role], *OTHER_NAMES[role]))
"""Names of columns of a table with one row per answer."""
OTHER_COLUMNS = ROLE_NAMES.union(_OTHERS.split(), {""})
"""Names of columns that are no workers: of roles, of truths, and of figures about tasks."""
WORKERS_SHOWN = 12


@final
class Wide(Importer):
    """Table with a column of tasks, and one of labels for each worker."""

    tool = "wide"
    title = "a wide table"
    expected = "A wide table has a column of tasks, such as 'task', and one column of labels for each worker."
    question = ANSWER
    one_per_row = False

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return False: the names of workers can be any."""
        return False

    def notes(self, export: ExportFile) -> tuple[str, ...]:
        """Return which columns are tasks and workers."""
        task, workers = _task_and_worker_columns(export)
        listed = ", ".join(map(repr, workers[:WORKERS_SHOWN])) + (", ..." if len(workers) > WORKERS_SHOWN else "")
        return (f"Tasks are in the column {task!r}; {len(workers):,} columns are workers: {listed}.",)

    def submissions(self, export: ExportFile) -> Iterator[Submission]:
        """Yield the cells; an empty cell is left out, since nobody knows whether the worker was asked.

        Raises:
            ReportsError: no column has tasks, another column has another role or holds texts, or a task has no name.
        """
        task, workers = _task_and_worker_columns(export)
        rows = list(export.rows([task, *workers]))
        _refuse_unnamed_tasks(task, rows, export.name)
        if export.names.worker is None:
            _refuse_free_text_columns({name: [row[name] for row in rows] for name in workers}, export.name)
        for row in rows:
            for worker in workers:
                empty = row[worker] is None or row[worker] == ""
                answer = None if row[worker] == NULL else row[worker]
                yield Submission(row[task], worker, {ANSWER: answer}, "empty cells" if empty else "")


def _task_and_worker_columns(export: ExportFile) -> tuple[str, list[str]]:
    """Return the column of tasks and the columns of workers."""
    names = export.names
    task = names.task or _task_column(export)
    workers = [name for name in export.columns if name != task and not is_personal(name)]
    if names.worker is not None:
        workers = _stated_worker_columns(names.worker, workers, export.name)
    if names.stated_kind_of_value_column is not None:
        raise ReportsError(
            "a wide table has labels in the columns of workers",
            source=export.name,
            examples=repr(names.stated_kind_of_value_column),
            hint=f"Leave it out{_stated_workers()}.",
        )
    _refuse_other_columns(workers, export.name)
    return task, workers


def _stated_worker_columns(stated: str, columns: Sequence[str], source: str) -> list[str]:
    """Return the columns of workers that are stated, separated by commas."""
    wanted = [stated] if stated in columns else [name.strip() for name in stated.split(",")]
    absent = [name for name in wanted if name not in columns]
    if absent:
        raise ReportsError(
            "a stated worker must be a column of the wide table",
            source=source,
            examples=", ".join(map(repr, absent[:5])),
            hint=f"Its other columns are {', '.join(map(repr, columns[:WORKERS_SHOWN]))}.",
        )
    return wanted


def _task_column(export: ExportFile) -> str:
    """Return the only column with the name of tasks, or without a name."""
    named = [name for name in export.columns if normal_name(name) in TASK_NAMES]
    if len(named) != 1:
        raise ReportsError(
            "a wide table must have one column with the name of tasks",
            source=export.name,
            examples=", ".join(map(repr, named or export.columns[:WORKERS_SHOWN])),
            hint=f"Name it task{advice(', or state it ({task})')}. With one row per worker, exchange rows and columns.",
        )
    return named[0]


def _refuse_other_columns(workers: Sequence[str], source: str) -> None:
    """Refuse columns of known truths, of other roles and of figures about tasks, and columns without a name."""
    others = [name for name in workers if normal_name(name) in OTHER_COLUMNS]
    if others:
        is_long = any(normal_name(name) in ROLE_NAMES for name in others)
        raise ReportsError(
            "every column but the tasks' must be a worker",
            source=source,
            examples=", ".join(map(repr, others[:5])),
            hint="A table with one row per answer needs no import: give it to infer or perturb."
            if is_long
            else "Remove these columns (known truths go into a file of their own), or rename the workers.",
        )


def _refuse_free_text_columns(cells: dict[str, list[Any]], source: str) -> None:
    """Refuse columns of texts that no other column has, such as comments or what the tasks show."""
    columns = Counter(cell for own in cells.values() for cell in set(own) if cell != "")
    texts = [name for name, own in cells.items() if max(map(columns.__getitem__, own)) < 2 and is_free_text(own)]
    if texts:
        raise ReportsError(
            "every column but the tasks' must be a worker, with labels or numbers",
            source=source,
            examples=", ".join(map(repr, texts[:5])),
            hint=f"Remove columns of comments and of what the tasks show{_stated_workers()}.",
        )


def _stated_workers() -> str:
    """Return the advice to state the columns of workers."""
    of_source = advice(", or state those of the workers: {names}=ColumnNames(worker='FIRST,SECOND')")
    return advice(", or state those of the workers: {worker}", of_source, worker="FIRST,SECOND")


def _refuse_unnamed_tasks(task: str, rows: Sequence[dict[str, Any]], source: str) -> None:
    unnamed = [number for number, row in enumerate(rows, 1) if row[task] is None or row[task] == ""]
    if unnamed:
        raise ReportsError(
            "every row must have a task",
            source=source,
            rows=tuple(unnamed[:5]),
            examples=f"empty cells in the column {task!r}",
            hint="Name the tasks, or remove the rows.",
        )
