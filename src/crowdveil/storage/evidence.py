"""Inputs of inference: reports, `crowd.json`, certificate and assignment, checked against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crowdveil.answers import datasets
from crowdveil.answers.answer_confidences import confidences_of_answers
from crowdveil.answers.assignment import Assignment
from crowdveil.answers.columnar_store import block_files, has_repeated_pairs
from crowdveil.answers.evidence import Evidence
from crowdveil.answers.facts.asked import Asked
from crowdveil.answers.facts.collection import Collection
from crowdveil.answers.facts.inputs import Input, Role
from crowdveil.answers.facts.label_notes import (
    no_answer_warnings,
    notes_on_unread_columns,
    refuse_numbers_outside,
    spelling_notes,
)
from crowdveil.answers.ingest.column_checks import EXAMPLES_SHOWN, Duplicates, Grid
from crowdveil.answers.ingest.column_readers import ReportColumns
from crowdveil.answers.ingest.csv_files import Progress, content_digest
from crowdveil.answers.ingest.mapped_codes import return_unused_memory
from crowdveil.answers.read_options import Kind, ReadOptions
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import AnswerSource, local_source
from crowdveil.answers.sources.location import DATASET
from crowdveil.answers.sources.sorted_parts import reports_in_parts
from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, is_channel_table
from crowdveil.errors import CertificateError, ReportsError, SettingsError
from crowdveil.hints import advice, command_advice
from crowdveil.standalone.checks import MAX_CERTIFICATE_BYTES
from crowdveil.standalone.verification import parse_json
from crowdveil.storage.answers import (
    change_notes,
    is_named_dataset_source,
    numbers_put_on_scale,
    read_answers,
    read_name_column,
    repeated_notes,
)
from crowdveil.storage.crowd import (
    ASSIGNMENT_FILE,
    CERTIFICATE_FILE,
    CROWD_FILE,
    CrowdRecord,
    crowd_if_digest_matches,
    find_crowd,
    read_crowd,
    report_directory,
    sha256_hex,
)


@dataclass(frozen=True, kw_only=True)
class EvidenceOptions:
    """How reports are read.

    Attributes:
        certificate: path of the certificate, if it is in another folder.
        use_certificate: False reads reports as answers, with or without a certificate.
        alphabet: possible reports, if neither certificate nor crowd states them.
        kind: "categorical" or "numeric", if it does not follow from the column's name.
        duplicates: policy for repeated (task, worker) pairs; by default "error" for files, "first" for data sets.
        merge_labels: read the spellings of a label as one, as `Reports.from_csv`.
        accept_edited: accept reports whose digest differs from that of the crowd, and mark them as edited.
        truths: as of `Evidence`; numbers outside a Scale are then refused, not clipped.
        tasks, workers: CSV files of all tasks and workers that were asked, where there is no crowd.json.
    """

    certificate: Path | None = None
    use_certificate: bool = True
    alphabet: Alphabet | None = None
    kind: Kind | None = None
    duplicates: Duplicates | None = None
    merge_labels: bool = False
    accept_edited: bool = False
    truths: tuple[str, ...] = ()
    tasks: Path | None = None
    workers: Path | None = None


class RowsRead(NamedTuple):
    """Reports of a file or of blocks, with confidences, warnings, and skipped answers, as of `Evidence`."""

    reports: Reports
    confidences: Reports | None = None
    notes: tuple[str, ...] = ()
    skipped: ReportColumns | None = None


NO_OPTIONS = EvidenceOptions()
"""Reading without options."""


def read_evidence(
    source: Path | AnswerSource, reading: EvidenceOptions = NO_OPTIONS, *, progress: Progress | None = None
) -> Evidence:
    """Return reports with the `crowd.json`, `certificate.json` and `assignment.csv` of their folder, if they exist.

    Args:
        source: path of a file, of encoded blocks, or `dataset:NAME` (answers of a public data set); or any opened
            source.
        reading: options.
        progress: called with the bytes read so far and the size of the file.

    Raises:
        ReportsError: the reports or the crowd break a rule, or do not belong together.
        CertificateError: the certificate is damaged, or its digest differs from that of the crowd.
        SettingsError: the alphabet contradicts certificate or crowd.
    """
    opened = source if isinstance(source, AnswerSource) else local_source(source)
    _refuse_weight_unless_table(opened)
    if reading.truths:
        return _own_label_evidence(opened, reading, progress=progress)
    if is_named_dataset_source(opened.path):
        _refuse_options_of_dataset(reading)
        return _dataset_evidence(str(opened.path), reading.alphabet, reading.duplicates or "first")
    path = opened.collection_path
    crowd = None if path is None else _checked_crowd_of(path, accept_edited=reading.accept_edited)
    if crowd is not None:
        _refuse_lists_beside_crowd(reading)
    certificate_path = _certificate_path(path, reading.certificate, crowd) if reading.use_certificate else None
    channel = None if certificate_path is None else matching_certificate_channel(certificate_path, crowd)
    known = _alphabet_of_certificate_or_crowd(channel, crowd, reading.alphabet)
    if channel is not None:
        _refuse_repeated_pairs(opened, reading.duplicates)
    protected = crowd is not None or channel is not None
    if opened.is_block_folder:
        read = RowsRead(_open_blocks_with_known_labels(opened.path, known or reading.alphabet, reading))
    else:
        read = _read_report_file(opened, crowd, known, reading, progress, protected=protected)
        if opened.limit is not None:
            return_unused_memory()
    reports, notes = read.reports, read.notes
    if known is None and reading.alphabet is None:
        notes += spelling_notes(reports) + no_answer_warnings(reports)
    assignment = None if path is None else _read_named_assignment(path, reports, crowd)
    collection = None if crowd is None else crowd.collection.with_channel(channel)
    asked = replace(reports.asked if crowd is None else crowd.asked, assignment=assignment)
    return Evidence(
        observed=reports.with_asked(replace(asked, assignment=None)),
        channel=channel,
        asked=asked,
        collection=collection,
        no_channel_reason="" if channel is not None else _no_channel_reason(collection, reading.use_certificate),
        declined=not reading.use_certificate,
        notes=notes,
        skipped=read.skipped,
        merge_labels=reading.merge_labels,
        label_map=dict(opened.layout.label_map),
        inputs=public_inputs(None if certificate_path is None else content_digest(certificate_path), crowd, reading),
        confidences=read.confidences,
    )


def public_inputs(
    certificate: str | None, crowd: CrowdRecord | None, reading: EvidenceOptions = NO_OPTIONS
) -> tuple[Input, ...]:
    """Return the public files that say how the reports are read; `certificate` is a SHA-256."""
    found: dict[Role, str | None] = {
        "certificate": certificate,
        "assignment": None if crowd is None else crowd.assignment_sha256,
        "tasks": None if reading.tasks is None else content_digest(reading.tasks),
        "workers": None if reading.workers is None else content_digest(reading.workers),
    }
    return tuple(Input(role=role, sha256=digest, public=True) for role, digest in found.items() if digest is not None)


def _own_label_evidence(source: AnswerSource, reading: EvidenceOptions, **options: Any) -> Evidence:
    """Return evidence for truths with labels of their own: numbers as they are, on the scale if there is one."""
    scale = reading.alphabet if isinstance(reading.alphabet, Scale) else None
    plain = replace(reading, truths=())
    if scale is not None:
        plain = replace(plain, alphabet=None, kind=None if is_named_dataset_source(source.path) else "numeric")
    evidence = read_evidence(source, plain, **options)
    if scale is not None:
        refuse_numbers_outside(evidence.reports, scale)
    return replace(evidence, truths=reading.truths)


def _checked_crowd_of(path: Path, *, accept_edited: bool) -> CrowdRecord | None:
    """Return the checked crowd in the folder of reports; None without one."""
    crowd = read_crowd_beside(path)
    return None if crowd is None else crowd_if_digest_matches(crowd, path, accept_edited=accept_edited)


def _refuse_repeated_pairs(source: AnswerSource, duplicates: Duplicates | None) -> None:
    """Refuse repeated (task, worker) pairs in reports of a channel."""
    if has_repeated_pairs(source.path) if source.is_block_folder else duplicates == "all":
        raise ReportsError(
            "a channel needs one report of a worker on a task, but repeated (task, worker) pairs were kept",
            source=source.name,
            hint=f"Keep the first or last of them. {_as_answers()}",
        )


def _as_answers() -> str:
    """Return the hint that reports can be read as answers; empty where they cannot."""
    return command_advice("{no_certificate} reads reports as answers.")


def evidence_files(source: Path | AnswerSource) -> list[Path]:
    """Return the files that inference may read, existing or not; outputs must not replace them."""
    opened = source if isinstance(source, AnswerSource) else local_source(source)
    if is_named_dataset_source(opened.path):
        return [*datasets.possible_files_of_dataset(str(opened.path).removeprefix(DATASET))]
    path = opened.collection_path
    if path is None:
        return opened.inputs
    names = (CERTIFICATE_FILE, CROWD_FILE, ASSIGNMENT_FILE, *(block_files(path) if opened.is_block_folder else ()))
    return [path, *(report_directory(path) / name for name in names)]


def _refuse_weight_unless_table(source: AnswerSource) -> None:
    """Refuse a column of confidences of data sets, encoded blocks and exports, of which it is not read."""
    weight = source.layout.names.weight
    if weight is not None and (not source.files or source.importer is not None):
        raise SettingsError(
            "confidences are a column of a table of answers, not of exports, encoded blocks or data sets",
            value=weight,
            hint=advice("Leave {weight} out, or write the answers and their confidences as a table."),
        )


def _refuse_options_of_dataset(reading: EvidenceOptions) -> None:
    merged = "merge_labels" if reading.merge_labels else None
    for option in (reading.certificate, reading.kind, merged, reading.tasks, reading.workers):
        if option is not None:
            raise SettingsError(
                "a data set has answers of known type and labels, and no channel",
                value=str(option),
                hint="Leave it out, or perturb the data set first.",
            )


def _dataset_evidence(source: str, alphabet: Alphabet | None, duplicates: Duplicates) -> Evidence:
    """Return the answers of a data set; numbers are put on a scale only if one is given."""
    data = datasets.load(source.removeprefix(DATASET), duplicates=duplicates)
    numbers = data.kind == "numeric" and alphabet is None
    read = None if numbers else read_answers(source, alphabet=alphabet, duplicates=duplicates)
    answers = data.answers if read is None else read.answers
    return Evidence(
        observed=answers,
        asked=answers.asked,
        no_channel_reason="a data set holds answers",
        notes=repeated_notes(data, duplicates) if read is None else read.counts,
    )


def _open_blocks_with_known_labels(path: Path, known: Alphabet | None, reading: EvidenceOptions) -> Reports:
    """Return opened blocks; refuse labels other than those of certificate and crowd."""
    options = {"kind": reading.kind, "duplicates": reading.duplicates, "merge_labels": reading.merge_labels}
    changed = {name: value for name, value in options.items() if value not in (None, False, "error")}
    if changed:
        hint = "Give kind, duplicates and merge_labels to encode."
        raise SettingsError("encoded blocks have no reading options", value=changed, hint=hint)
    reports = _with_stated_lists(Reports.open(path), path, reading)
    names = None if reports.alphabet is None else reports.alphabet.names
    if known is not None and names != known.names:
        raise ReportsError(
            f"the blocks must have the labels or scale of certificate and {CROWD_FILE}, {known.names}",
            source=str(path),
            examples=str(names),
            hint="Keep the files of one collection together, or encode the reports again.",
        )
    return reports


def _with_stated_lists(reports: Reports, path: Path, reading: EvidenceOptions) -> Reports:
    """Return opened blocks as those of the tasks and workers that files state; refuse blocks of others."""
    lists = dict(zip(("tasks", "workers"), _stated_lists(reading), strict=True))
    for name, listed in lists.items():
        if listed is not None and set(listed) != set(map(str, np.asarray(getattr(reports, name)).tolist())):
            raise ReportsError(
                f"encoded blocks must have the {name} that were asked",
                source=str(path),
                hint="Encode the reports again, with the lists of all who were asked.",
            )
    return reports.with_asked(Asked.of_given(**lists))


def _read_report_file(
    source: AnswerSource,
    crowd: CrowdRecord | None,
    stated: Alphabet | None,
    reading: EvidenceOptions,
    progress: Progress | None,
    *,
    protected: bool,
) -> RowsRead:
    """Return reports over the tasks and workers of their crowd, if there is one, with what was read beside them.

    With a scale that neither certificate nor crowd states, numbers are answers, clipped and rounded to the scale.
    """
    tasks, workers = _stated_lists(reading) if crowd is None else crowd.task_and_worker_names
    if crowd is not None and (source.layout.question is not None or source.columns is not None):
        raise ReportsError(
            f"a collection with a {CROWD_FILE} has one question",
            source=source.name if source.columns is None else source.columns.source,
            hint="Leave the question out, and keep the files of each collection in its own folder.",
        )
    options: Any = {"duplicates": reading.duplicates or "error", "merge_labels": reading.merge_labels}
    columns, notes = source.read_columns_and_notes(progress)
    rows = columns.null_rows
    if protected and len(rows):
        raise ReportsError(
            "NULL reports are not stored: they follow from the lists of tasks and workers",
            source=columns.source,
            rows=tuple((rows[:EXAMPLES_SHOWN] + 1).tolist()),
            hint="Leave these rows out.",
        )
    skipped = columns.only_rows(rows) if len(rows) else None
    if stated is None and isinstance(reading.alphabet, Scale) and reading.kind != "categorical":
        numeric = ReadOptions(tasks=tasks, workers=workers, kind="numeric", **options)
        read = numbers_put_on_scale(source.name, Reports.from_columns(columns, numeric), reading.alphabet)
        unread = notes_on_unread_columns(source.unread_columns)
        confidences = confidences_of_answers(columns, read.answers, numeric.duplicates)
        return RowsRead(read.answers, confidences, read.counts + notes + unread, skipped)
    grid: Grid = "round" if stated is None else "exact"
    alphabet = stated or reading.alphabet
    kind = "numeric" if crowd is not None and alphabet is None else reading.kind
    wanted = ReadOptions(alphabet=alphabet, tasks=tasks, workers=workers, grid=grid, kind=kind, **options)
    if source.limit is None:
        reports = Reports.from_columns(columns, wanted)
    else:
        reports = reports_in_parts(columns, wanted, source.limit)
    changed = change_notes(columns, reports, wanted) if crowd is None else ()
    confidences = confidences_of_answers(wanted.with_missing_policy(columns), reports, wanted.duplicates)
    notes += changed + notes_on_unread_columns(source.unread_columns)
    return RowsRead(reports, confidences, notes, skipped)


def _stated_lists(reading: EvidenceOptions) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """Return the names of all tasks and workers that were asked, from the files that state them; None without one."""
    tasks = None if reading.tasks is None else read_name_column(reading.tasks, "task")
    workers = None if reading.workers is None else read_name_column(reading.workers, "worker")
    return tasks, workers


def _refuse_lists_beside_crowd(reading: EvidenceOptions) -> None:
    """Refuse lists of those asked where a crowd.json lists them."""
    for given in (reading.tasks, reading.workers):
        if given is not None:
            rule = f"lists of tasks and workers cannot be given: the {CROWD_FILE} of the reports has them"
            raise SettingsError(rule, value=str(given), hint="Leave them out.")


def _read_named_assignment(path: Path, reports: Reports, crowd: CrowdRecord | None) -> Assignment | None:
    """Return the assignment that the crowd names, after a check of its digest; None without one."""
    if crowd is None:
        return None
    file = report_directory(path) / ASSIGNMENT_FILE
    if crowd.assignment_sha256 is None:
        if file.exists():
            rule = f"an {ASSIGNMENT_FILE} in the folder of the reports must be named by their {CROWD_FILE}"
            raise ReportsError(rule, source=str(file), hint="Keep the files of one collection together.")
        return None
    if not file.is_file() or sha256_hex(file.read_bytes()) != crowd.assignment_sha256:
        raise ReportsError(
            f"the {ASSIGNMENT_FILE} that {CROWD_FILE} names must be in the folder of the reports, unchanged",
            source=str(file),
            hint="Keep the files of one collection together.",
        )
    return Assignment.from_csv(file, tasks=np.asarray(reports.tasks), workers=np.asarray(reports.workers))


def matching_certificate_channel(path: Path, crowd: CrowdRecord | None) -> Channel | ChannelTable:
    """Return the channel of a certificate.

    Raises:
        CertificateError: damaged, or another digest than the crowd names; with file, defect and hint.
    """
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_CERTIFICATE_BYTES + 1)
    except OSError as error:
        rule = "the file must exist and be readable"
        raise ReportsError(
            rule,
            source=str(path),
            examples=error.strerror or str(error),
            hint="Give a certificate.json, and check its name and folder.",
        ) from error
    try:
        channel: Channel | ChannelTable
        if is_channel_table(text):
            channel = ChannelTable.from_certificate(text)
            seal = channel.certificate()["sha256"]
        else:
            channel, seal = Channel.from_certificate(text), parse_json(text)["sha256"]
    except CertificateError as error:
        hint = f"Request the certificate again. {_as_answers()}"
        raise CertificateError(error.defect, f"{path}: {error.detail}", hint=hint) from error
    if crowd is not None and crowd.collection.certificate_sha256 != seal:
        named = crowd.collection.certificate_sha256
        raise CertificateError(
            "not the crowd's",
            f"{path} has SHA-256 {seal}, {CROWD_FILE} names {named or 'none'}.",
            hint=f"Give the certificate written with the reports. {_as_answers()}",
        )
    return channel


def read_crowd_beside(path: Path) -> CrowdRecord | None:
    """Return the crowd in the folder of a file of reports or certificate; None without one.

    Raises:
        ReportsError: the crowd is damaged, or belongs to sums.
    """
    found = find_crowd(path)
    if found is None:
        return None
    from crowdveil.mechanisms import MatrixFactorization

    crowd = read_crowd(found)
    if crowd.collection.mechanism == MatrixFactorization.name:
        raise ReportsError(
            f"the {CROWD_FILE} of this folder belongs to sums, not to reports",
            source=str(path),
            hint="Infer from sums.json, or keep each collection in its own folder.",
        )
    return crowd


def _certificate_path(path: Path | None, given: Path | None, crowd: CrowdRecord | None) -> Path | None:
    if path is None:
        return given
    default = report_directory(path) / CERTIFICATE_FILE
    if given is not None or default.is_file():
        return given or default
    if crowd is not None and crowd.collection.certificate_sha256 is not None:
        raise CertificateError(
            "missing",
            f"{CROWD_FILE} names a certificate, but {default} is missing.",
            hint=f"Copy it there{command_advice(', or give it ({certificate})')}. {_as_answers()}",
        )
    return None


def _alphabet_of_certificate_or_crowd(
    channel: Channel | ChannelTable | None, crowd: CrowdRecord | None, given: Alphabet | None
) -> Alphabet | None:
    """Return the alphabet of reports by certificate or crowd; refuse another given one."""
    stated = None if crowd is None else crowd.alphabet
    known = stated if channel is None else channel.report_alphabet
    for other, hint in ((stated, "Keep the files of one collection together."), (given, "Leave it out.")):
        if known is not None and other is not None and other.names != known.names:
            raise SettingsError(
                f"the labels or scale must be those of the certificate or {CROWD_FILE}, {known.names}",
                value=other.names,
                hint=hint,
            )
    return known


def _no_channel_reason(collection: Collection | None, use_certificate: bool) -> str:
    if not use_certificate:
        return "as asked"
    return "no certificate was found" if collection is None else f"{collection.mechanism} has no channel certificate"


def is_certificate_of_question(certificate: Path) -> bool:
    """Return whether a certificate is that of one of several questions, by the crowd.json beside it.

    Raises:
        ReportsError: the crowd.json is damaged.
    """
    found = find_crowd(certificate)
    crowd = None if found is None else read_crowd(found)
    named = None if crowd is None else crowd.collection.certificate_sha256
    asks_several = crowd is not None and crowd.collection.question is not None
    return asks_several and named is not None and named.encode() in certificate.read_bytes()
