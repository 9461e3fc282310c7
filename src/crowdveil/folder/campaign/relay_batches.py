"""Batches of a relay: opening with the curator's key, the checks of the service, and the folder that `infer` reads.

The result depends on the set of reports only. Workers get numbers in the order of their reports' content, which says
nothing about who they are. Of single cells, the numbers link nothing: the k-th report on one task and the k-th on
another are of different workers. A cell that is refused counts as no answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from crowdveil.campaign.batch import SUFFIX, most_batch_bytes, parse_batch
from crowdveil.campaign.document import Campaign
from crowdveil.campaign.folder import CAMPAIGN_FILE
from crowdveil.campaign.report_body import decode
from crowdveil.campaign.sealed_body import body_parts, relay_of
from crowdveil.data.ingest.csv_files import csv_row
from crowdveil.data.reports import Reports
from crowdveil.errors import CampaignError, ReportsError
from crowdveil.files.atomic_write import write_files
from crowdveil.files.filesystem import open_regular
from crowdveil.folder.campaign.curator_key import require_sealing
from crowdveil.folder.campaign.export import AcceptedReport, refuse_other_collections, write_campaign_reports
from crowdveil.folder.campaign.report_files import ACCEPTED, COPY, LIST_FILE, LIST_KIND
from crowdveil.folder.crowd import CERTIFICATE_FILE, CROWD_FILE, REPORTS_FILE
from crowdveil.folder.evidence import WITHOUT_NAMES

if TYPE_CHECKING:
    from crowdveil.sealing import PrivateKey


OPENED_FILES = (CERTIFICATE_FILE, CAMPAIGN_FILE, CROWD_FILE, REPORTS_FILE)
"""Files that `write_opened` writes for `infer`."""


@dataclass(frozen=True, kw_only=True)
class OpenedBatches:
    """Result of `read_batches`.

    Attributes:
        accepted: reports with anonymous numbers.
        states: state of each file by name, in the order of names.
        refused: number of sealed parts that could not be opened, hold another symbol, or came twice.
        digest: SHA-256 of the sorted SHA-256 of the accepted batches, in hexadecimal.
    """

    accepted: tuple[AcceptedReport, ...]
    states: Mapping[str, str]
    refused: int
    digest: str


def read_batches(folder: Path, campaign: Campaign, key: "PrivateKey") -> OpenedBatches:
    """Return the reports in the batches of a folder.

    Raises:
        ReportsError: the folder cannot be read, or there are more reports than links.
        CampaignError: relay, if the campaign names none.
    """
    relay_of(campaign)
    states, batches = _batches(folder, campaign)
    shapes = body_parts(campaign, bytes(campaign.body_bytes))
    columns: list[list[tuple[int, ...]]] = [[] for _ in shapes]
    most = len({sealed for parts in batches.values() for sealed in parts[0]})
    if most > campaign.slots:
        raise ReportsError(
            f"a campaign with {campaign.slots:,} links has as many reports at most",
            source=str(folder),
            examples=f"{most:,} reports",
            hint="The relay invented some. None of them is used.",
        )
    seen: set[bytes] = set()
    refused = 0
    for _, parts in sorted(batches.items()):
        for task, column in enumerate(parts):
            for sealed in column:
                codes = None if sealed in seen else _opened(campaign, key, *shapes[task], sealed)
                seen.add(sealed)
                if codes is None:
                    refused += 1
                else:
                    columns[task].append(codes)
    digests = sorted(sha256(str(name).encode()).hexdigest() for name in batches)
    return OpenedBatches(
        accepted=_anonymous_reports([sorted(column) for column in columns]),
        states=states,
        refused=refused,
        digest=sha256("".join(digests).encode()).hexdigest(),
    )


def _batches(folder: Path, campaign: Campaign) -> tuple[dict[str, str], dict[str, list[tuple[bytes, ...]]]]:
    """Return the state of each file, and the sealed parts of each batch by the SHA-256 of its content."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX and not path.name.startswith("."))
    except OSError as error:
        raise ReportsError(
            "the folder of batches must be readable", source=str(folder), examples=error.strerror or str(error)
        ) from error
    states: dict[str, str] = {}
    found: dict[str, list[tuple[bytes, ...]]] = {}
    for path in paths:
        try:
            with open_regular(path) as stream:
                data = stream.read(most_batch_bytes(campaign) + 1)
            name = sha256(data).hexdigest()
            states[path.name] = COPY if name in found else ACCEPTED
            found[name] = parse_batch(campaign, data)
        except CampaignError as error:
            states[path.name] = f"refused ({error.defect})"
        except OSError as error:
            states[path.name] = f"refused ({error.strerror or 'no regular file'})"
    return states, found


def _opened(campaign: Campaign, key: "PrivateKey", info: bytes, shape: bytes, sealed: bytes) -> tuple[int, ...] | None:
    """Return the codes of a sealed part; None if it cannot be opened, or holds what is no report symbol."""
    try:
        opened: bytes = require_sealing().open_part(key, info, sealed)
        if len(opened) != len(shape):
            return None
        body = opened.ljust(campaign.body_bytes, b"\0")
        return decode(body, campaign, 0, range(campaign.cells))[: len(shape) // campaign.symbol_bytes]
    except CampaignError:
        return None


def _anonymous_reports(columns: list[list[tuple[int, ...]]]) -> tuple[AcceptedReport, ...]:
    """Return reports with anonymous numbers: whole ones, or for the k-th number the k-th cell of every task."""
    if len(columns) == 1 and columns[0] and len(columns[0][0]) > 1:
        tasks = range(len(columns[0][0]))
        return tuple(AcceptedReport(number, tasks, codes) for number, codes in enumerate(columns[0]))
    reports = []
    for number in range(max(map(len, columns))):
        cells = [(task, column[number][0]) for task, column in enumerate(columns) if number < len(column)]
        reports.append(AcceptedReport(number, [task for task, _ in cells], [code for _, code in cells]))
    return tuple(reports)


def write_opened(directory: str | PathLike[str], campaign: Campaign, opened: OpenedBatches) -> Reports:
    """Write the folder that `infer` reads, and `files.csv` (file, state); return the non-NULL reports.

    Raises:
        SettingsError: fewer reports than the campaign's least number, or the folder holds other files of these names.
    """
    refuse_other_collections(Path(directory), campaign)
    mark = WITHOUT_NAMES if relay_of(campaign).unit == "cell" else ""
    reports = write_campaign_reports(directory, campaign, opened.accepted, replace=True, mark=mark)
    rows = [("file", "state"), *opened.states.items()]
    write_files(directory, {LIST_FILE: "".join(csv_row(row) + "\n" for row in rows)}, kind=LIST_KIND)
    return reports
