"""Wide tables: one row per task, one column per worker."""

from collections.abc import Iterator, Sequence
from typing import final

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
FEWEST_WORKERS, MOST_LABELS = 2, 20


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
        values = [{row[name] for row in export.rows([name])} - {None, "", NULL} for name in export.columns[1:]]
        shared = all(
            not own or any(not own.isdisjoint(other) for place, other in enumerate(values) if place != number)
            for number, own in enumerate(values)
        )
        return shared and 0 < len(set().union(*values)) <= MOST_LABELS

    def submissions(self, export: ExportFile, names: ColumnNames) -> Iterator[Submission]:
        """Yield the cells; an empty cell is left out, since nobody knows whether the worker was asked.

        Raises:
            ReportsError: a column has known truths, which are no worker's answers.
        """
        task = names.task or export.columns[0]
        workers = [name for name in export.columns if name != task and not is_personal(name)]
        _refuse_truths(workers, export.name)
        for row in export.rows([task, *workers]):
            for worker in workers:
                empty = row[worker] is None or row[worker] == ""
                answer = None if row[worker] == NULL else row[worker]
                yield Submission(row[task], worker, {ANSWER: answer}, "empty cells" if empty else "")


def _refuse_truths(workers: Sequence[str], source: str) -> None:
    truths = [name for name in workers if normal_name(name) in GOLD_NAMES]
    if truths:
        raise ReportsError(
            "every column but the tasks' must be a worker",
            source=source,
            examples=", ".join(map(repr, truths)),
            hint="Put known truths into a file of their own (task,truth) for --gold or --score, or rename the worker.",
        )
