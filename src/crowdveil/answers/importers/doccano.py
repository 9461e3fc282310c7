"""doccano: one file for each annotator, as JSON lines, JSON or CSV; the name of a file is that of its annotator.

A file holds no annotator, so it may be any list of labels: it is never recognised, its user states that it is one.
"""

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, final

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.importers.importer import Importer, Submission

LABEL = "label"
LABEL_KEYS = (LABEL, "labels", "entities")
REGION_KEYS = frozenset({"entities", "relations"})
WORKER_KEYS = ("annotator", "user", "username")


@final
class Doccano(Importer):
    """doccano's files of annotators."""

    tool = "doccano"
    title = "doccano"
    expected = "doccano's files have 'id' and 'label' in each record, and one file for each annotator."
    question = LABEL

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return False: a file does not say that it is of one annotator."""
        return False

    def notes(self, export: ExportFile) -> tuple[str, ...]:
        """Return the annotator that a file is read as."""
        return (f"{export.name} is read as the answers of {_annotator_of_file(export)!r}.",)

    def submissions(self, export: ExportFile) -> Iterator[Submission]:
        """Yield the labels of each document; one without a label, which may be one not reached yet, has no answer."""
        for record in export.rows_as_mappings:
            key = next((one for one in LABEL_KEYS if one in record), LABEL)
            worker = next((record[one] for one in WORKER_KEYS if record.get(one)), _annotator_of_file(export))
            yield Submission(record["id"], worker, {LABEL: _content_of(key, record.get(key))})


def _annotator_of_file(export: ExportFile) -> str:
    name = PurePath(export.name).name
    return name.partition(".")[0] or name


def _content_of(key: str, value: Any) -> Any:
    """Return labels of a document; regions as an object, which is no answer."""
    return None if value in ([], "") else {key: value} if key in REGION_KEYS else value
