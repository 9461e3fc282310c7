"""The corrected matrix factorization: exact contributions, exact epsilon, a statistical audit, sums."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

from crowdveil.channels.alphabet import Scale
from crowdveil.channels.guarantee import Guarantee
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import matrix_factorization as module
from crowdveil.mechanisms.discrete_laplace import discrete_laplace_variance
from crowdveil.mechanisms.matrix_factorization import MatrixFactorization
from crowdveil.randomness import secure, seeded

SCALE = Scale(0, 4)
NULL = SCALE.size
SMALL = [
    MatrixFactorization(alphabet=Scale(0, 2), epsilon=1.0),
    MatrixFactorization(alphabet=Scale(0, 2), epsilon=0.5, dimensions=1),
    MatrixFactorization(alphabet=Scale(-1, 1, 0.5), epsilon=2.0, dimensions=2),
]


@pytest.fixture
def no_noise(monkeypatch):
    """Turn both kinds of noise off, so that the exact part of a report can be seen."""
    monkeypatch.setattr(module, "sample_discrete_laplace", lambda scale, count, source: [0] * count)
    monkeypatch.setattr(
        module, "simulate_discrete_laplace_sum", lambda scale, terms, count, source: np.zeros(count, dtype=np.int64)
    )


def by_loops(mechanism: MatrixFactorization, answers: list[int]) -> tuple[list[Fraction], list[Fraction]]:
    """Return sum_j v_j (a_j - c) and sum_j v_j g over answered tasks, exactly as the documentation defines them."""
    scale = mechanism.alphabet
    low, high, step = (Fraction(repr(float(x))) for x in (scale.low, scale.high, scale.step))
    centre, gain = (low + high) / 2, (high - low) / 2
    length = mechanism.dimensions or len(answers)
    values, counts = [Fraction(0)] * length, [Fraction(0)] * length
    for task, code in enumerate(answers):
        if code < scale.size:
            values[task % length] += low + code * step - centre
            counts[task % length] += gain
    return values, counts


@pytest.mark.parametrize("mechanism", SMALL, ids=str)
def test_exact_part_is_the_definition(mechanism, no_noise):
    """Without noise the report is the definition's sums as loops, in units of half a step."""
    unit = Fraction(repr(float(mechanism.alphabet.step))) / 2
    for answers in itertools.product(range(mechanism.alphabet.size + 1), repeat=3):
        values, counts = by_loops(mechanism, list(answers))

        report = mechanism.perturb(np.array(answers), secure())

        assert [value / unit for value in values + counts] == report.tolist()


@pytest.mark.parametrize("mechanism", SMALL, ids=str)
def test_no_neighbours_differ_by_more_than_the_sensitivity(mechanism, no_noise):
    """Over all answers to 3 tasks, neighbours differ by at most epsilon * scale in L1 norm, some by exactly that."""
    symbols = range(mechanism.alphabet.size + 1)
    exact = {a: mechanism.perturb(np.array(a), secure()) for a in itertools.product(symbols, repeat=3)}

    farthest = max(
        int(np.abs(exact[a] - exact[(*a[:j], symbol, *a[j + 1 :])]).sum())
        for a in exact
        for j in range(3)
        for symbol in symbols
    )

    assert Fraction(mechanism.epsilon) * mechanism.noise_scale == farthest


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_brute_force_ratio_never_exceeds_the_promise(epsilon, no_noise):
    """Probabilities of all reports near the centre, one task of three labels and NULL: worst ratio is exp(epsilon)."""
    mechanism = MatrixFactorization(alphabet=Scale(0, 2), epsilon=epsilon)
    q = math.exp(-1 / float(mechanism.noise_scale))
    reports = np.array(list(itertools.product(range(-9, 10), repeat=2)))
    tables = []
    for code in range(4):
        distance = np.abs(reports - mechanism.perturb(np.array([code]), secure())).sum(axis=1)
        tables.append(((1 - q) / (1 + q)) ** 2 * q**distance)

    worst = max(float((a / b).max()) for a, b in itertools.permutations(tables, 2))

    assert pytest.approx(math.exp(epsilon), rel=1e-12) == worst


def lower_bound(hits: tuple[int, int], count: int, error: float) -> float:
    """Return a lower confidence bound on ln P1 / P2 from two binomial counts (Clopper-Pearson, error/2 each)."""
    low = beta.ppf(error / 2, hits[0], count - hits[0] + 1)
    high = beta.ppf(1 - error / 2, hits[1] + 1, count - hits[1])
    return math.log(low / high)


def audit(mechanism: MatrixFactorization, first: int, second: int, threshold: tuple[int, int], count: int) -> float:
    """Return the bound for the event "both numbers that speak of a cell reach the threshold".

    A worker who gives one answer to `count` tasks with buckets of their own shows the event `count` independent times.
    """
    hits = []
    for seed, code in enumerate((first, second)):
        reports = mechanism.perturb(np.full(count, code), seeded(100 + seed)).reshape(2, count)
        hits.append(int((reports.T >= threshold).all(axis=1).sum()))
    return lower_bound((hits[0], hits[1]), count, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "threshold"),
    [(4, 0, (4, -99)), (4, NULL, (4, 4)), (2, NULL, (-99, 4))],
    ids=["value-value", "value-NULL", "middle-NULL"],
)
def test_audit_finds_no_more_than_the_promise(first, second, threshold):
    """The lower bound on epsilon from 20,000 cells per neighbour stays below epsilon = 1; false alarm 1e-6 each."""
    mechanism = MatrixFactorization(alphabet=SCALE, epsilon=1.0)

    assert audit(mechanism, first, second, threshold, 20_000) <= 1.0


@pytest.mark.slow
def test_audit_finds_half_the_noise_too_little():
    """The same audit convicts a mechanism that uses epsilon 2 and promises 1, for values and for participation."""
    careless = MatrixFactorization(alphabet=SCALE, epsilon=2.0)

    assert audit(careless, 4, 0, (4, -99), 20_000) > 1.0
    assert audit(careless, 4, NULL, (4, 4), 20_000) > 1.0


@pytest.mark.parametrize("mechanism", SMALL, ids=str)
def test_report_has_a_fixed_length_and_the_promise_is_exact(mechanism):
    """Whatever the answers, a report is 2 d integers; there is no channel; epsilon is what was asked for."""
    size = mechanism.alphabet.size
    lengths = {mechanism.perturb(np.full(5, code), secure()).shape for code in range(size + 1)}

    assert {(2 * (mechanism.dimensions or 5),)} == lengths
    assert np.int64 == mechanism.perturb(np.full(5, size), secure()).dtype
    assert mechanism.channel() is None
    assert Guarantee(epsilon=mechanism.epsilon) == mechanism.guarantee


@pytest.mark.parametrize("mechanism", SMALL, ids=str)
def test_simulated_sum_has_the_exact_part_of_the_sum_of_reports(mechanism, no_noise):
    """Without noise the simulation of the sum equals the sum of the workers' reports."""
    answers = np.random.default_rng(1).integers(0, mechanism.alphabet.size + 1, size=(6, 4))
    worker, task = np.nonzero(answers < mechanism.alphabet.size)

    simulated = mechanism.simulate_sum_of_reports(task, answers[worker, task], 4, 6, seeded(0))

    assert sum(mechanism.perturb(row, secure()) for row in answers).tolist() == simulated.tolist()


def test_simulated_sum_has_the_noise_of_all_workers():
    """Variance over 4,000 numbers of a sum of 30 NULL workers is 30 times one report's, within six deviations."""
    mechanism = MatrixFactorization(alphabet=SCALE, epsilon=1.0, dimensions=2000)
    empty = np.array([], dtype=int)

    noise = mechanism.simulate_sum_of_reports(empty, empty, 2000, 30, seeded(2))

    expected = 30 * discrete_laplace_variance(mechanism.noise_scale)
    assert abs(noise.var() / expected - 1) < 6 * math.sqrt(2.2 / 4000)


@pytest.mark.parametrize("mechanism", SMALL, ids=str)
def test_totals_are_in_the_units_of_the_answers(mechanism, no_noise):
    """Decoded sums are sum_j v_j (a_j - c) and the numbers of answers, with the noise's deviation in the same units."""
    answers = [0, 2, mechanism.alphabet.size, 1]
    values, _ = by_loops(mechanism, answers)
    table = np.zeros((mechanism.dimensions or 4, 4))
    table[np.arange(4) % len(table), np.arange(4)] = 1

    totals = mechanism.totals_in_answer_units(mechanism.perturb(np.array(answers), secure()), tasks=4, workers=9)

    np.testing.assert_allclose(totals.numerators, [float(value) for value in values], atol=1e-12)
    deviation = 3 * math.sqrt(discrete_laplace_variance(mechanism.noise_scale))
    assert pytest.approx(deviation * mechanism.alphabet.step / 2) == totals.numerator_deviation
    np.testing.assert_allclose(totals.counts, table @ [1, 1, 0, 1], atol=1e-12)
    assert pytest.approx(totals.numerator_deviation / mechanism.alphabet.range * 2) == totals.count_deviation
    np.testing.assert_allclose(np.eye(len(table))[totals.buckets].T, table)
    assert (mechanism.alphabet.low, mechanism.alphabet.high, 9) == (totals.low, totals.high, totals.workers)


def test_totals_refuse_a_sum_of_another_length():
    """A sum that does not belong to the campaign is refused."""
    mechanism = MatrixFactorization(alphabet=SCALE, epsilon=1.0)

    with pytest.raises(SettingsError, match="6 numbers"):
        mechanism.totals_in_answer_units(np.zeros(4, dtype=np.int64), tasks=3, workers=1)


def test_a_campaign_without_tasks_has_an_empty_report():
    """No task, no number."""
    assert [] == MatrixFactorization(alphabet=SCALE, epsilon=1.0).perturb(np.array([], dtype=int), secure()).tolist()


@pytest.mark.parametrize(("epsilon", "kept"), [(1.0, 1.0), (0.5, 0.5), (0.1, 0.1 - 1e-13), (0.3, 0.3 - 3e-13)])
def test_sums_of_cells_stay_within_the_asked_epsilon(epsilon, kept):
    """The noise keeps the asked epsilon, or just less where sums of it would have to be rounded up past n epsilon."""
    mechanism = MatrixFactorization(alphabet=Scale(0, 9), epsilon=epsilon)
    lost = Fraction(2 * 9) / mechanism.noise_scale

    cell, worker = mechanism.guarantees(3)

    assert pytest.approx(kept, rel=1e-15) == cell.epsilon
    assert lost <= Fraction(cell.epsilon) <= Fraction(repr(epsilon))
    assert 3 * lost <= Fraction(worker.epsilon) <= 3 * Fraction(repr(epsilon))
