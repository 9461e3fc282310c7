"""Number of workers, or epsilon, that would be enough where reports are too few or too noisy for their truths.

The Bayes error of more workers with as many tasks each, or of randomized response with more epsilon, is computed for
the crowd that `crowdveil plan` assumes by default: the real workers may need more.
"""

import math
from collections.abc import Iterator

import numpy as np

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.rounding import format_bound
from crowdveil.folder.evidence import Evidence
from crowdveil.mechanisms import Designed, RandomizedResponse
from crowdveil.planning import Campaign
from crowdveil.planning.bayes_error import SEARCH_CROWDS
from crowdveil.planning.expected_campaign import expected_campaign
from crowdveil.planning.prediction import predict_from_bayes_errors
from crowdveil.planning.settings.expected_error import planned_mechanism
from crowdveil.planning.worker_budget import LARGEST_CELL_EPSILON, RANKING_EXCESS
from crowdveil.privacy.mechanism_settings import Expectation

FACTORS = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Factors on workers and on epsilon that are tried."""
AS_ASSUMED = (
    "Workers as `crowdveil plan` assumes them would have been enough: the workers, or the question, are harder than "
    "that. Compare some tasks whose truth you know."
)


def sufficiency_sentence(evidence: Evidence | None, share: float) -> str:
    """Return a sentence on what would bring the error to a share of that of the best constant.

    Args:
        evidence: reports that are not enough; None if they are unknown.
        share: of the constant's error.

    Returns:
        The sentence; empty without reports over a stated alphabet, or with several channels.
    """
    if evidence is None or isinstance(evidence.channel, ChannelTable):
        return ""
    alphabet = evidence.reports.alphabet if evidence.channel is None else evidence.channel.alphabet
    if alphabet is None:
        return ""
    channel = evidence.channel
    campaign = _planned_campaign(evidence, alphabet, channel)
    if channel is not None:
        channel = planned_mechanism(campaign.crowd.alphabet, Designed.from_channel(channel)).channel()
    if _reaches_share(campaign, channel, share):
        return AS_ASSUMED
    found = [*_more_workers(campaign, channel, share), *_more_epsilon(campaign, evidence.channel, share)]
    if not found:
        return f"Even {FACTORS[-1]:g} times as many workers would not be enough."
    return f"With workers as `crowdveil plan` assumes them, enough would be: {', or '.join(found)}."


def _planned_campaign(evidence: Evidence, alphabet: Alphabet, channel: Channel | None) -> Campaign:
    """Return the collection as the planner sees it: its size, its assignment, and the share of cells with an answer."""
    reports, assignment = evidence.reports, evidence.assignment
    tasks, workers = len(reports.tasks), len(reports.workers)
    cells = tasks * workers if assignment is None else len(assignment)
    assigned = max(-(-workers // tasks), round(cells / tasks))
    rate = _answered_share(len(reports) / max(cells, 1), channel) * assigned / workers
    return expected_campaign(
        alphabet,
        Expectation(participation_rate=max(rate, 1 / (tasks * workers))),
        "public" if channel is None else channel.participation,
        tasks=tasks,
        workers=workers,
        assigned_per_task=None if assigned >= workers else assigned,
    )


def _answered_share(reported: float, channel: Channel | None) -> float:
    """Return the share of cells with an answer from that with a report that is not NULL."""
    if channel is None or channel.null_output is None or not channel.protects_participation:
        return min(reported, 1.0)
    given = 1 - channel.probabilities[:, channel.null_output]
    answer, none = float(given[:-1].mean()), float(given[-1])
    return float(np.clip((reported - none) / (answer - none), 0.0, 1.0)) if answer > none else 1.0


def _reaches_share(campaign: Campaign, channel: Channel | None, share: float) -> bool:
    found = predict_from_bayes_errors(campaign, channel, RANKING_EXCESS, crowds=SEARCH_CROWDS)
    return found.error <= share * campaign.crowd.constant_error


def _more_workers(campaign: Campaign, channel: Channel | None, share: float) -> Iterator[str]:
    for factor in FACTORS:
        more = campaign.with_workers(math.ceil(factor * campaign.workers))
        if _reaches_share(more, channel, share):
            yield f"about {more.workers:,} workers in place of {campaign.workers:,}"
            return


def _more_epsilon(campaign: Campaign, channel: Channel | None, share: float) -> Iterator[str]:
    """Yield the epsilon of a single answer at which randomized response is enough, if any is."""
    present = math.inf if channel is None else channel.guarantee.epsilon
    if channel is None or not (0 < present < LARGEST_CELL_EPSILON):
        return
    for epsilon in (min(factor * present, LARGEST_CELL_EPSILON) for factor in FACTORS):
        mechanism = RandomizedResponse(
            alphabet=campaign.crowd.alphabet, epsilon=epsilon, participation=channel.participation
        )
        if _reaches_share(campaign, mechanism.channel(), share):
            scope = f"per answer (participation {channel.participation})"
            yield f"epsilon {format_bound(epsilon, 2)} {scope} in place of {format_bound(present, 4)}"
            return
