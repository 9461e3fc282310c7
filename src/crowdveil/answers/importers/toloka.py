"""Toloka: assignments as TSV, and the same columns from its Python library."""

from collections.abc import Iterator, Sequence
from typing import final

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.importers.importer import Importer, Submission

INPUT, OUTPUT = "INPUT:", "OUTPUT:"
TASK, WORKER, STATUS = "ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status"
NOT_DONE = frozenset({"SKIPPED", "EXPIRED", "ACTIVE"})
REJECTED = "REJECTED"


@final
class Toloka(Importer):
    """Toloka's assignments."""

    tool = "toloka"
    title = "Toloka"
    expected = "Toloka's TSV has 'ASSIGNMENT:worker_id', and 'OUTPUT:...' for each question."

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return whether there are workers of assignments, and outputs."""
        return WORKER in columns and any(name.startswith(OUTPUT) for name in columns)

    def submissions(self, export: ExportFile) -> Iterator[Submission]:
        """Yield the assignments; those not done have no answers, rejected ones are left out.

        Without `ASSIGNMENT:task_id` a task is named by its input.
        """
        columns = export.columns
        inputs = [name for name in columns if name.startswith(INPUT)]
        outputs = [name for name in columns if name.startswith(OUTPUT)]
        meta = [name for name in (TASK, WORKER, STATUS) if name in columns]
        for row in export.rows([*meta, *inputs, *outputs]):
            status = str(row.get(STATUS) or "").upper()
            answers = {} if status in NOT_DONE else {name.removeprefix(OUTPUT): row[name] for name in outputs}
            task = row.get(TASK) or " | ".join(str(row[name]) for name in sorted(inputs))
            rejected, done = "rejected" if status == REJECTED else "", status not in NOT_DONE
            yield Submission(task, row[WORKER], answers, rejected, ticks_nothing_if_empty=done)
