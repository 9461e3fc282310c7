"""Truths and workers of a folder: their files, and what a new estimate makes obsolete."""

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path

import pyarrow as pa

from crowdveil.data.report_tables import TABLE_FORMS, TableForm, write_tables
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError
from crowdveil.files.atomic_write import Outputs, Writer, remove_outputs, write_outputs
from crowdveil.files.output_record import RECORD_FILE, OutputEntry, read_record, refuse_unfinished

ESTIMATE_FILES: dict[TableForm, tuple[str, str]] = {form: (f"truths.{form}", f"workers.{form}") for form in TABLE_FORMS}
"""Names of the files of truths and of workers, by their form."""
ESTIMATE, QUESTION_ESTIMATE, DEMO = "estimate", "estimate of one of several questions", "campaign demo"
"""Kinds of files with truths and workers; those of a demo of a campaign are among its other files."""
PAGE, PREDICTIONS = "page of results", "predictions"
FROM_REPORTS = (PAGE, PREDICTIONS, "shares", "agreement", "review", "next answers")
"""Kinds of outputs that follow from reports or their truths."""
INFER_AGAIN = "Give a folder that `crowdveil infer` wrote, unchanged, or run `infer` again."


def write_estimate(
    directory: str | PathLike[str],
    estimate: Estimate,
    *,
    form: TableForm = "csv",
    kind: str = ESTIMATE,
    reports_sha256: str = "",
    reading: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write truths and workers as `ESTIMATE_FILES[form]`; a task without reports has an empty or null number.

    Truths are written in parts, with bounded memory. Recorded files of an earlier estimate are removed.

    Args:
        directory, form, kind: as `estimate_outputs`.
        estimate: the truths and workers.
        reports_sha256: `Evidence.digest` of the reports, which the record names; without it no release accepts reports.
        reading: how they were read (`recorded_reading.reading_text`), which the record names, too.
        progress: called with the number of tasks written and of all.

    Raises:
        SettingsError: a file of that name is not an earlier estimate, or the system refuses to write there.
    """
    schema = next(estimate.parts()).tasks_frame().schema
    workers = estimate.workers_frame()
    writers: list[Writer] = [
        lambda stream: write_tables(stream, schema, lambda: _task_frames(estimate, progress), form),
        lambda stream: write_tables(stream, workers.schema, lambda: [workers], form),
    ]
    outputs = replace(estimate_outputs(directory, form, kind), reports_sha256=reports_sha256, reading=reading)
    remove_earlier_estimates(outputs.folder)
    write_outputs(outputs, dict(zip(ESTIMATE_FILES[form], writers, strict=True)))


def _task_frames(estimate: Estimate, progress: Callable[[int, int], None] | None) -> Iterator[pa.Table]:
    """Yield the tables of truths, part by part."""
    done = 0
    for part in estimate.parts():
        yield part.tasks_frame()
        done += len(part.tasks)
        if progress is not None:
            progress(done, len(estimate.tasks))


def question_estimate(folder: Path) -> str:
    """Return the kind of the files in the folder of one of several questions; it is not that of a copy elsewhere."""
    return f"{QUESTION_ESTIMATE}, in {folder.name}"


def estimate_outputs(directory: str | PathLike[str], form: TableForm = "csv", kind: str = ESTIMATE) -> Outputs:
    """Return the files of an estimate as outputs, which replace an earlier estimate of any form.

    In the folder of one of several questions it stays the estimate of that question.
    """
    every = tuple(name for names in ESTIMATE_FILES.values() for name in names)
    kinds = (entry.kind for entry in read_record(Path(directory)))
    kind = next((one for one in kinds if one.startswith(QUESTION_ESTIMATE)), kind)
    return Outputs(folder=Path(directory), names=ESTIMATE_FILES[form], kind=kind, also_replaced=every)


def earlier_estimates(folder: Path, questions: Collection[Path] = ()) -> list[Outputs]:
    """Return the outputs that a new estimate in a folder makes obsolete.

    They are the estimates in folders of questions that are not inferred again (not in copies of these) and, if
    `questions` names the folders of a new estimate, that of the folder itself.
    """
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    recorded = [path for path in inside if not path.is_symlink() and os.path.isfile(path / RECORD_FILE)]
    kinds = {path: question_estimate(path) for path in recorded if path not in questions}
    kinds = {path: kind for path, kind in kinds.items() if any(entry.kind == kind for entry in read_record(path))}
    kinds |= {folder: ESTIMATE} if questions else {}
    return [Outputs(folder=path, names=(), kind=kind, remove_stale=True) for path, kind in kinds.items()]


def remove_earlier_estimates(folder: Path, questions: Collection[Path] = ()) -> None:
    """Remove `earlier_estimates`; errors as `remove_outputs`."""
    for outputs in earlier_estimates(folder, questions):
        remove_outputs(outputs.folder, outputs.kind)


def estimate_names(folder: Path) -> tuple[str, str] | None:
    """Return the names of truths and workers in the record of a folder; None without them.

    Raises:
        ReportsError: truths in several forms, which may be of different runs, or an interrupted run.
        SettingsError: the record is damaged.
    """
    refuse_unfinished(folder)
    kinds = (ESTIMATE, QUESTION_ESTIMATE, DEMO)
    recorded = {entry.name for entry in read_record(folder) if entry.kind.startswith(kinds)}
    found = [names for names in ESTIMATE_FILES.values() if recorded.issuperset(names)]
    if len(found) > 1:
        raise ReportsError(
            "a folder must hold truths in one form: those in several may be of different runs",
            source=str(folder),
            examples=", ".join(truths for truths, _ in found),
            hint="Run `infer` again: it removes the earlier ones.",
        )
    return found[0] if found else None


def outdated_notes(folder: Path, reports_sha256: str, questions: Collection[Path] = ()) -> tuple[str, ...]:
    """Return a warning that names outputs of an earlier run in a folder and in those of its `earlier_estimates`.

    Args:
        folder: before new truths are written there.
        reports_sha256: `Evidence.digest` of the new reports; tables of the same reports are not outdated.
        questions: folders of a new estimate of several questions.
    """
    folders = dict.fromkeys([folder, *(outputs.folder for outputs in earlier_estimates(folder, questions))])
    same = {entry.reports_sha256 for entry in read_record(folder) if entry.reports_sha256} == {reports_sha256}
    kinds = (PAGE, PREDICTIONS) if same else FROM_REPORTS
    found = [str(path) for one in folders for path in _recorded(one, kinds)]
    return (f"{', '.join(found)}: of earlier truths or reports. Write them again, or remove them.",) if found else ()


def estimate_notes(folder: Path) -> tuple[str, ...]:
    """Return a warning that names the results of a folder, before its reports are replaced."""
    found = _recorded(folder, (ESTIMATE, *FROM_REPORTS))
    named = ", ".join(str(path) for path in found)
    return (f"{named}: from the earlier reports. Run crowdveil infer again.",) if found else ()


def _recorded(folder: Path, kinds: Collection[str]) -> list[Path]:
    """Return the files of these kinds that are in the record of a folder and still there."""
    paths = [folder / entry.name for entry in read_record(folder) if entry.kind in kinds]
    return [path for path in paths if path.is_file()]


def unchanged_output(path: Path) -> OutputEntry:
    """Return the entry of a file in the record of its folder.

    Raises:
        ReportsError: the file is not readable, not recorded, or was changed after it was written.
        SettingsError: the record is damaged.
    """
    entries = [entry for entry in read_record(path.parent) if entry.name == path.name]
    try:
        return next(entry for entry in entries if entry.matches(path))
    except OSError as error:
        raise ReportsError(
            "the file must be readable", source=str(path), examples=str(error), hint=INFER_AGAIN
        ) from error
    except StopIteration:
        rule = "the file must be unchanged since `infer` wrote it"
        raise ReportsError(rule, source=str(path), hint=INFER_AGAIN) from None
