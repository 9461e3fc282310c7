"""What a plan compares at one epsilon: one list of kinds, each a mechanism and a way to ask and to infer."""

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

OTHER = "quantized-response, other blocks"
READ_IN_ORDER = ", read in order"
"""What follows a line whose reports are read by the estimator for ordered labels."""
ROUNDS = 4
"""Rounds of a campaign in rounds: what the guide to `gaussian` measured."""
IN_ROUNDS = f"quantized-response in {ROUNDS} rounds"
FEWEST_CUT, FEWEST_DEALT = 3, 10
"""Labels and workers from which on rounds are tried: fewer have one cut only, or no worker to learn from."""

Blocks = list[list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a mechanism costs a worker.

    Attributes:
        cell_epsilon, worker_epsilon: exact privacy loss, in nats, of one cell and of all a worker's cells.
        cells: how many that are: all the worker's tasks where NULL is protected, else the answers expected.
        symbols: how many symbols a report can be, silence included.
        bytes: of a dense message of one fixed-width symbol per task: ceil(tasks * ceil(log2(symbols)) / 8).
    """

    cell_epsilon: float
    worker_epsilon: float
    cells: int
    symbols: int
    bytes: int


class Mechanisms:
    """The mechanisms for a question at one epsilon, each made when it is first asked for.

    Raises:
        SettingsError: epsilon is not accepted.
    """

    def __init__(self, objective: DesignObjective, epsilon: float) -> None:
        self.objective, self.epsilon = objective, epsilon

    @cached_property
    def randomized(self) -> ChannelMechanism:
        """Return randomized response."""
        asked = self.objective
        return RandomizedResponse(alphabet=asked.alphabet, epsilon=self.epsilon, participation=asked.participation)

    @cached_property
    def quantized(self) -> QuantizedResponse:
        """Return quantized response with the best blocks."""
        return QuantizedResponse.for_objective(self.objective, self.epsilon)

    @cached_property
    def other(self) -> ChannelMechanism | None:
        """Return it with other blocks; None with two labels only."""
        return other_blocks(self.objective, self.quantized)

    @cached_property
    def designed(self) -> ChannelMechanism:
        """Return the designed channel."""
        # NULL apart from labels, as the command line designs it: inference learns who answers how much.
        return Designed.from_channel(design_channel(self.objective, self.epsilon, null_apart=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of candidate.

    Attributes:
        line: its name.
        mechanism: what devices run; None where there is no such thing.
        campaign: how workers are asked and truths inferred; None where that cannot be.
        quick: whether searches for other ways to a target try it.
    """

    line: str
    mechanism: Callable[[Mechanisms], ChannelMechanism | None]
    campaign: Callable[[Campaign], Campaign | None]
    quick: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A kind at one epsilon: `campaign` is the one that was planned, asked and inferred from in this kind's way."""

    line: str
    campaign: Campaign
    mechanism: ChannelMechanism

    @property
    def sends(self) -> object:
        """Return what two candidates share whose predictions are the same."""
        return self.campaign.method, self.campaign.rounds, same_table(self.mechanism.channel())


def as_asked(campaign: Campaign) -> Campaign | None:
    """Return the campaign as it is."""
    return campaign


def read_in_order(campaign: Campaign) -> Campaign | None:
    """Return the campaign with the estimator for ordered labels; None where labels have none, or it was asked for."""
    if campaign.method is None and isinstance(campaign.crowd, LabelCrowd) and campaign.crowd.in_order:
        return replace(campaign, method=OrdinalDawidSkene.name)
    return None


def in_rounds(campaign: Campaign) -> Campaign | None:
    """Return the campaign in rounds; None for labels, with one cut, few workers, or where tasks are assigned."""
    enough = campaign.workers >= FEWEST_DEALT and campaign.crowd.alphabet.size >= FEWEST_CUT
    if enough and isinstance(campaign.crowd, NumberCrowd) and campaign.assigned_per_task is None:
        return replace(campaign, rounds=ROUNDS)
    return None


_USUAL = (
    Kind(line=RandomizedResponse.name, mechanism=lambda made: made.randomized, campaign=as_asked, quick=True),
    Kind(line=QuantizedResponse.name, mechanism=lambda made: made.quantized, campaign=as_asked, quick=True),
    Kind(line=OTHER, mechanism=lambda made: made.other, campaign=as_asked),
    Kind(line=Designed.name, mechanism=lambda made: made.designed, campaign=as_asked),
)
KINDS = (
    *_USUAL,
    *(replace(kind, line=kind.line + READ_IN_ORDER, campaign=read_in_order) for kind in _USUAL),
    Kind(line=IN_ROUNDS, mechanism=lambda made: made.quantized, campaign=in_rounds),
)
"""All kinds of candidates, in the order in which equals are preferred."""
LINES = tuple(kind.line for kind in KINDS)


def candidates(campaign: Campaign, epsilon: float, *, quick: bool = False) -> list[Candidate]:
    """Return the candidates at one epsilon that can be, in the order of `KINDS`.

    Args:
        campaign: what is planned.
        epsilon: in nats per cell.
        quick: only those of quick kinds.

    Raises:
        SettingsError: epsilon is not accepted.
    """
    made, found = Mechanisms(campaign.cell_objective, epsilon), []
    for kind in KINDS:
        changed = kind.campaign(campaign) if kind.quick or not quick else None
        mechanism = None if changed is None else kind.mechanism(made)
        if changed is not None and mechanism is not None:
            found.append(Candidate(line=kind.line, campaign=changed, mechanism=mechanism))
    return found


def other_blocks(objective: DesignObjective, best: QuantizedResponse) -> QuantizedResponse | None:
    """Return the best response with one block more than `best`, made by splitting one of its blocks.

    Where every label is a block already, one less, by merging two neighbours; None where two blocks are all there are.
    """
    expected = objective.answer_distribution
    blocks = [list(block) for block in best.partition]
    if not objective.alphabet.ordered:
        blocks = [sorted(block, key=lambda code: -expected[code]) for block in blocks]
    tried = list(_splits(blocks)) or list(_merges(blocks))
    made = [_response(best, partition) for partition in tried]
    return max(made, key=lambda one: objective.score(one.channel().probabilities), default=None)


def same_table(channel: Channel) -> frozenset[tuple[int, ...]]:
    """Return what two channels share that differ in names and order of report symbols only."""
    return frozenset(zip(*channel.rows, strict=True))


def cost(campaign: Campaign, mechanism: ChannelMechanism) -> Cost:
    """Return what a mechanism costs each worker of a campaign."""
    cell, worker = account(mechanism, tasks=campaign.reported_cells)
    symbols = len(mechanism.channel().outputs) + (campaign.participation == "public")
    return Cost(
        cell_epsilon=cell.exact,
        worker_epsilon=worker.exact,
        cells=campaign.reported_cells,
        symbols=symbols,
        bytes=-(-campaign.cells * math.ceil(math.log2(symbols)) // 8),
    )


def _splits(blocks: Blocks) -> Iterator[Blocks]:
    for at, block in enumerate(blocks):
        for cut in range(1, len(block)):
            yield [*blocks[:at], block[:cut], block[cut:], *blocks[at + 1 :]]


def _merges(blocks: Blocks) -> Iterator[Blocks]:
    if len(blocks) > 2:
        for at in range(len(blocks) - 1):
            yield [*blocks[:at], blocks[at] + blocks[at + 1], *blocks[at + 2 :]]


def _response(like: QuantizedResponse, blocks: Blocks) -> QuantizedResponse:
    ordered = like.alphabet.ordered
    return QuantizedResponse(
        alphabet=like.alphabet,
        epsilon=like.epsilon,
        participation=like.participation,
        cuts=tuple(block[0] for block in blocks[1:]) if ordered else (),
        blocks=() if ordered else tuple(tuple(sorted(block)) for block in blocks),
    )
