"""Collection of report files: the checks of the service, for campaigns without one.

Files have no honest order. Equal copies count once. Of two different reports for one token, or with one report id, none
counts. No file is changed or deleted, and the result depends on the contents of the files only. After the closing of
the campaign exactly those reports count that counted then.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Self

from crowdveil.answers.ingest.csv_files import UTF8_MARK
from crowdveil.campaign.files.campaign_reports import (
    AcceptedReport,
    ExportedQuestion,
    read_accepted_report,
    write_questions,
)
from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.rules.canonical_json import canonical_bytes, parse_canonical
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.rules.report import MAX_OVERHEAD, ReportFile
from crowdveil.campaign.rules.token import token_hash
from crowdveil.errors import CampaignError, ReportsError, SettingsError
from crowdveil.files.atomic_write import Outputs, write_files, write_outputs
from crowdveil.files.csv_rows import csv_row
from crowdveil.files.filesystem import open_regular
from crowdveil.standalone.checks import HEX, MAX_SLOTS, SLOTS_PER_PART, fits

CLOSED_FILE = "closed.json"
FORMAT = "crowdveil-closed/1"
KIND = "closing of a campaign"
MAX_BYTES = 70 * MAX_SLOTS


@dataclass(frozen=True)
class Closing:
    """SHA-256 of each report that counted, hexadecimal and ascending."""

    reports: tuple[str, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the reports' SHA-256, in hexadecimal."""
        return sha256(b"".join(map(bytes.fromhex, self.reports))).hexdigest()

    @classmethod
    def read(cls, folder: CampaignFolder) -> Self | None:
        """Return the closing of a campaign; None while it is open.

        Raises:
            CampaignError: `closed.json` is damaged, or of another campaign.
        """
        try:
            with (folder.path / CLOSED_FILE).open("rb") as stream:
                fields = parse_canonical(stream.read(MAX_BYTES + 1), MAX_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CampaignError("file", f"{CLOSED_FILE} cannot be read: {error.strerror or error}.") from error
        form = {"format": FORMAT, "campaign": folder.campaign.name, "reports": [HEX]}
        if not fits(fields, form) or fields["reports"] != sorted(set(fields["reports"])):
            raise CampaignError("closed", f"{CLOSED_FILE} does not belong to this campaign.")
        return cls(tuple(fields["reports"]))

    def write(self, folder: CampaignFolder) -> Path:
        """Write `closed.json` beside the campaign; return its path.

        Raises:
            SettingsError: the folder holds another file of this name, or cannot be written.
        """
        fields = {"format": FORMAT, "campaign": folder.campaign.name, "reports": list(self.reports)}
        write_files(folder.path, {CLOSED_FILE: canonical_bytes(fields)}, kind=KIND)
        return folder.path / CLOSED_FILE


LIST_FILE = "files.csv"
LIST_KIND = "list of report files"
ACCEPTED, COPY = "accepted", "copy of an accepted file"
LATE = "late: the campaign was closed"
TWO_REPORTS, SAME_ID = "two reports for one token: neither counts", "two reports with one id: neither counts"


@dataclass(frozen=True, kw_only=True)
class CollectedFiles:
    """Reports in the files of a folder.

    Attributes:
        accepted: reports that count, in the order of slots; through a relay slots are numbers without meaning.
        states: state of each file by name, in the order of names.
        closing: SHA-256 of the accepted files.
        refused: number of sealed parts of batches that cannot be opened, hold another symbol, or came twice.
    """

    accepted: tuple[AcceptedReport, ...]
    states: Mapping[str, str]
    closing: Closing
    refused: int = 0


def read_report_files(folder: Path, campaign: CampaignFolder) -> CollectedFiles:
    """Return the reports in the files of a folder; subfolders, hidden files and the campaign's own files are left out.

    Raises:
        ReportsError: the folder cannot be read, or lacks a report that counted at the closing.
        CampaignError: the campaign's folder is invalid.
    """
    issued = _IssuedLinks(campaign)
    states: dict[str, str] = {}
    reports: dict[str, ReportFile] = {}
    for path in _possible_report_files(folder, campaign):
        found = _report_or_refusal(path, issued)
        if isinstance(found, str):
            states[path.name] = found
        else:
            reports[path.name] = found
    hashes = {name: sha256(one.to_bytes(campaign.campaign)).hexdigest() for name, one in reports.items()}
    closed = Closing.read(campaign)
    states |= (
        _state_of_each_report_file(reports) if closed is None else _file_states_after_closing(closed, reports, hashes)
    )
    counted = {reports[name].token.slot: name for name, state in states.items() if state == ACCEPTED}
    return CollectedFiles(
        accepted=tuple(issued.checked_report(reports[name]) for _, name in sorted(counted.items())),
        states=dict(sorted(states.items())),
        closing=Closing(tuple(sorted(hashes[name] for name in counted.values()))),
    )


def close_by_report_files(folder: Path, campaign: CampaignFolder) -> CollectedFiles:
    """Close a campaign without a service: store which reports count; return them. A second closing changes nothing.

    Raises:
        ReportsError, CampaignError: as `read_report_files`, and where no file is a report that counts.
        SettingsError: the campaign has a service, or `closed.json` cannot be written.
    """
    if campaign.campaign.url is not None:
        raise SettingsError(
            "report files are closed for a campaign without a service",
            value=campaign.campaign.url,
            hint="Close it without report files.",
        )
    collected = read_report_files(folder, campaign)
    if not collected.accepted:
        hint = "Give the folder of the files that workers handed in, not that of collect."
        raise ReportsError("a file must be a report that counts", source=str(folder), hint=hint)
    if Closing.read(campaign) is None:
        collected.closing.write(campaign)
    return collected


def write_collections(
    directory: str | PathLike[str], campaign: Campaign, collected: CollectedFiles
) -> list[ExportedQuestion]:
    """Write the folder of each question that `infer` reads, and `files.csv` (file, state); return the collections.

    The record of `files.csv` has the digest of the reports that count, as a closing of the campaign has it.

    Raises:
        SettingsError: fewer reports than the campaign's least number, or the folder holds other files of these names.
    """
    exported = write_questions(directory, campaign, collected.accepted, replace=True)
    rows = [("file", "state"), *collected.states.items()]
    digest = collected.closing.digest
    outputs = Outputs(folder=Path(directory), names=(LIST_FILE,), kind=LIST_KIND, reports_sha256=digest)
    write_outputs(outputs, {LIST_FILE: "".join(csv_row(row) + "\n" for row in rows)})
    return exported


def _possible_report_files(folder: Path, campaign: CampaignFolder) -> Iterable[Path]:
    """Return the files of a folder that may be reports, in the order of names."""
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and not path.is_dir())
    except OSError as error:
        reason = error.strerror or str(error)
        raise ReportsError(
            "the folder of report files must be readable",
            source=str(folder),
            examples=reason,
            hint="Give the folder of the files that workers handed in.",
        ) from error
    own = {"campaign.json", "tokens.json", "links.csv", "links.html", "workers.csv", "campaign.toml", CLOSED_FILE}
    own |= {"plan.json", "prior.csv"}
    same = folder.resolve() == campaign.path.resolve()
    return [path for path in paths if not (same and path.name in own)]


class _IssuedLinks:
    """Links and assignment of a campaign; each assignment part is read once."""

    def __init__(self, folder: CampaignFolder) -> None:
        self.campaign = folder.campaign
        self._entries = {entry.hash: entry for entry in folder.tokens}
        self._part = cache(folder.part)

    def checked_report(self, report: ReportFile) -> AcceptedReport:
        """Return a report after the checks of the service: token and body.

        Raises:
            CampaignError: token, link-revoked, length, symbol, level.
        """
        entry = self._entries.get(token_hash(self.campaign.digest, report.token))
        if entry is None:
            raise CampaignError("token", "no link of this campaign has this token.")
        if entry.revoked:
            raise CampaignError("link-revoked", "the link of this report was replaced.")
        slot = report.token.slot
        tasks = self._part(slot // SLOTS_PER_PART).tasks(slot)
        return read_accepted_report(self.campaign, slot, tasks, report.body)


def _report_or_refusal(path: Path, issued: _IssuedLinks) -> ReportFile | str:
    """Return the report in a file, or the reason why it is none of this campaign.

    A report has no white space: what copying as text, an editor or a mail program adds is left out.
    """
    try:
        with open_regular(path) as stream:
            data = stream.read(3 * issued.campaign.body_bytes + 2 * MAX_OVERHEAD)
        report = ReportFile.from_bytes(b"".join(data.removeprefix(UTF8_MARK).split()), issued.campaign)
        issued.checked_report(report)
    except CampaignError as error:
        return f"refused ({error.defect})"
    except OSError as error:
        return f"refused ({error.strerror or 'not a regular file'})"
    return report


def _file_states_after_closing(
    closed: Closing, reports: Mapping[str, ReportFile], hashes: Mapping[str, str]
) -> dict[str, str]:
    """Return the state of each valid file after the closing.

    Raises:
        ReportsError: a report that counted is missing.
    """
    missing = set(closed.reports) - set(hashes.values())
    if missing:
        raise ReportsError(
            f"the folder must hold all {len(closed.reports):,} reports that counted when the campaign was closed",
            examples=f"{len(missing):,} missing",
            hint="Give the folder of all files that workers handed in.",
        )
    counted = {name: one for name, one in reports.items() if hashes[name] in closed.reports}
    others = _state_of_each_report_file({name: one for name, one in reports.items() if name not in counted})
    left = {name: LATE if state in (ACCEPTED, COPY) else state for name, state in others.items()}
    return _state_of_each_report_file(counted) | left


def _state_of_each_report_file(reports: Mapping[str, ReportFile]) -> dict[str, str]:
    """Return the state of each valid file: accepted, a copy, or in conflict with another one."""
    of_token: dict[object, set[ReportFile]] = defaultdict(set)
    of_id: dict[str, set[ReportFile]] = defaultdict(set)
    for report in reports.values():
        of_token[report.token].add(report)
        of_id[report.report].add(report)
    states: dict[str, str] = {}
    counted: set[ReportFile] = set()
    for name, report in sorted(reports.items()):
        if len(of_token[report.token]) > 1:
            states[name] = TWO_REPORTS
        elif len(of_id[report.report]) > 1:
            states[name] = SAME_ID
        else:
            states[name] = COPY if report in counted else ACCEPTED
            counted.add(report)
    return states
