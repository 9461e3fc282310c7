"""doccano: JSON lines, JSON or CSV, one file per worker, or annotations with their users.

A project with one file per worker names the files after the workers; a file of a shared project (`all.jsonl`) has no
workers.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, final

from crowdveil.data.importers.export_file import STANDARD_INPUT, ExportFile
from crowdveil.data.importers.importer import Importer, Submission
from crowdveil.data.ingest.column_readers import ColumnNames
from crowdveil.errors import ReportsError

SHARED = "all"
"""Name of the file of a project whose workers share their annotations."""
LABELS, ANNOTATIONS = ("label", "labels"), "annotations"


@final
class Doccano(Importer):
    """doccano's exports of classifications."""

    tool = "doccano"
    title = "doccano"
    expected = (
        "doccano's records have 'id', 'text' and 'label', in one file per worker, or 'annotations' with a 'user'."
    )

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return whether there are texts or files, with labels or annotations."""
        names = set(columns)
        content = {"text", "filename"} & names
        return "id" in names and bool(content) and not {*LABELS, ANNOTATIONS}.isdisjoint(names)

    def submissions(self, export: ExportFile, names: ColumnNames) -> Iterator[Submission]:
        """Yield the labels of each worker; an example without a label has no answer."""
        if ANNOTATIONS in export.columns:
            for record in export.records:
                yield from _submissions_by_user(record)
            return
        worker = PurePath(export.name.removesuffix(".gz")).stem
        if worker.lower() == SHARED:
            raise ReportsError(
                "an export of doccano must tell its workers apart",
                source=export.name,
                hint="Turn off shared annotations in the project: then each worker has a file of that name.",
            )
        if worker == STANDARD_INPUT:
            raise ReportsError(
                "an export of doccano names its worker by the name of the file",
                source=export.name,
                hint="Give the file itself: standard input has no name.",
            )
        name = LABELS[0] if LABELS[0] in export.columns else LABELS[1]
        if name not in export.columns:
            raise ReportsError("examples need a 'label'", source=export.name, hint=self.expected)
        for record in export.records:
            yield Submission(record.get("id"), worker, {"label": _label_list(record.get(name), export.form == "text")})


def _label_list(value: Any, is_text: bool) -> Any:
    """Return the labels of an example; in a CSV file they are joined by `#`."""
    return value.split("#") if is_text and isinstance(value, str) and value else value


def _submissions_by_user(record: Mapping[str, Any]) -> Iterator[Submission]:
    given: dict[Any, list[Any]] = defaultdict(list)
    for annotation in record.get(ANNOTATIONS) or ():
        given[annotation.get("user")].append(annotation.get("label"))
    for user, labels in given.items():
        yield Submission(record.get("id"), user, {"label": labels})
