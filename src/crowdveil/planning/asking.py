"""What a made-up crowd reports, as counts, and what exact posteriors make of it: all workers at once, or in rounds.

Given a task's truth, the reports of the workers of one kind through one channel are draws from one distribution, so
their counts are multinomial, and so many workers cost no more than few.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.mechanisms import QuantizedResponse
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.crowds import NumberCrowd
from crowdveil.planning.posteriors import TINY, evidence, log_tables, report_table, sent_table


class Asking(Protocol):
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


def asking(campaign: Campaign, channel: Channel | None) -> Asking:
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
        """Return where each task is cut next: as `next_cuts` says, with as many different cuts as need be."""
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
