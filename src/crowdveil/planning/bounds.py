"""The closed form: errors of exact posteriors, from counts of reports, for any number of workers.

Given a task's truth, the reports of the workers of one kind are draws from one distribution, so their counts are
multinomial, and so many workers cost no more than few. Two exact posteriors enclose what inference can reach: one that
knows every worker's kind, and one that knows only the shares of the kinds.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.assignment import Assignment
from crowdveil.channel import Channel
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.crowds import ExpectedCrowd
from crowdveil.randomness import seeded
from crowdveil.reports import Reports

CROWDS, TASKS = 64, 48
"""Crowds drawn, and tasks of each."""
FEWER_CROWDS = 16
"""Crowds drawn where many sizes of a crowd are compared."""
TINY = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """Expected errors of exact posteriors.

    Attributes:
        known: where every worker's kind is known.
        nameless: where only the shares of the kinds are known, and no report is traced to a worker.
        between: variance of the former from crowd to crowd.
        noise: variance of `known` itself, from the finite number of tasks drawn.
        losses: of the tasks drawn, kinds known.
    """

    known: float
    nameless: float
    between: float
    noise: float
    losses: NDArray[np.float64]


def report_table(answers: NDArray[np.float64], rate: float, channel: Channel | None) -> NDArray[np.float64]:
    """Return P(report | truth), indexed [kind, truth, symbol]: the symbols of `channel.report_alphabet`, then silence.

    Args:
        answers: P(answer | truth), indexed [kind, truth, label].
        rate: share of cells that are answered.
        channel: what answers go through; None where they are sent as they are.
    """
    labels = answers.shape[2]
    if channel is None:
        sent = rate * answers
    else:
        table = channel.probabilities[:, [channel.outputs.index(name) for name in channel.report_alphabet.names]]
        sent = rate * (answers @ table[:labels])
        if channel.participation == "protected":
            sent = sent + (1 - rate) * table[labels]
    silent = np.maximum(1 - sent.sum(axis=2, keepdims=True), 0.0)
    whole = np.concatenate((sent, silent), axis=2)
    return np.asarray(whole / whole.sum(axis=2, keepdims=True))


def bounds(campaign: Campaign, channel: Channel | None, *, crowds: int = CROWDS, seed: int = 1) -> Bounds:
    """Return the errors of exact posteriors for a campaign through a channel, by Monte Carlo.

    Args:
        campaign: what is planned.
        channel: what answers go through; None where they are sent as they are.
        crowds: how many are drawn, with `TASKS` tasks each.
        seed: of the draws.
    """
    crowd, generator = campaign.crowd, seeded(seed).generator
    logs, pooled = _log_tables(crowd, campaign.rate, channel)
    known, nameless = np.empty((crowds, TASKS)), np.empty((crowds, TASKS))
    for number in range(crowds):
        truths = crowd.draw_truths(generator, TASKS)
        members = crowd.members(generator, campaign.reporters)
        shown = report_table(crowd.tables(truths), campaign.rate, channel)
        counts = generator.multinomial(members[:, None], shown)
        known[number] = crowd.risks(_scores(counts, logs, crowd), truths)
        nameless[number] = crowd.risks(_scores(counts.sum(axis=0, keepdims=True), pooled, crowd), truths)
    noise = float(known.var() / known.size)
    return Bounds(
        known=float(known.mean()),
        nameless=max(float(nameless.mean()), float(known.mean())),
        between=max(0.0, float(known.mean(axis=1).var(ddof=1)) - noise * crowds),
        noise=noise,
        losses=known.ravel(),
    )


def known_error(
    campaign: Campaign,
    channel: Channel | None,
    reports: Reports,
    kind: NDArray[np.int64],
    truths: NDArray[np.generic],
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
    crowd, tasks = campaign.crowd, len(reports.tasks)
    logs, _ = _log_tables(crowd, campaign.rate, channel)
    symbols = logs.shape[2] - 1
    cells = (kind[reports.worker] * tasks + reports.task) * symbols + reports.value
    sent = np.bincount(cells, minlength=len(logs) * tasks * symbols).reshape(len(logs), tasks, symbols)
    if assignment is None:
        asked = np.repeat(np.bincount(kind, minlength=len(logs))[:, None], tasks, axis=1)
    else:
        pairs = kind[assignment.worker] * tasks + assignment.task
        asked = np.bincount(pairs, minlength=len(logs) * tasks).reshape(len(logs), tasks)
    counts = np.concatenate((sent, asked[:, :, None] - sent.sum(axis=2, keepdims=True)), axis=2)
    return float(crowd.losses(_scores(counts, logs, crowd), truths).mean())


def _log_tables(
    crowd: ExpectedCrowd, rate: float, channel: Channel | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log P(report | truth) of every kind, and of a worker of unknown kind; indexed [kind, truth, symbol]."""
    table = report_table(crowd.tables(), rate, channel)
    pooled = np.tensordot(crowd.shares, table, axes=1)[None]
    return np.log(np.maximum(table, TINY)), np.log(np.maximum(pooled, TINY))


def _scores(counts: NDArray[np.int64], logs: NDArray[np.float64], crowd: ExpectedCrowd) -> NDArray[np.float64]:
    """Return log-posteriors up to a constant, indexed [task, truth], from counts [kind, task, symbol]."""
    flat = counts.transpose(1, 0, 2).reshape(counts.shape[1], -1).astype(float)
    return np.asarray(flat @ logs.transpose(0, 2, 1).reshape(flat.shape[1], -1) + crowd.log_prior)
