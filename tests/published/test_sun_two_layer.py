"""Two-layer of Sun et al.: its law, its losses, and the figures that papers print of two layers."""

import itertools
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.channels.channel import DENOMINATOR
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import OneLayer, RandomizedResponse, TwoLayer
from crowdveil.mechanisms.base import flip_symbols
from crowdveil.published import SunTwoLayer, sun_two_layer
from crowdveil.randomness import seeded
from tests.chi_square import chi_square_p_value

YES_NO = Categories(("no", "yes"))


def make(epsilon: float, *, labels: int = 2, low: float = 0.0, answers: int | None = None) -> SunTwoLayer:
    """A mechanism over the labels 1 to `labels`."""
    return SunTwoLayer(alphabet=Scale(1, labels), epsilon=epsilon, low=low, answers=answers)


@pytest.fixture
def few_budgets(monkeypatch):
    """Leave eight budgets, so that the distribution of a device can be written out as fractions."""
    monkeypatch.setattr(sun_two_layer, "BUDGETS", 8)
    monkeypatch.setattr(sun_two_layer, "BUDGET_BITS", 3)
    sun_two_layer._flip_weights_by_budget.cache_clear()
    yield
    sun_two_layer._flip_weights_by_budget.cache_clear()


def report_probability(mechanism: SunTwoLayer, answers: tuple[int, ...], report: tuple[int, ...]) -> Fraction:
    """P(report | answers) as the paper describes it: a budget for the labels, another for NULL, then equation 8."""
    null, shares = mechanism.alphabet.size, [Fraction(int(t), DENOMINATOR) for t in mechanism.flip_weight_by_budget]
    total = Fraction(1)
    for cells in ([j for j, x in enumerate(answers) if x != null], [j for j, x in enumerate(answers) if x == null]):
        over_budgets = Fraction(0)
        for flip in shares:
            product = Fraction(1)
            for j in cells:
                product *= 1 - null * flip if report[j] == answers[j] else flip
            over_budgets += product / len(shares)
        total *= over_budgets
    return total


def log_fraction(ratio: Fraction) -> float:
    """The absolute natural logarithm of a rational."""
    with localcontext(prec=60):
        return float(abs((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()))


@pytest.mark.slow
@pytest.mark.parametrize(("labels", "cells"), [(2, 1), (2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize(("epsilon", "low"), [(1.0, 0.0), (4.0, 0.0), (1.0, 0.7)])
def test_losses_equal_brute_force(few_budgets, labels, cells, epsilon, low):
    """Per cell and per worker, the figures are the worst ratios over all answers with NULLs and all reports."""
    mechanism = make(epsilon, labels=labels, low=low, answers=cells)
    vectors = list(itertools.product(range(labels + 1), repeat=cells))
    worst = {"cell": 0.0, "worker": 0.0}
    for report in vectors:
        distribution = {x: report_probability(mechanism, x, report) for x in vectors}
        for x, other in itertools.combinations(vectors, 2):
            loss = log_fraction(distribution[x] / distribution[other])
            worst["worker"] = max(worst["worker"], loss)
            if sum(a != b for a, b in zip(x, other, strict=True)) == 1:
                worst["cell"] = max(worst["cell"], loss)

    cell, worker = mechanism.guarantees(cells)

    assert (worst["cell"], worst["worker"]) == pytest.approx((cell.epsilon, worker.epsilon), abs=1e-12)
    assert (cell.epsilon, worker.epsilon) >= (worst["cell"], worst["worker"])


def test_flip_weights_are_those_of_equation_8_at_the_middle_of_each_part():
    """With budget e each other symbol has probability 1 / (K + e^e); budgets are the midpoints of [0, 2 epsilon]."""
    mechanism = make(1.5, labels=5)
    budgets = 3.0 * (np.arange(65536) + 0.5) / 65536

    np.testing.assert_allclose(mechanism.randomized_response_by_budget.flip, 1 / (5 + np.exp(budgets)), rtol=1e-12)
    np.testing.assert_allclose(
        mechanism.randomized_response_by_budget.keep, np.exp(budgets) / (5 + np.exp(budgets)), rtol=1e-12
    )
    assert mechanism.randomized_response_by_budget.keep.min() >= mechanism.randomized_response_by_budget.flip.max()


@pytest.mark.parametrize(("epsilon", "low", "labels"), [(1.0, 0.0, 2), (0.5, 0.2, 5), (3.0, 0.0, 10)])
@pytest.mark.parametrize("cells", [2, 10, 177])
def test_cell_loss_equals_its_closed_form_for_a_continuous_budget(epsilon, low, labels, cells):
    """With q = e^e / (K + e^e): ln K + ln (k-1) + ln(int q^(k-1) / (1-q) dq) - ln(q_high^(k-1) - q_low^(k-1))."""
    with localcontext(prec=400):
        low_q, high_q = (
            Decimal(e).exp() / (labels + Decimal(e).exp()) for e in (low, 2 * Decimal(epsilon) - Decimal(low))
        )
        kept = ((1 - low_q) / (1 - high_q)).ln() - sum((high_q**j - low_q**j) / j for j in range(1, cells))
        replaced = (high_q ** (cells - 1) - low_q ** (cells - 1)) / (labels * (cells - 1))
        expected = float((kept / replaced).ln())

    assert expected == pytest.approx(make(epsilon, labels=labels, low=low).guarantees(cells)[0].epsilon, abs=2e-6)


def test_the_loss_tends_to_twice_the_mean_budget():
    """Budgets from U(0, 2): 1.045 for one cell, 1.986 for the 177 of the paper's Web data, 2.000 for a million."""
    mechanism = make(1.0, labels=5)
    losses = {k: round(mechanism.guarantees(k)[0].epsilon, 3) for k in (1, 2, 10, 177, 1_000_000)}

    assert {1: 1.045, 2: 1.234, 10: 1.779, 177: 1.986, 1_000_000: 2.0} == losses
    assert 1.9999 < mechanism.guarantee.epsilon <= 2.0


def test_guarantee_says_claimed_and_exact():
    """The mean budget is the claim, with the reason why it is none; unit and participation are named."""
    guarantee = make(1.0, labels=5, answers=177).guarantee
    small = make(3.0, labels=5, answers=1).guarantee

    assert (1.0, "cell", "protected") == (guarantee.claimed, guarantee.unit, guarantee.participation)
    assert "177 cells of a worker share a budget of at most 2" in guarantee.reason
    assert "all cells of a worker" in make(1.0).guarantee.reason
    assert (3.0, "") == (small.claimed, small.reason)
    assert small.epsilon < 3.0


@pytest.mark.slow
@given(st.floats(1e-6, 10), st.floats(0, 0.99), st.integers(2, 12), st.lists(st.integers(1, 10**6), min_size=2))
def test_loss_grows_with_the_number_of_cells_up_to_the_bound(epsilon, share, labels, counts):
    """More cells never lose less; a cell loses at most the largest budget's loss, a worker at most as much per cell."""
    mechanism = make(epsilon, labels=labels, low=share * epsilon)
    losses = [mechanism.guarantees(k) for k in sorted(counts)]
    cells, workers = ([pair[unit].epsilon for pair in losses] for unit in (0, 1))

    assert sorted(cells) == pytest.approx(cells, abs=1e-9)
    assert sorted(workers) == pytest.approx(workers, rel=1e-9)
    assert cells[-1] <= mechanism.guarantee.epsilon <= mechanism.high * (1 + 1e-9)
    assert mechanism.channel() is None


def test_single_cell_channel_is_the_exact_average_over_budgets(few_budgets):
    """One cell alone: the integer table holds the mean of the device's own shares, and its epsilon is the guarantee."""
    mechanism = make(2.0, labels=3, answers=1)
    channel = mechanism.marginal_channel()
    rows = [[report_probability(mechanism, (x,), (y,)) for y in range(4)] for x in range(4)]

    assert rows == [[Fraction(entry, channel.denominator) for entry in row] for row in channel.rows]
    assert mechanism.guarantee.epsilon == channel.epsilon
    assert ("1", "2", "3", "NULL") == channel.outputs


def sampled(mechanism: SunTwoLayer, codes: np.ndarray, workers: int, seed: int) -> np.ndarray:
    """Reports of many workers with the same answers, each with its own secrets; indexed [worker, cell]."""
    source = seeded(seed)
    secrets = mechanism.draw_flip_weights(workers, source)[:, (codes == mechanism.alphabet.size).astype(int)]
    reports = flip_symbols(np.tile(codes, workers), secrets.ravel(), mechanism.symbols, source)
    return reports.reshape(workers, len(codes))


def test_reports_follow_the_shared_distribution(few_budgets):
    """Chi-square of 200,000 workers over all reports of 4 cells, two of them NULL; independent cells are rejected.

    False-alarm rate 1e-5, fixed seed.
    """
    mechanism, codes = make(3.0), np.array([0, 2, 1, 2])
    counts = np.bincount(sampled(mechanism, codes, 200_000, seed=3) @ 3 ** np.arange(4), minlength=81)
    vectors = np.array(np.unravel_index(np.arange(81), (3,) * 4, order="F")).T
    distribution = np.array([float(report_probability(mechanism, tuple(codes), tuple(y))) for y in vectors.tolist()])
    alone = mechanism.marginal_channel().probabilities
    independent = np.prod([alone[x, vectors[:, j]] for j, x in enumerate(codes)], axis=0)

    assert chi_square_p_value(counts, distribution) > 1e-5
    assert chi_square_p_value(counts, independent) < 1e-5


def test_the_device_draws_as_the_simulation_does():
    """`perturb` draws one secret for labels and one for NULL, then one word per cell: the same reports from a seed."""
    mechanism, codes = make(2.0, labels=3), np.array([0, 3, 2, 1, 3, 3])

    for seed in range(20):
        assert sampled(mechanism, codes, 1, seed)[0].tolist() == mechanism.perturb(codes, seeded(seed)).tolist()


@pytest.mark.parametrize("alphabet", [YES_NO, Scale(0, 4)])
def test_a_narrow_budget_is_randomized_response(alphabet: Alphabet):
    """As `low` tends to epsilon one cell's distribution tends to the table of randomized response."""
    narrow = SunTwoLayer(alphabet=alphabet, epsilon=1.0, low=1 - 1e-9).marginal_channel().probabilities
    response = RandomizedResponse(alphabet=alphabet, epsilon=1.0).channel().probabilities

    np.testing.assert_allclose(narrow, response, atol=1e-9)


def test_more_cells_than_promised_are_refused():
    """A worker with more tasks than the guarantee counts is turned away, on the device and in the account."""
    mechanism = make(1.0, answers=3)

    assert 3 == len(mechanism.perturb(np.array([2, 2, 0]), seeded(0)))
    with pytest.raises(SettingsError, match="at most 3 cells"):
        mechanism.perturb(np.array([2, 2, 2, 0]), seeded(0))
    with pytest.raises(SettingsError, match="sends 1 to 3 cells"):
        mechanism.guarantees(4)


PAGES = Path(__file__).parent.parent.parent / "docs" / "explanation" / "mechanisms"
TWO_LABELS: dict[str, Any] = {"alphabet": Categories(("no", "yes")), "epsilon": 1.0, "participation": "public"}
FIVE = Categories(tuple("abcde"))


def table(page: str, head: str) -> dict[int, list[str]]:
    """Return the rows of a table by their first number, from its head on."""
    lines = (PAGES / page).read_text("utf-8").split(head, 1)[1].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[: lines.index("")]]
    return {int(row[0].replace(",", "")): row[1:] for row in rows}


def rounded_up(mechanism, cells: int) -> str:
    """Return the figures of a cell and of a worker with three digits and one after the point, rounded up."""
    found = zip(mechanism.guarantees(cells), (3, 1), strict=True)
    cell, worker = (
        Decimal(one.epsilon).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING) for one, digits in found
    )
    return f"{cell} ({worker})"


@pytest.mark.parametrize("cells", [1, 10, 100, 277])
def test_the_table_of_two_layer_is_rounded_up(cells):
    """Four settings at claimed epsilon 1, two labels: no figure is below the exact one."""
    settings = (
        OneLayer(**TWO_LABELS),
        TwoLayer.as_published(**TWO_LABELS, answers=cells),
        TwoLayer.calibrated(**TWO_LABELS, answers=cells),
        TwoLayer.widest_for_cell_epsilon(**TWO_LABELS),
    )

    assert [rounded_up(one, cells) for one in settings] == table("two-layer.md", "| answers | one-layer |")[cells]


@pytest.mark.parametrize("cells", [1, 2, 10, 177, 11_040])
def test_the_table_of_sun_two_layer_is_rounded_up(cells):
    """Four claims, five labels and NULL: no figure is below the exact one."""
    settings = [SunTwoLayer(alphabet=FIVE, epsilon=epsilon) for epsilon in (0.5, 1.0, 3.0, 5.0)]

    assert [rounded_up(one, cells) for one in settings] == table("sun-two-layer.md", "| cells | claimed 0.5 |")[cells]
