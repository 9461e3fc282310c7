"""Label Studio: JSON, and the flat CSV, TSV and JSON_MIN.

Only the JSON has cancelled annotations. The flat forms mix the columns of the data with those of the questions, in any
order. An annotation that was sent without a result for a question of several choices ticks none of them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.importers.importer import Importer, Submission
from crowdveil.answers.ingest.choices import parsed_cell

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
FREE_TEXT, TAXONOMY = "text", "taxonomy"
PATH_MARK = " > "
"""Separator of the steps of a path in a taxonomy."""
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
                    ticks_nothing_if_empty=not cancelled,
                )

    def task_data(self, export: ExportFile) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        """Yield each task with its data; in the flat forms they stand beside the answers."""
        for record in export.rows_as_mappings:
            if "annotator" in export.columns:
                yield record.get("id", record.get("annotation_id")), record
            else:
                yield record.get("id"), record.get("data") or {}


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
            found[str(part.get("from_name"))].append(content_of_result(key, value[key]))
    return {name: contents[0] if len(contents) == 1 else contents for name, contents in found.items()}


def content_of_result(key: str, value: Any) -> Any:
    """Return the content of a result: choices and paths of a taxonomy as a list, free text as an object."""
    if key == FREE_TEXT:
        return [{key: value}]  # no label
    if key == TAXONOMY and isinstance(value, list):
        return [PATH_MARK.join(map(str, path)) if isinstance(path, list) else path for path in value]
    return value if key == "choices" else [value]


def _submissions_of_rows(export: ExportFile) -> Iterator[Submission]:
    columns = [name for name in export.columns if name not in FLAT_COLUMNS]
    for row in export.rows_as_mappings:
        contents = {name: _content_of_cell(row.get(name)) for name in columns}
        task = row.get("id", row.get("annotation_id"))
        yield Submission(task, row.get("annotator"), unsure=contents, ticks_nothing_if_empty=True)


def _content_of_cell(cell: Any) -> Any:
    """Return the content of a cell: a label, or the JSON of choices or of the results of one question.

    Such a list has one object for each result. A list of other items has the choices of several regions, or texts.
    """
    content = parsed_cell(cell)
    if isinstance(content, Mapping):
        return content.get("choices", content)
    if not isinstance(content, list):
        return content
    contents = [_content_of_object(one) if isinstance(one, Mapping) else [one] for one in content]
    return contents[0] if len(contents) == 1 and isinstance(content[0], Mapping) else contents


def _content_of_object(result: Mapping[str, Any]) -> Any:
    """Return the content of a result in a cell; the result itself if it is no answer to a question."""
    keys = [key for key in SINGLE_VALUES.values() if key in result]
    return content_of_result(keys[0], result[keys[0]]) if len(keys) == len(result) == 1 else [result]
