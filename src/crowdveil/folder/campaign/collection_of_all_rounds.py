"""Reports of all rounds of a campaign as one collection: each through the channel of its own round.

A worker has one name in all rounds, and is asked a task in one of them only. The collection of the rounds before a
later one lies in the folder `earlier` beside its `campaign.json`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.campaign.document import Campaign
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, channel_indices, table_by_cell
from crowdveil.data.assignment import Assignment
from crowdveil.data.facts.asked import STATED
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.output_record import RECORD_FILE, read_record
from crowdveil.folder.crowd import REPORTS_FILE
from crowdveil.folder.evidence import read_evidence

EARLIER_FOLDER = "earlier"
MOST_ENTRIES = 3_000_000
"""Largest number of workers times tasks of all rounds: readers take no longer file of their table."""
Names = Iterable[Any]


class CollectedReports(NamedTuple):
    """Non-NULL reports, their channels, and the assigned cells of the workers who reported."""

    reports: Reports
    channel: Channel | ChannelTable
    assignment: Assignment

    @property
    def channels_as_table(self) -> ChannelTable:
        """The channels as a table."""
        one = self.channel
        return one if isinstance(one, ChannelTable) else ChannelTable(channels=(one,), choice=((0,),))


def read_collection(folder: Path, name: str, digest: str | None = None) -> CollectedReports:
    """Return the collection of a campaign, of all its rounds so far.

    Args:
        folder: as `crowdveil campaign export` and `collect` write it.
        name: name of the campaign.
        digest: `Evidence.sha256` that it must have; None for any.

    Raises:
        ReportsError: the reports are missing, were changed, or are those of another campaign.
        CertificateError: as `read_evidence`.
    """
    evidence = read_evidence(folder / REPORTS_FILE)
    found = None if evidence.collection is None else evidence.collection.campaign
    if found != name or evidence.channel is None or evidence.assignment is None:
        raise ReportsError(
            "the reports must be those of the round before, as they were exported or collected",
            source=str(folder),
            examples=f"campaign {found}, not {name}",
            hint="Give the results that `crowdveil infer` wrote from the reports of that round."
            if digest
            else f"The folder {EARLIER_FOLDER} must be as `crowdveil campaign next-round` wrote it.",
        )
    if digest not in (None, evidence.sha256):
        raise ReportsError(
            "the truths must be inferred from all reports of the round before, as they are",
            source=str(folder),
            hint="Run `crowdveil infer` again on these reports, without options of reading.",
        )
    return CollectedReports(evidence.reports, evidence.channel, evidence.assignment)


def read_earlier_rounds(folder: Path, campaign: Campaign) -> CollectedReports | None:
    """Return the collection of the rounds before a campaign in a folder; None for a first round.

    Raises:
        ReportsError, CertificateError: as `read_collection`.
    """
    return read_collection(folder / EARLIER_FOLDER, campaign.earlier[-1].campaign) if campaign.earlier else None


def refuse_if_table_too_large(workers: int, tasks: int) -> None:
    """Refuse rounds whose table would be too large to be read.

    Raises:
        SettingsError: there are more than `MOST_ENTRIES`.
    """
    if workers * tasks > MOST_ENTRIES:
        raise SettingsError(
            f"a campaign in rounds has at most {MOST_ENTRIES:,} pairs of a worker and a task",
            value=f"{workers:,} workers and {tasks:,} tasks",
            hint="Make a campaign of its own for the doubtful tasks, with campaign new.",
        )


def delete_earlier_rounds_and_list_kept(folder: Path) -> tuple[Path, ...]:
    """Delete the copied reports of earlier rounds in the folder of a later one; return those that stay.

    A file that was changed after it was copied stays, as do all others, and one that cannot be deleted.

    Raises:
        SettingsError: the record of the copy is damaged.
    """
    copied = folder / EARLIER_FOLDER
    left = []
    for path, entry in ((copied / entry.name, entry) for entry in read_record(copied)):
        try:
            if entry.is_file_unchanged(path):
                path.unlink()
            else:
                left.append(path)
        except FileNotFoundError:
            continue
        except OSError:
            left.append(path)
    if not left:
        (copied / RECORD_FILE).unlink(missing_ok=True)
    return tuple(left)


def collection_of_both_rounds(first: CollectedReports, second: CollectedReports) -> CollectedReports:
    """Return the collection of both rounds; `second` lists all tasks.

    Raises:
        ReportsError: a task that `second` does not list, or a worker who was asked a task in both.
        SettingsError: as `refuse_if_table_too_large`.
    """
    tasks, rounds = second.reports.tasks, (first, second)
    names = {str(name) for one in rounds for name in one.reports.workers}
    refuse_if_table_too_large(len(names), len(tasks))
    workers = np.array(sorted(names, key=lambda name: (len(name), name)), dtype=object)
    chosen = np.zeros((len(workers), len(tasks)), dtype=np.int64)
    asked, start = [], 0
    for one in rounds:
        own = one.assignment
        task, worker = (
            _codes_in_list_of_all(own.tasks, tasks, "task")[own.task],
            _codes_in_list_of_all(own.workers, workers, "worker")[own.worker],
        )
        chosen[worker, task] = (
            start + channel_indices(one.channels_as_table, own.tasks, own.workers)[own.worker, own.task]
        )
        asked.append((task, worker))
        start += len(one.channels_as_table.channels)
    channels = [channel for one in rounds for channel in one.channels_as_table.channels]
    table = table_by_cell(channels, chosen, workers, tasks)
    sent = [_codes_in_lists_of_all_rounds(one.reports, table, tasks, workers) for one in rounds]
    task, worker, value = (np.concatenate(column) for column in zip(*sent, strict=True))
    reports = Reports(
        task.astype(np.int32), worker.astype(np.int32), value, tasks, workers, table.report_alphabet, STATED
    )
    cells = (np.concatenate(column) for column in zip(*asked, strict=True))
    return CollectedReports(reports, table, Assignment(np.asarray(tasks), workers, *cells))


def _codes_in_lists_of_all_rounds(
    reports: Reports, table: ChannelTable, tasks: Names, workers: Names
) -> tuple[NDArray[Any], ...]:
    """Return the codes of task, worker and report symbol of each report, in the lists of all rounds."""
    assert reports.alphabet is not None
    # A symbol of channels without a cell is not in the table, and no report has it.
    code_of = {name: code for code, name in enumerate(table.report_alphabet.names)}
    symbols = np.array([code_of.get(name, -1) for name in reports.alphabet.names])
    lists = (
        _codes_in_list_of_all(reports.tasks, tasks, "task"),
        _codes_in_list_of_all(reports.workers, workers, "worker"),
        symbols,
    )
    columns = (np.asarray(column) for column in (reports.task, reports.worker, reports.value))
    return tuple(codes[column] for codes, column in zip(lists, columns, strict=True))


def _codes_in_list_of_all(own: Iterable[Any], every: Iterable[Any], role: str) -> NDArray[np.int64]:
    """Return the code of each name in the list of all."""
    code_of = {str(name): code for code, name in enumerate(every)}
    names = list(map(str, own))
    unlisted = [name for name in names if name not in code_of]
    if unlisted:
        raise ReportsError(
            f"a later round must list every {role} of the rounds before", source=REPORTS_FILE, examples=unlisted[0]
        )
    return np.array([code_of[name] for name in names], dtype=np.int64)
