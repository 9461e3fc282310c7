"""Shuffled reports: never below enumeration of all datasets, equal to direct sums, and an attack that is caught."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import Laplace
from crowdveil.privacy.loss_distribution import channel_profile, composed_epsilon
from crowdveil.privacy.shuffling import (
    BlanketPair,
    _pairs_of_different_and_equal_rows,
    blanket_delta,
    blanket_pairs,
    largest_shuffled_epsilon,
    message_sizes_and_counts,
    shuffled_cell_guarantee,
    shuffled_profile,
    shuffled_worker_guarantee,
)
from tests.privacy.channels import SMALL, randomized_response, table


def count_distribution(rows, answers) -> Counter:
    """Distribution of the counts of report symbols when these answers are reported."""
    found = Counter({(0,) * rows.shape[1]: 1.0})
    for answer in answers:
        after: Counter = Counter()
        for counts, mass in found.items():
            for symbol, probability in enumerate(rows[answer]):
                after[tuple(c + (k == symbol) for k, c in enumerate(counts))] += mass * probability
        found = after
    return found


def enumerated_deltas(channel: Channel, reports: int, epsilons) -> list[float]:
    """Largest hockey-stick divergence over all answers of the others and all pairs of the worker's answers."""
    rows = channel.probabilities
    worst = np.zeros(len(epsilons))
    for others in itertools.combinations_with_replacement(range(len(rows)), reports - 1):
        laws = [count_distribution(rows, (*others, own)) for own in range(len(rows))]
        for first, second in itertools.permutations(laws, 2):
            p, q = (np.array([law[counts] for counts in first]) for law in (first, second))
            worst = np.maximum(worst, [np.maximum(p - math.exp(e) * q, 0).sum() for e in epsilons])
    return worst.tolist()


def upper_delta(channel: Channel, reports: int, epsilon: float) -> float:
    """Certified delta of one shuffled cell."""
    return max(blanket_delta(pair, reports, epsilon) for pair in blanket_pairs(channel))


def homogeneous_pairs(channel: Channel) -> list[BlanketPair]:
    """Distinct pairs against others who all give the same answer: exact, for lower bounds."""
    rows = np.unique(channel.probabilities, axis=0)
    return list(
        {
            pair.classes_key(): pair for others in rows for pair in _pairs_of_different_and_equal_rows(rows, others)[0]
        }.values()
    )


def direct_delta(pair, reports: int, epsilon: float) -> float:
    """Delta of a pair of three classes by the multinomial sum, without convolution."""
    x = pair.first - math.exp(epsilon) * pair.second
    total, omega = 0.0, pair.omega
    for c, pc in likely(reports, omega[2]):
        for n, pn in likely(reports - c, (omega[0] + omega[1]) / (1 - omega[2])):
            a = np.arange(n + 1)
            split = binom.pmf(a, n, omega[0] / (omega[0] + omega[1]))
            total += pc * pn * float(split @ np.maximum(x[0] * a + x[1] * (n - a) + x[2] * c, 0))
    return total / reports


def likely(trials: int, probability: float):
    """Counts of a binomial with probability above 1e-14, with their probabilities."""
    masses = binom.pmf(np.arange(trials + 1), trials, probability)
    return [(k, masses[k]) for k in np.flatnonzero(masses > 1e-14)]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("reports", [2, 4, 6])
def test_no_dataset_of_the_others_exceeds_the_bound(name, reports):
    """For every answer of the others and every pair of answers, delta is at most the blanket's."""
    epsilons = np.linspace(0, 1.4, 6)

    for epsilon, exact in zip(epsilons, enumerated_deltas(SMALL[name], reports, epsilons), strict=True):
        assert exact <= upper_delta(SMALL[name], reports, epsilon) + 1e-12


@pytest.mark.parametrize("name", SMALL)
def test_the_lower_bound_is_a_dataset(name):
    """Against others who all answer alike the computed delta is that of the enumerated dataset."""
    rows, epsilon = SMALL[name].probabilities, 0.3
    rows = np.unique(rows, axis=0)
    exact = 0.0
    for others in range(len(rows)):
        laws = [count_distribution(rows, (others,) * 3 + (own,)) for own in range(len(rows))]
        for first, second in itertools.permutations(laws, 2):
            exact = max(exact, sum(max(0.0, p - math.exp(epsilon) * second[counts]) for counts, p in first.items()))

    found = max(blanket_delta(pair, 4, epsilon, 1 << 16) for pair in homogeneous_pairs(SMALL[name]))

    assert exact == pytest.approx(found, abs=2e-5)


TABLE = {
    (3, 1): ((100, 0.446, 0.440), (2000, 0.090, 0.090)),
    (3, 3): ((100, 2.987, 2.987), (2000, 0.533, 0.532)),
    (3, 5): ((825, 4.936, 4.936), (10_000, 0.739, 0.739)),
    (5, 2): ((100, 1.174, 1.156), (825, 0.370, 0.370)),
    (5, 5): ((2000, 2.899, 2.899),),
    (11, 3): ((825, 0.723, 0.722), (2000, 0.444, 0.444)),
}
"""Symbols and local epsilon to (reports, upper, lower), found by another program; delta 1e-6."""


@pytest.mark.slow
@pytest.mark.parametrize(("symbols", "epsilon"), TABLE)
def test_central_epsilon_of_randomized_response(symbols, epsilon):
    """Upper bound and exact lower bound are those of an independent program to 0.002, and the first is the larger."""
    channel = randomized_response(symbols, epsilon)
    for reports, upper, lower in TABLE[symbols, epsilon]:
        above = largest_shuffled_epsilon(blanket_pairs(channel), reports, 1e-6, channel.epsilon)
        below = largest_shuffled_epsilon(homogeneous_pairs(channel), reports, 1e-6, channel.epsilon)

        assert (upper, lower) == pytest.approx((above, below), abs=0.002)
        assert below <= above + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "reports", "at"), [(3.0, 300, 1.0), (1.0, 60, 0.5), (5.0, 825, 4.93)])
def test_convolution_is_the_direct_sum(epsilon, reports, at):
    """For three classes the lattice is above the multinomial sum by less than 0.2 %, and never below."""
    (pair,) = blanket_pairs(randomized_response(3, epsilon))
    direct = direct_delta(pair, reports, at)

    assert 1e-9 < direct
    assert direct * (1 - 1e-6) <= blanket_delta(pair, reports, at) <= 1.002 * direct


def test_a_batch_of_one_has_the_local_guarantee():
    """One report alone has the channel's own profile and, at a tiny delta, its epsilon."""
    for channel in SMALL.values():
        own = channel_profile(channel).delta(np.array([0.2, 0.6]))

        assert own == pytest.approx([upper_delta(channel, 1, e) for e in (0.2, 0.6)], abs=2e-4)
    channel = SMALL["rest"]

    assert shuffled_cell_guarantee(channel, reports=1, delta=1e-12).epsilon == pytest.approx(channel.epsilon, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2-rr", "rest"])
def test_monotone_in_reports_delta_and_epsilon(name):
    """More reports and a larger delta need a smaller epsilon; no epsilon is above the channel's."""
    channel = SMALL[name]
    by_reports = [shuffled_cell_guarantee(channel, reports=n, delta=1e-5).epsilon for n in (5, 50, 500)]
    by_delta = [shuffled_cell_guarantee(channel, reports=50, delta=d).epsilon for d in (1e-9, 1e-6, 1e-3)]

    assert sorted(by_reports, reverse=True) == by_reports
    assert sorted(by_delta, reverse=True) == by_delta
    assert max(by_reports + by_delta) <= channel.epsilon


def test_rows_and_columns_in_any_order():
    """A table with rows and columns permuted has the same epsilon."""
    rows = SMALL["random 1"].probabilities

    assert shuffled_cell_guarantee(table(rows), reports=200, delta=1e-6).epsilon == pytest.approx(
        shuffled_cell_guarantee(table(rows[[2, 0, 1]][:, [1, 2, 0]]), reports=200, delta=1e-6).epsilon, rel=1e-6
    )


def test_post_processing_adds_nothing():
    """A channel followed by another one has a shuffled epsilon at most its own."""
    channel = randomized_response(3, 2.0)
    second = np.array([[3, 1], [2, 2], [1, 3]]) / 4
    product = channel.probabilities @ second
    both = Channel.from_probabilities(channel.alphabet, "public", ("x", "y"), product, channel.ratio)

    after = shuffled_cell_guarantee(both, reports=300, delta=1e-6).epsilon

    assert after <= shuffled_cell_guarantee(channel, reports=300, delta=1e-6).epsilon


@pytest.mark.slow
def test_a_worker_of_unlinked_cells():
    """200 cells of randomized response over three symbols at epsilon 3, 2 and 1: (9.82, 1e-6), (4.52), (1.545)."""
    found = [
        shuffled_worker_guarantee(randomized_response(3, e), reports=2000, cells=200, delta=1e-6)
        for e in (3.0, 2.0, 1.0)
    ]

    assert [9.817, 4.516, 1.545] == pytest.approx([guarantee.epsilon for guarantee in found], rel=2e-3)


def test_one_cell_of_a_worker_is_the_cell():
    """The composed loss of one cell is the cell's own, up to the lattice."""
    channel = randomized_response(3, 2.0)
    worker = shuffled_worker_guarantee(channel, reports=500, cells=1, delta=1e-6).epsilon
    cell = shuffled_cell_guarantee(channel, reports=500, delta=1e-6).epsilon

    assert cell * (1 - 1e-4) <= worker <= cell * 1.005


@pytest.mark.slow
def test_a_table_with_many_pairs_composes():
    """A truncated geometric channel over three levels: 20 cells cost more than one, less than the sum."""
    channel = Laplace(alphabet=Scale(0, 2), epsilon=1.0, participation="public").channel()
    cell = shuffled_cell_guarantee(channel, reports=400, delta=1e-6).epsilon
    worker = shuffled_worker_guarantee(channel, reports=400, cells=20, delta=1e-6).epsilon

    assert cell < worker < 20 * cell


@pytest.mark.slow
@pytest.mark.parametrize(("linked", "epsilon"), [(2, 0.1725), (3, 0.2842)])
def test_linked_reports_cost_more(linked, epsilon):
    """k reports in one message, all changed: the product table's epsilon, more than k unlinked reports and one cell."""
    channel = randomized_response(3, 1.0)
    apart = shuffled_worker_guarantee(channel, reports=2000, cells=linked, delta=1e-6).epsilon
    one = shuffled_cell_guarantee(channel, reports=2000, delta=1e-6, linked=linked).epsilon
    together = shuffled_worker_guarantee(channel, reports=2000, cells=linked, delta=1e-6, linked=linked).epsilon

    assert epsilon == pytest.approx(together, rel=5e-3)
    assert apart < together
    assert shuffled_cell_guarantee(channel, reports=2000, delta=1e-6).epsilon < one < together


@pytest.mark.slow
def test_linked_reports_are_the_enumerated_product():
    """Two linked reports among four messages: enumeration of all datasets of the product table is not exceeded."""
    one = SMALL["2-rr"].probabilities
    product = table(np.kron(one, one))
    profile = shuffled_profile(SMALL["2-rr"], 3, 2, 1e-12)
    epsilons = np.array([0.0, 0.5, 1.0])

    assert (np.array(enumerated_deltas(product, 3, epsilons)) <= profile.delta(epsilons) + 1e-9).all()


def test_a_remainder_of_linked_cells_is_its_own_message():
    """Seven cells in messages of three: two messages of three and one of one."""
    assert [(3, 2), (1, 1)] == message_sizes_and_counts(7, 3)


def attack(shuffle, channel: Channel, reports: int, epsilon: float, looks_at) -> float:
    """Estimated P(E) - e^epsilon Q(E) of the best event of the statistic `looks_at`, on one half of 20,000 runs each.

    The event is chosen on the other half, so the estimate is unbiased; its standard error is below 0.02.
    """
    rng, runs = np.random.default_rng(5), 20_000
    samples = []
    for own in (0, 1):
        answers = np.concatenate((np.full((runs, 1), own), np.zeros((runs, reports - 1), dtype=int)), axis=1)
        drawn = (rng.random(answers.shape)[..., None] > channel.probabilities.cumsum(axis=1)[answers]).sum(axis=2)
        samples.append([looks_at(shuffle(row, rng)) for row in drawn])
    (p_train, p_test), (q_train, q_test) = ((Counter(s[: runs // 2]), Counter(s[runs // 2 :])) for s in samples)
    event = [value for value in p_train if p_train[value] > math.exp(epsilon) * q_train[value]]
    return sum(p_test[value] - math.exp(epsilon) * q_test[value] for value in event) / (runs // 2)


def counts_of(symbols: int):
    """Statistic of a curator who sees an unordered batch."""
    return lambda row: tuple(np.bincount(row, minlength=symbols))


@pytest.mark.slow
@pytest.mark.parametrize("reports", [8, 40])
def test_an_attack_on_shuffled_reports_stays_below_delta(reports):
    """The best event of the counts, against others who all give one of the two answers, keeps (epsilon, 0.05)."""
    channel = randomized_response(3, 2.0)
    epsilon = shuffled_cell_guarantee(channel, reports=reports, delta=0.05).epsilon

    assert attack(lambda row, rng: rng.permutation(row), channel, reports, epsilon, counts_of(3)) <= 0.05 + 0.06


@pytest.mark.parametrize("reports", [8, 40])
def test_a_shuffler_that_keeps_the_order_is_caught(reports):
    """Where the first report stays first, the same attack exceeds the claim many times over."""
    channel = randomized_response(3, 2.0)
    epsilon = shuffled_cell_guarantee(channel, reports=reports, delta=0.05).epsilon

    assert attack(lambda row, rng: row, channel, reports, epsilon, lambda row: int(row[0])) > 0.15


def test_a_batch_of_one_is_caught():
    """A report sent alone under the claim of 40 exceeds it; the figure of one report is kept."""
    channel = randomized_response(3, 2.0)
    claimed, honest = (shuffled_cell_guarantee(channel, reports=n, delta=0.05).epsilon for n in (40, 1))

    assert attack(lambda row, rng: row, channel, 1, claimed, counts_of(3)) > 0.4
    assert attack(lambda row, rng: row, channel, 1, honest, counts_of(3)) <= 0.05 + 0.06


def test_a_composition_with_cells_dropped_is_smaller():
    """The worker's figure counts every cell: one dropped of ten is seen."""
    profile = shuffled_profile(randomized_response(3, 1.0), 500, 1, 1e-12)

    assert composed_epsilon([(profile, 9)], 1e-6) < 0.97 * composed_epsilon([(profile, 10)], 1e-6)


@pytest.mark.parametrize(
    ("change", "rule"),
    [({"reports": 0}, "shuffled reports"), ({"delta": 0.0}, "delta"), ({"linked": 0}, "linked reports")],
)
def test_bad_settings_are_refused(change, rule):
    """No reports, no delta and nothing linked are refused with a rule."""
    with pytest.raises(SettingsError, match=rule):
        shuffled_cell_guarantee(SMALL["2-rr"], **{"reports": 100, "delta": 1e-6, **change})


def test_only_tables_with_finite_epsilon_are_amplified():
    """The identity, a table with zeros, has no shuffled guarantee."""
    names = Categories(("no", "yes"))
    with pytest.raises(SettingsError, match="finite epsilon"):
        shuffled_cell_guarantee(Channel.identity(names, "public"), reports=100, delta=1e-6)
