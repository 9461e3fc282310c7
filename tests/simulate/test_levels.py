"""Levels that are drawn uniformly and kept secret are a hyper-distribution of Li et al. 2018 (Definition 5.2).

Chebyshev's quadrature of four nodes with equal weights integrates polynomials up to degree 5 exactly. So four levels
at its nodes give reports on up to five cells exactly the distribution of a flip probability that is uniform.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from crowdveil.campaign.document import Campaign
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.public_lists import ALL_LISTS
from crowdveil.data.reports import Reports
from crowdveil.mechanisms.randomized_response import RandomizedResponse, epsilon_for_flip
from crowdveil.mechanisms.two_layer import TwoLayer
from crowdveil.randomness import seeded
from crowdveil.simulate.cell_perturbation import perturb_cells
from tests.campaign.builders import build_campaign
from tests.chi_square import chi_square_p_value

ALPHABET = Categories(("no", "yes"))
LOW, HIGH, TASKS, WORKERS, SYMBOLS = 0.1, 0.5, 4, 20_000, 3
NODES = (0.1875924740850799, 0.7946544722917661)
"""Nodes of Chebyshev's quadrature on [-1, 1], each with both signs: sqrt((1 -+ 2 / sqrt 5) / 3)."""
FALSE_ALARM = 1e-6


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    """Return a campaign whose four levels have the flip probabilities of the nodes, the largest one first."""
    middle, half = (LOW + HIGH) / 2, (HIGH - LOW) / 2
    flips = [middle + half * node for node in (NODES[1], NODES[0], -NODES[0], -NODES[1])]
    epsilons = [epsilon_for_flip(flip, SYMBOLS) for flip in flips]
    channels = [RandomizedResponse(alphabet=ALPHABET, epsilon=one).channel() for one in epsilons]
    return build_campaign(channels=channels, tasks=TASKS, content={"levels": 4}).campaign


def two_layer(differing: int) -> float:
    """Return P(one report on all tasks, which differs from the answers in some cells) under the two-layer mechanism."""
    shared = TwoLayer(alphabet=ALPHABET, low=LOW, high=HIGH).flip_distribution(TASKS)
    return math.exp(shared.log_probability(differing))


def test_nodes_are_those_of_chebyshev() -> None:
    """The stated nodes are the roots that the degree of exactness needs."""
    assert [math.sqrt((1 - 2 / math.sqrt(5)) / 3), math.sqrt((1 + 2 / math.sqrt(5)) / 3)] == pytest.approx(NODES)


@pytest.mark.parametrize("differing", range(TASKS + 1))
def test_the_mixture_of_levels_is_the_hyper_distribution(campaign: Campaign, differing: int) -> None:
    """From the integer tables: the mean over levels of the probability of a report is that of two-layer."""
    found = Fraction(0)
    for channel in campaign.channels:
        keep, flip = (Fraction(entry, channel.denominator) for entry in channel.rows[0][:2])
        found += flip**differing * keep ** (TASKS - differing) / len(campaign.channels)

    assert two_layer(differing) == pytest.approx(float(found), rel=1e-9)


@pytest.mark.slow
def test_reports_of_a_simulated_campaign_follow_the_hyper_distribution(campaign: Campaign) -> None:
    """Levels are drawn uniformly; the number of changed reports of a worker follows two-layer (p above 1e-6)."""
    levels = np.random.default_rng(11).integers(0, 4, WORKERS)
    tasks, workers = (np.array([f"{kind}{k:05}" for k in range(n)]) for kind, n in (("t", TASKS), ("w", WORKERS)))
    task, worker = np.divmod(np.arange(TASKS * WORKERS), WORKERS)
    answers = Reports(task, worker, np.zeros(len(task), dtype=np.int64), tasks, workers, ALPHABET, ALL_LISTS)
    table = ChannelTable.by_worker(campaign.channels, dict(zip(workers.tolist(), levels.tolist(), strict=True)))

    sent = perturb_cells(answers, table, seeded(12))
    kept = np.bincount(sent.worker[sent.value == 0], minlength=WORKERS)
    counts = np.bincount(TASKS - kept, minlength=TASKS + 1)
    expected = [math.comb(TASKS, h) * (SYMBOLS - 1) ** h * two_layer(h) for h in range(TASKS + 1)]

    assert 1 == pytest.approx(sum(expected))
    assert chi_square_p_value(counts, expected) > FALSE_ALARM
