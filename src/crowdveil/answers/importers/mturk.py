"""Amazon Mechanical Turk: results of a batch as CSV.

A choice may fill one column per option (`Answer.animal.cat`, `Answer.animal.dog.on`), and all answers may stand as JSON
in `Answer.taskAnswers`. Ticked boxes of one name stand in one cell as `cat|dog`.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, final

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.importers.importer import Importer, Submission
from crowdveil.errors import ReportsError

TASK, WORKER, STATUS, ANSWER = "HITId", "WorkerId", "AssignmentStatus", "Answer."
INPUT = "Input."
"""Start of the columns with the data of the tasks."""
ALL_ANSWERS = "Answer.taskAnswers"
BOX_MARK = "|"
"""Separator of the ticked boxes of a group in one cell."""
CHOSEN = {"true": True, "on": True, "false": False, "off": False, "": None}
"""Meaning of the cell of an option, in lower case."""


@final
class MechanicalTurk(Importer):
    """Results of batches of Mechanical Turk."""

    tool = "mturk"
    title = "Mechanical Turk"
    expected = "Mechanical Turk's CSV has 'HITId', 'WorkerId', and 'Answer....' for each question."

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return whether there are HITs and workers."""
        return {TASK, WORKER} <= set(columns)

    def submissions(self, export: ExportFile) -> Iterator[Submission]:
        """Yield the assignments; rejected ones are left out."""
        meta = [name for name in (TASK, WORKER, STATUS) if name in export.columns]
        given = [name for name in export.columns if name.startswith(ANSWER)]
        rows = list(export.rows([*meta, *given]))
        contents = [_contents_by_name(row, given, export.name) for row in rows]
        _split_ticked_boxes_into_lists(contents)
        options = _option_columns(contents)
        explicit = {name for name, group in options.items() if _has_unticked_option(contents, group)}
        for row, content in zip(rows, contents, strict=True):
            rejected = str(row.get(STATUS) or "").lower() == "rejected"
            yield Submission(
                row[TASK],
                row[WORKER],
                left_out="rejected" if rejected else "",
                # Hidden inputs of a form repeat data of the task among the answers.
                unsure=_answers_to_questions(content, options, explicit),
            )

    def task_data(self, export: ExportFile) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        """Yield each HIT with its inputs, named without `Input.`."""
        inputs = [name for name in export.columns if name.startswith(INPUT)]
        for row in export.rows([TASK, *inputs]):
            yield row[TASK], {name.removeprefix(INPUT): row[name] for name in inputs}


def _contents_by_name(row: Mapping[str, Any], given: Sequence[str], source: str) -> dict[str, Any]:
    """Return the content by name of answer; JSON is flattened."""
    contents = {name.removeprefix(ANSWER): row[name] for name in given if name != ALL_ANSWERS}
    text = row.get(ALL_ANSWERS)
    if text:
        try:
            answers = json.loads(text)
        except ValueError as error:
            raise ReportsError(
                f"{ALL_ANSWERS} must be JSON", source=source, examples=str(text)[:80], hint="Download it again."
            ) from error
        for part in answers if isinstance(answers, list) else [answers]:
            contents |= _flatten_json(part, "")
    return contents


def _split_ticked_boxes_into_lists(contents: Sequence[dict[str, Any]]) -> None:
    """Turn cells such as `cat|dog`, of ticked boxes, into lists where one of the parts also occurs elsewhere."""
    for name in dict.fromkeys(name for content in contents for name in content):
        cells = [str(content.get(name) or "").split(BOX_MARK) for content in contents]
        rows_of = Counter(part for parts in cells for part in set(parts))
        if any(len(parts) > 1 and any(rows_of[part] > 1 for part in parts) for parts in cells):
            for content, parts in zip(contents, cells, strict=True):
                content[name] = [part for part in parts if part]


def _flatten_json(value: Any, above: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {above: str(value).lower() if isinstance(value, bool) else value}
    parts = [_flatten_json(part, f"{above}.{key}" if above else str(key)) for key, part in value.items()]
    return {name: content for part in parts for name, content in part.items()}


def _option_columns(contents: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return the options of each question that has one column per option: by column, the option's name."""
    names = dict.fromkeys(name for content in contents for name in content)
    ticked = [
        name
        for name in names
        if "." in name and all(str(content.get(name) or "").lower() in CHOSEN for content in contents)
    ]
    grouped: dict[str, dict[str, str]] = defaultdict(dict)
    for name in ticked:
        question, _, option = name.removesuffix(".on").rpartition(".")
        grouped[question or option][name] = option
    return grouped


def _has_unticked_option(contents: Sequence[Mapping[str, Any]], group: Mapping[str, str]) -> bool:
    """Return whether some cell says that an option was not chosen; otherwise an empty cell says so."""
    return any(CHOSEN[str(content.get(column) or "").lower()] is False for content in contents for column in group)


def _answers_to_questions(
    content: Mapping[str, Any], options: Mapping[str, Mapping[str, str]], explicit: Set[str]
) -> dict[str, Any]:
    """Return the answer to each question: of options, those that were chosen.

    Where cells say that an option was not chosen (`explicit`), empty cells of all options are no answer.
    """
    columns = {column for group in options.values() for column in group}
    answers = {name: value for name, value in content.items() if name not in columns}
    for question, group in options.items():
        ticked = {option: CHOSEN[str(content.get(column) or "").lower()] for column, option in group.items()}
        if len(ticked) == 1:
            # A single box is a question of its own: not ticked is an answer.
            answers[question] = None if None in ticked.values() else str(any(ticked.values())).lower()
        elif question in explicit and not any(chosen is not None for chosen in ticked.values()):
            answers[question] = None
        else:
            answers[question] = [option for option, chosen in ticked.items() if chosen]
    return answers
