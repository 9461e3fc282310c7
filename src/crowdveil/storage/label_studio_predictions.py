"""Predictions for Label Studio: inferred truths with their confidence, in the form that its import reads.

The file has the tasks' data and the truths, and no worker's answer.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.importers.label_studio import PATH_MARK, TAXONOMY, content_of_result
from crowdveil.answers.ingest.choices import CHOICE_MARK, NO, YES, choice_task
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError
from crowdveil.files.atomic_write import Outputs
from crowdveil.hints import advice

CHOICES, PAIRWISE = "choices", "pairwise"
LABELS = {CHOICES: CHOICES, PAIRWISE: "selected", TAXONOMY: TAXONOMY}
"""Key of the content by type of a question of labels."""
NUMBERS = {"rating": "rating", "number": "number"}
"""The same, of numbers."""
Record = dict[str, Any]
Found = tuple[str | float | list[str] | None, float | None]
"""Truth, or list of choices, and confidence."""


def prediction_outputs(out: Path) -> Outputs:
    """Return the file of predictions as an output."""
    return Outputs(folder=out.parent, names=(out.name,), kind="predictions")


def label_studio_prediction_records(
    estimate: Estimate, tasks: ExportFile, *, question: str | None = None
) -> list[Record]:
    """Return one record for each task with a truth: its data, and a prediction with the confidence as score.

    Args:
        estimate: truths and their confidence.
        tasks: Label Studio's own JSON export of the project.
        question: name of the question; needed if there are several.

    Raises:
        ReportsError: not such an export, none or several questions, no task of the truths, or truths that the question
            cannot hold.
    """
    if not {"id", "data", "annotations"} <= set(tasks.columns):
        raise ReportsError(
            "tasks must be Label Studio's own JSON", source=tasks.name, hint="Export the project as JSON, not as CSV."
        )
    control = _name_target_and_type_of_question(tasks, question)
    names, values = list(map(str, estimate.tasks)), _truth_values(estimate)
    confidence = [None] * len(names) if estimate.confidence is None else estimate.confidence.tolist()
    found: dict[str, Found] = {}
    _require_common_task(names, tasks)
    if (
        control["type"] in (CHOICES, TAXONOMY)
        and estimate.alphabet is not None
        and {*estimate.alphabet.names} <= {YES, NO}
    ):
        found = _choices_decided_yes_by_task(
            dict(zip(names, zip(values, confidence, strict=True), strict=True)), control, tasks
        )
    if not found:
        found = dict(
            zip(names, zip(_values_in_type_of_question(values, control, tasks), confidence, strict=True), strict=True)
        )
    return [
        record
        for task in tasks.rows_as_mappings
        for record in _prediction_record_of_task(task, found.get(str(task.get("id"))), control)
    ]


def _name_target_and_type_of_question(tasks: ExportFile, question: str | None) -> Record:
    """Return name, target and type of the question, from the first annotation with a result for it."""
    found: dict[str, Record] = {}
    for result in _annotation_results(tasks):
        name, kind = str(result.get("from_name")), str(result.get("type"))
        if kind in LABELS or kind in NUMBERS:
            found.setdefault(name, {"from_name": name, "to_name": str(result.get("to_name")), "type": kind})
    if question is None and len(found) == 1:
        return next(iter(found.values()))
    if question not in found:
        raise ReportsError(
            "one question with choices, a taxonomy, a pair, a rating or a number is needed",
            source=tasks.name,
            examples=", ".join(map(repr, found)) or "none",
            hint=advice("Choose it with {question}.") if found else "",
        )
    return found[question]


def _require_common_task(names: Sequence[str], tasks: ExportFile) -> None:
    """Refuse truths of which no task is in the export, neither itself nor by one of its choices."""
    ids = {str(task.get("id")) for task in tasks.rows_as_mappings}
    if not any(name in ids or name.partition(CHOICE_MARK)[0] in ids for name in names):
        raise ReportsError(
            "a task of the truths must be in the export",
            source=tasks.name,
            examples=f"tasks {', '.join(sorted(ids)[:3])}; truths of {', '.join(names[:3])}",
            hint="Export the project whose answers were inferred; the names of its tasks are their ids.",
        )


def _annotation_results(tasks: ExportFile) -> Iterator[Mapping[str, Any]]:
    """Yield the results of all annotations."""
    for task in tasks.rows_as_mappings:
        for annotation in task.get("annotations") or ():
            yield from annotation.get("result") or ()


def _truth_values(estimate: Estimate) -> list[str | float | None]:
    """Return the truths; None where there is none, or no decision."""
    if estimate.categorical:
        return [str(truth) or None for truth in estimate.truth]
    return [None if math.isnan(value) else float(value) for value in estimate.truth]


def _values_in_type_of_question(
    found: list[str | float | None], control: Record, tasks: ExportFile
) -> list[str | float | None]:
    """Return the truths as the question holds them."""
    if control["type"] in LABELS:
        return _as_choices(found, control, tasks)
    try:
        return [None if value is None else float(value) for value in found]
    except ValueError as error:
        raise ReportsError(
            f"the truths of a question of type {control['type']} must be numbers",
            source=tasks.name,
            examples=repr(next(value for value in found if isinstance(value, str))),
            hint=advice("Choose the question that was inferred with {question}."),
        ) from error


def _choices_decided_yes_by_task(
    of_task: Mapping[str, tuple[str | float | None, float | None]], control: Record, tasks: ExportFile
) -> dict[str, Found]:
    """Return the chosen choices by task, with the smallest confidence; empty if truths are not yes/no for each choice.

    A task with an undecided choice has none.
    """
    taken = sorted(_choices_of_annotations(control, tasks))
    found: dict[str, Found] = {}
    for name in (str(task.get("id")) for task in tasks.rows_as_mappings):
        decided = {choice: of_task[key] for choice in taken if (key := choice_task(name, choice)) in of_task}
        if decided and all(truth is not None for truth, _ in decided.values()):
            chosen = [choice for choice, (truth, _) in decided.items() if truth == YES]
            known = [one for _, one in decided.values() if one is not None]
            found[name] = (chosen, min(known, default=None))
    return found


def _choices_of_annotations(control: Record, tasks: ExportFile) -> set[str]:
    """Return the choices that annotations made for a question."""
    key = LABELS[control["type"]]
    contents = [
        (result.get("value") or {}).get(key)
        for result in _annotation_results(tasks)
        if str(result.get("from_name")) == control["from_name"]
    ]
    return {str(choice) for content in contents for choice in content_of_result(key, content or [])}


def _as_choices(found: Sequence[str | float | None], control: Record, tasks: ExportFile) -> list[str | float | None]:
    """Return the truths as choices: each one is a choice that an annotation made."""
    taken = _choices_of_annotations(control, tasks)
    texts = [f"{value:.15g}" if isinstance(value, float) else value for value in found]
    strange = sorted({text for text in texts if text is not None} - taken)
    if strange:
        raise ReportsError(
            f"the truths must be choices that annotations made for {control['from_name']!r}",
            source=tasks.name,
            examples=", ".join(map(repr, strange[:5])),
            hint=advice("Choose the question that was inferred with {question}, and the export that was read."),
        )
    return list(texts)


def _prediction_record_of_task(task: Mapping[str, Any], found: Found | None, control: Record) -> Iterator[Record]:
    """Yield the record of a task; none without a truth."""
    value, confidence = found or (None, None)
    if value is None:
        return
    score = {} if confidence is None or math.isnan(confidence) else {"score": confidence}
    results = [] if value == [] else [control | {"value": _result_value(value, control["type"])}]
    prediction = {"model_version": "crowdveil", **score, "result": results}
    yield {"id": task.get("id"), "data": task.get("data"), "predictions": [prediction]}


def _result_value(value: str | float | list[str], kind: str) -> Record:
    """Return the content of a result."""
    if kind in NUMBERS:
        assert isinstance(value, float)
        return {NUMBERS[kind]: round(value) if kind == "rating" else value}
    choices = value if isinstance(value, list) else [str(value)]
    if kind == TAXONOMY:
        return {TAXONOMY: [choice.split(PATH_MARK) for choice in choices]}
    return {LABELS[kind]: choices if kind == CHOICES else choices[0]}
