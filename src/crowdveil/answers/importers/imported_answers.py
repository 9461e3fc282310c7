"""Answers to one question of an export: its submissions as columns task, worker and label."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa

from crowdveil.answers.importers.export_file import ExportFile, abbreviate_files
from crowdveil.answers.importers.importer import Importer, Submission
from crowdveil.answers.importers.personal_columns import (
    ADDRESS,
    NUMBERED_PREFIX,
    is_personal,
    personal_fields,
)
from crowdveil.answers.ingest.choices import (
    MIN_CHOICES,
    NO,
    NO_CHOICES,
    YES,
    ChoiceOptions,
    NothingTicked,
    choice_task,
    choice_text,
    parsed_cell,
    refuse_equal_choice_tasks,
)
from crowdveil.answers.ingest.dictionary_encoding import encode_sorted
from crowdveil.answers.ingest.labels import LabelMap, map_labels
from crowdveil.arguments import is_number
from crowdveil.channels.alphabet import NULL
from crowdveil.errors import ReportsError, RowSource, place_of_rows
from crowdveil.hints import advice, one_of

MIN_QUESTIONS = 2
MANY_TEXTS = 10
"""Number of different texts from which answers can be free text."""
FEW_TEXTS = 5
"""The same, where no text occurs twice."""


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
        choices: choices of a question with answers of several: the table has one yes/no task for each choice of each
            task, see `choice_task`; empty for answers of one label.
        nothing_ticked: number of these answers with no choice.
        not_read: other questions of the export without labels or numbers, where all questions are read.
        columns: sentences on how columns are read.
        source: name of the files, which says where the submissions stand.
        data: columns that differ between no two answers to a task, and so are data of the tasks or unanimous questions.
    """

    tool: str
    table: pa.Table
    question: str
    questions: tuple[str, ...]
    no_answer: int
    left_out: dict[str, int]
    dropped: tuple[str, ...]
    renamed: int
    choices: tuple[str, ...] = ()
    nothing_ticked: int = 0
    not_read: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    source: str = ""

    def with_mapped_labels(self, label_map: LabelMap) -> "ImportedAnswers":
        """Return the answers with labels that are replaced by a map, which `columns` says; NULL stays."""
        if not label_map:
            return self
        labels = encode_sorted(self.table["label"])
        known = tuple(pair for pair in label_map if pair[0] != NULL)
        mapped, notes = map_labels(labels, known)
        place = self.table.column_names.index("label")
        table = self.table.set_column(place, "label", pa.array(mapped.cells.tolist(), pa.string()))
        return replace(self, table=table, columns=(*self.columns, *notes))


def answers_to_one_question(
    importer: Importer,
    exports: Sequence[ExportFile],
    question: str | None = None,
    options: ChoiceOptions = NO_CHOICES,
) -> ImportedAnswers:
    """Return the answers to one question.

    Args:
        importer: layout of the files.
        exports: files of one export.
        question: the question; needed if there are several.
        options: how answers of several choices are read.

    Raises:
        ReportsError: a file breaks the layout; none or several questions; a task or worker without a name; or a
            submission with several answers to the question that are no choices.
    """
    source = abbreviate_files(exports)
    found = _decided_submissions(importer, exports, question)
    chosen = _given_or_only_question(question, found, importer, source)
    columns = tuple(note for export in exports for note in importer.notes(export))
    return replace(_answers_to(chosen, importer, exports, found, options), columns=columns)


def collect_all_questions(
    importer: Importer, exports: Sequence[ExportFile], options: ChoiceOptions = NO_CHOICES
) -> dict[str, ImportedAnswers]:
    """Return the answers to each question with labels or numbers, if there are several questions; else nothing.

    Questions of free text, regions or rankings are left out, and named in `not_read`. Arguments and errors as
    `answers_to_one_question`.
    """
    found = _decided_submissions(importer, exports, None)
    questions = _question_names(found)
    if len(questions) < MIN_QUESTIONS:
        return {}
    read, left = dict[str, ImportedAnswers](), list[str]()
    for question in questions:
        kept = [one.answers.get(question) for one in found if not one.left_out]
        if not any(map(_is_not_empty, kept)) or is_free_text(kept) or not all(map(_is_label_or_choices, kept)):
            left.append(question)
        else:
            read[question] = _answers_to(question, importer, exports, found, options)
    if not read:
        _given_or_only_question(None, found, importer, abbreviate_files(exports))
    return {question: replace(one, not_read=tuple(left)) for question, one in read.items()}


def _decided_submissions(importer: Importer, exports: Sequence[ExportFile], question: str | None) -> list[Submission]:
    """Return the submissions of all files, those unsure columns that are questions among their answers.

    These are the chosen one and those in which two answers to a task differ, whatever the order of columns; without any
    of these, and without data among the columns, all.
    """
    paths = Counter(export.path.resolve() for export in exports)
    twice = next((export.name for export in exports if paths[export.path.resolve()] > 1), None)
    if twice is not None:
        raise ReportsError(
            "each file of an export must be given once", source=twice, hint="Leave out the repeated name."
        )
    found = [
        replace(_with_lists_parsed(one), file=file, number=number)
        for file, export in enumerate(exports)
        for number, one in enumerate(_submissions_of_file(importer, export), 1)
    ]
    unsure, first = _unsure_column_names(found), dict[tuple[str, str], str]()
    differing = {
        name
        for one in found
        for name, text in ((name, json.dumps(one.unsure.get(name), sort_keys=True, default=str)) for name in unsure)
        if not one.left_out and first.setdefault((name, str(one.task)), text) != text
    }
    chosen = [name for name in unsure if name in {*differing, question} or not (differing or importer.mixes_data)]
    return [
        replace(
            one,
            answers={**one.answers, **{name: one.unsure.get(name) for name in chosen}},
            unsure={name: content for name, content in one.unsure.items() if name not in chosen},
        )
        for one in found
    ]


def _with_lists_parsed(one: Submission) -> Submission:
    """Return a submission whose answers in text are lists or objects where they are written so."""
    answers = {question: parsed_cell(content) for question, content in one.answers.items()}
    return replace(one, answers=answers, unsure={name: parsed_cell(content) for name, content in one.unsure.items()})


def _answers_to(
    question: str,
    importer: Importer,
    exports: Sequence[ExportFile],
    found: Sequence[Submission],
    options: ChoiceOptions,
) -> ImportedAnswers:
    """Return the answers to a question among the submissions."""
    kept = [one for one in found if not one.left_out]
    source = _source_of_submissions(kept, importer, exports)
    tasks = [_identifier_text(one.task, "task", source, number) for number, one in enumerate(kept, 1)]
    workers, renamed = _worker_names_without_addresses(kept, source)
    contents = [_content_of(one, question, options) for one in kept]
    choices = _multiple_choices(contents)
    nothing = sum(content == [] for content in contents) if choices else 0
    if choices:
        distinct = dict.fromkeys(tasks)
        refuse_equal_choice_tasks([choice_task(task, choice) for task in distinct for choice in choices], source)
        rows = list(_choice_rows(tasks, workers, contents, choices, options.nothing_ticked))
        tasks, workers, labels = map(list, zip(*rows, strict=True))
    else:
        labels = [_label_text_or_null(content, source, number) for number, content in enumerate(contents, 1)]
    return ImportedAnswers(
        tool=importer.tool,
        table=pa.table({"task": tasks, "worker": workers, "label": labels}),
        question=question,
        questions=_question_names(found),
        no_answer=labels.count(NULL),
        left_out=dict(Counter(one.left_out for one in found if one.left_out)),
        dropped=_personal_columns(importer, exports, _question_names(found)),
        renamed=renamed,
        choices=choices,
        nothing_ticked=nothing,
        data=_unsure_column_names(found),
        source=source,
    )


def _source_of_submissions(kept: Sequence[Submission], importer: Importer, exports: Sequence[ExportFile]) -> RowSource:
    """Return the source of submissions: the lines of a table with one in each row, else their numbers in the file."""
    sources = [
        one.row_source
        if importer.one_per_row and one.form == "text"
        else RowSource(one.name, partial(_place_of_numbered_submissions, one.name))
        for one in exports
    ]
    return RowSource(abbreviate_files(exports), partial(_place_of_submissions, tuple(kept), sources))


def _place_of_submissions(kept: Sequence[Submission], sources: Sequence[str], rows: tuple[int, ...]) -> str:
    chosen = [kept[row - 1] for row in rows]
    return "; ".join(
        place_of_rows(sources[file], tuple(one.number for one in group))
        for file, group in groupby(chosen, lambda one: one.file)
    )


def _place_of_numbered_submissions(name: str, numbers: tuple[int, ...]) -> str:
    return f"{name}, {'submission' if len(numbers) == 1 else 'submissions'} {', '.join(map(str, numbers))}"


def _content_of(one: Submission, question: str, options: ChoiceOptions) -> Any:
    """Return the answer to a question; an empty list where nothing was ticked in a submission that was sent."""
    content = options.choices_in(one.answers.get(question))
    return [] if content is None and one.ticks_nothing_if_empty else content


def _question_names(found: Sequence[Submission]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for one in found if not one.left_out for name in one.answers))


def _unsure_column_names(found: Sequence[Submission]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for one in found for name in one.unsure))


def _is_several_choices(content: Any) -> bool:
    """Return whether an answer is a list of several choices."""
    return isinstance(content, list) and len(content) >= MIN_CHOICES and None not in map(choice_text, content)


def _multiple_choices(contents: Sequence[Any]) -> tuple[str, ...]:
    """Return all choices of a question with answers of several, in the order in which they occur; else nothing."""
    if not any(map(_is_several_choices, contents)):
        return ()
    lists = map(_answer_as_list_of_choices, contents)
    return tuple(dict.fromkeys(_label_text_or_null(choice, "", 0) for one in lists for choice in one))


def _answer_as_list_of_choices(content: Any) -> list[Any]:
    """Return an answer of one or several choices as a list; no answer is an empty one."""
    if content is None or content == "":
        return []
    return content if isinstance(content, list) else [content]


def _choice_rows(
    tasks: Sequence[str],
    workers: Sequence[str],
    contents: Sequence[Any],
    choices: Sequence[str],
    nothing_ticked: NothingTicked,
) -> Iterator[tuple[str, str, str]]:
    """Yield task, worker and label of each choice, whose task is TASK|CHOICE; no answer to a task is none to each."""
    for task, worker, content in zip(tasks, workers, contents, strict=True):
        chosen = {choice_text(choice) for choice in _answer_as_list_of_choices(content)}
        answered = chosen or (content == [] and nothing_ticked == "no")
        for choice in choices:
            yield choice_task(task, choice), worker, (YES if choice in chosen else NO) if answered else NULL


def is_free_text(contents: Sequence[Any]) -> bool:
    """Return whether answers are texts of which most occur once, or few of which none occurs twice: no labels."""
    given = [content for content in map(_only_item, contents) if _is_not_empty(content)]
    texts = {content for content in given if isinstance(content, str) and not is_number(content)}
    return len(texts) > max(MANY_TEXTS, len(given) / 2) or FEW_TEXTS <= len(texts) == len(given)


def _is_not_empty(content: Any) -> bool:
    """Return whether a content is not empty."""
    return content not in (None, "", [])


def _is_label_or_choices(content: Any) -> bool:
    """Return whether an answer is one label or number, or several choices."""
    return _is_several_choices(content) or not isinstance(_only_item(content) or "", list | dict)


def _only_item(content: Any) -> Any:
    """Return the content of a list of one."""
    while isinstance(content, list) and len(content) == 1:
        content = content[0]
    return content


def _submissions_of_file(importer: Importer, export: ExportFile) -> list[Submission]:
    """Return the submissions of a file; content of another shape than the layout's is refused."""
    try:
        return list(importer.submissions(export))
    except (AttributeError, TypeError, LookupError) as error:
        raise ReportsError(
            f"the file must have the layout of {importer.title}",
            source=export.name,
            examples=str(error)[:80],
            hint=importer.expected,
        ) from error


def _personal_columns(importer: Importer, exports: Sequence[ExportFile], questions: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the columns with personal data, over all files; questions and what is kept apart."""
    kept = {name for export in exports for name in importer.kept_columns(export)}
    found = dict.fromkeys(
        name
        for export in exports
        for name in personal_fields(export.columns, export.rows_as_mappings if export.form == "json" else ())
    )
    return tuple(name for name in found if name not in kept and not any(_is_part_of(name, one) for one in questions))


def _is_part_of(path: str, question: str) -> bool:
    """Return whether a column or path of keys is a question (`Answer.stars`, `OUTPUT:stars`), or inside its answers."""
    return path == question or path.endswith((f".{question}", f":{question}")) or path.startswith(f"{question}.")


def _given_or_only_question(question: str | None, found: Sequence[Submission], importer: Importer, source: str) -> str:
    questions, data = _question_names(found), _unsure_column_names(found)
    listed = ", ".join(map(repr, (questions + data)[:20])) or "none"
    if question is not None and question not in questions:
        raise ReportsError(
            f"the export has no question {question!r}", source=source, examples=listed, hint="State one of these."
        )
    if question is None and data and not questions:
        raise ReportsError(
            "a column is a question if two answers to a task differ in it",
            source=source,
            examples=f"no such column among {listed}",
            hint=one_of(
                advice("choose one, such as {question}", question=data[-1]),
                advice(
                    "state the columns of a table: {task}, {worker} and {label}",
                    advice("state the columns of a table: {names}=ColumnNames(...)"),
                ),
            ),
        )
    if question is None and data and len(questions) == 1:
        _refuse_question_without_answers(questions[0], data, found, source)
    if question is None and len(questions) != 1:
        rule = "one question is read at a time" if questions else "there must be a question with one answer per worker"
        hint = _choose_question(questions[0]) if questions else importer.expected
        raise ReportsError(rule, source=source, examples=listed, hint=hint)
    return question or questions[0]


def _refuse_question_without_answers(
    question: str, data: Sequence[str], found: Sequence[Submission], source: str
) -> None:
    """Refuse texts, times and addresses as the only column that differs: the question may be one on which all agree."""
    contents = [one.answers.get(question) for one in found if not one.left_out]
    if is_personal(question) or is_free_text(contents):
        raise ReportsError(
            "the only column in which two answers to a task differ must hold answers",
            source=source,
            examples=f"{question!r}, of times, addresses, ratings or texts; others: {', '.join(map(repr, data[:20]))}",
            hint=_choose_question(data[0]),
        )


def _choose_question(name: str) -> str:
    """Return the hint to choose one of several questions."""
    return advice("Choose one, such as {question}.", "Give a file with one question.", question=name)


def _worker_names_without_addresses(kept: Sequence[Submission], source: str) -> tuple[list[str], int]:
    """Return the workers' names without addresses, and the number of names that were replaced."""
    given = [_identifier_text(one.worker, "worker", source, number) for number, one in enumerate(kept, 1)]
    prefix = NUMBERED_PREFIX
    while any(name.startswith(prefix) for name in given):
        prefix += "-"
    addresses = dict.fromkeys(name for name in given if ADDRESS.fullmatch(name))
    numbers = {name: f"{prefix}{number}" for number, name in enumerate(addresses, 1)}
    return [numbers.get(name, name) for name in given], len(numbers)


def _identifier_text(name: Any, role: str, source: str, number: int) -> str:
    if name is None or name == "" or isinstance(name, float | dict | list):
        raise ReportsError(
            f"every submission needs a {role}",
            source=source,
            rows=(number,),
            examples=repr(name)[:80],
            hint=f"Export the {role}s too.",
        )
    return str(name)


def _label_text_or_null(value: Any, source: str, number: int) -> str:
    """Return an answer as text; NULL if there is none."""
    value = _only_item(value)
    if value is None or value == "" or value == []:
        return NULL
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value == NULL:
        raise ReportsError(
            f"the label {NULL} is reserved for no answer",
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
        hint="Regions, rankings and several texts are not read; choose another question.",
    )
