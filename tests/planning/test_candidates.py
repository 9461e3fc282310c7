"""What is compared at one epsilon, and what it costs a worker."""

from math import ceil, log2

import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.mechanisms import QuantizedResponse, RandomizedResponse
from crowdveil.planning import KINDS, Campaign, candidates
from crowdveil.planning.candidates import IN_ROUNDS, OTHER, READ_IN_ORDER, cost, other_blocks, same_table
from tests.planning.campaigns import of_labels, of_numbers


@pytest.mark.parametrize("campaign", [of_labels(), of_labels(participation="public"), of_numbers()])
def test_candidates_keep_their_epsilon(campaign: Campaign) -> None:
    """Every kind that can be is there, says no more than the epsilon asked for, and none more than the designed one."""
    made = candidates(campaign, 1.0)
    said = {one.line: campaign.information(one.mechanism.channel()) for one in made}

    assert [kind.line for kind in KINDS if kind.campaign(campaign)] == list(said)
    assert all(0.99 < one.mechanism.guarantee.epsilon <= 1.0 for one in made)
    assert max(said.values()) <= said["designed"] * (1 + 1e-9)


def test_two_labels_have_no_other_blocks() -> None:
    """Where there are two blocks at most, the line of other blocks is left out."""
    assert OTHER not in [one.line for one in candidates(of_labels(labels=2), 1.0)]


@pytest.mark.parametrize(
    ("campaign", "read_in_order", "rounds"),
    [
        (of_labels(), False, False),
        (of_labels(ordered=True), True, False),
        (of_labels(ordered=True, labels=2), False, False),
        (of_labels(ordered=True, method="dawid-skene"), False, False),
        (of_numbers(), False, True),
        (of_numbers(workers=8), False, False),
        (of_numbers(assigned_per_task=15), False, False),
    ],
)
def test_kinds_are_tried_where_they_can_be(campaign: Campaign, read_in_order: bool, rounds: bool) -> None:
    """Order is read where three labels have one and no method is asked for; rounds are for open scales of some size."""
    made = candidates(campaign, 2.0)

    assert read_in_order == any(one.line.endswith(READ_IN_ORDER) for one in made)
    assert all(
        ("ordinal-dawid-skene" == one.campaign.estimator.name) == one.line.endswith(READ_IN_ORDER) for one in made
    )
    assert ([4] if rounds else []) == [one.campaign.rounds for one in made if one.line == IN_ROUNDS]
    assert all(one.campaign.rounds == 1 for one in made if one.line != IN_ROUNDS)


def test_quick_kinds_are_a_part_of_all() -> None:
    """Searches try randomized response and blocks, in every way to read them, and nothing that takes long."""
    made = [one.line for one in candidates(of_labels(ordered=True), 2.0, quick=True)]

    assert ["randomized-response", "quantized-response"] == made[:2]
    assert [line + READ_IN_ORDER for line in made[:2]] == made[2:]


def test_other_blocks_are_the_best_of_one_more() -> None:
    """The other response has one block more and the largest information of all cuts with one more (by trying each)."""
    objective = of_numbers().cell_objective
    best = QuantizedResponse.for_objective(objective, 0.5)
    other = other_blocks(objective, best)
    tried = [
        QuantizedResponse(alphabet=objective.alphabet, epsilon=0.5, cuts=tuple(sorted({*best.cuts, cut})))
        for cut in range(1, 5)
        if cut not in best.cuts
    ]

    assert other is not None
    assert len(other.partition) == len(best.partition) + 1
    assert other.cuts in [one.cuts for one in tried]
    scores = [objective.score(one.channel().probabilities) for one in tried]
    assert objective.score(other.channel().probabilities) == pytest.approx(max(scores))


def test_where_every_label_is_a_block_the_other_response_merges_two() -> None:
    """At a large epsilon the best blocks are the labels: the other has one less, and unordered labels have blocks."""
    objective = of_labels().cell_objective
    best = QuantizedResponse.for_objective(objective, 8.0)
    other = other_blocks(objective, best)

    assert (3, 2) == (len(best.partition), len(other.partition) if other else 0)
    assert other is not None
    assert other.blocks
    assert not other.cuts


def test_tables_are_the_same_whatever_the_reports_are_called() -> None:
    """Blocks of single labels say what randomized response says; another epsilon does not."""
    alphabet = Categories(("no", "yes"))
    response = RandomizedResponse(alphabet=alphabet, epsilon=1.0)
    blocks = QuantizedResponse(alphabet=alphabet, epsilon=1.0, blocks=((1,), (0,)))

    assert same_table(response.channel()) == same_table(blocks.channel())
    assert same_table(response.channel()) != same_table(RandomizedResponse(alphabet=alphabet, epsilon=2.0).channel())


@pytest.mark.parametrize("participation", ["protected", "public"])
def test_cost_follows_the_stated_formula(participation) -> None:  # type: ignore[no-untyped-def]
    """Bytes are those of one fixed-width symbol per task; epsilons add up over cells that reveal something."""
    campaign = of_labels(labels=4, tasks=61, rate=0.25, participation=participation)
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=1.0, participation=participation)
    found = cost(campaign, mechanism)

    assert found.bytes == ceil(61 * ceil(log2(5)) / 8)
    assert found.cells == (61 if participation == "protected" else 16)
    assert found.worker_epsilon == pytest.approx(found.cells * found.cell_epsilon)


def test_assigned_workers_send_their_own_cells_only() -> None:
    """With 10 of 40 workers per task a worker has 15 of 60 tasks, answers them twice as fully, and pays for 15."""
    campaign = of_labels(rate=0.2, assigned_per_task=10)
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=1.0)

    assert (15, 0.8, 10) == (campaign.cells, pytest.approx(campaign.rate), campaign.reporters)
    assert cost(campaign, mechanism).cells == 15
