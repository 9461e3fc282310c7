"""Wide tables: one row per task, one column per worker."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, final

from crowdveil.arguments import is_number
from crowdveil.channels.alphabet import NULL
from crowdveil.data.importers.export_file import ExportFile
from crowdveil.data.importers.importer import Importer, Submission
from crowdveil.data.importers.personal_data import is_personal
from crowdveil.data.ingest.readers import ANSWERS, OTHER_NAMES, ColumnNames, normal_name
from crowdveil.errors import ReportsError

ANSWER = "answer"
TASK_NAMES = {*ANSWERS["task"], *OTHER_NAMES["task"], "id"}
_GOLD = """gold gold_label gold_standard golden truth ground_truth groundtruth true_label correct correct_label
correct_answer consensus majority majority_vote adjudicated final final_label"""
GOLD_NAMES = frozenset(_GOLD.split())
"""Names of columns of truths, which are no workers."""
_DATA = """mean average avg median mode total sum count std stdev sd variance agreement entropy kappa difficulty weight
priority length split fold"""
DATA_NAMES = frozenset(_DATA.split())
"""Names of columns of figures about tasks, which are no workers."""
ROLE_NAMES = frozenset(name for role in ("worker", "value") for name in (*ANSWERS[role], *OTHER_NAMES[role]))
"""Names of columns of a table with one row per answer."""
FEWEST_WORKERS, MOST_LABELS, FEWEST_TEXTS, WORKERS_SHOWN = 2, 20, 3, 12
CONSTANT_ROWS = 5
"""Rows from which a column with one text, which no other column has, is no worker."""


@final
class Wide(Importer):
    """Table with a column of tasks, and one of labels for each worker."""

    tool = "wide"
    title = "a wide table"
    expected = "A wide table has a column of tasks, such as 'task', and one column of labels for each worker."
    question = ANSWER

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return whether one column has the name of tasks, and all others can be workers: none has another role."""
        workers = _untasked(columns)
        return (
            len(workers) >= FEWEST_WORKERS
            and len(workers) == len(columns) - 1
            and ROLE_NAMES.isdisjoint(map(normal_name, workers))
            and not any(map(is_personal, workers))
        )

    def confirms(self, export: ExportFile) -> bool:
        """Return whether the columns of workers have labels in common, and few of them."""
        workers = _untasked(export.columns)
        answers = _answers_by_column(export.rows(workers), workers)
        common = _of_several(answers)
        shared = all(not own or not own.keys().isdisjoint(common) for own in answers.values())
        return shared and 0 < len(set().union(*answers.values())) <= MOST_LABELS

    def fits_workers(self, columns: Sequence[str], workers: Collection[str]) -> bool:
        """Return whether all columns but the tasks' are listed workers."""
        return set(_untasked(columns)) <= set(workers)

    def refuse_doubtful(self, export: ExportFile, names: ColumnNames) -> None:
        """Refuse a first column with answers, a column of texts, and a table without any answer."""
        task, workers, rows = _read(export, names)
        answers = _answers_by_column(rows, workers)
        if task != names.task and normal_name(task) not in {"", *TASK_NAMES}:
            _refuse_answers_as_tasks(task, [row[task] for row in rows], answers, export.name)
        _refuse_texts(answers, export.name)
        _refuse_other_numbers(answers, export.name)

    def notes(self, export: ExportFile, names: ColumnNames) -> tuple[str, ...]:
        """Return which columns are tasks and workers."""
        task, workers, _ = _read(export, names)
        listed = ", ".join(map(repr, workers[:WORKERS_SHOWN])) + (", ..." if len(workers) > WORKERS_SHOWN else "")
        return (f"Tasks are in the column {task!r}; {len(workers):,} columns are workers: {listed}.",)

    def submissions(self, export: ExportFile, names: ColumnNames) -> Iterator[Submission]:
        """Yield the cells; an empty cell is left out, since nobody knows whether the worker was asked.

        Raises:
            ReportsError: no column has tasks, another column has another role, or a task has no name.
        """
        task, workers, rows = _read(export, names)
        _refuse_unnamed(task, rows, export.name)
        for row in rows:
            for worker in workers:
                empty = row[worker] is None or row[worker] == ""
                answer = None if row[worker] == NULL else row[worker]
                yield Submission(row[task], worker, {ANSWER: answer}, "empty cells" if empty else "")


def _untasked(columns: Sequence[str]) -> list[str]:
    """Return the columns without the name of tasks."""
    return [name for name in columns if normal_name(name) not in TASK_NAMES]


def _read(export: ExportFile, names: ColumnNames) -> tuple[str, list[str], list[dict[str, Any]]]:
    """Return the column of tasks, the columns of workers, and the rows."""
    task = names.task or _task_column(export)
    workers = [name for name in export.columns if name != task and not is_personal(name)]
    if names.worker is not None:
        workers = _stated_workers(names.worker, workers, export.name)
    if names.value_name is not None:
        raise ReportsError(
            "a wide table has labels in the columns of workers",
            source=export.name,
            examples=repr(names.value_name),
            hint="State them with --worker-column FIRST,SECOND instead.",
        )
    _refuse_other_columns(workers, export.name)
    return task, workers, list(export.rows([task, *workers]))


def _stated_workers(stated: str, columns: Sequence[str], source: str) -> list[str]:
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


def _answers_by_column(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> dict[str, Counter[Any]]:
    """Return how often each answer stands in each column."""
    answers = {name: Counter[Any]() for name in columns}
    for row in rows:
        for name, own in answers.items():
            if row[name] not in (None, "", NULL):
                own[row[name]] += 1
    return answers


def _of_several(answers: dict[str, Counter[Any]]) -> set[Any]:
    """Return the answers that stand in several columns."""
    columns = Counter(answer for own in answers.values() for answer in own)
    return {answer for answer, count in columns.items() if count > 1}


def _task_column(export: ExportFile) -> str:
    """Return the only column with the name of tasks; else the first column, which must not have another role."""
    named = [name for name in export.columns if normal_name(name) in TASK_NAMES]
    first = named[0] if len(named) == 1 else export.columns[0]
    if normal_name(first) in ROLE_NAMES:
        raise ReportsError(
            "the first column of a wide table must have the tasks",
            source=export.name,
            examples=repr(first),
            hint="With one row per worker, exchange rows and columns; else state the column: --task-column.",
        )
    return first


def _refuse_answers_as_tasks(task: str, tasks: Sequence[Any], answers: dict[str, Counter[Any]], source: str) -> None:
    """Refuse a first column of an unknown name with repeated cells, or with cells that are answers, too."""
    if len(set(tasks)) < len(tasks) or any(not own.keys().isdisjoint(tasks) for own in answers.values()):
        raise ReportsError(
            "the first column of a wide table must have the tasks, one per row",
            source=source,
            examples=repr(task),
            hint="Name it task, or state the column of tasks: --task-column.",
        )


def _refuse_other_columns(workers: Sequence[str], source: str) -> None:
    """Refuse columns of known truths or other roles, and columns without a name."""
    for found, hint in (
        (
            [name for name in workers if normal_name(name) in GOLD_NAMES],
            "Put known truths into a file of their own (task,truth) for --gold or --score, or rename the worker.",
        ),
        (
            [name for name in workers if normal_name(name) in DATA_NAMES],
            "Remove columns of figures about tasks, or rename the worker.",
        ),
        (
            [name for name in workers if normal_name(name) in ROLE_NAMES],
            "A table with one row per answer needs no import: give it to infer or perturb.",
        ),
        ([name for name in workers if not name.strip()], "Name the worker, or remove the column."),
    ):
        if found:
            raise ReportsError(
                "every column but the tasks' must be a worker",
                source=source,
                examples=", ".join(map(repr, found[:5])),
                hint=hint,
            )


def _refuse_texts(answers: dict[str, Counter[Any]], source: str) -> None:
    """Refuse columns of texts that no other column has and of which most differ: comments or contents, no labels."""
    if not any(answers.values()):
        raise ReportsError(
            "a wide table must have an answer",
            source=source,
            examples=f"{len(answers):,} columns of workers, all cells empty",
            hint=Wide.expected,
        )
    common = _of_several(answers)
    alone = {name: own for name, own in answers.items() if common and own and own.keys().isdisjoint(common)}
    texts = [name for name, own in answers.items() if own.keys().isdisjoint(common) and _is_text(own)]
    texts += [
        name for name, own in alone.items() if len(own) == 1 and own.total() >= CONSTANT_ROWS and name not in texts
    ]
    if texts and len(answers) > 1:
        raise ReportsError(
            "every column but the tasks' must be a worker, with labels or numbers",
            source=source,
            examples=", ".join(map(repr, texts[:5])),
            hint="Remove columns of comments and of what the tasks show, or state those of the workers: "
            "--worker-column FIRST,SECOND.",
        )


def _refuse_other_numbers(answers: dict[str, Counter[Any]], source: str) -> None:
    """Refuse columns of numbers beside columns with labels in common, or unlike those of all others."""
    numbers = {
        name: [float(answer) for answer in own.elements()]
        for name, own in answers.items()
        if own and all(is_number(str(answer)) for answer in own)
    }
    common = _of_several(answers)
    labels = bool(common) and not any(is_number(str(answer)) for answer in common)
    found = [name for name in numbers if labels and answers[name].keys().isdisjoint(common)]
    if found or len(numbers) > FEWEST_WORKERS:
        _refuse_numbers(found or _unlike_others(numbers), source)


def _unlike_others(numbers: dict[str, list[float]]) -> list[str]:
    """Return the columns of which most numbers are fractions or out of range, while those of all others are not."""
    lows, highs = sorted(map(min, numbers.values())), sorted(map(max, numbers.values()), reverse=True)
    fractional = {name for name, own in numbers.items() if not all(map(float.is_integer, own))}
    found = []
    for name, own in numbers.items():
        # The second place is the range of the others where the column itself has the first.
        low, high = lows[min(own) == lows[0]], highs[max(own) == highs[0]]
        outside = sum(not low <= number <= high for number in own)
        fractions = 0 if len(fractional) > (name in fractional) else sum(not number.is_integer() for number in own)
        if len(own) >= FEWEST_TEXTS and max(outside, fractions) > len(own) / 2:
            found.append(name)
    return found


def _refuse_numbers(found: Sequence[str], source: str) -> None:
    if found:
        raise ReportsError(
            "every column but the tasks' must be a worker, whose numbers are like the others'",
            source=source,
            examples=", ".join(map(repr, found[:5])),
            hint="Remove columns of means, totals and other data of the tasks.",
        )


def _is_text(answers: Counter[Any]) -> bool:
    """Return whether there are several texts, most of them different."""
    texts = [answer for answer in answers if isinstance(answer, str) and not is_number(answer)]
    return len(texts) >= FEWEST_TEXTS and len(texts) > answers.total() / 2


def _refuse_unnamed(task: str, rows: Sequence[dict[str, Any]], source: str) -> None:
    unnamed = [number for number, row in enumerate(rows, 1) if row[task] is None or row[task] == ""]
    if unnamed:
        raise ReportsError(
            "every row must have a task",
            source=source,
            rows=tuple(unnamed[:5]),
            examples=f"empty cells in the column {task!r}",
            hint="Name the tasks, or remove the rows.",
        )
