"""Campaigns in adaptive rounds (experimental): later workers get thresholds nearest to the estimates so far.

The channel of a later cell is a function of earlier reports and public facts, with ratio at most e^epsilon. So one cell
changes one factor of the probability of all reports, and its guarantee is that of a campaign of one round. Proof:
docs/explanation/campaign-guarantees.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.guarantee import Participation
from crowdveil.channels.text_validation import first_confusable_pair
from crowdveil.data.identifiers import Identifiers
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import QuantizedResponse

_Key = tuple[str, Alphabet, Participation, tuple[str, ...], tuple[tuple[int, ...], ...]]

MAX_THRESHOLDS = 12
"""Largest number of distinct thresholds of one round, so that several rounds fit into a channel table."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Round:
    """Reports of some workers, and the channel of each of their cells."""

    reports: Reports
    channel: Channel | ChannelTable


def next_thresholds(
    tasks: Identifiers, truth: NDArray[np.float64], alphabet: Alphabet, *, most: int = MAX_THRESHOLDS
) -> dict[str, int]:
    """Return the threshold of each task nearest to its estimate, as the first code of the upper block, by task name.

    More than `most` distinct thresholds are rounded to `most` of their quantiles. Tasks without an estimate get the
    median of the others, or the middle of the scale.

    Args:
        tasks: names of the tasks.
        truth: estimates from all rounds so far, numbers or positions of ordered labels, shape (tasks,); nan if unknown.
        alphabet: possible answers.
        most: largest number of distinct thresholds.

    Raises:
        SettingsError: labels without an order, or `most` is below 1.
    """
    if not (alphabet.ordered and most >= 1):
        raise SettingsError(
            "thresholds need a scale or ordered labels, and their largest number must be at least 1", value=most
        )
    values, known = alphabet.values, ~np.isnan(truth)
    middle = float(np.median(truth[known])) if known.any() else float(values[0] + values[-1]) / 2
    edges = (values[:-1] + values[1:]) / 2
    cuts = _nearest(edges, np.where(known, truth, middle))
    if len(np.unique(cuts)) > most:
        few = np.unique(np.quantile(edges[cuts], (np.arange(most) + 0.5) / most, method="nearest"))
        cuts = _nearest(edges, few[_nearest(few, edges[cuts])])
    return {str(task): int(cut) + 1 for task, cut in zip(tasks, cuts, strict=True)}


def threshold_table(
    alphabet: Alphabet, epsilon: float, cuts: Mapping[str, int], *, participation: Participation = "protected"
) -> ChannelTable:
    """Return the table of quantized-response channels with one threshold per task.

    Raises:
        SettingsError: no task, or invalid settings of `QuantizedResponse`.
    """
    if not cuts:
        raise SettingsError("a round needs a cut for every task", value={})
    different = sorted(set(cuts.values()))
    channels = [
        QuantizedResponse(alphabet=alphabet, epsilon=epsilon, participation=participation, cuts=(cut,)).channel()
        for cut in different
    ]
    return ChannelTable.by_task(channels, {task: different.index(cut) for task, cut in cuts.items()})


def join_rounds(rounds: Sequence[Round]) -> Round:
    """Return all rounds as one: all reports, with the table of all channels.

    Raises:
        SettingsError: no round.
        ReportsError: rounds on different tasks, a worker of two rounds, confusable worker names, or reports in other
            symbols than their channel's.
        CertificateError: different answer alphabets, or more channels than a table holds.
    """
    if not rounds:
        raise SettingsError("there is nothing to join", value=0, hint="Give one round or more.")
    tables = [_table(one.channel) for one in rounds]
    tasks, workers = _shared_tasks(rounds), _all_workers(rounds)
    table = _joined_table(tables, tasks, rounds)
    place = {str(name): code for code, name in enumerate(tasks)}
    names = {name: code for code, name in enumerate(table.report_alphabet.names)}
    columns, first = [], 0
    for one, own in zip(rounds, tables, strict=True):
        sent = one.reports
        if sent.alphabet is None or sent.alphabet.names != own.report_alphabet.names:
            raise ReportsError(f"the reports must be coded in their channel's symbols {own.report_alphabet.names}")
        task = np.array([place[str(name)] for name in sent.tasks], dtype=np.int64)[sent.task]
        value = np.array([names[name] for name in sent.alphabet.names], dtype=np.int64)[sent.value]
        columns.append((task, first + sent.worker.astype(np.int64), value))
        first += len(sent.workers)
    task, worker, value = (np.concatenate(column) for column in zip(*columns, strict=True))
    codes = task.astype(np.int32), worker.astype(np.int32)
    public = frozenset.intersection(*(one.reports.public_lists for one in rounds))
    return Round(reports=Reports(*codes, value, tasks, workers, table.report_alphabet, public), channel=table)


def _nearest(points: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the index of the point nearest to each number; the lower of two equally near ones."""
    return np.asarray(np.searchsorted((points[:-1] + points[1:]) / 2, numbers), dtype=np.int64)


def _table(channel: Channel | ChannelTable) -> ChannelTable:
    return channel if isinstance(channel, ChannelTable) else ChannelTable(channels=(channel,), choice=((0,),))


def _shared_tasks(rounds: Sequence[Round]) -> NDArray[Any]:
    tasks = rounds[0].reports.tasks
    for number, one in enumerate(rounds[1:], start=2):
        different = sorted({str(name) for name in tasks} ^ {str(name) for name in one.reports.tasks})
        if different:
            raise ReportsError(
                f"all rounds are on the same tasks, round {number} is not",
                examples=", ".join(different[:3]),
                hint="List all tasks of the campaign in every round.",
            )
    return np.asarray(tasks)


def _all_workers(rounds: Sequence[Round]) -> NDArray[Any]:
    workers = np.concatenate([np.asarray(one.reports.workers) for one in rounds])
    names, counts = np.unique(workers.astype(str), return_counts=True)
    if (counts > 1).any():
        raise ReportsError(
            "a worker reports in one round only",
            examples=", ".join(names[counts > 1][:3].tolist()),
            hint="Leave the worker out of the later round: a second report on a cell costs epsilon again.",
        )
    confusable = first_confusable_pair(names.tolist())
    if confusable is not None:
        raise ReportsError(
            "names of two workers must differ in visible characters, not only in white space or normal form",
            examples=f"{confusable[0]!r} and {confusable[1]!r}",
            hint="If they are one worker, leave the worker out of the later round; if not, rename one.",
        )
    return workers


def _joined_table(tables: Sequence[ChannelTable], tasks: NDArray[Any], rounds: Sequence[Round]) -> ChannelTable:
    """Return one table for all rounds; two tasks share a group if they do so in every round."""
    groups = [table.groups(tasks, one.reports.workers) for table, one in zip(tables, rounds, strict=True)]
    combinations, of_task = np.unique(np.array([of_task for of_task, _ in groups]), axis=1, return_inverse=True)
    channels: dict[_Key, tuple[int, Channel]] = {}
    choice: list[tuple[int, ...]] = []
    of_worker: dict[str, int] = {}
    for table, one, table_groups, (_, of_round) in zip(tables, rounds, combinations, groups, strict=True):
        of_worker |= {
            str(name): len(choice) + int(group) for name, group in zip(one.reports.workers, of_round, strict=True)
        }
        for row in table.choice:
            chosen = [table.channels[row[group]] for group in table_groups]
            choice.append(tuple(channels.setdefault(_key(channel), (len(channels), channel))[0] for channel in chosen))
    groups_of_tasks = {str(name): int(group) for name, group in zip(tasks, of_task.reshape(-1), strict=True)}
    kept = tuple(channel for _, channel in channels.values())
    return ChannelTable(channels=kept, choice=tuple(choice), workers=of_worker, tasks=groups_of_tasks)


def _key(channel: Channel) -> _Key:
    """Return the key under which equal channels are joined; marked mechanisms are different."""
    return channel.mechanism, channel.alphabet, channel.participation, channel.outputs, channel.rows
