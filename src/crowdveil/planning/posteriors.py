"""Exact posteriors of truths, from counts of reports, where workers' kinds are known or only the shares of kinds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.assignment import Assignment
from crowdveil.channel import Channel
from crowdveil.channel_table import ChannelTable
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.crowds import ExpectedCrowd
from crowdveil.reports import Reports

TINY = 1e-300


def sent_table(labels: int, channel: Channel | None) -> NDArray[np.float64]:
    """Return P(report | answer), shape (labels + 1, symbols + 1): the last row is no answer, the last column silence.

    Symbols are those of `channel.report_alphabet`; without a channel answers are sent as they are.
    """
    if channel is None:
        return np.eye(labels + 1)
    listed = channel.probabilities[:, [channel.outputs.index(name) for name in channel.report_alphabet.names]]
    if channel.participation == "public":
        listed = np.vstack((listed, np.zeros(listed.shape[1])))
    return np.column_stack((listed, np.maximum(1 - listed.sum(axis=1), 0.0)))


def report_table(answers: NDArray[np.float64], rate: float, channel: Channel | None) -> NDArray[np.float64]:
    """Return P(report | truth), indexed [kind, truth, symbol]: the symbols of `channel.report_alphabet`, then silence.

    Args:
        answers: P(answer | truth), indexed [kind, truth, label].
        rate: share of cells that are answered.
        channel: what answers go through; None where they are sent as they are.
    """
    sent = sent_table(answers.shape[2], channel)
    whole = rate * (answers @ sent[:-1]) + (1 - rate) * sent[-1]
    return np.asarray(whole / whole.sum(axis=2, keepdims=True))


def log_tables(
    crowd: ExpectedCrowd, rate: float, channel: Channel | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log P(report | truth) of every kind, and of a worker of unknown kind; indexed [kind, truth, symbol]."""
    table = report_table(crowd.tables(), rate, channel)
    pooled = np.tensordot(crowd.shares, table, axes=1)[None]
    return np.log(np.maximum(table, TINY)), np.log(np.maximum(pooled, TINY))


def evidence(counts: NDArray[np.int64], logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log-likelihoods, indexed [task, truth], from counts [kind, task, symbol] and `logs`."""
    flat = counts.transpose(1, 0, 2).reshape(counts.shape[1], -1).astype(float)
    return np.asarray(flat @ logs.transpose(0, 2, 1).reshape(flat.shape[1], -1))


def known_error(
    campaign: Campaign,
    channel: Channel | ChannelTable | None,
    reports: Reports,
    kind: NDArray[np.int64],
    truths: NDArray[Any],
    assignment: Assignment | None = None,
) -> float:
    """Return the mean loss of the exact posterior on given reports, every worker's kind known.

    Args:
        campaign, channel: what the reports come from; None where they are answers.
        reports: those that are not NULL.
        kind: of each worker, shape (workers,).
        truths: of each task, shape (tasks,).
        assignment: the cells that report; None for all.
    """
    crowd = campaign.crowd
    scores = np.tile(crowd.log_prior, (len(reports.tasks), 1))
    for one, inside, asked in _by_channel(channel, reports, kind, assignment, len(crowd.kinds)):
        logs, _ = log_tables(crowd, campaign.rate, one)
        sent = _counted(reports, inside, kind, _codes(reports, one), logs.shape[2] - 1, len(logs))
        counts = np.concatenate((sent, asked[:, :, None] - sent.sum(axis=2, keepdims=True)), axis=2)
        scores += evidence(counts, logs)
    return float(crowd.losses(scores, truths).mean())


def _by_channel(
    channel: Channel | ChannelTable | None,
    reports: Reports,
    kind: NDArray[np.int64],
    assignment: Assignment | None,
    kinds: int,
) -> list[tuple[Channel | None, NDArray[np.bool_], NDArray[np.int64]]]:
    """Return every channel, which reports went through it, and how many cells of each [kind, task] did."""
    if isinstance(channel, ChannelTable):
        of_task, of_worker = channel.groups(reports.tasks, reports.workers)
        chosen = np.array(channel.choice)
        members = np.array([np.bincount(kind[of_worker == group], minlength=kinds) for group in range(len(chosen))])
        through = chosen[of_worker[reports.worker], of_task[reports.task]]
        return [
            (one, through == index, members.T @ (chosen == index)[:, of_task])
            for index, one in enumerate(channel.channels)
        ]
    every = np.ones(len(reports), dtype=bool)
    if assignment is None:
        return [(channel, every, np.repeat(np.bincount(kind, minlength=kinds)[:, None], len(reports.tasks), axis=1))]
    pairs = kind[assignment.worker] * len(reports.tasks) + assignment.task
    asked = np.bincount(pairs, minlength=kinds * len(reports.tasks)).reshape(kinds, -1)
    return [(channel, every, asked)]


def _codes(reports: Reports, channel: Channel | None) -> NDArray[np.int64]:
    """Return the channel's own code of each symbol of the reports; -1 for those of other channels."""
    assert reports.alphabet is not None
    if channel is None:
        return np.arange(reports.labels)
    own = {name: code for code, name in enumerate(channel.report_alphabet.names)}
    return np.array([own.get(name, -1) for name in reports.alphabet.names])


def _counted(
    reports: Reports,
    inside: NDArray[np.bool_],
    kind: NDArray[np.int64],
    codes: NDArray[np.int64],
    symbols: int,
    kinds: int,
) -> NDArray[np.int64]:
    """Count some reports, indexed [kind, task, symbol]."""
    tasks = len(reports.tasks)
    cells = (kind[reports.worker[inside]] * tasks + reports.task[inside]) * symbols + codes[reports.value[inside]]
    return np.bincount(cells, minlength=kinds * tasks * symbols).reshape(kinds, tasks, symbols)
