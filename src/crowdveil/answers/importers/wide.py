"""Wide tables: one row per task, one column per worker; or, transposed, one row per respondent, one column per task.

Any table may look like one, so it is never recognised: its user states that it is one. The sheet of a form has a row
for each respondent. It is refused unless it is stated to be transposed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.importers.imported_answers import is_free_text
from crowdveil.answers.importers.importer import Importer, Submission
from crowdveil.answers.importers.personal_columns import ADDRESS, NUMBERED_PREFIX, columns_that_name_people, is_personal
from crowdveil.answers.ingest.column_readers import ANSWERS, OTHER_NAMES, normal_name
from crowdveil.channels.alphabet import NULL
from crowdveil.errors import ReportsError
from crowdveil.hints import advice

ANSWER = "answer"
TASK_NAMES = {*ANSWERS["task"], *OTHER_NAMES["task"], "id", ""}
_OTHERS = """gold gold_label gold_standard golden truth ground_truth groundtruth true_label correct correct_label
correct_answer consensus majority majority_vote adjudicated final final_label mean average avg median mode total sum
count std stdev sd variance agreement entropy kappa difficulty weight priority length split fold"""
ROLE_NAMES = frozenset(name for role in ("worker", "value") for name in (*ANSWERS[role], *OTHER_NAMES[role]))
"""Names of columns of a table with one row per answer."""
OTHER_COLUMNS = ROLE_NAMES.union(_OTHERS.split(), {""})
"""Names of columns that are no workers: of roles, of truths, and of figures about tasks."""
COLUMNS_SHOWN = 12


_RESPONDENTS = "respondent respondent_id response_id responseid participant participant_id"
RESPONDENT_NAMES = frozenset((*ANSWERS["worker"], *OTHER_NAMES["worker"], *_RESPONDENTS.split()))
"""Names of columns that name the respondents of a form."""
_ADDRESSES = "email email_address e_mail e_mail_address mail username ip ip_address ipaddress"
ADDRESS_NAMES = frozenset(_ADDRESSES.split())
"""Names of columns with an address of each respondent."""
_FIGURES = """score scores total_score points total_points quiz_feedback status progress finished lastpage startlanguage
seed refurl userlanguage distribution_channel distributionchannel collector_id network_id name id # _id _uuid"""
FIGURES = OTHER_COLUMNS.union(_FIGURES.split())
"""Names of columns about a respondent or a submission in the sheets of forms, which are no tasks."""
MAX_WORDS = 4
"""Largest number of words in the name of a column of personal data; a longer name, or one that asks, is a task."""
DESCRIPTIONS = ('{"ImportId"', "Open-Ended Response")
"""Beginnings of cells in rows below a header that describe the columns."""


@final
class Wide(Importer):
    """Table with a column of tasks, and one of labels for each worker; or the other way round."""

    tool = "wide"
    title = "a wide table"
    expected = "A wide table has a column of tasks, such as 'task', and one column of labels for each worker."
    question = ANSWER
    one_per_row = False

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return False: the names of workers can be any."""
        return False

    def notes(self, export: ExportFile) -> tuple[str, ...]:
        """Return which columns are tasks and workers."""
        if export.transposed:
            return _form(export).notes
        task, workers = _task_and_worker_columns(export)
        return (f"Tasks are in the column {task!r}; {len(workers):,} columns are workers: {_first_names(workers)}.",)

    def kept_columns(self, export: ExportFile) -> tuple[str, ...]:
        """Return the columns of tasks and workers."""
        if export.transposed:
            form = _form(export)
            return (*form.tasks, *([] if form.worker is None else [form.worker]))
        task, workers = _task_and_worker_columns(export)
        return (task, *workers)

    def submissions(self, export: ExportFile) -> Iterator[Submission]:
        """Yield the cells; an empty cell is left out, since nobody knows whether the worker was asked.

        Raises:
            ReportsError: no column has tasks, another column has another role or holds texts, a task has no name, or
                the rows are respondents and the table is not stated to be transposed.
        """
        if export.transposed:
            yield from _submissions_of_form(_form(export), export)
            return
        task, workers = _task_and_worker_columns(export)
        rows = list(export.rows([task, *workers]))
        _refuse_unnamed_rows(task, "task", rows, export.name)
        if export.names.worker is None:
            _refuse_rows_of_respondents(task, [row[task] for row in rows], export)
            _refuse_free_text_columns({name: [row[name] for row in rows] for name in workers}, export.name)
        for row in rows:
            for worker in workers:
                yield _submission_of_cell(row[task], worker, row[worker])


def _submission_of_cell(task: Any, worker: Any, cell: Any) -> Submission:
    empty = cell is None or cell == ""
    return Submission(task, worker, {ANSWER: None if cell == NULL else cell}, "empty cells" if empty else "")


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:COLUMNS_SHOWN])) + (", ..." if len(names) > COLUMNS_SHOWN else "")


def _task_and_worker_columns(export: ExportFile) -> tuple[str, list[str]]:
    """Return the column of tasks and the columns of workers."""
    names = export.names
    task = names.task or _task_column(export)
    others = [name for name in export.columns if name != task]
    if names.worker is not None:
        workers = _stated_columns(names.worker, "worker", others, export.name)
    else:
        workers = [name for name in others if not is_personal(name)]
    if names.stated_value_kind is not None:
        raise ReportsError(
            "a wide table has labels in the columns of workers",
            source=export.name,
            examples=repr(names.stated_value_kind),
            hint=f"Leave it out{_stated_workers()}.",
        )
    _refuse_other_columns(workers, export.name)
    return task, workers


def _stated_columns(stated: str, role: str, columns: Sequence[str], source: str) -> list[str]:
    """Return the columns of tasks or workers that are stated, separated by commas."""
    wanted = [stated] if stated in columns else [name.strip() for name in stated.split(",")]
    absent = [name for name in wanted if name not in columns]
    if absent:
        raise ReportsError(
            f"a stated {role} must be a column of the wide table",
            source=source,
            examples=", ".join(map(repr, absent[:5])),
            hint=f"Its other columns are {', '.join(map(repr, columns[:COLUMNS_SHOWN]))}.",
        )
    return wanted


def _task_column(export: ExportFile) -> str:
    """Return the only column with the name of tasks, or without a name."""
    named = [name for name in export.columns if normal_name(name) in TASK_NAMES]
    if len(named) != 1:
        raise ReportsError(
            "a wide table must have exactly one column of task names",
            source=export.name,
            examples=", ".join(map(repr, named or export.columns[:COLUMNS_SHOWN])),
            hint=(
                f"Name it task{advice(', or state it ({task})')}. If it has one row per respondent, transpose "
                f"it{advice(': {transpose}', transpose=True)}."
            ),
        )
    return named[0]


def _refuse_other_columns(workers: Sequence[str], source: str) -> None:
    """Refuse columns of known truths, of other roles and of figures about tasks, and columns without a name."""
    others = [name for name in workers if normal_name(name) in OTHER_COLUMNS]
    if others:
        is_long = any(normal_name(name) in ROLE_NAMES for name in others)
        raise ReportsError(
            "every column but the tasks' must be a worker",
            source=source,
            examples=", ".join(map(repr, others[:5])),
            hint="A table with one row per answer needs no import: give it to infer or perturb."
            if is_long
            else "Remove these columns (known truths go into a separate file), or rename the workers.",
        )


def _refuse_rows_of_respondents(task: str, cells: Sequence[Any], export: ExportFile) -> None:
    """Refuse a table whose rows are those who answer: they have addresses, or names of respondents."""
    if normal_name(task) in TASK_NAMES - {"id", ""}:
        return
    given = [str(cell) for cell in cells if cell]
    people = {*RESPONDENT_NAMES, *ADDRESS_NAMES}
    telling = [name for name in export.columns if normal_name(name) in people or (name == task and is_personal(name))]
    if not telling and sum(ADDRESS.fullmatch(cell) is not None for cell in given) * 2 <= len(given):
        return
    raise ReportsError(
        "the rows of a wide table must be tasks, and these are respondents",
        source=export.name,
        examples=f"the column {(telling or [task])[0]!r}",
        hint=f"Transpose the table{advice(': {transpose}', transpose=True)}. If the rows are tasks, state the "
        f"columns of workers: {_workers_argument()}.",
    )


def _refuse_free_text_columns(cells: dict[str, list[Any]], source: str) -> None:
    """Refuse columns of texts."""
    texts = _columns_of_free_text(cells)
    if texts:
        raise ReportsError(
            "every column but the tasks' must be a worker, with labels or numbers",
            source=source,
            examples=", ".join(map(repr, texts[:5])),
            hint=f"Remove columns of comments and of what the tasks show{_stated_workers()}.",
        )


def _columns_of_free_text(cells: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the columns of texts that no other column has, such as comments or what the tasks show."""
    columns = Counter(cell for own in cells.values() for cell in set(own) if cell != "")
    return [name for name, own in cells.items() if max(map(columns.__getitem__, own)) < 2 and is_free_text(own)]


def _stated_workers() -> str:
    """Return the advice to state the columns of workers."""
    return f", or state those of the workers: {_workers_argument()}"


def _workers_argument() -> str:
    """Return the argument that states the columns of workers."""
    return advice("{worker}", advice("{names}=ColumnNames(worker='FIRST,SECOND')"), worker="FIRST,SECOND")


def _tasks_argument() -> str:
    """Return the argument that states the columns of tasks."""
    return advice("{task}", advice("{names}=ColumnNames(task='FIRST,SECOND')"), task="FIRST,SECOND")


def _refuse_unnamed_rows(column: str, role: str, rows: Sequence[dict[str, Any]], source: str) -> None:
    unnamed = [number for number, row in enumerate(rows, 1) if row[column] is None or row[column] == ""]
    if unnamed:
        raise ReportsError(
            f"every row must have a {role}",
            source=source,
            rows=tuple(unnamed[:5]),
            examples=f"empty cells in the column {column!r}",
            hint=f"Name the {role}s, or remove the rows.",
        )


class _Form(NamedTuple):
    """Columns of a table with one row for each respondent.

    Attributes:
        worker: column that names the respondents; None if they are numbered in the order of the rows.
        tasks: columns of tasks.
        notes: sentences on how the columns are read.
    """

    worker: str | None
    tasks: list[str]
    notes: tuple[str, ...]


def _form(export: ExportFile) -> _Form:
    """Return the columns of a table with one row for each respondent; figures and texts are left out, and named."""
    names = export.names
    worker = names.worker or _respondent_column(export)
    others = [name for name in export.columns if name != worker]
    if names.task is not None:
        tasks, left = _stated_columns(names.task, "task", others, export.name), []
    else:
        answered = [name for name in others if not _is_about_respondent(name)]
        rows = list(export.rows(answered))
        _refuse_descriptive_rows(rows, export.name)
        cells = {name: [row[name] for row in rows] for name in answered}
        no_tasks = {*_columns_of_free_text(cells), *columns_that_name_people(cells)}
        left = [name for name in others if normal_name(name) in FIGURES or name in no_tasks]
        tasks = [name for name in answered if name not in left]
    if not tasks:
        raise ReportsError(
            "a table with one row per respondent must have a column of labels for each task",
            source=export.name,
            examples=_first_names(export.columns),
            hint=f"State the columns of tasks: {_tasks_argument()}.",
        )
    how = "numbered in the order of the rows" if worker is None else f"in the column {worker!r}"
    notes = [f"Respondents are {how}; {len(tasks):,} columns are tasks: {_first_names(tasks)}."]
    if left:
        notes.append(
            f"Not read (texts, names, or figures about respondents): {_first_names(left)}. "
            f"If they are tasks, state all tasks: {_tasks_argument()}."
        )
    return _Form(worker, tasks, tuple(notes))


def _is_about_respondent(name: str) -> bool:
    """Return whether a column has personal data or figures about respondents: its name is short, and asks nothing."""
    if normal_name(name) in FIGURES:
        return True
    return is_personal(name) and len(name.split()) <= MAX_WORDS and not name.rstrip().endswith("?")


def _respondent_column(export: ExportFile) -> str | None:
    """Return the column that names the respondents: by its name, or of addresses that tell most rows apart."""
    named = [name for name in export.columns if normal_name(name) in RESPONDENT_NAMES]
    if len(named) > 1:
        raise ReportsError(
            "one column must name the respondents",
            source=export.name,
            examples=", ".join(map(repr, named)),
            hint=f"Rename the others{advice(', or state it ({worker})', advice(', or state it in {names}'))}.",
        )
    if named:
        return named[0]
    addresses = [name for name in export.columns if normal_name(name) in ADDRESS_NAMES]
    rows = list(export.rows(addresses)) if addresses else []
    cells = {name: [row[name] for row in rows] for name in addresses}
    return next((name for name, own in cells.items() if all(own) and len(set(own)) * 2 > len(own)), None)


def _submissions_of_form(form: _Form, export: ExportFile) -> Iterator[Submission]:
    """Yield the cells of a table with one row for each respondent."""
    rows = list(export.rows([*form.tasks, *([] if form.worker is None else [form.worker])]))
    _refuse_descriptive_rows(rows, export.name)
    if form.worker is not None:
        _refuse_unnamed_rows(form.worker, "respondent", rows, export.name)
    for number, row in enumerate(rows, 1):
        worker = f"{NUMBERED_PREFIX}{number}" if form.worker is None else row[form.worker]
        for task in form.tasks:
            yield _submission_of_cell(task, worker, row[task])


def _refuse_descriptive_rows(rows: Sequence[Mapping[str, Any]], source: str) -> None:
    described = [
        number
        for number, row in enumerate(rows[:2], 1)
        if any(str(cell).startswith(DESCRIPTIONS) for cell in row.values())
    ]
    if described:
        raise ReportsError(
            "every row below the header must be a respondent",
            source=source,
            rows=tuple(described),
            examples="a row that describes the columns",
            hint="Remove the rows between the header and the first respondent.",
        )
