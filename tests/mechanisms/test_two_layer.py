"""Two-layer mechanism of Li et al.: exact losses by brute force, in rational arithmetic and by sampling."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.rounding import format_bound, sum_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import OneLayer, TwoLayer
from crowdveil.mechanisms.base import flip_symbols
from crowdveil.mechanisms.two_layer import SharedFlipDistribution
from crowdveil.randomness import seeded
from tests.chi_square import chi_square_p_value

YES_NO = Categories(("no", "yes"))


def public(low, high, *, labels=2, answers=None):
    """A two-layer mechanism over the labels alone."""
    alphabet = Categories(tuple("abcdefgh"[:labels]))
    return TwoLayer(alphabet=alphabet, low=low, high=high, answers=answers, participation="public")


def log_fraction(ratio: Fraction) -> float:
    """The absolute natural logarithm of a rational."""
    return abs(math.log(ratio.numerator) - math.log(ratio.denominator))


def exact_probability(low, high, symbols, cells, differing):
    """g(h), the integral over p ~ U(low, high) in rational arithmetic, by expanding (1 - p)^(k - h)."""
    low, high = Fraction(low), Fraction(high)
    total = Fraction(0)
    for j in range(cells - differing + 1):
        power = differing + j + 1
        coefficient = math.comb(cells - differing, j) * (-1) ** j
        total += Fraction(coefficient, power) * (high**power - low**power)
    return total / (high - low) / (symbols - 1) ** differing


def losses_by_brute_force(low, high, symbols, cells):
    """Worst |ln ratio| over all reports: for answers that differ in one cell, and for any two."""
    table = [exact_probability(low, high, symbols, cells, h) for h in range(cells + 1)]
    vectors = list(itertools.product(range(symbols), repeat=cells))
    first = vectors[0]
    cell = worker = 0.0
    for other, report in itertools.product(vectors[1:], vectors):
        here, there = (sum(a != b for a, b in zip(x, report, strict=True)) for x in (first, other))
        loss = log_fraction(table[here] / table[there])
        worker = max(worker, loss)
        if sum(a != b for a, b in zip(first, other, strict=True)) == 1:
            cell = max(cell, loss)
    return cell, worker


@pytest.mark.parametrize(
    ("low", "high", "symbols", "cells"),
    [(0.05, 0.6, 3, 4), (0.0, 0.95, 2, 5), (0.1, 0.4, 4, 3), (0.25, 1.0, 2, 4), (0.5, 0.9, 3, 3), (0.0, 1.0, 2, 2)],
)
def test_losses_equal_brute_force(low, high, symbols, cells):
    """Per cell and per worker, the figures are the worst ratios over all answers and all reports, to 1e-9."""
    cell, worker = public(low, high, labels=symbols, answers=cells).guarantees(cells)

    assert losses_by_brute_force(low, high, symbols, cells) == pytest.approx((cell.epsilon, worker.epsilon), abs=1e-9)


@pytest.mark.parametrize(
    ("labels", "claimed", "exact"),
    [
        (2, 0.1, {1: 0.100, 2: 0.700, 5: 1.609, 10: 2.303, 50: 3.912, 100: 4.605, 277: 5.624}),
        (2, 0.5, {1: 0.500, 2: 0.842, 5: 1.613, 10: 2.303, 50: 3.912, 100: 4.605, 277: 5.624}),
        (2, 1.0, {1: 1.000, 2: 1.175, 5: 1.681, 10: 2.305, 50: 3.912, 100: 4.605, 277: 5.624}),
        (2, 2.0, {1: 2.000, 2: 2.052, 5: 2.217, 10: 2.503, 50: 3.912, 100: 4.605, 277: 5.624}),
        (5, 2.0, {1: 2.000, 2: 2.292, 5: 3.006, 10: 3.689, 50: 5.298, 100: 5.991, 277: 7.010}),
    ],
)
def test_published_setting_loses_more_than_it_claims(labels, claimed, exact):
    """With low = 0 the exact epsilon grows like ln(k (s - 1)), whatever is claimed."""
    alphabet = Scale(1, labels)
    figures = {
        k: TwoLayer.as_published(alphabet=alphabet, epsilon=claimed, participation="public", answers=k).guarantee
        for k in exact
    }

    assert exact == {k: round(guarantee.epsilon, 3) for k, guarantee in figures.items()}
    assert {claimed} == {round(guarantee.claimed, 12) for guarantee in figures.values()}
    assert all("277 answers" in figures[277].reason for _ in figures)


@pytest.mark.parametrize(("share", "fifty", "limit"), [(0.1, 3.03, 3.589), (0.25, 2.37, 2.630), (0.5, 1.72, 1.862)])
def test_a_positive_low_end_bounds_the_loss(share, fifty, limit):
    """Claimed 1, two labels, low a share of one-layer's flip: the figure for 50 answers, and for any number."""
    flip = OneLayer(alphabet=YES_NO, epsilon=1.0, participation="public").flip_probability
    settings = {"alphabet": YES_NO, "epsilon": 1.0, "low": share * flip, "participation": "public"}

    assert fifty == round(TwoLayer.calibrated(answers=50, **settings).guarantee.epsilon, 2)
    assert limit == round(TwoLayer.calibrated(**settings).guarantee.epsilon, 3)


def test_bound_is_the_worst_single_flip_probability():
    """Unknown count: ln((1-a)(s-1)/a), or the other end's ln(b / ((1-b)(s-1))) where that is larger."""
    assert math.log(0.95 * 2 / 0.05) == pytest.approx(public(0.05, 0.6, labels=3).guarantee.epsilon, abs=1e-11)
    assert math.log(0.95 / (0.05 * 2)) == pytest.approx(public(0.3, 0.95, labels=3).guarantee.epsilon, abs=1e-11)
    assert "all answers of a worker" in public(0.05, 0.6).guarantee.reason


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.5), (0.2, 1.0)])
def test_nothing_is_promised_when_the_secret_may_be_certain(low, high):
    """With p = 0 (or 1) possible and no number of answers, the guarantee is infinite and says what to do."""
    guarantee = public(low, high).guarantee

    assert math.isinf(guarantee.epsilon)
    assert guarantee.claimed < 2.0
    assert "set the number of answers" in guarantee.reason


@pytest.mark.slow
@given(
    st.integers(0, 900),
    st.integers(50, 1000),
    st.integers(2, 8),
    st.lists(st.integers(1, 100_000), min_size=2, max_size=6),
)
def test_loss_grows_with_the_number_of_answers_up_to_the_bound(low, width, labels, counts):
    """More answers never lose less, and the bound for an unknown number holds for all."""
    mechanism = public(low / 1000, min(low + width, 1000) / 1000, labels=labels)
    losses = [mechanism.guarantees(k) for k in sorted(counts)]

    cells = [cell.epsilon for cell, _ in losses]
    workers = [worker.epsilon for _, worker in losses]
    assert sorted(cells) == pytest.approx(cells, abs=1e-12)
    assert sorted(workers) == pytest.approx(workers, rel=1e-9)
    assert cells[-1] <= mechanism.guarantee.epsilon


@pytest.mark.parametrize(("low", "high", "symbols"), [(0.0, 0.95, 2), (0.0, 1.0, 3), (0.1, 0.9, 2), (1e-6, 1.0, 4)])
@pytest.mark.parametrize("cells", [1, 2, 10, 1000, 100_000])
def test_cell_loss_equals_its_closed_form(low, high, symbols, cells):
    """The ratios at h = 0 and h = k - 1 in 400 decimal digits agree to 1e-10, up to 100,000 cells."""
    with localcontext(prec=400):
        a, b, k, s = Decimal(low), Decimal(high), cells, symbols
        first = (
            (s - 1) * k * ((1 - a) ** (k + 1) - (1 - b) ** (k + 1))
            / ((1 - a) ** k * (1 + k * a) - (1 - b) ** k * (1 + k * b))
        )  # fmt: skip
        last = (s - 1) * ((b**k - a**k) / k * (k + 1) / (b ** (k + 1) - a ** (k + 1)) - 1)
        expected = float(max(abs(first.ln()), abs(last.ln())))

    loss = SharedFlipDistribution(low=low, high=high, symbols=symbols, cells=cells).cell_loss()

    assert expected == pytest.approx(loss, abs=1e-10)


@pytest.mark.parametrize(("low", "high", "labels", "cells"), [(0.0, 0.8, 2, 1), (0.1, 0.9, 3, 2), (0.0, 1.0, 2, 3)])
def test_rounding_of_the_secret_is_accounted_for(monkeypatch, low, high, labels, cells):
    """On a 10-bit device, with a coarse grid of p, the loss of its finite distribution stays within the margin."""
    monkeypatch.setattr("crowdveil.mechanisms.two_layer.DENOMINATOR", 1 << 10)
    monkeypatch.setattr("crowdveil.mechanisms.two_layer.WORD_BITS", 10)
    mechanism = public(low, high, labels=labels, answers=cells)

    class EveryWord:
        simulation = True

        def words(self, count):
            return np.arange(count, dtype=np.uint64)

    p = [Fraction(int(t) * (labels - 1), 1 << 10) for t in mechanism.draw_flip_weights(1 << 10, EveryWord())]
    g = [
        sum((q / (labels - 1)) ** h * (1 - q) ** (cells - h) for q in p) / len(p) for h in range(cells + 1)
    ]  # fmt: skip
    cell = max(log_fraction(g[h] / g[h + 1]) for h in range(cells))
    distribution, rounding = mechanism.distribution_of_shared_flips(cells), mechanism.numerical_error(cells)

    assert Fraction(low) <= min(p) <= max(p) <= Fraction(high)
    assert 0 < abs(cell - distribution.cell_loss()) <= rounding
    assert abs(log_fraction(max(g) / min(g)) - distribution.worker_privacy_loss()) <= rounding
    single = mechanism.marginal_channel()
    assert sum(p) / len(p) == 1 - Fraction(single.rows[0][0], single.denominator)


def test_a_grid_too_coarse_for_the_count_promises_only_the_bound():
    """A narrow interval with very many cells: the grid's rounding is not bounded, the bound for any number is."""
    narrow = TwoLayer(alphabet=Scale(1, 1024), low=0.3, high=0.3 + 1.1e-6, participation="public")
    cell, worker = narrow.guarantees(1_000_000)

    assert math.log(0.7 * 1023 / 0.3) == pytest.approx(cell.epsilon, abs=1e-5)
    assert (narrow.guarantee.epsilon, sum_rounded_up([(cell.epsilon, 1_000_000)])) == (cell.epsilon, worker.epsilon)


def test_one_answer_loses_what_theorem_6_3_says():
    """For one answer the theorem is right, and so is its absolute value when wrong symbols are favoured."""
    for low, high in ((0.1, 0.5), (0.4, 0.9)):
        guarantee = public(low, high, answers=1).guarantee
        expected = abs(math.log((2 - low - high) / (low + high)))

        assert (expected, expected) == pytest.approx((guarantee.epsilon, guarantee.claimed), abs=1e-12)
        assert (guarantee.epsilon > guarantee.claimed) == ("48-bit grid" in guarantee.reason)


def test_single_cell_channel_is_one_layer_with_the_mean_flip():
    """One cell alone is one-layer with flip probability (a + b) / 2 (Theorem 6.4)."""
    table = TwoLayer(alphabet=YES_NO, low=0.1, high=0.5).marginal_channel().probabilities
    one_layer = OneLayer.from_flip_probability(alphabet=YES_NO, flip_probability=0.3).channel().probabilities

    np.testing.assert_allclose(table, one_layer, rtol=0, atol=1e-13)
    assert TwoLayer(alphabet=YES_NO, low=0.1, high=0.5).channel() is None


def test_calibration_is_theorem_6_4():
    """The mean flip equals one-layer's at the same epsilon, for the default, a chosen and the published low end."""
    one_layer = OneLayer(alphabet=YES_NO, epsilon=1.5)
    for mechanism in (
        TwoLayer.calibrated(alphabet=YES_NO, epsilon=1.5),
        TwoLayer.calibrated(alphabet=YES_NO, epsilon=1.5, low=0.2),
        TwoLayer.as_published(alphabet=YES_NO, epsilon=1.5),
    ):
        assert one_layer.flip_probability == pytest.approx((mechanism.low + mechanism.high) / 2, abs=1e-15)
        assert 1.5 == pytest.approx(mechanism.epsilon, abs=1e-12)


@pytest.mark.parametrize("low", [-0.1, 0.0, 0.9, math.nan])
def test_infeasible_calibration_is_refused(low):
    """Five symbols cannot have epsilon 1 with low = 0 (high would exceed 1), nor with low above one-layer's flip."""
    with pytest.raises(SettingsError, match=r"only for low in \[0.19"):
        TwoLayer.calibrated(alphabet=Scale(1, 5), epsilon=1.0, low=low, participation="public")


@given(st.floats(1e-4, 20), st.integers(2, 8))
def test_sound_setting_keeps_epsilon_for_any_number_of_answers(epsilon, labels):
    """From one-layer's flip to the uniform report: the exact figure is at most what was asked."""
    mechanism = TwoLayer.widest_for_cell_epsilon(alphabet=Scale(1, labels), epsilon=epsilon)

    assert mechanism.guarantee.epsilon <= epsilon
    assert epsilon == pytest.approx(mechanism.guarantee.epsilon, rel=1e-4)


def test_sound_setting_is_a_garbling_of_one_layer():
    """Any flip in the sound interval is one-layer's table followed by more randomized response: a stochastic matrix."""
    one_layer = OneLayer(alphabet=Scale(1, 4), epsilon=1.0, participation="public").channel().probabilities
    for flip in (0.55, 0.65, 0.7499):
        wider = OneLayer.from_flip_probability(
            alphabet=Scale(1, 4), flip_probability=flip, participation="public"
        ).channel().probabilities  # fmt: skip
        second = np.linalg.solve(one_layer, wider)

        assert second.min() >= 0
        np.testing.assert_allclose(second.sum(axis=1), 1)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, 21.0])
@pytest.mark.parametrize("build", [TwoLayer.calibrated, TwoLayer.as_published, TwoLayer.widest_for_cell_epsilon])
def test_absurd_epsilon_is_refused(build, epsilon):
    """Each calibration obeys the rule of every mechanism."""
    with pytest.raises(SettingsError, match="epsilon must be in"):
        build(alphabet=YES_NO, epsilon=epsilon)


def test_more_cells_than_promised_are_refused():
    """A worker with more answers than the guarantee counts is turned away, on the device and in the account."""
    mechanism = public(0.0, 0.5, answers=3)

    assert 5 == len(mechanism.perturb(np.array([0, 1, 2, 2, 0]), seeded(0)))
    with pytest.raises(SettingsError, match="at most 3 cells"):
        mechanism.perturb(np.array([0, 1, 1, 2, 0]), seeded(0))
    with pytest.raises(SettingsError, match="sends 1 to 3 cells"):
        mechanism.guarantees(4)


def sampled_vectors(mechanism, codes, workers, seed):
    """Reports of many workers with the same answers, each with its own secret; indexed [worker, cell]."""
    source = seeded(seed)
    flips = np.repeat(mechanism.draw_flip_weights(workers, source), len(codes))
    return flip_symbols(np.tile(codes, workers), flips, mechanism.symbols, source).reshape(workers, len(codes))


@pytest.mark.parametrize(("low", "high", "labels"), [(0.0, 0.8, 2), (0.1, 0.7, 3)])
def test_reports_follow_the_shared_distribution(low, high, labels):
    """Chi-square of 200,000 workers over all reports of 3 cells; independent cells with the mean flip are rejected.

    False-alarm rate 1e-5, fixed seed.
    """
    mechanism, codes = public(low, high, labels=labels), np.array([0, 1, labels - 1])
    reports = sampled_vectors(mechanism, codes, 200_000, seed=3)
    counts = np.bincount(reports @ labels ** np.arange(3), minlength=labels**3)
    vectors = np.array(np.unravel_index(np.arange(labels**3), (labels,) * 3, order="F")).T
    differing = (vectors != codes).sum(axis=1)
    distribution = np.array([float(exact_probability(low, high, labels, 3, int(h))) for h in differing])
    mean = (low + high) / 2
    independent = (mean / (labels - 1)) ** differing * (1 - mean) ** (3 - differing)

    assert chi_square_p_value(counts, distribution) > 1e-5
    assert chi_square_p_value(counts, independent) < 1e-5


def test_a_cell_is_replaced_below_the_border_alone():
    """With three symbols of weight w each word below 2 w replaces the answer, and 2 w itself keeps it."""
    weight = 1000

    class Scripted:
        def words(self, _):
            return np.array([0, weight - 1, weight, 2 * weight - 1, 2 * weight], dtype=np.uint64)

    scripted: Any = Scripted()
    reports = flip_symbols(np.ones(5, dtype=int), np.array([weight], dtype=np.uint64), 3, scripted)

    assert [2, 2, 0, 0, 1] == reports.tolist()


@pytest.mark.parametrize("cells", [2, 3, 5, 10, 40])
@pytest.mark.parametrize(("low", "high", "labels"), [(0.0, 0.5378828427399902, 2), (0.05, 0.6, 3), (0.25, 0.288, 4)])
def test_printed_epsilons_are_not_below_the_exact_loss(low, high, labels, cells):
    """Printed per cell and per worker, read back, they are at least the exact loss in rational arithmetic."""
    table = [exact_probability(low, high, labels, cells, h) for h in range(cells + 1)]
    steps = [max(a / b, b / a) for a, b in itertools.pairwise(table)]

    cell, worker = public(low, high, labels=labels, answers=cells).guarantees(cells)

    with localcontext(prec=60):
        for guarantee, ratio in ((cell, max(steps)), (worker, max(table) / min(table))):
            exact = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
            assert Decimal(guarantee.epsilon) >= exact
            assert Decimal(format_bound(guarantee.epsilon)) >= exact


@pytest.mark.parametrize("cells", [2, 10, 277, 10_000, 1_000_000])
@pytest.mark.parametrize(
    ("low", "high", "labels"), [(0.1, 0.5, 2), (0.25, 0.288, 2), (0.3, 0.300001, 2), (0.1, 0.6, 9)]
)
def test_quadrature_errs_by_less_than_what_is_added_for_it(low, high, labels, cells):
    """A worker's loss by quadrature is within 1e-14 (k + 1) of its closed form in 600 digits."""
    with localcontext(prec=600, Emin=-(10**15), Emax=10**15):
        a, b, k = Decimal(low), Decimal(high), cells
        ratio = ((1 - a) ** (k + 1) - (1 - b) ** (k + 1)) / (b ** (k + 1) - a ** (k + 1))
        exact = k * Decimal(labels - 1).ln() + ratio.ln()

        error = (
            Decimal(SharedFlipDistribution(low=low, high=high, symbols=labels, cells=cells).worker_privacy_loss())
            - exact
        )

        assert abs(error) < Decimal("1e-14") * (cells + 1)
