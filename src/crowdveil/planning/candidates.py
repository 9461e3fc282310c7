"""What a plan compares at one epsilon: randomized response, blocks of labels in two ways, and the designed channel."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from crowdveil.accounting import account
from crowdveil.channel import Channel
from crowdveil.design import design
from crowdveil.mechanisms import ChannelMechanism, Designed, QuantizedResponse, Question, RandomizedResponse
from crowdveil.planning.campaign import Campaign

OTHER = "quantized-response, other blocks"
LINES = (RandomizedResponse.name, QuantizedResponse.name, OTHER, Designed.name)
"""Kinds of candidates, in the order in which equals are preferred."""

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


def candidates(campaign: Campaign, epsilon: float) -> dict[str, ChannelMechanism]:
    """Return the mechanisms at one epsilon, by line; without other blocks where there are two labels only.

    Raises:
        SettingsError: epsilon is not accepted.
    """
    question = campaign.asked
    best = QuantizedResponse.for_question(question, epsilon)
    found: dict[str, ChannelMechanism] = {
        RandomizedResponse.name: RandomizedResponse(
            alphabet=question.alphabet, epsilon=epsilon, participation=question.participation
        ),
        QuantizedResponse.name: best,
    }
    other = other_blocks(question, best)
    if other is not None:
        found[OTHER] = other
    # NULL apart from labels, as the command line designs it: inference learns who answers how much.
    return found | {Designed.name: Designed.from_channel(design(question, epsilon, null_apart=True))}


def other_blocks(question: Question, best: QuantizedResponse) -> QuantizedResponse | None:
    """Return the best response with one block more than `best`, made by splitting one of its blocks.

    Where every label is a block already, one less, by merging two neighbours; None where two blocks are all there are.
    """
    expected = question.expected_answers
    blocks = [list(block) for block in best.partition]
    if not question.alphabet.ordered:
        blocks = [sorted(block, key=lambda code: -expected[code]) for block in blocks]
    tried = list(_splits(blocks)) or list(_merges(blocks))
    made = [_response(best, partition) for partition in tried]
    return max(made, key=lambda one: question.score(one.channel().probabilities), default=None)


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
