"""Ways to a target that is missed: how many workers it takes, and what public participation or assignment would do."""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from crowdveil.channels.channel import Channel
from crowdveil.mechanisms import ChannelMechanism
from crowdveil.planning.bayes_error import FEWER_CROWDS, report_table
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.candidates import candidates
from crowdveil.planning.population import NumberCrowd
from crowdveil.planning.simulation import FEWEST, Prediction, Tick, closed_form, predict

MOST_WORKERS = 1_000_000
LARGEST_SHARE = 2.0
"""Estimators with little to go by may be far worse than nameless workers; with more workers they are not."""
SEARCHES, LONGER = 6, 1.2
"""Searches, each corrected by a simulation of what the last one found, and by how much the next one names more."""
CHECKED_LABELS, CHECKED_NUMBERS = 1_000_000, 200_000
"""Most expected reports of a simulation that checks a search."""

Change = Literal["workers", "public", "assignment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A changed campaign that meets the target.

    Attributes:
        change: "workers": more of them; "public": participation is not protected; "assignment": tasks are assigned.
        campaign: the changed campaign.
        line: kind of candidate.
        mechanism: what devices run there; None for unprotected answers.
        prediction: its error; `simulated` is 0 where the closed form alone says so.
    """

    change: Change
    campaign: Campaign
    line: str
    mechanism: ChannelMechanism | None
    prediction: Prediction


def more_workers(
    campaign: Campaign,
    line: str,
    mechanism: ChannelMechanism | None,
    target: float,
    *,
    share: float,
    check: bool,
    tick: Tick | None = None,
) -> Way | None:
    """Return the campaign with the fewest workers that meets the target; None if `MOST_WORKERS` do not.

    Args:
        campaign: one that misses it; an assignment grows with the workers.
        line: kind of candidate.
        mechanism: what devices run; None for unprotected answers.
        target: the error wanted.
        share: where the estimator stands between exact posteriors of known (0) and of nameless workers (1).
        check: whether to simulate what the closed form finds, and to search again where it was too hopeful.
        tick: called after each simulation.
    """
    channel = None if mechanism is None else mechanism.channel()
    fewest, share = campaign.workers, min(max(share, 0.0), LARGEST_SHARE)
    for _ in range(SEARCHES):
        workers = _fewest(campaign, channel, target, share, fewest)
        if workers is None:
            return None
        changed = with_workers(campaign, workers)
        if not (check and _affordable(changed, channel)):
            found = closed_form(changed, channel, share)
            return Way(change="workers", campaign=changed, line=line, mechanism=mechanism, prediction=found)
        found = predict(changed, mechanism, seeds=2, tick=tick)
        if found.error <= target:
            return Way(change="workers", campaign=changed, line=line, mechanism=mechanism, prediction=found)
        fewest, share = int(LONGER * workers), max(found.share, share * 1.25, 0.1)
    return None


def with_workers(campaign: Campaign, workers: int) -> Campaign:
    """Return the campaign with another number of workers; as large a part of them as before has each task."""
    given = campaign.assigned_per_task
    if given is not None:
        given = max(round(given * workers / campaign.workers), -(-workers // campaign.tasks))
    return replace(campaign, workers=workers, assigned_per_task=given)


def public_participation(campaign: Campaign) -> Campaign | None:
    """Return the campaign in which everyone sees who answered what; None if it is so already."""
    if campaign.participation == "public":
        return None
    return replace(campaign, objective=replace(campaign.objective, participation="public"), assigned_per_task=None)


def full_assignment(campaign: Campaign) -> Campaign | None:
    """Return the campaign in which workers are assigned just as many tasks as they would answer.

    None where participation is public, tasks are assigned already, or workers answer everything anyway.
    """
    if campaign.participation == "public" or campaign.assigned_per_task is not None:
        return None
    answers = campaign.workers * campaign.objective.participation_rate
    given = max(math.ceil(answers - 1e-9), -(-campaign.workers // campaign.tasks))
    return replace(campaign, assigned_per_task=given) if given < campaign.workers else None


def smallest_epsilon(
    change: Change, campaign: Campaign, target: float, epsilons: tuple[float, ...], tick: Tick | None = None
) -> Way | None:
    """Return the smallest epsilon at which a changed campaign meets the target, simulated; None if none does.

    Candidates of quick kinds are tried; epsilons at which even known workers would not do are passed by.
    """
    for epsilon in epsilons:
        tried = []
        for one in candidates(campaign, epsilon, quick=True):
            if (
                one.sends in tried
                or closed_form(one.campaign, one.mechanism.channel(), 0.0, crowds=FEWER_CROWDS).known > target
            ):
                continue
            tried.append(one.sends)
            found = predict(one.campaign, one.mechanism, tick=tick)
            if found.error <= target:
                return Way(
                    change=change, campaign=one.campaign, line=one.line, mechanism=one.mechanism, prediction=found
                )
    return None


def _fewest(campaign: Campaign, channel: Channel | None, target: float, share: float, fewest: int) -> int | None:
    """Return the smallest of `_round_numbers` above `fewest` that the closed form finds enough, by bisection."""
    tried = [workers for workers in _round_numbers() if workers > fewest]

    def meets(workers: int) -> bool:
        return closed_form(with_workers(campaign, workers), channel, share, crowds=FEWER_CROWDS).error <= target

    if not (tried and meets(tried[-1])):
        return None
    return tried[bisect_left(tried, True, key=meets)]


def _round_numbers() -> list[int]:
    """Return numbers of two digits and noughts, up to `MOST_WORKERS`."""
    digits = range(10, 100)
    return [*range(1, 10), *(d * 10**n for n in range(6) for d in digits if d * 10**n <= MOST_WORKERS)]


def _affordable(campaign: Campaign, channel: Channel | None) -> bool:
    most = CHECKED_NUMBERS if isinstance(campaign.crowd, NumberCrowd) else CHECKED_LABELS
    table = report_table(campaign.crowd.tables(), campaign.rate, channel)
    sent = 1 - float(np.tensordot(campaign.crowd.shares, table[:, :, -1], axes=1).mean())
    return FEWEST * campaign.reporters * sent <= most
