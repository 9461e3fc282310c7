"""Zooniverse: classifications as CSV, one row each, with the answers to all questions of a workflow as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.importers.importer import Importer, Submission
from crowdveil.errors import ReportsError

TASK, WORKER, WORKFLOW, ANSWERS, GOLD = "subject_ids", "user_name", "workflow_id", "annotations", "gold_standard"


@final
class Zooniverse(Importer):
    """Classifications of a Zooniverse project."""

    tool = "zooniverse"
    title = "Zooniverse"
    kept = (WORKER,)
    expected = "Zooniverse's classifications have 'classification_id', 'user_name', 'annotations' and 'subject_ids'."

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return whether there are classifications of subjects, with annotations."""
        return {"classification_id", TASK, WORKER, ANSWERS} <= set(columns)

    def submissions(self, export: ExportFile) -> Iterator[Submission]:
        """Yield the classifications; people without login are workers, by the name that Zooniverse gives them.

        A question that was not shown, and one that was skipped (null), is no answer. Classifications of experts, marked
        as gold standard, are left out. With several workflows, questions are named by workflow and task.
        """
        rows = list(export.rows([one for one in (TASK, WORKER, WORKFLOW, ANSWERS, GOLD) if one in export.columns]))
        several = len({row.get(WORKFLOW) for row in rows}) > 1
        for number, row in enumerate(rows, 1):
            prefix = f"{row[WORKFLOW]} " if several else ""
            answers = dict(_answers_of(_parsed(row[ANSWERS], export.name, number), prefix))
            expert = str(row.get(GOLD) or "").lower() == "true"
            yield Submission(row[TASK], row[WORKER], answers, "gold standard" if expert else "")


def _parsed(text: Any, source: str, number: int) -> Any:
    """Return the annotations of a classification."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise ReportsError(
            f"{ANSWERS} must be a list in JSON",
            source=source,
            rows=(number,),
            examples=str(text)[:80],
            hint="Export the classifications again.",
        )
    return found


def _answers_of(annotations: Sequence[Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield question and content; a combined task has the annotations of its parts as value."""
    for one in annotations:
        value = one.get("value")
        if isinstance(value, list) and value and all(isinstance(part, Mapping) and "task" in part for part in value):
            yield from _answers_of(value, prefix)
        else:
            yield f"{prefix}{one['task']}", value
