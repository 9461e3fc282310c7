"""Label Studio: JSON, and the flat CSV, TSV and JSON_MIN.

Only the JSON has cancelled annotations. The flat forms mix the columns of the data with those of the questions, in any
order.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, final

from crowdveil.data.importers.export_file import ExportFile
from crowdveil.data.importers.importer import Importer, Submission

SINGLE_VALUES = {
    "choices": "choices",
    "rating": "rating",
    "number": "number",
    "pairwise": "selected",
    "taxonomy": "taxonomy",
    "textarea": "text",
    "datetime": "datetime",
}
"""Key of the content by type of a result; regions, spans and relations are not answers to a question."""
FREE_TEXT = "text"
FLAT_COLUMNS = frozenset(
    {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "history"}
)


@final
class LabelStudio(Importer):
    """Label Studio's exports."""

    tool = "label-studio"
    title = "Label Studio"
    expected = "Label Studio's JSON has tasks with 'annotations', its CSV 'annotator' and 'annotation_id'."
    mixes_data = True

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return whether there are annotations of tasks, or an annotator and an annotation in each row."""
        names = set(columns)
        return {"annotator", "annotation_id"} <= names or (
            "data" in names and not {"annotations", "completions"}.isdisjoint(names)
        )

    def submissions(self, export: ExportFile) -> Iterator[Submission]:
        """Yield the annotations; cancelled ones have no answers, and ground truths are left out."""
        if "annotator" in export.columns:
            yield from _submissions_of_rows(export)
            return
        for record in export.rows_as_mappings:
            for annotation in record.get("annotations") or record.get("completions") or ():
                cancelled = annotation.get("was_cancelled") or annotation.get("skipped")
                yield Submission(
                    record.get("id"),
                    _worker_id(annotation.get("completed_by")),
                    {} if cancelled else _answers_by_question(annotation.get("result") or ()),
                    "ground truth" if annotation.get("ground_truth") else "",
                )


def _worker_id(completed_by: Any) -> Any:
    """Return the id of a worker; the address only without an id."""
    if isinstance(completed_by, Mapping):
        return completed_by.get("id", completed_by.get("email"))
    return completed_by


def _answers_by_question(result: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the content by question; several choices are a list, contents of several regions a list of lists."""
    found: dict[str, list[Any]] = defaultdict(list)
    for part in result:
        key = SINGLE_VALUES.get(str(part.get("type")))
        value = part.get("value")
        if key is not None and isinstance(value, Mapping) and key in value:
            # Only choices can be several: the steps of a path stay a list in a list. Free text is no label.
            content = {key: value[key]} if key == FREE_TEXT else value[key]
            found[str(part.get("from_name"))].append(content if key == "choices" else [content])
    return {name: contents[0] if len(contents) == 1 else contents for name, contents in found.items()}


def _submissions_of_rows(export: ExportFile) -> Iterator[Submission]:
    columns = [name for name in export.columns if name not in FLAT_COLUMNS]
    for row in export.rows_as_mappings:
        contents = {name: _parsed_cell_or_its_choices(row.get(name)) for name in columns}
        yield Submission(row.get("id", row.get("annotation_id")), row.get("annotator"), unsure=contents)


def _parsed_cell_or_its_choices(cell: Any) -> Any:
    """Return the content of a cell: JSON where it is a list or an object, such as that of several choices."""
    if isinstance(cell, str) and cell[:1] in "[{":
        with suppress(ValueError):
            cell = json.loads(cell)
    return cell["choices"] if isinstance(cell, Mapping) and "choices" in cell else cell
