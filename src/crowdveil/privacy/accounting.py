"""Privacy accounting: claimed and exact loss per cell and per worker, for one campaign and over rounds.

Mechanisms state their guarantees (`Mechanism.guarantees`); they are composed here by basic composition (epsilons add),
which is tight for pure local differential privacy.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.guarantee import Guarantee, Participation, Unit
from crowdveil.channels.rounding import format_bound, sum_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import Mechanism

MAX_COUNT = 10**12
"""Largest number of tasks or rounds of an account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Privacy loss of one unit in one campaign or over rounds.

    Attributes:
        mechanism: name of the mechanism.
        unit: "cell": one worker's answer to one task; "worker": all answers of one worker.
        participation: whether NULL and an answer are neighbours.
        cells: cells one worker sends in a campaign, NULL cells included where participation is protected.
        rounds: number of campaigns on the same unit, with independent randomness.
        claimed: claim of the source, or the requested epsilon, composed, in nats.
        exact: exact loss for one campaign, a sound bound for more; infinity is no guarantee.
        delta: additive slack.
        reason: why `exact` differs from `claimed`; may be empty.
    """

    mechanism: str
    unit: Unit
    participation: Participation
    cells: int
    rounds: int
    claimed: float
    exact: float
    delta: float
    reason: str


def account(mechanism: Mechanism, *, tasks: int, rounds: int = 1) -> tuple[Account, ...]:
    """Return the privacy loss per cell and per worker in one campaign, and over all rounds if there are several.

    Args:
        mechanism: mechanism of every worker's device.
        tasks: cells of one worker: all tasks of the campaign where participation is protected (NULL is sent too); where
            it is public, the most tasks one worker answers.
        rounds: number of campaigns on the same workers and tasks.

    Returns:
        Rows cell, worker; then, if rounds > 1, cell and worker over all rounds.

    Raises:
        SettingsError: tasks or rounds below 1 or above `MAX_COUNT`, or more tasks than the guarantee covers.
    """
    for name, count in (("tasks", tasks), ("rounds", rounds)):
        if not 1 <= count <= MAX_COUNT:
            raise SettingsError(f"{name} must be from 1 to {MAX_COUNT:,}", value=count, hint="Give another number.")
    return tuple(
        _account_row(mechanism, guarantee, tasks, count)
        for count in ((1, rounds) if rounds > 1 else (1,))
        for guarantee in mechanism.guarantees_over(tasks, count)
    )


def _account_row(mechanism: Mechanism, total: Guarantee, cells: int, rounds: int) -> Account:
    requested = sum_rounded_up([(mechanism.epsilon, rounds * (cells if total.unit == "worker" else 1))])
    return Account(
        mechanism=mechanism.name,
        unit=total.unit,
        participation=total.participation,
        cells=cells,
        rounds=rounds,
        claimed=requested if total.claimed is None else total.claimed,
        exact=total.epsilon,
        delta=total.delta,
        reason=total.reason,
    )


def account_channel_table(
    table: ChannelTable, *, tasks: Collection[Any], workers: Collection[Any], assignment: Assignment | None = None
) -> tuple[Account, Account]:
    """Return the largest privacy loss of a cell and of a worker.

    Args:
        table: channel of each cell.
        tasks, workers: names; every worker reports on every task unless tasks are assigned.
        assignment: cells that report.

    Raises:
        SettingsError: a name that the table does not list.
    """
    of_task, of_worker = table.groups(tasks, workers)
    choice = np.array(table.choice)
    cells = np.zeros((len(workers), len(table.channels)))
    if assignment is None:
        for task_group, count in enumerate(np.bincount(of_task, minlength=choice.shape[1])):
            cells[np.arange(len(workers)), choice[of_worker, task_group]] += count
    else:
        task, worker = np.divmod(assignment.recoded_cells(tasks, workers), max(len(workers), 1))
        np.add.at(cells, (worker, choice[of_worker[worker], of_task[task]]), 1)
    epsilons = np.array([channel.epsilon for channel in table.channels])
    worst, loss = _worker_with_largest_loss(cells, epsilons)
    guarantee = table.guarantee
    spread = (
        f"from {format_bound(epsilons.min())} to {format_bound(epsilons.max())} per cell, " if len(epsilons) > 1 else ""
    )
    rows = (("cell", guarantee.epsilon, 1), ("worker", loss, int(cells[worst].sum())))
    return tuple(  # type: ignore[return-value]
        Account(
            mechanism=table.mechanism,
            unit=unit,  # type: ignore[arg-type]
            participation=guarantee.participation,
            cells=max(count, 1),
            rounds=1,
            claimed=epsilon,
            exact=epsilon,
            delta=0.0,
            reason=f"{spread}the worst {unit} is shown" if spread else "",
        )
        for unit, epsilon, count in rows
    )


def _worker_with_largest_loss(cells: NDArray[np.float64], epsilons: NDArray[np.float64]) -> tuple[int, float]:
    """Return the worker with the largest loss and that loss, rounded up.

    Args:
        cells: number of cells, indexed [worker, channel].
        epsilons: epsilon of each channel, shape (channels,).
    """
    counts, first = np.unique(cells.astype(int), axis=0, return_index=True)
    exact = [sum_rounded_up(zip(epsilons.tolist(), row, strict=True)) for row in counts.tolist()]
    worst = max(range(len(exact)), key=lambda row: (exact[row], -first[row]))
    return int(first[worst]), exact[worst]
