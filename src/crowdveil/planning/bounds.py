"""The closed form: errors of exact posteriors, from counts of reports, for any number of workers.

Two exact posteriors enclose what inference can reach: one that knows every worker's kind, and one that knows only the
shares of the kinds.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.planning.asking import asking
from crowdveil.planning.campaign import Campaign
from crowdveil.randomness import seeded

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
