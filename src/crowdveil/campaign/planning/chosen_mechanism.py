"""Mechanism of a campaign: as its settings state it, designed for what they expect, or recommended by a plan."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any, cast

import numpy as np

from crowdveil.campaign.planning.expected_error import expectation_within_cells, planned_campaign
from crowdveil.campaign.planning.expected_share import people_of_survey
from crowdveil.campaign.settings.build import BuildMechanism, requested_mechanism
from crowdveil.campaign.settings.compared_items import pairs_of_tasks
from crowdveil.campaign.settings.privacy_request import PLAN
from crowdveil.campaign.settings.settings_file import CampaignSettings
from crowdveil.channels.alphabet import Alphabet
from crowdveil.design.channel_design import design_channel
from crowdveil.design.comparison_channel import TIES, ExpectedComparisons, best_comparison_channel
from crowdveil.mechanisms import ChannelMechanism, Designed, QuantizedResponse, RandomizedResponse, SubsetSelection
from crowdveil.mechanisms.piecewise import MAX_ANSWERS, NumberMechanism
from crowdveil.planning import PlannedCampaign, candidates
from crowdveil.planning.expected_campaign import expected_objective
from crowdveil.planning.plan import predict_group
from crowdveil.planning.share_plan import mechanism_for_shares
from crowdveil.planning.worker_budget import (
    LARGEST_CELL_EPSILON,
    best_plan_row,
    compared_task_loads,
    largest_cell_count,
    with_task_load,
)
from crowdveil.standalone.checks import MAX_NAME


@dataclass(frozen=True, kw_only=True)
class ChosenMechanism:
    """Mechanism of a campaign.

    Attributes:
        source: the settings; with "plan", `per_worker` is the planned number of tasks.
        build: mechanism of an epsilon of a single answer, in nats.
        method: estimator of the plan; None for the usual one.
        planned: whether a plan chose it.
        others: the same as `build` for the other channels, of levels or of groups of cuts.
    """

    source: CampaignSettings
    build: BuildMechanism
    method: str | None = None
    planned: bool = False
    others: tuple[BuildMechanism, ...] = ()

    @property
    def most_tasks(self) -> int:
        """Tasks of the worker with most, if each gets as many as the exclusions leave."""
        own = self.source
        if own.pairs:
            return own.per_worker or len(own.pairs) - min(len(pairs) for pairs in pairs_of_tasks(own.excluded))
        return own.per_worker or len(own.rows) - min(map(len, own.excluded))

    @property
    def device_mechanism(self) -> ChannelMechanism:
        """Mechanism of the devices, with the epsilon of a single answer or a share of the budget.

        Raises:
            SettingsError: epsilon or alphabet are refused.
        """
        own = self.source
        return requested_mechanism(
            own.privacy, own.alphabet, own.participation, cells=self.most_tasks, build=self.build
        )


def mechanism_of_campaign_settings(source: CampaignSettings) -> ChosenMechanism:
    """Return the mechanism of a campaign; of levels the tasks per worker are those of the most private one.

    What the settings expect is public, so a table that is chosen for it costs no privacy; the table is in the
    certificate, and so in the campaign's hash.

    Raises:
        SettingsError: an expectation is out of range, or epsilon or alphabet are refused.
        ReportsError: the file of the prior is damaged, or does not name exactly the labels.
    """
    first, *others = source.privacy.one_request_per_channel
    chosen = _chosen_mechanism_of_one_channel(replace(source, privacy=first))
    fixed = replace(chosen.source, per_worker=chosen.most_tasks)
    builds = tuple(_chosen_mechanism_of_one_channel(replace(fixed, privacy=request)).build for request in others)
    return replace(chosen, source=replace(chosen.source, privacy=source.privacy), others=builds)


def _chosen_mechanism_of_one_channel(source: CampaignSettings) -> ChosenMechanism:
    """Return the mechanism of one channel; errors as `mechanism_of_campaign_settings`."""
    privacy = source.privacy
    if source.pairs and privacy.is_designed_for_answers:
        return ChosenMechanism(source=source, build=partial(_comparison_mechanism, source))
    if people_of_survey(source) is not None and privacy.mechanism in (PLAN, SubsetSelection.name):
        return ChosenMechanism(source=source, build=partial(_survey_mechanism, source))
    if privacy.mechanism == PLAN:
        return _best_within_budget(source) if privacy.epsilon_per_answer is None else _best_at_epsilon(source)
    if not privacy.is_designed_for_answers:
        return ChosenMechanism(
            source=source, build=partial(privacy.mechanism_of_answer_epsilon, source.alphabet, source.participation)
        )
    objective = expected_objective(source.alphabet, expectation_within_cells(source), source.participation)
    for kind in (QuantizedResponse, SubsetSelection):
        if privacy.mechanism == kind.name:
            return ChosenMechanism(source=source, build=partial(kind.for_objective, objective))

    def design(epsilon: float) -> Designed:
        # NULL apart from labels, as on the command line: inference then learns participation.
        return Designed.from_channel(design_channel(objective, epsilon, null_apart=True))

    return ChosenMechanism(source=source, build=design)


def expected_comparisons(source: CampaignSettings) -> ExpectedComparisons:
    """Return what the settings expect of comparisons.

    Raises:
        SettingsError: the share of ties is out of range.
    """
    ties = source.expected.ties
    return ExpectedComparisons(ties=TIES if ties is None else ties, answered=source.expected.answered)


def _comparison_mechanism(source: CampaignSettings, epsilon: float) -> ChannelMechanism:
    """Return the mechanism with two symbols or three of the larger expected information.

    NULL is apart: nobody states the share that is answered when the campaign closes, so reports must show it.
    """
    expected, epsilon = expected_comparisons(source), min(epsilon, LARGEST_CELL_EPSILON)
    return Designed.from_channel(best_comparison_channel(expected, epsilon, source.participation, null_apart=True))


def _best_within_budget(source: CampaignSettings) -> ChosenMechanism:
    """Return the plan's choice of mechanism, and of tasks per worker if the settings leave them open."""
    budget = source.privacy.budget_per_worker
    assert budget is not None
    choice = best_plan_row(list(_campaigns_by_load(source)), budget)
    if source.per_worker is None and choice.campaign.assigned_per_task is not None:
        source = replace(source, per_worker=choice.cost.cells)
    mechanism = on_answer_scale(choice.mechanism, source.alphabet)
    assert isinstance(mechanism, RandomizedResponse | QuantizedResponse | SubsetSelection | NumberMechanism)

    def build(epsilon: float) -> ChannelMechanism:
        return _without_long_names(replace(cast(Any, mechanism), epsilon=min(epsilon, LARGEST_CELL_EPSILON)))

    return ChosenMechanism(source=source, build=build, method=choice.campaign.method, planned=True)


def _campaigns_by_load(source: CampaignSettings) -> Iterator[PlannedCampaign]:
    """Yield the campaign with each number of tasks per worker that its settings allow."""
    campaign = planned_campaign(source)
    if source.per_worker is not None or source.relay is not None:
        yield campaign
        return
    most = campaign.tasks - max(map(len, source.excluded))
    campaign = replace(campaign, assigned_per_task=None)
    for load in compared_task_loads(campaign):
        variant = with_task_load(campaign, load)
        if variant.assigned_per_task is None or largest_cell_count(variant) <= most:
            rate = source.expected.answered * variant.reporters_per_task / variant.workers
            yield replace(variant, objective=replace(variant.objective, participation_rate=rate))


def _best_at_epsilon(source: CampaignSettings) -> ChosenMechanism:
    """Return the plan's candidate with the least expected error at an epsilon of a single answer."""
    campaign, epsilon = planned_campaign(source), source.privacy.epsilon_per_answer
    assert epsilon is not None
    # A channel designed on a coarser scale than the campaign's names labels that its blocks do not begin with.
    group = candidates(campaign, epsilon, without_designed=campaign.crowd.alphabet != source.alphabet)
    best = min(predict_group(campaign, epsilon, group, inf), key=lambda result: result.error_then_bayes_error)
    mechanism = _without_long_names(on_answer_scale(best.mechanism, source.alphabet))
    return ChosenMechanism(source=source, build=lambda _: mechanism, method=best.campaign.method, planned=True)


def _survey_mechanism(source: CampaignSettings, epsilon: float) -> ChannelMechanism:
    """Return the mechanism for shares; with a plan single labels where sets of them are no better."""
    own = RandomizedResponse(
        alphabet=source.alphabet, epsilon=min(epsilon, LARGEST_CELL_EPSILON), participation=source.participation
    )
    if source.privacy.mechanism == SubsetSelection.name:
        return SubsetSelection(alphabet=own.alphabet, epsilon=own.epsilon, participation=own.participation)
    return _without_long_names(mechanism_for_shares(own, source.expected.answered))


def _without_long_names(mechanism: ChannelMechanism) -> ChannelMechanism:
    """Return randomized response in place of sets of labels whose names are too long for a campaign."""
    if not isinstance(mechanism, SubsetSelection) or max(map(len, mechanism.channel().outputs)) <= MAX_NAME:
        return mechanism
    return RandomizedResponse(
        alphabet=mechanism.alphabet, epsilon=mechanism.epsilon, participation=mechanism.participation
    )


def on_answer_scale(mechanism: ChannelMechanism, alphabet: Alphabet) -> ChannelMechanism:
    """Return a mechanism over the coarser scale of a plan on the scale of the answers, where its labels are blocks.

    Mechanisms for numbers need no blocks on scales that they can hold.
    """
    if mechanism.alphabet == alphabet:
        return mechanism
    if isinstance(mechanism, NumberMechanism) and alphabet.size <= MAX_ANSWERS:
        return mechanism.on_scale(alphabet)
    whole = range(1, mechanism.alphabet.size)
    nearest = np.abs(alphabet.values[:, np.newaxis] - mechanism.alphabet.values).argmin(axis=1)
    cuts = np.searchsorted(nearest, mechanism.cuts if isinstance(mechanism, QuantizedResponse) else whole).tolist()
    return QuantizedResponse(
        alphabet=alphabet, epsilon=mechanism.epsilon, participation=mechanism.participation, cuts=tuple(cuts)
    )
