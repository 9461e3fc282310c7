"""What cells go through beyond one mechanism for all: cuts dealt to workers, channels by name, assigned tasks."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.assignment import Assignment
from crowdveil.data.ingest.csv_files import read_csv, read_header
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import Mechanism
from crowdveil.workflow.mechanism_settings import MechanismSettings, build_mechanism

UNPROTECTED = "unprotected"
"""In place of an epsilon: these cells are sent as they are. It must be said; nothing is unprotected by omission."""
KNOWN_COLUMNS = ("worker", "task", "epsilon", "cuts")
CUTS_APART = "|"


@dataclass(frozen=True, kw_only=True, eq=False)
class Setup:
    """What every cell goes through, and which cells report.

    Attributes:
        mechanism: what was asked for; the command's own epsilon and first cuts.
        table: which channel each cell goes through; None if all go through the mechanism.
        assignment: the cells that report; None if all do.
    """

    mechanism: Mechanism
    table: ChannelTable | None = None
    assignment: Assignment | None = None

    @property
    def channel(self) -> Channel | ChannelTable | None:
        """What cells go through; None where they are not perturbed one by one."""
        return self.mechanism.channel() if self.table is None else self.table


def set_up(
    wanted: MechanismSettings,
    alphabet: Alphabet,
    answers: Reports,
    *,
    channels: Path | None = None,
    assignment: Assignment | None = None,
) -> Setup:
    """Build the mechanism and, where cells differ, the table of channels.

    Args:
        wanted: the mechanism.
        alphabet: what an answer can be.
        answers: for their lists of tasks and workers only, which are public or make the run promise nothing.
        channels: CSV file with a column `worker` or `task` and `epsilon` or `cuts` (or both) of each.
        assignment: the cells that report; None for all.

    Raises:
        SettingsError: a mechanism without a channel per cell, cuts dealt and a file of channels, or what a mechanism
            refuses.
        ReportsError: a damaged file.
    """
    mechanism = build_mechanism(wanted, alphabet, tasks=len(answers.tasks))
    if channels is not None and wanted.dealt_cuts:
        raise SettingsError("cuts are dealt in turn or given by name, not both", value=str(channels))
    table = None
    if wanted.dealt_cuts:
        table = _dealt(wanted, alphabet, answers)
    elif channels is not None:
        table = read_table(channels, wanted, alphabet, tasks=len(answers.tasks))
    if (table is not None or assignment is not None) and mechanism.channel() is None:
        raise SettingsError(
            "only mechanisms with a channel per cell go with assigned tasks or channels by name",
            value=mechanism.name,
            hint="Use randomized-response, quantized-response, designed, one-layer or laplace.",
        )
    return Setup(mechanism=mechanism, table=table, assignment=assignment)


def read_table(path: Path, wanted: MechanismSettings, alphabet: Alphabet, *, tasks: int) -> ChannelTable:
    """Read which settings each worker (or task) has, and build one channel for each distinct pair of them.

    Raises:
        ReportsError: not one of the columns `worker` and `task`, neither `epsilon` nor `cuts`, an unknown column, a
            name that is empty or repeated, or an epsilon that is no number.
        SettingsError: what the mechanism refuses.
    """
    source, header = str(path), read_header(path)
    unknown = [name for name in header if name not in KNOWN_COLUMNS]
    whose = [name for name in ("worker", "task") if name in header]
    settings = [name for name in ("epsilon", "cuts") if name in header]
    if unknown or len(whose) != 1 or not settings:
        raise ReportsError(
            "a file of channels has the column worker or task, and epsilon or cuts",
            source=source,
            examples=", ".join(header),
        )
    columns = read_csv(path, header)
    names = [str(name) for name in columns[whose[0]].to_pylist()]
    if "" in names or len(set(names)) != len(names):
        raise ReportsError(f"every {whose[0]} stands in one row, by name", source=source)
    rows = list(zip(*([str(cell) for cell in columns[name].to_pylist()] for name in settings), strict=True))
    kinds = {row: index for index, row in enumerate(dict.fromkeys(rows))}
    built = [_one(dict(zip(settings, row, strict=True)), wanted, alphabet, tasks, source) for row in kinds]
    groups = {name: kinds[row] for name, row in zip(names, rows, strict=True)}
    make = ChannelTable.by_worker if whose[0] == "worker" else ChannelTable.by_task
    return make(built, groups)


def _one(row: dict[str, str], wanted: MechanismSettings, alphabet: Alphabet, tasks: int, source: str) -> Channel:
    """Return the channel of one row; what is left empty is the command's own."""
    changes: dict[str, Any] = {}
    epsilon = row.get("epsilon", "")
    if epsilon == UNPROTECTED:
        return Channel.identity(alphabet, "public")
    if epsilon:
        try:
            changes["epsilon"] = float(epsilon)
        except ValueError as error:
            raise ReportsError(
                f"an epsilon is a number, or {UNPROTECTED!r} where answers are sent as they are",
                source=source,
                examples=repr(epsilon),
            ) from error
    if row.get("cuts"):
        changes["cuts"] = tuple(row["cuts"].split(CUTS_APART))
    return _channel(build_mechanism(replace(wanted, **changes), alphabet, tasks=tasks))


def _dealt(wanted: MechanismSettings, alphabet: Alphabet, answers: Reports) -> ChannelTable:
    """Deal cuts to the workers in the order of their list."""
    built = [
        _channel(build_mechanism(replace(wanted, cuts=cuts), alphabet, tasks=len(answers.tasks)))
        for cuts in wanted.dealt_cuts
    ]
    groups = {str(name): place % len(built) for place, name in enumerate(answers.workers)}
    if len(groups) < len(built):
        raise SettingsError("there must be a worker for each of the cuts", value=len(groups))
    return ChannelTable.by_worker(built, groups)


def _channel(mechanism: Mechanism) -> Channel:
    channel = mechanism.channel()
    if channel is None:
        raise SettingsError("only mechanisms with a channel per cell can differ by cell", value=mechanism.name)
    return channel
