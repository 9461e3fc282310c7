"""What a curator holds: reports, their crowd and the channel they went through, each checked against the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdveil.channels.alphabet import Alphabet, Scale, alphabet_from_json
from crowdveil.channels.certificate import MAX_BYTES, has_no_privacy_mark, parse_certificate
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, is_channel_table
from crowdveil.channels.guarantee import Guarantee
from crowdveil.data import datasets
from crowdveil.data.assignment import Assignment
from crowdveil.data.columnar_store import STORE_FILES, has_repeated_pairs, read_seal
from crowdveil.data.ingest.csv_files import content_digest
from crowdveil.data.ingest.validation import Duplicates, Grid
from crowdveil.data.public_lists import (
    ALL_LISTS,
    NO_GUARANTEE_PREFIXES,
    ListName,
    guarantee_text,
    join_words,
    not_public_text,
)
from crowdveil.data.read_options import Kind
from crowdveil.data.reports import Reports
from crowdveil.errors import CertificateError, ReportsError, SettingsError
from crowdveil.workflow.export import (
    ASSIGNMENT_FILE,
    CERTIFICATE_FILE,
    CROWD_FILE,
    Crowd,
    as_edited,
    find_crowd,
    home,
    read_crowd,
    text_digest,
)
from crowdveil.workflow.io import (
    DATASET,
    is_dataset,
    on_scale,
    read_answers,
    repeated,
    spelling_notes,
    weight_notes,
)

if TYPE_CHECKING:
    from crowdveil.workflow.channel_assignment import Setup

HOLDER = (
    "whoever holds the answers sees them all; these reports protect only against those who get the reports and "
    "nothing else"
)
"""Said of reports that were made from answers that someone already held."""
ASSIGNED = "hidden: which of the assigned tasks a worker skipped; not hidden: which were assigned"
SIMULATION = "these reports follow from the seed: a simulation, which carries no privacy"
OPTIONS: dict[ListName, str] = {"labels": "--labels or --scale", "tasks": "--tasks", "workers": "--workers"}
AS_ASKED = "as asked"
"""Reason for reading reports as answers where the certificate is left out on purpose."""

EDITED = (
    f"The reports were edited after they were sent: the guarantee and the channel in {CROWD_FILE} and the certificate "
    "are those of other reports."
)
SIMULATED_REPORTS = "The reports are a simulation: they carry no privacy."


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Reports and all that is known about their making.

    Attributes:
        reports: over all tasks and workers of the crowd, where that is known.
        crowd: what `crowd.json` says, with the guarantee of the certificate where there is one; None if there is none.
        channel: from the certificate; None if there is none or it is not to be used.
        certificate: where the channel was read from.
        assignment: the cells that report; None if all do.
        no_channel_reason: why reports are to be read as if they were answers; empty if there is a channel.
        notes: warnings about the reports themselves.
    """

    reports: Reports
    crowd: Crowd | None
    channel: Channel | ChannelTable | None
    certificate: Path | None
    no_channel_reason: str
    assignment: Assignment | None = None
    notes: tuple[str, ...] = ()


def read_evidence(
    path: Path,
    *,
    certificate: Path | None = None,
    use_certificate: bool = True,
    alphabet: Alphabet | None = None,
    kind: Kind | None = None,
    duplicates: Duplicates | None = None,
    merge_labels: bool = False,
    verify: bool = False,
    accept_edited: bool = False,
) -> Evidence:
    """Read reports, and beside them `crowd.json` and `certificate.json` where they exist.

    Args:
        path: CSV or Parquet, or a folder of encoded blocks, which holds the other files too; or `dataset:NAME`, the
            answers of a public data set.
        certificate: where it is, if not beside the reports.
        use_certificate: False reads reports as if they were answers, whatever there is.
        alphabet: what a report can be, if neither certificate nor crowd says it.
        kind: "categorical" or "numeric", if it does not follow from the column's name.
        duplicates: policy for repeated (task, worker) pairs; by default "error" for files, "first" for data sets.
        merge_labels: read the spellings of a label as one, as `Reports.from_csv`.
        verify: check all of the encoded blocks now, not each when it is first used.
        accept_edited: go on although the reports are not those that the crowd names by their digest; `crowd["edited"]`
            then says so.

    Raises:
        ReportsError: the reports or the crowd break a rule, or are not those that were written together.
        CertificateError: the certificate is damaged, or is not the one that the crowd names.
        SettingsError: `alphabet` contradicts certificate or crowd.
    """
    if is_dataset(path):
        _refuse_for_dataset(certificate, kind, "merge_labels" if merge_labels else None)
        return _of_dataset(str(path), alphabet, duplicates or "first")
    crowd = crowd_beside(path)
    if crowd is not None:
        crowd = checked_crowd(crowd, path, accept_edited=accept_edited)
    where = _certificate_path(path, certificate, crowd) if use_certificate else None
    channel = None if where is None else read_channel(where, crowd)
    known = _known_alphabet(channel, crowd, alphabet)
    if channel is not None:
        _refuse_repeats(path, duplicates)
    how = {"kind": kind, "duplicates": duplicates or "error", "merge_labels": merge_labels}
    notes: tuple[str, ...] = ()
    if path.is_dir():
        reports = _opened(path, known or alphabet, verify, how)
    else:
        reports, notes = _read(path, crowd, known, alphabet, how)
    if crowd is not None:
        reports = reports.with_public_lists(ALL_LISTS.difference(crowd["lists_from_answers"]))
    return Evidence(
        reports=reports,
        crowd=with_guarantee(crowd, channel),
        channel=channel,
        certificate=where,
        no_channel_reason="" if channel is not None else _why_answers(crowd, use_certificate),
        assignment=_assignment_beside(path, reports, crowd),
        notes=notes + (spelling_notes(reports) if known is None and alphabet is None else ()),
    )


def _refuse_repeats(path: Path, duplicates: Duplicates | None) -> None:
    """Refuse repeated (task, worker) pairs that were kept, or are to be."""
    if has_repeated_pairs(path) if path.is_dir() else duplicates == "all":
        raise ReportsError(
            "through a channel a worker sends one report on a task, but repeated (task, worker) pairs were kept",
            source=str(path),
            hint="Keep the first or last of them, or read reports as answers with --no-certificate.",
        )


def evidence_files(path: Path) -> list[Path]:
    """Return the files that may be read with reports, whether they exist or not: those that must stay."""
    if is_dataset(path):
        return [*datasets.files_of(str(path).removeprefix(DATASET))]
    names = (CERTIFICATE_FILE, CROWD_FILE, ASSIGNMENT_FILE, *(STORE_FILES if path.is_dir() else ()))
    return [path, *(home(path) / name for name in names)]


def _refuse_for_dataset(*given: object) -> None:
    for option in given:
        if option is not None:
            raise SettingsError(
                "a data set holds answers of a known kind and of known labels, which went through no channel",
                value=str(option),
                hint="Leave it out, or perturb the data set first.",
            )


def _of_dataset(source: str, alphabet: Alphabet | None, duplicates: Duplicates) -> Evidence:
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
        notes=repeated(data, duplicates) if read is None else read.counts,
    )


def checked_crowd(crowd: Crowd, path: Path, *, accept_edited: bool = False) -> Crowd:
    """Return a crowd after a look whether the reports (or sums, or blocks) are those that it names by their digest.

    Raises:
        ReportsError: they are not, unless `accept_edited`, which marks the crowd.
    """
    blocks = path.is_dir()
    if blocks != (crowd["blocks_sha256"] is not None):
        raise ReportsError(
            f"the {CROWD_FILE} beside it belongs to {'a file of reports' if blocks else 'encoded blocks'}",
            source=str(path),
            hint="Keep each collection in a folder of its own.",
        )
    named = crowd["blocks_sha256"] if blocks else crowd["reports_sha256"]
    found = read_seal(path) if blocks else content_digest(path)
    if found == named:
        return crowd
    if accept_edited:
        return as_edited(crowd)
    raise ReportsError(
        f"reports must be those that the {CROWD_FILE} beside them was written with, unchanged",
        source=str(path),
        examples=f"SHA-256 {found}, {CROWD_FILE} names {named}",
        hint="Keep the files of one collection together, in a folder of its own; if you edited the reports on "
        "purpose, add --accept-edited (in Python: accept_edited=True).",
    )


def caveats(crowd: Crowd) -> list[str]:
    """Return why the guarantee of a crowd, or its channel, cannot be relied on."""
    edited = [EDITED] if crowd["edited"] else []
    if crowd["simulation"]:
        return [SIMULATED_REPORTS, *edited]
    missing = crowd["lists_from_answers"]
    return [*([f"{not_public_text(missing).capitalize()}."] if missing else []), *edited]


def _opened(path: Path, known: Alphabet | None, verify: bool, how: dict[str, Any]) -> Reports:
    """Open encoded blocks, which must hold the labels that the files with them state."""
    usual = {"kind": None, "duplicates": "error", "merge_labels": False}
    said = {name: value for name, value in how.items() if value != usual[name]}
    if said:
        hint = "Say kind, duplicates and merge_labels when encoding."
        raise SettingsError("encoded blocks are read as they are", value=said, hint=hint)
    reports = Reports.open(path, verify=verify)
    names = None if reports.alphabet is None else reports.alphabet.names
    if known is not None and names != known.names:
        raise ReportsError(
            f"the blocks must hold the labels or scale that is known of them, {known.names}",
            source=str(path),
            examples=str(names),
            hint="Keep the files of one collection together, or encode the reports again.",
        )
    return reports


def _read(
    path: Path, crowd: Crowd | None, stated: Alphabet | None, given: Alphabet | None, how: dict[str, Any]
) -> tuple[Reports, tuple[str, ...]]:
    """Read a file of reports over the tasks and workers of its crowd, where that is known; also return warnings.

    Numbers on a scale that neither certificate nor crowd states are answers: they are clipped and rounded to it.
    """
    tasks, workers = (None, None) if crowd is None else listed(crowd)
    reader = Reports.from_parquet if path.suffix == ".parquet" else Reports.from_csv
    if stated is None and isinstance(given, Scale) and how["kind"] != "categorical":
        free = reader(path, tasks=tasks, workers=workers, **{**how, "kind": "numeric"})
        read = on_scale(str(path), free, given)
        return read.answers, read.counts + weight_notes(path)
    grid: Grid = "round" if stated is None else "exact"
    reports = reader(path, alphabet=stated or given, tasks=tasks, workers=workers, grid=grid, **how)
    return reports, weight_notes(path)


def listed(crowd: Crowd) -> tuple[list[str], list[str]]:
    """Return the tasks and the workers that the crowd of a file lists."""
    tasks, workers = crowd["tasks"], crowd["workers"]
    assert tasks is not None
    assert workers is not None
    return tasks, workers


def _assignment_beside(path: Path, reports: Reports, crowd: Crowd | None) -> Assignment | None:
    """Read the assignment that the crowd names, and check that it is that one."""
    if crowd is None or crowd["assignment_sha256"] is None:
        return None
    beside = home(path) / ASSIGNMENT_FILE
    if not beside.is_file() or text_digest(beside.read_bytes()) != crowd["assignment_sha256"]:
        raise ReportsError(
            f"the {ASSIGNMENT_FILE} that {CROWD_FILE} names must lie beside the reports, unchanged",
            source=str(beside),
            hint="Keep the files of one collection together.",
        )
    return Assignment.from_csv(beside, tasks=np.asarray(reports.tasks), workers=np.asarray(reports.workers))


def read_channel(path: Path, crowd: Crowd | None) -> Channel | ChannelTable:
    """Read a certificate and check that it is the one the crowd names.

    Raises:
        CertificateError: with the file, the defect and the way out.
    """
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
        channel: Channel | ChannelTable
        if is_channel_table(text):
            channel = ChannelTable.from_certificate(text)
            seal = channel.certificate()["sha256"]
        else:
            channel, seal = Channel.from_certificate(text), parse_certificate(text)["sha256"]
    except CertificateError as error:
        hint = "Ask for the certificate again, or read reports as answers with --no-certificate."
        raise CertificateError(error.defect, f"{path}: {error.detail} {hint}") from error
    if crowd is not None and crowd["certificate_sha256"] != seal:
        named = crowd["certificate_sha256"]
        raise CertificateError(
            "not the crowd's",
            f"{path} has SHA-256 {seal}, {CROWD_FILE} names {named or 'none'}. Give the certificate written with the "
            "reports, or read them as answers with --no-certificate.",
        )
    return channel


def crowd_beside(path: Path) -> Crowd | None:
    """Return the crowd beside reports, or beside what belongs to them; None if there is none.

    Raises:
        ReportsError: it is damaged, or belongs to sums.
    """
    found = find_crowd(path)
    if found is None:
        return None
    from crowdveil.mechanisms import MatrixFactorization

    crowd = read_crowd(found)
    if crowd["mechanism"].partition(" ")[0] == MatrixFactorization.name:
        raise ReportsError(
            f"the {CROWD_FILE} beside it belongs to sums, not to reports",
            source=str(path),
            hint="Infer from sums.json, or keep each collection in a folder of its own.",
        )
    return crowd


def _certificate_path(path: Path, given: Path | None, crowd: Crowd | None) -> Path | None:
    beside = home(path) / CERTIFICATE_FILE
    if given is not None or beside.is_file():
        return given or beside
    if crowd is not None and crowd["certificate_sha256"] is not None:
        raise CertificateError(
            "missing",
            f"{CROWD_FILE} names a certificate, but {beside} is not there. Give it with --certificate, or read reports "
            "as answers with --no-certificate.",
        )
    return None


def _known_alphabet(
    channel: Channel | ChannelTable | None, crowd: Crowd | None, given: Alphabet | None
) -> Alphabet | None:
    """Return the alphabet of reports that certificate or crowd state; what is given beside it must agree."""
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


def _why_answers(crowd: Crowd | None, use_certificate: bool) -> str:
    if not use_certificate:
        return AS_ASKED
    if crowd is None:
        return "no certificate was found"
    return f"{crowd['mechanism'].partition(' ')[0]} has no channel certificate"


def guarantee_of(setup: Setup) -> Guarantee:
    """Return the guarantee that public lists give the least protected cell."""
    return setup.mechanism.guarantee if setup.table is None else setup.table.guarantee


def notes_of(*, assigned: bool, protected: bool, simulation: bool) -> tuple[str, ...]:
    """Return what is said beside a guarantee: what an assignment hides and what not, and against whom."""
    hidden = (ASSIGNED,) if assigned and protected else ()
    return hidden if simulation else (*hidden, HOLDER)


def bears_mark(channel: Channel | ChannelTable) -> bool:
    """Return whether a channel, or any of a table, says that nothing is promised."""
    channels = channel.channels if isinstance(channel, ChannelTable) else (channel,)
    return any(has_no_privacy_mark(one.mechanism) for one in channels)


def with_guarantee(crowd: Crowd | None, channel: Channel | ChannelTable | None) -> Crowd | None:
    """Return a crowd whose guarantee is that of the certificate, if there is one; a text that promises nothing stays.

    Raises:
        ReportsError: the crowd promises something where the certificate says that nothing is promised.
    """
    if crowd is None or channel is None or crowd["guarantee"].startswith(NO_GUARANTEE_PREFIXES):
        return crowd
    if bears_mark(channel):
        raise ReportsError(
            f"the {CROWD_FILE} must not promise what its certificate says is not promised",
            source=CROWD_FILE,
            examples=f"{crowd['guarantee'][:100]}; certificate: {channel.mechanism[:100]}",
            hint=f"Use the {CROWD_FILE} that was written with the reports.",
        )
    assigned = crowd["assignment_sha256"] is not None
    notes = notes_of(assigned=assigned, protected=protects_participation(channel), simulation=False)
    return {**crowd, "guarantee": guarantee_text(channel.guarantee, (), simulation=False, notes=notes)}


def protects_participation(channel: Channel | ChannelTable) -> bool:
    """Return whether NULL is an answer like any other to a channel, or to one of a table."""
    if isinstance(channel, ChannelTable):
        return channel.protects_participation
    return channel.participation == "protected"


def refuse_missing(missing: Sequence[ListName]) -> None:
    """Refuse lists that were taken from the answers, if there are any.

    Raises:
        SettingsError: naming them.
    """
    if not missing:
        return
    options = ", ".join(OPTIONS[name] for name in missing)
    files = " (or --assignment, which lists both)" if {"tasks", "workers"} & set(missing) else ""
    raise SettingsError(
        "labels, tasks and workers must be listed before anyone answers: a list taken from the answers shows who "
        "answered and what",
        value=f"{join_words(missing)} taken from the answers",
        hint=f"Give {options}{files}. To look only, without any privacy: --lists-from-answers, or --seed for a "
        "simulation.",
    )
