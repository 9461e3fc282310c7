"""Answers to one question of an export: its submissions as columns task, worker and label."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from crowdveil.channels.alphabet import NULL
from crowdveil.data.importers.export_file import ExportFile
from crowdveil.data.importers.importer import Importer, Submission
from crowdveil.data.importers.personal_data import WorkerNames, personal_names
from crowdveil.data.ingest.readers import NO_NAMES, ColumnNames
from crowdveil.errors import ReportsError

SHOWN = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class ImportedAnswers:
    """Answers to one question.

    Attributes:
        tool: name of the importer.
        table: columns task, worker and label, text; the label NULL says that the worker gave no answer.
        question: the question.
        questions: all questions of the export.
        no_answer: number of records with the label NULL.
        left_out: number of submissions that are no answers, by reason.
        dropped: names of columns with personal data (times, ratings, addresses), which are not kept.
        renamed: number of workers who were named by an address, and now by a number.
    """

    tool: str
    table: pa.Table
    question: str
    questions: tuple[str, ...]
    no_answer: int
    left_out: dict[str, int]
    dropped: tuple[str, ...]
    renamed: int


def collect_answers(
    importer: Importer, exports: Sequence[ExportFile], question: str | None = None, names: ColumnNames = NO_NAMES
) -> ImportedAnswers:
    """Return the answers to one question.

    Args:
        importer: layout of the files.
        exports: files of one export.
        question: the question; needed if there are several.
        names: columns that do not follow from the header.

    Raises:
        ReportsError: a file breaks the layout; none or several questions; a task or worker without a name; or a
            submission with several answers to the question.
    """
    source = exports[0].name if len(exports) == 1 else f"{exports[0].name} and {len(exports) - 1} more"
    found = [one for export in exports for one in _submissions(importer, export, names)]
    kept = [one for one in found if not one.left_out]
    questions = tuple(dict.fromkeys(name for one in kept for name in one.answers))
    chosen = _chosen(question, questions, importer, source)
    labels = [_label(one.answers.get(chosen), source, number) for number, one in enumerate(kept, 1)]
    tasks = [_identifier(one.task, "task", source, number) for number, one in enumerate(kept, 1)]
    workers, renamed = _workers(kept, source)
    return ImportedAnswers(
        tool=importer.tool,
        table=pa.table({"task": tasks, "worker": workers, "label": labels}),
        question=chosen,
        questions=questions,
        no_answer=labels.count(NULL),
        left_out=dict(Counter(one.left_out for one in found if one.left_out)),
        dropped=_dropped(exports, questions),
        renamed=renamed,
    )


def _submissions(importer: Importer, export: ExportFile, names: ColumnNames) -> list[Submission]:
    """Return the submissions of a file; content of another shape than the layout's is refused."""
    try:
        return list(importer.submissions(export, names))
    except (AttributeError, TypeError, LookupError) as error:
        raise ReportsError(
            f"the file must have the layout of {importer.title}",
            source=export.name,
            examples=str(error)[:80],
            hint=importer.expected,
        ) from error


def _dropped(exports: Sequence[ExportFile], questions: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the columns with personal data, over all files, questions apart."""
    found = dict.fromkeys(
        name
        for export in exports
        for name in personal_names(export.columns, export.records if export.form == "json" else ())
    )
    return tuple(name for name in found if not name.endswith(questions))


def _chosen(question: str | None, questions: tuple[str, ...], importer: Importer, source: str) -> str:
    listed = ", ".join(map(repr, questions[:20])) or "none"
    if question is not None and question not in questions:
        raise ReportsError(
            f"the export has no question {question!r}", source=source, examples=listed, hint="State one of these."
        )
    if question is None and len(questions) != 1:
        rule = "one question is read at a time" if questions else "there must be a question with one answer per worker"
        hint = f"Choose it with --question, such as --question {questions[0]!r}." if questions else importer.expected
        raise ReportsError(rule, source=source, examples=listed, hint=hint)
    return question or questions[0]


def _workers(kept: Sequence[Submission], source: str) -> tuple[list[str], int]:
    """Return the workers' names without addresses, and the number of names that were replaced."""
    given = [
        _identifier(one.address if one.worker in (None, "") else one.worker, "worker", source, number)
        for number, one in enumerate(kept, 1)
    ]
    names = WorkerNames(dict.fromkeys(given))
    public = [names.public(name, is_address=one.worker in (None, "")) for name, one in zip(given, kept, strict=True)]
    return public, names.replaced


def _identifier(name: Any, role: str, source: str, number: int) -> str:
    if name is None or name == "" or isinstance(name, float | dict | list):
        raise ReportsError(
            f"every submission needs a {role}",
            source=source,
            rows=(number,),
            examples=repr(name)[:80],
            hint=f"Export the {role}s too.",
        )
    return str(name)


def _label(value: Any, source: str, number: int) -> str:
    """Return an answer as text; NULL if there is none."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or value == "" or value == []:
        return NULL
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value == NULL:
        raise ReportsError(
            f"the label {NULL} is kept for no answer",
            source=source,
            rows=(number,),
            examples=repr(value),
            hint="Rename the choice in the export.",
        )
    if isinstance(value, str | int | float):
        return str(value)
    raise ReportsError(
        "a worker gives one answer to a question: a text or a number",
        source=source,
        rows=(number,),
        examples=repr(value)[:80],
        hint="Answers of several choices, regions or rankings are not read; choose another question.",
    )
