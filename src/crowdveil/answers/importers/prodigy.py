"""Prodigy: annotations as JSON lines (`db-out`), of choices or of one proposed label that is accepted or rejected."""

from collections.abc import Iterator, Sequence
from typing import final

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.importers.importer import Importer, Submission

IGNORE = "ignore"
REGIONS = ("spans", "relations")


@final
class Prodigy(Importer):
    """Prodigy's annotations."""

    tool = "prodigy"
    title = "Prodigy"
    expected = "Prodigy's annotations have '_task_hash', 'answer', and '_annotator_id' or '_session_id'."

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return whether there are hashes of tasks and answers."""
        return {"_task_hash", "answer"} <= set(columns)

    def notes(self, export: ExportFile) -> tuple[str, ...]:
        """Return that spans and relations, which are regions of a text or picture, are not read, if there are any."""
        found = [key for key in REGIONS if any(record.get(key) for record in export.rows_as_mappings)]
        if not found:
            return ()
        return (f"Not read: {' and '.join(found)}, which are regions. The answers say what was accepted as a whole.",)

    def submissions(self, export: ExportFile) -> Iterator[Submission]:
        """Yield the annotations; ignored ones, and rejected choices, have no answers."""
        for record in export.rows_as_mappings:
            answer = record.get("answer")
            choices = "options" in record or "accept" in record
            answers = {"choice": record.get("accept") or []} if choices else {"answer": answer}
            ignored = answer == IGNORE or (choices and answer == "reject")
            yield Submission(
                record.get("_task_hash"),
                record.get("_annotator_id") or record.get("_session_id"),
                dict.fromkeys(answers) if ignored else answers,
            )
