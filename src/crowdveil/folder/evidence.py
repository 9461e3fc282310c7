"""Inputs of inference: reports, `crowd.json`, certificate and assignment, checked against each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.channels.alphabet import Alphabet, Categories, Scale, alphabet_from_json
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, is_channel_table
from crowdveil.data import datasets
from crowdveil.data.assignment import Assignment
from crowdveil.data.columnar_store import STORE_FILES, has_repeated_pairs, read_seal_of_encoded_blocks
from crowdveil.data.ingest.checked_column_codes import EXAMPLES_SHOWN, Duplicates, Grid
from crowdveil.data.ingest.column_readers import ReportColumns
from crowdveil.data.ingest.csv_files import Progress, content_digest
from crowdveil.data.ingest.labels import with_known_spellings
from crowdveil.data.public_lists import (
    ALL_LISTS,
    NO_GUARANTEE_PREFIXES,
    guarantee_or_reason_for_none,
)
from crowdveil.data.read_options import Kind, ReadOptions
from crowdveil.data.reports import Reports
from crowdveil.data.sources.answer_source import AnswerSource, local_source
from crowdveil.data.sources.location import DATASET
from crowdveil.errors import CertificateError, ReportsError, SettingsError
from crowdveil.folder.answers import (
    change_notes,
    is_named_dataset_source,
    numbers_put_on_scale,
    read_answers,
    repeated_notes,
    spelling_notes,
    warning_of_unread_weight_columns,
    warnings_of_labels_meaning_no_answer,
)
from crowdveil.folder.crowd import (
    ASSIGNMENT_FILE,
    CERTIFICATE_FILE,
    CROWD_FILE,
    Crowd,
    find_crowd,
    marked_as_edited,
    read_crowd,
    report_directory,
    sha256_hex,
    task_and_worker_names,
)
from crowdveil.standalone.checks import MAX_CERTIFICATE_BYTES
from crowdveil.standalone.verification import parse_json

GUARANTEE_SCOPE = "the holder of the answers sees them all; the guarantee is against recipients of the reports alone"
"""Scope of the guarantee of reports that were made from a file of answers."""
CAMPAIGN_MARK = re.compile(r"(?:; question ([0-9]{1,2}) of ([0-9]{1,2}))?; campaign ([A-Za-z0-9_-]{43})$")
"""End of the mechanism in the crowd.json of a campaign."""
WITHOUT_NAMES = "; cells without names"
"""Part of the mechanism in the crowd.json of cells that a relay shuffled one by one: worker numbers link nothing."""
ASSIGNED = "hidden: which of the assigned tasks a worker skipped; not hidden: which were assigned"
SIMULATION = "the reports follow from the seed: a simulation carries no privacy"
AS_ASKED = "as asked"
"""Reason why there is no channel: the certificate was declined (--no-certificate)."""
AS_ANSWERS = "`crowdveil infer --no-certificate` reads reports as answers."
"""Hint of a certificate that cannot be used; not every command has the option."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Reports with their collection metadata.

    Attributes:
        reports: over all tasks and workers of the crowd, where that is known.
        crowd: contents of `crowd.json`, with the guarantee of the certificate if there is one; None without a file.
        channel: channel of the certificate; None without a certificate, or if it was declined.
        certificate: path of the certificate.
        assignment: the cells that report; None if all do.
        no_channel_reason: reason why reports are read as answers; empty with a channel.
        notes: warnings about the reports themselves.
        skipped: rows of answers that were asked for and not given (NULL); None without any.
        truths: labels of the truths, where the answers have others; empty where they are the same.
        merge_labels: whether the spellings of a label are one, in the answers and in known truths.
    """

    reports: Reports
    crowd: Crowd | None
    channel: Channel | ChannelTable | None
    certificate: Path | None
    no_channel_reason: str
    assignment: Assignment | None = None
    notes: tuple[str, ...] = ()
    skipped: ReportColumns | None = None
    truths: tuple[str, ...] = ()
    merge_labels: bool = False

    def in_label_spelling(self, gold: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Return known truths by task in the spelling of the labels, if spellings are one; else as they are."""
        alphabet = self.reports.alphabet if self.channel is None else self.channel.alphabet
        names = self.truths or (alphabet.names if isinstance(alphabet, Categories) else ())
        return with_known_spellings(gold, names) if self.merge_labels and names else gold

    @property
    def digest_of_reports_and_channel(self) -> str:
        """SHA-256 of the reports, and of the channel through which they are read, if there is one, in hexadecimal."""
        reports = self.reports.sha256
        return (
            reports
            if self.channel is None
            else sha256_hex(f"{reports} {self.channel.certificate()['sha256']}".encode())
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
        accept_edited: accept reports whose digest differs from that of the crowd; sets `crowd["edited"]`.
        truths: as of `Evidence`; numbers outside a Scale are then refused, not clipped.
    """

    certificate: Path | None = None
    use_certificate: bool = True
    alphabet: Alphabet | None = None
    kind: Kind | None = None
    duplicates: Duplicates | None = None
    merge_labels: bool = False
    accept_edited: bool = False
    truths: tuple[str, ...] = ()


NO_OPTIONS = EvidenceOptions()
"""Reading without options."""


def read_evidence(
    source: Path | AnswerSource,
    reading: EvidenceOptions = NO_OPTIONS,
    *,
    progress: Progress | None = None,
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
    if reading.truths:
        return _evidence_for_truths_with_own_labels(opened, reading, progress=progress)
    if is_named_dataset_source(opened.path):
        _refuse_options_of_dataset(reading.certificate, reading.kind, "merge_labels" if reading.merge_labels else None)
        return _dataset_evidence(str(opened.path), reading.alphabet, reading.duplicates or "first")
    path = opened.path_beside_which_collection_lies
    crowd = None if path is None else _checked_crowd_of(path, accept_edited=reading.accept_edited)
    certificate_path = _certificate_path(path, reading.certificate, crowd) if reading.use_certificate else None
    channel = None if certificate_path is None else channel_of_certificate_matching_crowd(certificate_path, crowd)
    known = _alphabet_of_certificate_or_crowd(channel, crowd, reading.alphabet)
    if channel is not None:
        _refuse_repeated_pairs(opened, reading.duplicates)
    notes: tuple[str, ...] = ()
    skipped = None
    if opened.is_block_folder:
        reports = _open_blocks_with_known_labels(opened.path, known or reading.alphabet, reading)
    else:
        protected = crowd is not None or channel is not None
        reports, notes, skipped = _read_report_file(opened, crowd, known, reading, progress, protected=protected)
    if known is None and reading.alphabet is None:
        notes += spelling_notes(reports) + warnings_of_labels_meaning_no_answer(reports)
    if crowd is not None:
        reports = reports.with_public_lists(ALL_LISTS.difference(crowd["lists_from_answers"]))
    return Evidence(
        reports=reports,
        crowd=with_channel_guarantee(crowd, channel),
        channel=channel,
        certificate=certificate_path,
        no_channel_reason="" if channel is not None else _no_channel_reason(crowd, reading.use_certificate),
        assignment=None if path is None else _read_assignment_named_by_crowd(path, reports, crowd),
        notes=notes,
        skipped=skipped,
        merge_labels=reading.merge_labels,
    )


def _evidence_for_truths_with_own_labels(source: AnswerSource, reading: EvidenceOptions, **options: Any) -> Evidence:
    """Return evidence for truths with labels of their own: numbers as they are, on the scale if there is one."""
    scale = reading.alphabet if isinstance(reading.alphabet, Scale) else None
    plain = replace(reading, truths=())
    if scale is not None:
        plain = replace(plain, alphabet=None, kind=None if is_named_dataset_source(source.path) else "numeric")
    evidence = read_evidence(source, plain, **options)
    if scale is not None:
        refuse_numbers_outside(evidence.reports, scale)
    return replace(evidence, truths=reading.truths)


def refuse_numbers_outside(reports: Reports, scale: Scale) -> None:
    """Refuse numbers outside a scale.

    Raises:
        ReportsError: with the first of them.
    """
    outside = (reports.numbers < scale.low) | (reports.numbers > scale.high)
    if outside.any():
        raise ReportsError(
            f"scores must be on the scale from {scale.low:g} to {scale.high:g}",
            examples=f"{reports.numbers[outside][0]:g}, and {int(outside.sum()) - 1:,} others",
            hint="Correct these scores, leave them out, or give a wider --scale.",
        )


def _checked_crowd_of(path: Path, *, accept_edited: bool) -> Crowd | None:
    """Return the checked crowd in the folder of reports; None without one."""
    crowd = read_crowd_beside(path)
    return None if crowd is None else crowd_if_digest_matches(crowd, path, accept_edited=accept_edited)


def _refuse_repeated_pairs(source: AnswerSource, duplicates: Duplicates | None) -> None:
    """Refuse repeated (task, worker) pairs in reports of a channel."""
    if has_repeated_pairs(source.path) if source.is_block_folder else duplicates == "all":
        raise ReportsError(
            "a channel needs one report of a worker on a task, but repeated (task, worker) pairs were kept",
            source=source.name,
            hint=f"Keep the first or last of them. {AS_ANSWERS}",
        )


def evidence_files(source: Path | AnswerSource) -> list[Path]:
    """Return the files that inference may read, existing or not; outputs must not replace them."""
    opened = source if isinstance(source, AnswerSource) else local_source(source)
    if is_named_dataset_source(opened.path):
        return [*datasets.possible_files_of_dataset(str(opened.path).removeprefix(DATASET))]
    path = opened.path_beside_which_collection_lies
    if path is None:
        return opened.inputs
    names = (CERTIFICATE_FILE, CROWD_FILE, ASSIGNMENT_FILE, *(STORE_FILES if opened.is_block_folder else ()))
    return [path, *(report_directory(path) / name for name in names)]


def _refuse_options_of_dataset(*given: object) -> None:
    for option in given:
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
    return Evidence(
        reports=data.answers if read is None else read.answers,
        crowd=None,
        channel=None,
        certificate=None,
        no_channel_reason="a data set holds answers",
        notes=repeated_notes(data, duplicates) if read is None else read.counts,
    )


def crowd_if_digest_matches(crowd: Crowd, path: Path, *, accept_edited: bool = False) -> Crowd:
    """Return the crowd, if the digest of the reports (or sums, or blocks) is the one that it names.

    Raises:
        ReportsError: another digest, unless `accept_edited`, which marks the crowd.
    """
    blocks = path.is_dir()
    if blocks != (crowd["blocks_sha256"] is not None):
        raise ReportsError(
            f"the {CROWD_FILE} of this folder belongs to {'a file of reports' if blocks else 'encoded blocks'}",
            source=str(path),
            hint="Keep each collection in a folder of its own.",
        )
    named = crowd["blocks_sha256"] if blocks else crowd["reports_sha256"]
    found = read_seal_of_encoded_blocks(path) if blocks else content_digest(path)
    if found == named:
        return crowd
    if accept_edited:
        return marked_as_edited(crowd)
    raise ReportsError(
        f"reports must be unchanged since the {CROWD_FILE} of their folder was written",
        source=str(path),
        examples=f"SHA-256 {found}, {CROWD_FILE} names {named}",
        hint="Keep the files of one collection together, in a folder of its own; if you edited the reports on "
        "purpose, add --accept-edited (in Python: accept_edited=True).",
    )


def _open_blocks_with_known_labels(path: Path, known: Alphabet | None, reading: EvidenceOptions) -> Reports:
    """Return opened blocks; refuse labels other than those of certificate and crowd."""
    options = {"kind": reading.kind, "duplicates": reading.duplicates, "merge_labels": reading.merge_labels}
    changed = {name: value for name, value in options.items() if value not in (None, False, "error")}
    if changed:
        hint = "Give kind, duplicates and merge_labels to encode."
        raise SettingsError("encoded blocks have no reading options", value=changed, hint=hint)
    reports = Reports.open(path)
    names = None if reports.alphabet is None else reports.alphabet.names
    if known is not None and names != known.names:
        raise ReportsError(
            f"the blocks must have the labels or scale of certificate and {CROWD_FILE}, {known.names}",
            source=str(path),
            examples=str(names),
            hint="Keep the files of one collection together, or encode the reports again.",
        )
    return reports


def _read_report_file(
    source: AnswerSource,
    crowd: Crowd | None,
    stated: Alphabet | None,
    reading: EvidenceOptions,
    progress: Progress | None,
    *,
    protected: bool,
) -> tuple[Reports, tuple[str, ...], ReportColumns | None]:
    """Return reports over the tasks and workers of their crowd, if there is one, warnings, and skipped answers.

    With a scale that neither certificate nor crowd states, numbers are answers, clipped and rounded to the scale.
    """
    tasks, workers = (None, None) if crowd is None else task_and_worker_names(crowd)
    if crowd is not None and (source.layout.question is not None or source.columns is not None):
        raise ReportsError(
            f"a collection with a {CROWD_FILE} has one question",
            source=source.name if source.columns is None else source.columns.source,
            hint="Leave --question out, and keep the files of each collection in a folder of its own.",
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
        return read.answers, read.counts + notes + warning_of_unread_weight_columns(source), skipped
    grid: Grid = "round" if stated is None else "exact"
    alphabet = stated or reading.alphabet
    wanted = ReadOptions(alphabet=alphabet, tasks=tasks, workers=workers, grid=grid, kind=reading.kind, **options)
    reports = Reports.from_columns(columns, wanted)
    changed = change_notes(columns, reports, wanted) if crowd is None else ()
    return reports, notes + changed + warning_of_unread_weight_columns(source), skipped


def _read_assignment_named_by_crowd(path: Path, reports: Reports, crowd: Crowd | None) -> Assignment | None:
    """Return the assignment that the crowd names, after a check of its digest; None without one."""
    if crowd is None or crowd["assignment_sha256"] is None:
        return None
    file = report_directory(path) / ASSIGNMENT_FILE
    if not file.is_file() or sha256_hex(file.read_bytes()) != crowd["assignment_sha256"]:
        raise ReportsError(
            f"the {ASSIGNMENT_FILE} that {CROWD_FILE} names must be in the folder of the reports, unchanged",
            source=str(file),
            hint="Keep the files of one collection together.",
        )
    return Assignment.from_csv(file, tasks=np.asarray(reports.tasks), workers=np.asarray(reports.workers))


def channel_of_certificate_matching_crowd(path: Path, crowd: Crowd | None) -> Channel | ChannelTable:
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
        hint = f"Request the certificate again. {AS_ANSWERS}"
        raise CertificateError(error.defect, f"{path}: {error.detail}", hint=hint) from error
    if crowd is not None and crowd["certificate_sha256"] != seal:
        named = crowd["certificate_sha256"]
        raise CertificateError(
            "not the crowd's",
            f"{path} has SHA-256 {seal}, {CROWD_FILE} names {named or 'none'}.",
            hint=f"Give the certificate written with the reports. {AS_ANSWERS}",
        )
    return channel


def read_crowd_beside(path: Path) -> Crowd | None:
    """Return the crowd in the folder of a file of reports or certificate; None without one.

    Raises:
        ReportsError: the crowd is damaged, or belongs to sums.
    """
    found = find_crowd(path)
    if found is None:
        return None
    from crowdveil.mechanisms import MatrixFactorization

    crowd = read_crowd(found)
    if crowd["mechanism"].partition(" ")[0] == MatrixFactorization.name:
        raise ReportsError(
            f"the {CROWD_FILE} of this folder belongs to sums, not to reports",
            source=str(path),
            hint="Infer from sums.json, or keep each collection in a folder of its own.",
        )
    return crowd


def _certificate_path(path: Path | None, given: Path | None, crowd: Crowd | None) -> Path | None:
    if path is None:
        return given
    default = report_directory(path) / CERTIFICATE_FILE
    if given is not None or default.is_file():
        return given or default
    if crowd is not None and crowd["certificate_sha256"] is not None:
        raise CertificateError(
            "missing",
            f"{CROWD_FILE} names a certificate, but {default} is missing.",
            hint=f"Copy it there, or give it with --certificate where the command has this option. {AS_ANSWERS}",
        )
    return None


def _alphabet_of_certificate_or_crowd(
    channel: Channel | ChannelTable | None, crowd: Crowd | None, given: Alphabet | None
) -> Alphabet | None:
    """Return the alphabet of reports by certificate or crowd; refuse another given one."""
    stated = None if crowd is None or crowd["alphabet"] is None else alphabet_from_json(crowd["alphabet"])
    known = stated if channel is None else channel.report_alphabet
    for other, hint in ((stated, "Keep the files of one collection together."), (given, "Leave it out.")):
        if known is not None and other is not None and other.names != known.names:
            raise SettingsError(
                f"the labels or scale must be those of the certificate or {CROWD_FILE}, {known.names}",
                value=other.names,
                hint=hint,
            )
    return known


def _no_channel_reason(crowd: Crowd | None, use_certificate: bool) -> str:
    if not use_certificate:
        return AS_ASKED
    if crowd is None:
        return "no certificate was found"
    return f"{crowd['mechanism'].partition(' ')[0]} has no channel certificate"


def notes_on_assignment_and_answer_holder(
    *, assigned: bool, protected: bool, simulation: bool, from_devices: bool = False
) -> tuple[str, ...]:
    """Return the notes of a guarantee: what an assignment hides, and who holds the answers, unless only devices do."""
    hidden = (ASSIGNED,) if assigned and protected else ()
    return hidden if simulation or from_devices else (*hidden, GUARANTEE_SCOPE)


def channel_or_raise_if_unknown(evidence: Evidence, result: str) -> Channel | ChannelTable | None:
    """Return the channel that a result needs; None for answers.

    Raises:
        ReportsError: protected reports whose channel is unknown.
    """
    if evidence.channel is None and evidence.crowd is not None:
        raise ReportsError(
            f"{result} of protected reports needs their channel, or it measures the noise",
            source="reports",
            examples=evidence.no_channel_reason,
            hint="`crowdveil infer` has methods for reports without a certificate.",
        )
    return evidence.channel


def campaign_name_of(crowd: Crowd) -> str | None:
    """Return the name of the campaign whose devices sent the reports; None if they were made from a file of answers."""
    found = CAMPAIGN_MARK.search(crowd["mechanism"])
    return None if found is None else found[3]


def question_number_of(crowd: Crowd | None) -> tuple[int, int] | None:
    """Return which question of a campaign that asked several, from 1, and how many it asked; None otherwise."""
    found = None if crowd is None else CAMPAIGN_MARK.search(crowd["mechanism"])
    return None if found is None or found[1] is None else (int(found[1]), int(found[2]))


def is_certificate_of_question(certificate: Path) -> bool:
    """Return whether a certificate is that of one of several questions, by the crowd.json beside it.

    Raises:
        ReportsError: the crowd.json is damaged.
    """
    found = find_crowd(certificate)
    crowd = None if found is None else read_crowd(found)
    named = None if crowd is None else crowd["certificate_sha256"]
    return question_number_of(crowd) is not None and named is not None and named.encode() in certificate.read_bytes()


def is_shuffled_without_worker_names(crowd: Crowd | None) -> bool:
    """Return whether reports were shuffled cell by cell, so that no two of them are known to be of one worker."""
    return crowd is not None and WITHOUT_NAMES in crowd["mechanism"]


def with_channel_guarantee(crowd: Crowd | None, channel: Channel | ChannelTable | None) -> Crowd | None:
    """Return the crowd with the guarantee of the certificate, if it has one; a crowd without a guarantee is unchanged.

    Raises:
        ReportsError: the crowd states a guarantee, and the certificate is marked as without privacy.
    """
    if crowd is None or channel is None or crowd["guarantee"].startswith(NO_GUARANTEE_PREFIXES):
        return crowd
    if channel.has_no_privacy:
        raise ReportsError(
            f"the {CROWD_FILE} must not state a guarantee if its certificate is marked as without privacy",
            source=CROWD_FILE,
            examples=f"{crowd['guarantee'][:100]}; certificate: {channel.mechanism[:100]}",
            hint=f"Use the {CROWD_FILE} that was written with the reports.",
        )
    assigned = crowd["assignment_sha256"] is not None
    protected, from_devices = channel.protects_participation, campaign_name_of(crowd) is not None
    notes = notes_on_assignment_and_answer_holder(
        assigned=assigned, protected=protected, simulation=False, from_devices=from_devices
    )
    return {**crowd, "guarantee": guarantee_or_reason_for_none(channel.guarantee, (), simulation=False, notes=notes)}
