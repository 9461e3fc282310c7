"""Batches of a relay: opening with the curator's key, and the checks of the service.

The result depends on the set of reports only. Workers get numbers in the order of their reports' content, which says
nothing about who they are. Of single cells, the numbers link nothing: the k-th report on one task and the k-th on
another are of different workers. A cell that is refused counts as no answer. A batch is stored under its SHA-256; a
file of another content is damaged, and none of its reports counts.
"""

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from crowdveil.campaign.files.campaign_reports import AcceptedReport
from crowdveil.campaign.files.curator_key import require_sealing
from crowdveil.campaign.files.report_files import ACCEPTED, COPY, Closing, CollectedFiles
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.rules.report import SUFFIX, body_parts, decode_body, most_batch_bytes, parse_batch, relay_of
from crowdveil.errors import CampaignError, ReportsError
from crowdveil.files.filesystem import open_regular

if TYPE_CHECKING:
    from crowdveil.campaign.relay.sealing import PrivateKey

DAMAGED = "refused (its SHA-256 is not its name)"
"""State of a file that is not as the relay's other side stored it."""


def read_batches(folder: Path, campaign: Campaign, key: "PrivateKey") -> CollectedFiles:
    """Return the reports in the batches of a folder.

    Raises:
        ReportsError: the folder cannot be read, or there are more reports than links.
        CampaignError: relay, if the campaign names none.
    """
    relay_of(campaign)
    states, batches = _read_batches(folder, campaign)
    shapes = body_parts(campaign, bytes(campaign.body_bytes))
    columns: list[list[tuple[int, ...]]] = [[] for _ in shapes]
    most = len({sealed for parts in batches.values() for sealed in parts[0]})
    if most > campaign.slots:
        raise ReportsError(
            f"a campaign with {campaign.slots:,} links has at most as many reports",
            source=str(folder),
            examples=f"{most:,} reports",
            hint="The relay invented some. None of them is used.",
        )
    seen: set[bytes] = set()
    refused = 0
    for _, parts in sorted(batches.items()):
        for task, column in enumerate(parts):
            for sealed in column:
                codes = None if sealed in seen else _codes_of_sealed_part(campaign, key, *shapes[task], sealed)
                seen.add(sealed)
                if codes is None:
                    refused += 1
                else:
                    columns[task].append(codes)
    return CollectedFiles(
        accepted=_number_shuffled_reports([sorted(column) for column in columns]),
        states=states,
        closing=Closing(tuple(sorted(batches))),
        refused=refused,
    )


def _read_batches(folder: Path, campaign: Campaign) -> tuple[dict[str, str], dict[str, list[tuple[bytes, ...]]]]:
    """Return the state of each file, and the sealed parts of each batch by the SHA-256 of its content."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX and not path.name.startswith("."))
    except OSError as error:
        raise ReportsError(
            "the folder of batches must be readable",
            source=str(folder),
            examples=error.strerror or str(error),
            hint="Give the folder that `crowdveil campaign receive` or `relay` wrote.",
        ) from error
    states: dict[str, str] = {}
    found: dict[str, list[tuple[bytes, ...]]] = {}
    others: dict[str, str] = {}
    for path in paths:
        try:
            with open_regular(path) as stream:
                data = stream.read(most_batch_bytes(campaign) + 1)
            name = sha256(data).hexdigest()
            if path.stem == name:
                found[name] = parse_batch(campaign, data)
                states[path.name] = ACCEPTED
            else:
                others[path.name] = name
        except CampaignError as error:
            states[path.name] = f"refused ({error.defect})"
        except OSError as error:
            states[path.name] = f"refused ({error.strerror or 'not a regular file'})"
    states |= {file: COPY if name in found else DAMAGED for file, name in others.items()}
    return dict(sorted(states.items())), found


def _codes_of_sealed_part(
    campaign: Campaign, key: "PrivateKey", info: bytes, shape: bytes, sealed: bytes
) -> tuple[int, ...] | None:
    """Return the codes of a sealed part; None if it cannot be opened, or holds what is no report symbol."""
    try:
        opened: bytes = require_sealing().decrypt_part(key, info, sealed)
        if len(opened) != len(shape):
            return None
        body = opened.ljust(campaign.body_bytes, b"\0")
        return decode_body(body, campaign, 0, range(campaign.cells))[: len(shape) // campaign.symbol_bytes]
    except CampaignError:
        return None


def _number_shuffled_reports(columns: list[list[tuple[int, ...]]]) -> tuple[AcceptedReport, ...]:
    """Return reports with anonymous numbers: whole ones, or for the k-th number the k-th cell of every task."""
    if len(columns) == 1 and columns[0] and len(columns[0][0]) > 1:
        tasks = range(len(columns[0][0]))
        return tuple(AcceptedReport(number, tasks, codes) for number, codes in enumerate(columns[0]))
    reports = []
    for number in range(max(map(len, columns))):
        cells = [(task, column[number][0]) for task, column in enumerate(columns) if number < len(column)]
        reports.append(AcceptedReport(number, [task for task, _ in cells], [code for _, code in cells]))
    return tuple(reports)
