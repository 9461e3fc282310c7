"""Truths and workers of a folder: their files, and which outputs of earlier runs a new estimate leaves there."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from os import PathLike
from pathlib import Path
from unicodedata import normalize

import pyarrow as pa

from crowdveil.answers.facts.inputs import Input, inputs_to_json
from crowdveil.answers.write_reports import TABLE_FORMS, TableForm, require_form, write_table, write_tables
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.atomic_write import Outputs, Writer, write_outputs
from crowdveil.files.output_record import OutputEntry, read_record, refuse_partial_output
from crowdveil.hints import advice

ESTIMATE_FILES: dict[TableForm, tuple[str, str]] = {form: (f"truths.{form}", f"workers.{form}") for form in TABLE_FORMS}
"""Names of the files of truths and of workers, by their form."""
ESTIMATE, DEMO = "estimate", "campaign demo"
"""Kinds of files with truths and workers; those of a demo of a campaign are among its other files."""
RANKING, RANKS = "ranking", "ranks.csv"
"""Kind of the files of a ranking, and the last of them."""
PAGE, PREDICTIONS = "page of results", "predictions"
FROM_REPORTS = (PAGE, PREDICTIONS, RANKING, "shares", "agreement", "review", "next answers")
"""Kinds of outputs that follow from reports or their truths."""
NO_RESULTS = "the folder must hold truths and workers with the record that infer writes"
WARNINGS = "warnings"
"""Member of the notes of a record."""
LONGEST = 60
"""Characters of the name of a question's folder."""
INFER_AGAIN = "Give a folder that `crowdveil infer` wrote, unchanged, or run `infer` again."


def write_estimate(
    directory: str | PathLike[str],
    estimate: Estimate,
    *,
    form: TableForm = "csv",
    reports_sha256: str = "",
    reading: str = "",
    notes: Sequence[str] = (),
    inputs: Sequence[Input] = (),
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write truths and workers as `ESTIMATE_FILES[form]`; a task without reports has an empty or null number.

    Truths are written in parts, with bounded memory. Recorded files of an earlier estimate are removed.

    Args:
        directory, form: as `estimate_outputs`.
        estimate: the truths and workers.
        reports_sha256: `Evidence.sha256` of the reports, which the record names; without it
            no release accepts reports.
        reading: how they were read (`NamedReports.portable_json`), which the record names, too.
        notes: warnings of the inference, which the record holds for the page of results.
        inputs: what the truths depend on, which the record names, too.
        progress: called with the number of tasks written and of all.

    Raises:
        SettingsError: a file of that name is not an earlier estimate, or the system refuses to write there.
    """
    schema = next(estimate.parts()).tasks_frame().schema
    workers = estimate.workers_frame()
    writers: list[Writer] = [
        lambda stream: write_tables(stream, schema, lambda: _truth_tables(estimate, progress), form),
        lambda stream: write_table(stream, workers, form),
    ]
    gold = "" if estimate.cross_validation is None else estimate.cross_validation.to_json()
    warnings = json.dumps({WARNINGS: list(notes)}) if notes else ""
    outputs = replace(estimate_outputs(directory, form), reports_sha256=reports_sha256, reading=reading, gold=gold)
    outputs = replace(outputs, notes=warnings, inputs=inputs_to_json(inputs) if inputs else "")
    write_outputs(outputs, dict(zip(ESTIMATE_FILES[form], writers, strict=True)))


def estimate_files_in_memory(estimate: Estimate) -> dict[str, bytes]:
    """Return truths and workers as CSV, by file name; for estimates that fit into memory."""
    truths, workers = BytesIO(), BytesIO()
    schema = next(estimate.parts()).tasks_frame().schema
    write_tables(truths, schema, lambda: _truth_tables(estimate, None), "csv")
    write_table(workers, estimate.workers_frame(), "csv")
    return dict(zip(ESTIMATE_FILES["csv"], (truths.getvalue(), workers.getvalue()), strict=True))


def _truth_tables(estimate: Estimate, progress: Callable[[int, int], None] | None) -> Iterator[pa.Table]:
    """Yield the tables of truths, part by part."""
    done = 0
    for part in estimate.parts():
        yield part.tasks_frame()
        done += len(part.tasks)
        if progress is not None:
            progress(done, len(estimate.tasks))


def estimate_outputs(directory: str | PathLike[str], form: TableForm = "csv") -> Outputs:
    """Return the files of an estimate as outputs, which replace an earlier estimate of any form.

    Raises:
        SettingsError: what writes this form is not installed.
    """
    require_form(form)
    every = tuple(name for names in ESTIMATE_FILES.values() for name in names)
    return Outputs(folder=Path(directory), names=ESTIMATE_FILES[form], kind=ESTIMATE, also_replaced=every)


def page_outputs(path: Path) -> Outputs:
    """Return the page of results as output; an earlier page is replaced."""
    return Outputs(folder=path.parent, names=(path.name,), kind=PAGE)


def estimate_names(folder: Path) -> tuple[str, str] | None:
    """Return the names of truths and workers in the record of a folder; None without them.

    Raises:
        ReportsError: truths in several forms, which may be of different runs, or an interrupted run.
        SettingsError: the record is damaged.
    """
    refuse_partial_output(folder)
    recorded = {entry.name for entry in read_record(folder) if entry.kind in (ESTIMATE, DEMO)}
    found = [names for names in ESTIMATE_FILES.values() if recorded.issuperset(names)]
    if len(found) > 1:
        raise ReportsError(
            "a folder must hold truths in one form: those in several may be of different runs",
            source=str(folder),
            examples=", ".join(truths for truths, _ in found),
            hint="Run `infer` again: it removes the earlier ones.",
        )
    return found[0] if found else None


def recorded_ranks(folder: Path) -> OutputEntry | None:
    """Return the entry of the unchanged ranks of a folder; None without a ranking.

    Raises:
        ReportsError: changed ranks, or an interrupted run.
        SettingsError: the record is damaged.
    """
    refuse_partial_output(folder)
    if not any((entry.name, entry.kind) == (RANKS, RANKING) for entry in read_record(folder)):
        return None
    return entry_of_unchanged_file(folder / RANKS)


def question_folder_names(questions: Collection[str]) -> dict[str, str]:
    """Return the folder name of each question: its letters, digits, `-` and `_`.

    Raises:
        SettingsError: a name is empty, or two differ at most in case.
    """
    folders = {question: re.sub(r"[^\w-]+", "_", question).strip("_")[:LONGEST] for question in questions}
    spelt = {question: normalize("NFKC", folder).casefold() for question, folder in folders.items()}
    counts = Counter(spelt.values())
    clashing = [question for question in questions if not spelt[question] or counts[spelt[question]] > 1]
    if clashing:
        raise SettingsError(
            "the folders of questions must differ: each is named by the letters and digits of its question",
            value=clashing[:5],
            hint=f"Infer one question at a time{advice(' ({question})')}, or rename them.",
        )
    return folders


def refuse_question_folders(folder: Path) -> None:
    """Refuse a folder that has folders with the truths of a question each.

    Raises:
        ReportsError: with these folders.
    """
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    questions = [str(path) for path in inside if path.is_dir() and estimate_names(path) is not None]
    if questions:
        raise ReportsError(
            NO_RESULTS,
            source=str(folder),
            hint=f"Each question has its own folder; give one: {', '.join(questions)}.",
        )


def outdated_output_notes(folder: Path, reports_sha256: str) -> tuple[str, ...]:
    """Return a warning that names outputs of an earlier run in a folder.

    Args:
        folder: before new truths are written there.
        reports_sha256: `Evidence.sha256` of the new reports; tables of the same reports are
            not outdated.
    """
    same = {entry.reports_sha256 for entry in read_record(folder) if entry.reports_sha256} == {reports_sha256}
    found = [str(path) for path in _existing_recorded_files(folder, (PAGE, PREDICTIONS) if same else FROM_REPORTS)]
    return (
        ((f"{', '.join(found)}: these belong to earlier truths or reports. Write them again, or remove them."),)
        if found
        else ()
    )


def earlier_truths_warning(folder: Path, questions: Collection[Path] = ()) -> tuple[str, ...]:
    """Return a warning that names truths of an earlier run, which stay next to new ones.

    They are those of other questions in folders of their own, and those of the folder itself.

    Args:
        folder: output folder.
        questions: folders of the questions that are inferred; empty if new truths are in the folder itself.
    """
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    folders = [path for path in inside if path not in questions and not path.is_symlink() and path.is_dir()]
    kept = [path for one in folders for path in _existing_recorded_files(one, (ESTIMATE,), questions_only=True)]
    kept += _existing_recorded_files(folder, (ESTIMATE,)) if questions else []
    found = dict.fromkeys(str(path.parent) for path in kept)
    return (
        ((f"{', '.join(found)}: truths of an earlier run were kept. Remove them if they are outdated."),)
        if found
        else ()
    )


def warning_of_stale_results(folder: Path) -> tuple[str, ...]:
    """Return a warning that names the results of a folder, before its reports are replaced."""
    found = _existing_recorded_files(folder, (ESTIMATE, *FROM_REPORTS))
    named = ", ".join(str(path) for path in found)
    return (f"{named}: these come from the earlier reports. Run crowdveil infer again.",) if found else ()


def _existing_recorded_files(folder: Path, kinds: Collection[str], *, questions_only: bool = False) -> list[Path]:
    """Return the recorded files of these kinds that are still there, or only those read from a named question."""
    entries = [entry for entry in read_record(folder) if entry.kind in kinds]
    if questions_only:
        entries = [one for one in entries if one.reading and "question" in json.loads(one.reading).get("layout", {})]
    return [path for path in (folder / entry.name for entry in entries) if path.is_file()]


def entry_of_unchanged_file(path: Path) -> OutputEntry:
    """Return the entry of a file in the record of its folder.

    Raises:
        ReportsError: the file is not readable, not recorded, or was changed after it was written.
        SettingsError: the record is damaged.
    """
    entries = [entry for entry in read_record(path.parent) if entry.name == path.name]
    try:
        return next(entry for entry in entries if entry.is_file_unchanged(path))
    except OSError as error:
        raise ReportsError(
            "the file must be readable", source=str(path), examples=str(error), hint=INFER_AGAIN
        ) from error
    except StopIteration:
        rule = "the file must be unchanged since `infer` wrote it"
        raise ReportsError(rule, source=str(path), hint=INFER_AGAIN) from None
