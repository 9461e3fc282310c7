"""Candidates of a plan at one epsilon: a mechanism with an estimator, and its costs."""

import math
from dataclasses import dataclass, replace

from crowdveil.channels.channel import Channel
from crowdveil.design.channel_design import design_channel
from crowdveil.estimators.ordinal_dawid_skene import OrdinalDawidSkene
from crowdveil.mechanisms import (
    ChannelMechanism,
    Designed,
    Ogpm,
    QuantizedResponse,
    RandomizedResponse,
    SquareWave,
    SubsetSelection,
)
from crowdveil.planning.campaign import PlannedCampaign
from crowdveil.planning.population import LabelCrowd, NumberCrowd
from crowdveil.privacy.accounting import account
from crowdveil.privacy.loss_distribution import channel_profile, composed_epsilon

ORDINAL_SUFFIX = ", ordinal"
"""Suffix of candidates whose reports are read by `ordinal-dawid-skene`."""
_NAMES = (RandomizedResponse.name, SubsetSelection.name, QuantizedResponse.name, Designed.name)
CANDIDATE_NAMES = (*_NAMES, *(name + ORDINAL_SUFFIX for name in _NAMES), Ogpm.name, SquareWave.name)
"""Names of all candidates; among equals, an earlier one is preferred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of a mechanism for a worker.

    Attributes:
        cell_epsilon, worker_epsilon: exact privacy loss in nats, of one cell and of all cells of a worker, rounded up.
        cells: number of these cells: all, or where participation is public and no budget is planned, the expected
            answers.
        symbols: symbols of a report, including no report.
        bytes: message size with one fixed-width symbol per task: ceil(tasks * ceil(log2(symbols)) / 8).
        delta: at which `worker_epsilon` holds; None for the sum of epsilons.
    """

    cell_epsilon: float
    worker_epsilon: float
    cells: int
    symbols: int
    bytes: int
    delta: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """Candidate at one epsilon: its name, campaign with its estimator, and mechanism."""

    name: str
    campaign: PlannedCampaign
    mechanism: ChannelMechanism

    @property
    def equivalence_key(self) -> object:
        """Return a key that is equal for candidates with the same predictions."""
        return self.campaign.method, channel_key(self.mechanism.channel())


def with_ordinal_method(campaign: PlannedCampaign) -> PlannedCampaign | None:
    """Return the campaign with `ordinal-dawid-skene`; None if labels are not ordinal, or a method is given."""
    if campaign.method is None and isinstance(campaign.crowd, LabelCrowd) and campaign.crowd.has_ordered_labels:
        return replace(campaign, method=OrdinalDawidSkene.name)
    return None


def candidates(campaign: PlannedCampaign, epsilon: float, *, without_designed: bool = False) -> list[Candidate]:
    """Return the candidates that apply to a campaign at one epsilon, in the order of `CANDIDATE_NAMES`.

    Args:
        campaign: to be planned.
        epsilon: in nats per cell.
        without_designed: whether to leave out designed channels, as searches do.

    Raises:
        SettingsError: the epsilon is not accepted.
    """
    objective = campaign.own_cell_objective
    alphabet, participation = objective.alphabet, objective.participation
    numbers = isinstance(campaign.crowd, NumberCrowd)
    mechanisms: list[ChannelMechanism] = [
        RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation=participation)
    ]
    if isinstance(campaign.crowd, LabelCrowd):
        mechanisms.append(SubsetSelection.for_objective(objective, epsilon))
    # Where numbers are equally likely, a table chosen for that errs little less than one that is not; elsewhere it may
    # err twice as much: `experiments/utility/mechanisms_on_crowds.py`.
    if not numbers or campaign.prior_public:
        mechanisms.append(QuantizedResponse.for_objective(objective, epsilon))
        if not without_designed:
            # NULL apart from labels, as on the command line: inference then learns participation.
            mechanisms.append(Designed.from_channel(design_channel(objective, epsilon, null_apart=True)))
    kinds = (Ogpm, SquareWave) if numbers else ()
    mechanisms += [kind(alphabet=alphabet, epsilon=epsilon, participation=participation) for kind in kinds]
    return [
        Candidate(name=mechanism.name + suffix, campaign=variant, mechanism=mechanism)
        for suffix, variant in (("", campaign), (ORDINAL_SUFFIX, with_ordinal_method(campaign)))
        for mechanism in mechanisms
        if variant is not None
    ]


def channel_key(channel: Channel) -> frozenset[tuple[int, ...]]:
    """Return the columns of a channel; equal for channels that differ in names and order of symbols only."""
    return frozenset(zip(*channel.rows, strict=True))


def worker_cost(
    campaign: PlannedCampaign, mechanism: ChannelMechanism, *, cells: int | None = None, delta: float | None = None
) -> Cost:
    """Return the cost of a mechanism for each worker of a campaign.

    Args:
        campaign: of the workers.
        mechanism: of their devices.
        cells: that are charged; by default all if participation is protected, else the expected answers.
        delta: at which the loss of all cells is stated; None for the sum of epsilons.
    """
    charged = campaign.cells_that_cost_privacy if cells is None else cells
    channel = mechanism.channel()
    cell, worker = account(mechanism, tasks=charged)
    symbols = len(channel.outputs) + (campaign.participation == "public")
    return Cost(
        cell_epsilon=cell.exact,
        worker_epsilon=worker.exact
        if delta is None
        else composed_epsilon([(channel_profile(channel), charged)], delta),
        cells=charged,
        symbols=symbols,
        bytes=-(-campaign.cells_per_worker * math.ceil(math.log2(symbols)) // 8),
        delta=delta,
    )
