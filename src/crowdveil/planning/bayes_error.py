"""The closed form: errors of exact posteriors, from counts of reports, for any number of workers.

Two exact posteriors enclose what inference can reach: one that knows every worker's kind, and one that knows only the
shares of the kinds.

Exact posteriors of truths, from counts of reports, where workers' kinds are known or only the shares of kinds.

What a made-up crowd reports, as counts, and what exact posteriors make of it: all workers at once, or in rounds.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.assignment import Assignment
from crowdveil.data.reports import Reports
from crowdveil.mechanisms import QuantizedResponse
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.population import ExpectedCrowd, NumberCrowd
from crowdveil.randomness import seeded

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


class SamplingDesign(Protocol):
    """Asks workers about tasks, and reads what they report."""

    def scores(
        self, truths: NDArray[np.generic], members: NDArray[np.int64], generator: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log-posteriors [task, truth], up to constants, where workers' kinds are known and where they are not.

        Args:
            truths: of each task, shape (tasks,).
            members: workers of each kind, shape (kinds,).
            generator: draws the counts.
        """


def asking(campaign: Campaign, channel: Channel | None) -> SamplingDesign:
    """Return how workers are asked in a campaign."""
    if campaign.rounds == 1 or channel is None:
        return _AtOnce(campaign, channel)
    return _InRounds(campaign, channel)


class _AtOnce:
    """All workers through one channel."""

    def __init__(self, campaign: Campaign, channel: Channel | None) -> None:
        self.campaign, self.channel = campaign, channel
        self.known, self.pooled = log_tables(campaign.crowd, campaign.rate, channel)

    def scores(
        self, truths: NDArray[np.generic], members: NDArray[np.int64], generator: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        crowd = self.campaign.crowd
        counts = generator.multinomial(
            members[:, None], report_table(crowd.tables(truths), self.campaign.rate, self.channel)
        )
        return (
            evidence(counts, self.known) + crowd.log_prior,
            evidence(counts.sum(axis=0, keepdims=True), self.pooled) + crowd.log_prior,
        )


class _InRounds:
    """Workers dealt to rounds; after the first, every task is cut at its posterior median.

    Attributes:
        sent: P(report | answer) through each cut, indexed [cut - 1, answer or none, symbol].
        logs: log P(report | truth) of every kind through each cut, indexed [cut - 1, kind, truth, symbol].
        pooled: the same where kinds are not known, with one kind.
    """

    def __init__(self, campaign: Campaign, channel: Channel) -> None:
        assert isinstance(campaign.crowd, NumberCrowd)
        self.campaign, self.crowd, self.first = campaign, campaign.crowd, _AtOnce(campaign, channel)
        scale, epsilon = campaign.crowd.alphabet, channel.guarantee.epsilon
        cuts = [
            QuantizedResponse(alphabet=scale, epsilon=epsilon, participation=channel.participation, cuts=(cut,))
            for cut in range(1, scale.size)
        ]
        self.sent = np.stack([sent_table(scale.size, one.channel()) for one in cuts])
        answers, rate = campaign.crowd.tables(), campaign.rate
        tables = rate * np.einsum("ktl,cls->ckts", answers, self.sent[:, :-1], optimize=True)
        tables += (1 - rate) * self.sent[:, None, None, -1]
        self.logs = np.log(np.maximum(tables, TINY))
        self.pooled = np.log(np.maximum(np.einsum("k,ckts->cts", campaign.crowd.shares, tables), TINY))[:, None]

    def scores(
        self, truths: NDArray[np.generic], members: NDArray[np.int64], generator: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rounds, answers = self.campaign.rounds, self.crowd.tables(truths)
        parts = [members * (turn + 1) // rounds - members * turn // rounds for turn in range(rounds)]
        known, nameless = self.first.scores(truths, parts[0], generator)
        for part in parts[1:]:
            cuts = self._cuts(known)
            known = known + _through(cuts, self._counts(cuts, answers, part, generator), self.logs)
            cuts = self._cuts(nameless)
            counts = self._counts(cuts, answers, part, generator).sum(axis=0, keepdims=True)
            nameless = nameless + _through(cuts, counts, self.pooled)
        return known, nameless

    def _cuts(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return where each task is cut next: as `next_thresholds` says, with as many different cuts as need be."""
        scale = self.crowd.alphabet
        nearest = np.rint((self.crowd.medians(scores) - scale.low) / scale.step - 0.5)
        return np.clip(nearest, 0, scale.size - 2).astype(np.int64) + 1

    def _counts(
        self,
        cuts: NDArray[np.int64],
        answers: NDArray[np.float64],
        part: NDArray[np.int64],
        generator: np.random.Generator,
    ) -> NDArray[np.int64]:
        """Draw what workers report, indexed [kind, task, symbol]; `answers` is P(answer | truth) of these tasks."""
        sent, rate = self.sent[cuts - 1], self.campaign.rate
        shown = rate * np.einsum("ktl,tls->kts", answers, sent[:, :-1]) + (1 - rate) * sent[:, -1]
        return generator.multinomial(part[:, None], shown / shown.sum(axis=2, keepdims=True))


def _through(cuts: NDArray[np.int64], counts: NDArray[np.int64], logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log-likelihoods [task, truth] of counts [kind, task, symbol], every task having a cut of its own."""
    return np.einsum("kts,tkms->tm", counts.astype(float), logs[cuts - 1], optimize=True)


CROWDS, TASKS = 64, 48
"""Crowds drawn, and tasks of each."""
FEWER_CROWDS = 16
"""Crowds drawn where many sizes of a crowd are compared."""


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


def bounds(campaign: Campaign, channel: Channel | None, *, crowds: int = CROWDS, seed: int = 1) -> Bounds:
    """Return the errors of exact posteriors for a campaign through a channel, by Monte Carlo.

    Args:
        campaign: what is planned.
        channel: what answers go through, in rounds those of the first; None where they are sent as they are.
        crowds: how many are drawn, with `TASKS` tasks each.
        seed: of the draws.
    """
    crowd, generator = campaign.crowd, seeded(seed).generator
    asked = asking(campaign, channel)
    known, nameless = np.empty((crowds, TASKS)), np.empty((crowds, TASKS))
    for number in range(crowds):
        truths = crowd.draw_truths(generator, TASKS)
        members = crowd.members(generator, campaign.reporters)
        by_kind, by_shares = asked.scores(truths, members, generator)
        known[number], nameless[number] = crowd.risks(by_kind, truths), crowd.risks(by_shares, truths)
    noise = float(known.var() / known.size)
    return Bounds(
        known=float(known.mean()),
        nameless=max(float(nameless.mean()), float(known.mean())),
        between=max(0.0, float(known.mean(axis=1).var(ddof=1)) - noise * crowds),
        noise=noise,
        losses=known.ravel(),
    )
