"""Answers, gold and lists of names from a file, or from `dataset:NAME` for a public data set."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crowdveil.answers import datasets
from crowdveil.answers.assignment import Assignment
from crowdveil.answers.facts.asked import Asked
from crowdveil.answers.facts.label_notes import (
    no_answer_warnings,
    notes_on_unread_columns,
    spelling_notes,
)
from crowdveil.answers.importers.export_file import read_given_columns
from crowdveil.answers.ingest.column_checks import (
    EXAMPLES_SHOWN,
    Duplicates,
    refuse_invalid_rows,
    with_sorted_distinct_numbers,
)
from crowdveil.answers.ingest.column_readers import ReportColumns
from crowdveil.answers.ingest.csv_files import Progress
from crowdveil.answers.ingest.labels import labels_with_counts
from crowdveil.answers.read_options import IdentifierList, ReadOptions
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import AnswerSource, local_source
from crowdveil.answers.sources.location import DATASET
from crowdveil.answers.spreadsheets.sheets import file_and_sheet
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.display.counts import repeated_pairs_text
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.hints import advice, command_advice
from crowdveil.storage.crowd import report_directory

PROBABILITY = "probability_"
"""Start of the names of the columns of probabilities."""
GRID_TOLERANCE = 1e-9
MERGED = (
    "Spellings of a label that differ only in spaces, invisible characters, case, Unicode form or the way a number is "
    "written are one."
)


class AnswersRead(NamedTuple):
    """Answers in the alphabet of a mechanism.

    Attributes:
        answers: answers in that alphabet; `answers.asked` names the given lists.
        alphabet: what an answer can be.
        rules: rules that change answers, independent of the answers; for runs with a guarantee.
        counts: numbers of changed answers, which reveal something about the answers; for runs without a guarantee.
    """

    answers: Reports
    alphabet: Alphabet
    rules: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()


class CampaignLists(NamedTuple):
    """Public lists of a campaign: tasks, workers and assigned cells; None if not given."""

    tasks: IdentifierList | None = None
    workers: IdentifierList | None = None
    assignment: Assignment | None = None


def read_public_campaign_lists(
    *, tasks: Path | None = None, workers: Path | None = None, assignment: Path | None = None
) -> CampaignLists:
    """Return the public lists of a campaign; lists without a file follow from the assignment.

    Args:
        tasks, workers: CSV files of all tasks and all workers, column `task` or `worker`.
        assignment: CSV file of the assigned cells, columns `task` and `worker`.

    Raises:
        ReportsError: a damaged file, or an assigned task or worker that the lists lack.
    """
    task_names = None if tasks is None else read_name_column(tasks, "task")
    worker_names = None if workers is None else read_name_column(workers, "worker")
    if assignment is None:
        return CampaignLists(task_names, worker_names)
    asked = Assignment.from_csv(assignment, tasks=task_names, workers=worker_names)
    return CampaignLists(asked.tasks, asked.workers, asked)


def read_answers(
    source: str | AnswerSource,
    *,
    alphabet: Alphabet | None = None,
    duplicates: Duplicates | None = None,
    merge_labels: bool = False,
    tasks: IdentifierList | None = None,
    workers: IdentifierList | None = None,
    public_participation: bool = False,
    progress: Progress | None = None,
) -> AnswersRead:
    """Return unprotected answers in the alphabet of a mechanism.

    Args:
        source: path of a CSV or Parquet file, `dataset:NAME`, or any opened source.
        alphabet: what an answer can be; by default the labels that occur. Numbers are clipped and rounded to a Scale.
        duplicates: policy for repeated (task, worker) pairs; by default "error" for files, "first" for data sets.
        merge_labels: merge the spellings of a label, as `Reports.from_csv`.
        tasks, workers: all names, as text; by default those that occur, which reveal who answered.
        public_participation: whether it is public who answered what, and private what was answered.
        progress: called with the bytes read so far and the size of the file.

    Raises:
        ReportsError: the file or a row breaks a rule, or a row has no answer and participation is public.
        SettingsError: numbers without a scale, no such data set, other labels than the data set's own, or spellings of
            numbers or of a data set to merge.
    """
    opened = source if isinstance(source, AnswerSource) else local_source(Path(source))
    if is_named_dataset_source(opened.path):
        if merge_labels:
            raise SettingsError("merge_labels needs a file of answers", value=opened.name, hint="Leave it out.")
        return _answers_of_dataset(str(opened.path), alphabet, duplicates or "first", tasks, workers)
    if opened.is_block_folder:
        raise ReportsError("encoded blocks hold reports, not answers", source=opened.name, hint="Give the answers.")
    numeric = isinstance(alphabet, Scale)
    if public_participation or (tasks is not None and workers is not None):
        opened = replace(opened, private=True)
    columns, notes = opened.read_columns_and_notes(progress)
    if public_participation:
        refuse_rows_without_answer(columns, alphabet)
    found = Reports.from_columns(
        columns,
        ReadOptions(
            alphabet=None if numeric else alphabet,
            kind="numeric" if numeric else None,
            tasks=tasks,
            workers=workers,
            duplicates=duplicates or "error",
            merge_labels=merge_labels,
        ),
    )
    read = numbers_put_on_scale(opened.name, found, alphabet)
    rules = (*read.rules, *((MERGED,) if merge_labels else ()))
    unread = notes_on_unread_columns(opened.unread_columns)
    notes += spelling_notes(found) + no_answer_warnings(found)
    return read._replace(rules=rules + unread, counts=read.counts + notes + unread)


def refuse_rows_without_answer(columns: ReportColumns, alphabet: Alphabet | None = None) -> None:
    """Refuse rows that say that there is no answer: left out, their value would decide who is seen to have answered.

    Args:
        columns: private answers, of which everyone may know who gave them.
        alphabet: possible answers, which count as answers even if they read as none.

    Raises:
        ReportsError: an answer is NULL, empty or NaN.
    """
    known = frozenset(alphabet.names if isinstance(alphabet, Categories) else ())
    empty = replace(columns, skip_empty=True, labels=known).null_rows
    if len(empty):
        raise ReportsError(
            "with public participation, no row may be left out because of its value",
            source=columns.source,
            rows=tuple((empty[:EXAMPLES_SHOWN] + 1).tolist()),
            examples=f"{len(empty):,} without an answer (NULL, empty or NaN)",
            hint="Remove these rows from the file, if everyone may know that they had no answer; or protect "
            "participation.",
        )


def is_named_dataset_source(source: str | Path) -> bool:
    """Return whether a source is `dataset:NAME`."""
    return str(source).startswith(DATASET)


def repeated_notes(data: datasets.Dataset, duplicates: Duplicates) -> tuple[str, ...]:
    """Return a sentence on the repeated answers of a data set, if there are any."""
    repeats = data.rows - data.pairs
    return (f"{repeated_pairs_text(repeats, 'answer')}; policy: {duplicates}.",) if repeats else ()


def change_notes(columns: ReportColumns, reports: Reports, options: ReadOptions) -> tuple[str, ...]:
    """Return sentences on the repeated answers that were left out, and the spellings that were merged, as asked for."""
    notes, left = [], len(columns) - len(reports)
    if options.duplicates in ("first", "last") and left:
        notes.append(f"{repeated_pairs_text(left, 'answer')}: the {options.duplicates} of a pair counts.")
    if options.merge_labels and reports.alphabet is not None:
        answers = columns.value.counts[:-1][~columns.no_answer_names[:-1]]
        spellings = np.count_nonzero(answers)
        if spellings > reports.alphabet.size:
            counts = np.zeros(reports.alphabet.size, dtype=np.int64)
            for block in reports.blocks():
                counts += np.bincount(block.value, minlength=len(counts))
            labels = labels_with_counts(reports.alphabet.names, counts)
            notes.append(f"{spellings:,} spellings were merged into {reports.alphabet.size:,} labels: {labels}.")
    return tuple(notes)


def default_output_folder(source: AnswerSource) -> Path:
    """Return the folder where outputs go by default: that of the reports; the current one for all that is not local.

    Raises:
        SettingsError: the current folder is inside the data directory.
    """
    if not is_named_dataset_source(source.path):
        beside = source.collection_path
        return Path() if beside is None or source.copied is not None else report_directory(beside)
    if Path.cwd().is_relative_to(datasets.data_directory().resolve()):
        raise SettingsError(
            "outputs must not go into the data directory",
            value=str(Path.cwd()),
            hint=command_advice("Choose a folder with {out}.", "Choose another folder."),
        )
    return Path()


def read_name_column(path: Path, name: str) -> list[str]:
    """Return the column `task` or `worker` of a table of any form, in file order.

    Raises:
        ReportsError: the file is damaged, lacks the column, or a name is empty.
    """
    if not file_and_sheet(path).file.exists():
        hint = f"Give a CSV file with the column {name}, one in each row."
        raise ReportsError(f"a list of {name}s must be a file", source=str(path), hint=hint)
    read = read_given_columns(path, {name: (name,)})
    column = with_sorted_distinct_numbers(read.coded[name])
    hint = "Name it, or leave the row out."
    refuse_invalid_rows(column, column.names == "", f"every row needs a {name}", source=read.source, hint=hint)
    return [str(cell) for cell in column.cells.tolist()]


def _answers_of_dataset(
    source: str,
    alphabet: Alphabet | None,
    duplicates: Duplicates,
    tasks: IdentifierList | None,
    workers: IdentifierList | None,
) -> AnswersRead:
    """Return the answers of a data set, whose labels or scale are public, but not its tasks and workers."""
    data = datasets.load(source.removeprefix(DATASET), duplicates=duplicates, tasks=tasks, workers=workers)
    known = data.scale if data.kind == "numeric" else data.answers.alphabet
    if data.kind != "numeric" and alphabet is not None and alphabet.names != data.answers.alphabet.names:  # type: ignore[union-attr]
        raise SettingsError(
            "a data set has its own labels",
            value=alphabet.names,
            hint=advice("Leave {alphabet} out.", "Leave them out."),
        )
    read = numbers_put_on_scale(source, data.answers, alphabet or known)
    rule = f"Several answers of a worker to a task: policy {duplicates!r}."
    return read._replace(rules=(rule, *read.rules), counts=repeated_notes(data, duplicates) + read.counts)


def numbers_put_on_scale(source: str, found: Reports, scale: Alphabet | None) -> AnswersRead:
    """Return free numbers on the scale, clipped and rounded, and how many were changed; others as they are.

    Raises:
        ReportsError: numbers without a scale.
    """
    if found.alphabet is not None:
        return AnswersRead(found, found.alphabet)
    if not isinstance(scale, Scale):
        raise ReportsError(
            "numbers need a scale",
            source=source,
            hint=advice(
                "Give {alphabet}, or with a third number its step, chosen independently of the answers.",
                alphabet=Scale(0, 10),
            ),
        )
    value, codes = found.value, scale.encode(found.value)
    inside = np.clip(value, scale.low, scale.high)
    clipped = int((inside != value).sum())
    rounded = int((np.abs(scale.values[codes] - inside) > GRID_TOLERANCE * scale.step).sum())
    counts: tuple[str, ...] = ()
    if clipped:
        first = int(np.flatnonzero(inside != value)[0])
        count = "1 answer outside the scale was" if clipped == 1 else f"{clipped:,} answers outside the scale were"
        where = f"task {found.tasks[found.task[first]]}, worker {found.workers[found.worker[first]]}"
        counts += (f"{count} clipped{':' if clipped == 1 else ', such as'} {where}, value {value[first]:g}.",)
    if rounded:
        counts += (f"{'1 answer was' if rounded == 1 else f'{rounded:,} answers were'} rounded to the scale's grid.",)
    rule = "Numbers are clipped to the scale and rounded to its grid; a simulation counts the changes."
    asked = replace(found.asked, stated=found.asked.stated | Asked.of_given(labels=scale).stated)
    coded = Reports(found.task, found.worker, codes, found.tasks, found.workers, scale, asked)
    return AnswersRead(coded, scale, (rule,), counts)
