"""Candidates of a plan at one epsilon: a mechanism with a number of rounds and an estimator, and its costs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from crowdveil.accounting import account
from crowdveil.channel_design import design_channel
from crowdveil.channels.channel import Channel
from crowdveil.estimators import OrdinalDawidSkene
from crowdveil.mechanisms import ChannelMechanism, Designed, DesignObjective, QuantizedResponse, RandomizedResponse
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.population import LabelCrowd, NumberCrowd

OTHER_BLOCKS = "quantized-response, other blocks"
ORDINAL_SUFFIX = ", ordinal"
"""Suffix of candidates whose reports are read by `ordinal-dawid-skene`."""
ROUNDS = 4
"""Rounds of a campaign in rounds."""
IN_ROUNDS = f"quantized-response in {ROUNDS} rounds"
MIN_LABELS_FOR_ROUNDS, MIN_WORKERS_FOR_ROUNDS = 3, 10
"""Fewer labels have one cut only; fewer workers leave too few per round."""

Blocks = list[list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of a mechanism for a worker.

    Attributes:
        cell_epsilon, worker_epsilon: exact privacy loss in nats, of one cell and of all cells of a worker.
        cells: number of these cells: all if participation is protected, else the expected answers.
        symbols: symbols of a report, including no report.
        bytes: message size with one fixed-width symbol per task: ceil(tasks * ceil(log2(symbols)) / 8).
    """

    cell_epsilon: float
    worker_epsilon: float
    cells: int
    symbols: int
    bytes: int


class CandidateMechanisms:
    """Mechanisms for an objective at one epsilon, each made when first used.

    Raises:
        SettingsError: the epsilon is not accepted.
    """

    def __init__(self, objective: DesignObjective, epsilon: float) -> None:
        self.objective, self.epsilon = objective, epsilon

    @cached_property
    def randomized_response(self) -> ChannelMechanism:
        """Return randomized response."""
        objective = self.objective
        return RandomizedResponse(
            alphabet=objective.alphabet, epsilon=self.epsilon, participation=objective.participation
        )

    @cached_property
    def quantized_response(self) -> QuantizedResponse:
        """Return quantized response with the best blocks."""
        return QuantizedResponse.for_objective(self.objective, self.epsilon)

    @cached_property
    def other_blocks(self) -> ChannelMechanism | None:
        """Return quantized response with other blocks; None for two labels."""
        return other_blocks(self.objective, self.quantized_response)

    @cached_property
    def designed(self) -> ChannelMechanism:
        """Return the designed channel, with NULL apart from labels as on the command line."""
        return Designed.from_channel(design_channel(self.objective, self.epsilon, null_apart=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateType:
    """Type of candidate.

    Attributes:
        name: shown in the plan.
        mechanism: of the devices; None if there is none for the objective.
        campaign: with the rounds and the estimator of this type; None if the type does not apply.
        in_search: whether searches for alternatives try it.
    """

    name: str
    mechanism: Callable[[CandidateMechanisms], ChannelMechanism | None]
    campaign: Callable[[Campaign], Campaign | None]
    in_search: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """Candidate at one epsilon: name of its type, campaign with its rounds and estimator, and mechanism."""

    name: str
    campaign: Campaign
    mechanism: ChannelMechanism

    @property
    def equivalence_key(self) -> object:
        """Return a key that is equal for candidates with the same predictions."""
        return self.campaign.method, self.campaign.rounds, channel_key(self.mechanism.channel())


def same_campaign(campaign: Campaign) -> Campaign | None:
    """Return the campaign unchanged."""
    return campaign


def ordinal_campaign(campaign: Campaign) -> Campaign | None:
    """Return the campaign with `ordinal-dawid-skene`; None if labels are not ordinal, or a method is given."""
    if campaign.method is None and isinstance(campaign.crowd, LabelCrowd) and campaign.crowd.ordinal:
        return replace(campaign, method=OrdinalDawidSkene.name)
    return None


def campaign_in_rounds(campaign: Campaign) -> Campaign | None:
    """Return the campaign in rounds; None for labels, short scales, few workers, or an assignment."""
    enough = campaign.workers >= MIN_WORKERS_FOR_ROUNDS and campaign.crowd.alphabet.size >= MIN_LABELS_FOR_ROUNDS
    if enough and isinstance(campaign.crowd, NumberCrowd) and campaign.assigned_per_task is None:
        return replace(campaign, rounds=ROUNDS)
    return None


_BASIC_TYPES = (
    CandidateType(
        name=RandomizedResponse.name,
        mechanism=lambda mechanisms: mechanisms.randomized_response,
        campaign=same_campaign,
        in_search=True,
    ),
    CandidateType(
        name=QuantizedResponse.name,
        mechanism=lambda mechanisms: mechanisms.quantized_response,
        campaign=same_campaign,
        in_search=True,
    ),
    CandidateType(name=OTHER_BLOCKS, mechanism=lambda mechanisms: mechanisms.other_blocks, campaign=same_campaign),
    CandidateType(name=Designed.name, mechanism=lambda mechanisms: mechanisms.designed, campaign=same_campaign),
)
CANDIDATE_TYPES = (
    *_BASIC_TYPES,
    *(replace(one, name=one.name + ORDINAL_SUFFIX, campaign=ordinal_campaign) for one in _BASIC_TYPES),
    CandidateType(
        name=IN_ROUNDS, mechanism=lambda mechanisms: mechanisms.quantized_response, campaign=campaign_in_rounds
    ),
)
"""All types of candidates; among equals, an earlier one is preferred."""
CANDIDATE_NAMES = tuple(one.name for one in CANDIDATE_TYPES)


def candidates(campaign: Campaign, epsilon: float, *, search_only: bool = False) -> list[Candidate]:
    """Return the candidates at one epsilon, in the order of `CANDIDATE_TYPES`.

    Args:
        campaign: to be planned.
        epsilon: in nats per cell.
        search_only: whether to leave out types that searches do not try.

    Raises:
        SettingsError: the epsilon is not accepted.
    """
    mechanisms, found = CandidateMechanisms(campaign.cell_objective, epsilon), []
    for one in CANDIDATE_TYPES:
        if search_only and not one.in_search:
            continue
        variant = one.campaign(campaign)
        mechanism = None if variant is None else one.mechanism(mechanisms)
        if variant is not None and mechanism is not None:
            found.append(Candidate(name=one.name, campaign=variant, mechanism=mechanism))
    return found


def other_blocks(objective: DesignObjective, best: QuantizedResponse) -> QuantizedResponse | None:
    """Return the most informative response with one block more than `best`, made by splitting a block.

    If every label is a block of its own, it has one block less, made by merging two; None for two blocks.
    """
    frequencies = objective.answer_distribution
    blocks = [list(block) for block in best.partition]
    if not objective.alphabet.ordered:
        blocks = [sorted(block, key=lambda code: -frequencies[code]) for block in blocks]
    partitions = list(_splits(blocks)) or list(_merges(blocks))
    responses = [_with_blocks(best, partition) for partition in partitions]
    return max(responses, key=lambda one: objective.score(one.channel().probabilities), default=None)


def channel_key(channel: Channel) -> frozenset[tuple[int, ...]]:
    """Return the columns of a channel; equal for channels that differ in names and order of symbols only."""
    return frozenset(zip(*channel.rows, strict=True))


def worker_cost(campaign: Campaign, mechanism: ChannelMechanism) -> Cost:
    """Return the cost of a mechanism for each worker of a campaign."""
    cell, worker = account(mechanism, tasks=campaign.charged_cells)
    symbols = len(mechanism.channel().outputs) + (campaign.participation == "public")
    return Cost(
        cell_epsilon=cell.exact,
        worker_epsilon=worker.exact,
        cells=campaign.charged_cells,
        symbols=symbols,
        bytes=-(-campaign.cells_per_worker * math.ceil(math.log2(symbols)) // 8),
    )


def _splits(blocks: Blocks) -> Iterator[Blocks]:
    for at, block in enumerate(blocks):
        for cut in range(1, len(block)):
            yield [*blocks[:at], block[:cut], block[cut:], *blocks[at + 1 :]]


def _merges(blocks: Blocks) -> Iterator[Blocks]:
    if len(blocks) > 2:
        for at in range(len(blocks) - 1):
            yield [*blocks[:at], blocks[at] + blocks[at + 1], *blocks[at + 2 :]]


def _with_blocks(response: QuantizedResponse, blocks: Blocks) -> QuantizedResponse:
    ordered = response.alphabet.ordered
    return QuantizedResponse(
        alphabet=response.alphabet,
        epsilon=response.epsilon,
        participation=response.participation,
        cuts=tuple(block[0] for block in blocks[1:]) if ordered else (),
        blocks=() if ordered else tuple(tuple(sorted(block)) for block in blocks),
    )
