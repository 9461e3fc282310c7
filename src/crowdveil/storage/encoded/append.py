"""Answers appended to a folder of encoded blocks.

The columns are written anew beside the old ones, and the new manifest, which names them, replaces the old one by one
renaming: an append that is interrupted leaves the folder as it was. One append runs at a time.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np

from crowdveil.answers.columnar_store import BLOCKS, write_encoded
from crowdveil.answers.evidence import Evidence
from crowdveil.answers.ingest.column_checks import Duplicates
from crowdveil.answers.ingest.column_readers import ReportColumns
from crowdveil.answers.ingest.csv_files import Progress
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import AnswerSource
from crowdveil.answers.sources.location import folders_of_links
from crowdveil.answers.store_manifest import (
    DATA_FILES,
    MANIFEST_FILE,
    History,
    Manifest,
    data_file,
    is_data_file,
    read_manifest,
)
from crowdveil.channels.alphabet import Alphabet, Categories
from crowdveil.display.counts import number_of, repeated_pairs_text
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.atomic_write import Outputs, folder_errors, publish_by_last, refuse_unwritable
from crowdveil.files.filesystem import folder_lock, temporary_folder
from crowdveil.files.output_record import OutputEntry, read_record
from crowdveil.hints import advice, command_advice, one_of
from crowdveil.storage.crowd import ASSIGNMENT_FILE, CERTIFICATE_FILE, CROWD_FILE
from crowdveil.storage.encoded.input_checks import check_new_inputs
from crowdveil.storage.encoded.inputs import encoded_files
from crowdveil.storage.encoded.merge import MergedRows, merge_names, note_on_added_names, rows_in_merged_codes
from crowdveil.storage.evidence import NO_OPTIONS, EvidenceOptions, read_evidence


@dataclass(frozen=True, kw_only=True)
class Appended:
    """Blocks after an append.

    Attributes:
        reports: all reports, opened.
        added: numbers of reports, tasks and workers that the blocks have more than before.
        notes: on how the files were read, and on repeated answers.
        files: files of the blocks.
    """

    reports: Reports
    added: dict[str, int]
    notes: tuple[str, ...]
    files: list[Path]


def append(
    source: AnswerSource,
    folder: Path,
    reading: EvidenceOptions = NO_OPTIONS,
    *,
    progress: Progress | None = None,
) -> Appended:
    """Add the answers of files to encoded blocks: old codes stay, new tasks and workers get the next ones.

    Args:
        source: files of plain answers, none of which the blocks hold yet.
        folder: encoded blocks of plain answers.
        reading: as `read_evidence`; the alphabet may add labels after those of the blocks. `duplicates` holds across
            old and new answers, of which the old ones are first; blocks that repeat pairs need "all".
        progress: as `read_evidence`.

    Raises:
        ReportsError: as `read_evidence`; no blocks, or damage; a file that they hold; reports of a collection; or a
            worker who answered a task before, under "error".
        SettingsError: another alphabet than that of the blocks, a folder that cannot be written, or one to which
            another process appends; the last is `temporary`.
    """
    if not (folder / MANIFEST_FILE).is_file():
        first = command_advice("Encode the first files without {append}", "Encode the first files", append=True)
        hint = f"{first}; check the name of the folder."
        raise ReportsError("answers are appended to a folder of encoded blocks", source=str(folder), hint=hint)
    with folder_errors(folder), _only_append(folder):
        manifest = read_manifest(folder / MANIFEST_FILE)
        _refuse_collections(source, folder)
        inputs = encoded_files(source, folder)
        notes = check_new_inputs(source, folder, manifest.history, inputs)
        old, duplicates = Reports.open(folder), _policy_across(reading, manifest)
        used = _reading_of_blocks(reading, old.alphabet)
        evidence = _evidence_of_plain_answers(source, folder, used, progress)
        tasks = merge_names(old.tasks, evidence.reports.tasks)
        workers = merge_names(old.workers, evidence.reports.workers)
        rows = MergedRows(old, rows_in_merged_codes(evidence.reports, tasks, workers), duplicates)
        history = History(_free_number(folder, manifest.history.appends), manifest.history.inputs + inputs)
        outputs = _outputs(folder, history.appends)
        with temporary_folder(folder) as temporary:
            write_encoded(temporary, rows.chunks(), tasks.names, workers.names, used.alphabet, history)
            if rows.repeated and duplicates == "error":
                pairs = [(str(tasks.names[task]), str(workers.names[worker])) for task, worker in rows.examples]
                raise _repeated_error(source, rows.repeated, pairs)
            publish_by_last(outputs, temporary, _replaced_files(folder, manifest, outputs.kind))
        reports = Reports.open(folder)
    notes += note_on_added_names("task", tasks, lambda: reports.per_task)
    notes += note_on_added_names("worker", workers, lambda: reports.per_worker)
    return Appended(
        reports=reports,
        added={"reports": len(reports) - len(old), "tasks": tasks.added, "workers": workers.added},
        notes=evidence.notes + notes + (_notes_on_repeated_pairs(rows) if rows.repeated else ()),
        files=outputs.paths,
    )


def _notes_on_repeated_pairs(rows: MergedRows) -> tuple[str, ...]:
    """Return a note on new answers to pairs of the blocks, and a warning if they replaced the old ones."""
    note = f"{repeated_pairs_text(rows.repeated, 'new answer')} of the blocks: the {rows.duplicates} of a pair counts."
    if rows.duplicates != "last":
        return (note,)
    return (
        note,
        f"Infer from scratch: {number_of(rows.repeated, 'old answer')} may have changed, and a fit that was saved "
        "before would keep abilities that it learned from them.",
    )


@contextmanager
def _only_append(folder: Path) -> Iterator[None]:
    """Hold the folder against another append; without a folder, or on a system without locks, hold nothing."""
    if not folder.is_dir() or sys.platform == "win32":
        yield
        return
    refuse_unwritable(folder)
    with folder_lock(folder, wait=False) as is_held:
        if not is_held:
            rule, hint = "one process at a time must write into a folder", "Wait until the other one has ended."
            error = SettingsError(rule, value=str(folder), hint=hint)
            error.temporary = True
            raise error
        yield


def _refuse_collections(source: AnswerSource, folder: Path) -> None:
    """Refuse a source without files, and a collection on either side, also one whose other files were moved away."""
    if not source.files:
        hint = "Give files; encode blocks and data sets by themselves."
        raise ReportsError("only files of answers can be appended", source=source.name, hint=hint)
    folders = [folder, *(one for file in source.files for one in folders_of_links(file.path))]
    for place in dict.fromkeys(folders):
        recorded = {entry.name for entry in read_record(place)}
        for name in (CERTIFICATE_FILE, CROWD_FILE, ASSIGNMENT_FILE):
            if name in recorded or (place / name).is_file():
                raise ReportsError(
                    "only plain answers can be appended, and only to plain answers: reports of a collection have one "
                    "mechanism, one epsilon and one list of all who were asked",
                    source=str(place / name),
                    hint="Encode and infer each collection by itself.",
                )


def _policy_across(reading: EvidenceOptions, manifest: Manifest) -> Duplicates:
    """Return the policy for an old and a new answer of a worker to a task; refuse one that the blocks do not follow."""
    policy = reading.duplicates or "error"
    if manifest.repeats and policy != "all":
        raise SettingsError(
            "blocks that keep several answers of a worker to a task must keep those that are appended",
            value=policy,
            hint=one_of(
                advice("state {duplicates}", duplicates="all"), "encode all files again, with the policy that is meant"
            ),
        )
    return policy


def _reading_of_blocks(reading: EvidenceOptions, held: Alphabet | None) -> EvidenceOptions:
    """Return the options with the labels or scale of the blocks, or more labels that come after them."""
    given, kind = reading.alphabet, reading.kind
    more = isinstance(given, Categories) and isinstance(held, Categories) and given.ordered == held.ordered
    if given is not None and given != held and not (more and given.names[: len(held.names)] == held.names):  # type: ignore[union-attr]
        raise SettingsError(
            "the labels or scale must be those of the blocks, "
            + ("numbers without a scale" if held is None else f"{held.names}")
            + "; new labels come after them",
            value=given.names,
            hint="Leave them out, or encode all files again.",
        )
    if held is None and kind == "categorical":
        hint = "Leave it out, or encode all files again."
        raise SettingsError("the kind of the answers must be that of the blocks, numeric", value=kind, hint=hint)
    return replace(reading, alphabet=given or held, kind="numeric" if held is None else kind)


def _evidence_of_plain_answers(
    source: AnswerSource, folder: Path, reading: EvidenceOptions, progress: Progress | None
) -> Evidence:
    """Return the new answers; the refusal of a label that the blocks do not have says how to add it."""
    try:
        return read_evidence(source, reading, progress=progress)
    except ReportsError as error:
        if error.code != "unknown label":
            raise
        held = advice(
            "The labels of the blocks are {alphabet}; to add others, name them after these.", alphabet=reading.alphabet
        )
        raise error.changed(hint=f"{error.hint} {held}") from error


def _repeated_error(source: AnswerSource, count: int, pairs: list[tuple[str, str]]) -> ReportsError:
    """Return the refusal of new answers of workers to tasks that they answered; the file is read for the rows."""
    columns, _ = source.read_columns_and_notes()
    return ReportsError(
        f"a worker answers a task once, but {repeated_pairs_text(count, 'new answer')} of the blocks",
        source=columns.source,
        rows=tuple(sorted(row for pair in pairs for row in _first_row(columns, *pair))),
        examples=", ".join(f"({task}, {worker})" for task, worker in pairs),
        hint=one_of(
            "leave these rows out",
            advice("keep the old answers ({duplicates})", duplicates="first"),
            advice("the new ones ({duplicates})", duplicates="last"),
            advice("all ({duplicates})", duplicates="all"),
        ),
    )


def _first_row(columns: ReportColumns, task: str, worker: str) -> list[int]:
    """Return the first row of a task and a worker, counted from 1; of numbers that were read as floats, none."""
    of_task, of_worker = (
        np.isin(column.codes, np.flatnonzero(column.names.astype(str) == name))
        for column, name in ((columns.task, task), (columns.worker, worker))
    )
    return [int(row) + 1 for row in np.flatnonzero(of_task & of_worker)[:1]]


def _free_number(folder: Path, appends: int) -> int:
    """Return the next number after this one of which no file of columns has the name; none is replaced."""
    numbers = count(appends + 1)
    return next(
        one for one in numbers if not any(os.path.lexists(folder / data_file(name, one)) for name in DATA_FILES)
    )


def _outputs(folder: Path, appends: int) -> Outputs:
    """Return the files of the blocks, of the kind that the record of the folder states."""
    kinds = [entry.kind for entry in read_record(folder) if entry.name == MANIFEST_FILE]
    names = (*(data_file(name, appends) for name in DATA_FILES), MANIFEST_FILE)
    return Outputs(folder=folder, names=names, kind=kinds[0] if kinds else BLOCKS)


def _replaced_files(folder: Path, manifest: Manifest, kind: str) -> list[str]:
    """Return the names of earlier columns, and of those that an interrupted append left and nobody changed since."""
    present = [*map(manifest.file_name, DATA_FILES)]
    left = [entry for entry in read_record(folder) if entry.kind == kind and is_data_file(entry.name)]
    own = {entry.name for entry in left if entry.name not in present and _is_own_file(entry, folder / entry.name)}
    return [*present, *own]


def _is_own_file(entry: OutputEntry, path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and entry.is_file_unchanged(path)
