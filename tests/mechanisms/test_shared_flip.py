"""The exact loss of cells that share a flip probability is never understated, in floats and in print."""

import itertools
from decimal import Decimal, localcontext

import pytest

from crowdveil.channels.rounding import format_bound
from crowdveil.mechanisms.shared_flip import SharedFlipDistribution
from tests.mechanisms.test_two_layer import exact_probability, public


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

        error = Decimal(SharedFlipDistribution(low=low, high=high, symbols=labels, cells=cells).worker_loss()) - exact

        assert abs(error) < Decimal("1e-14") * (cells + 1)
