"""Wide tables: one row per task, one column per worker."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final

from crowdveil.channels.alphabet import NULL
from crowdveil.data.importers.collecting import is_number
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
ROLE_NAMES = frozenset(name for role in ("worker", "value") for name in (*ANSWERS[role], *OTHER_NAMES[role]))
"""Names of columns of a table with one row per answer."""
FEWEST_WORKERS, MOST_LABELS, FEWEST_TEXTS = 2, 20, 3


@final
class Wide(Importer):
    """Table with a column of tasks, and one of labels for each worker."""

    tool = "wide"
    title = "a wide table"
    expected = "A wide table has a column of tasks, such as 'task', and one column of labels for each worker."

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return whether the first column has tasks, and all others can be workers: none has another role."""
        names = [normal_name(name) for name in columns]
        others = {name for role in ANSWERS for name in (*ANSWERS[role], *OTHER_NAMES[role])} | {"id"}
        return (
            len(names) > FEWEST_WORKERS
            and names[0] in TASK_NAMES
            and others.isdisjoint(names[1:])
            and not any(map(is_personal, columns[1:]))
        )

    def confirms(self, export: ExportFile) -> bool:
        """Return whether the columns of workers have labels in common, and few of them."""
        answers = _answers_by_column(export.rows(export.columns[1:]), export.columns[1:])
        common = _of_several(answers)
        shared = all(not own or not own.keys().isdisjoint(common) for own in answers.values())
        return shared and 0 < len(set().union(*answers.values())) <= MOST_LABELS

    def submissions(self, export: ExportFile, names: ColumnNames) -> Iterator[Submission]:
        """Yield the cells; an empty cell is left out, since nobody knows whether the worker was asked.

        Raises:
            ReportsError: the first column has no tasks, another column has no answers of one worker, a task has no
                name, or no cell has an answer.
        """
        task = names.task or _task_column(export)
        workers = [name for name in export.columns if name != task and not is_personal(name)]
        _refuse_other_columns(workers, export.name)
        rows = list(export.rows([task, *workers]))
        answers = _answers_by_column(rows, workers)
        if task != names.task and normal_name(task) not in {"", *TASK_NAMES}:
            _refuse_answers_as_tasks(task, [row[task] for row in rows], answers, export.name)
        _refuse_texts(answers, export.name)
        _refuse_unnamed(task, rows, export.name)
        for row in rows:
            for worker in workers:
                empty = row[worker] is None or row[worker] == ""
                answer = None if row[worker] == NULL else row[worker]
                yield Submission(row[task], worker, {ANSWER: answer}, "empty cells" if empty else "")


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
    """Return the first column, which must not have another role."""
    first = export.columns[0]
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
    texts = [name for name, own in answers.items() if own.keys().isdisjoint(common) and _is_text(own)]
    if texts and len(answers) > 1:
        raise ReportsError(
            "every column but the tasks' must be a worker, with labels or numbers",
            source=source,
            examples=", ".join(map(repr, texts[:5])),
            hint="Remove columns of comments and of what the tasks show.",
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
