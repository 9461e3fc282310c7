"""Committed coverage of the intervals of shares: every cell holds what is stated, and one is computed again."""

import numpy as np
from experiments.rows import read_rows
from experiments.shares.coverage import RESULTS, Row, generator, weighted_sums

from crowdveil.quality.shares.weighted import fieller_estimates

ROWS: list[Row] = read_rows(RESULTS, Row)


def test_every_cell_holds_and_none_far_from_an_end_too_often() -> None:
    """At least 92 % of 1,000 or more samples are held in each cell, at most 97 % more than 2 errors from 0 and 1."""
    assert 328 == len(ROWS)
    assert min(row.draws for row in ROWS) >= 1000
    assert min(row.covered for row in ROWS) >= 0.92
    assert max(row.covered for row in ROWS if row.errors > 2) <= 0.97


def test_equal_shares_are_rejected_at_most_as_often_as_stated() -> None:
    """The test of no difference rejects at most 7.5 % of 1,000 samples of equal shares at a level of 5 %."""
    assert max(row.rejected for row in ROWS if row.rejected is not None and row.share == row.other) <= 0.075


def test_a_cell_is_computed_again() -> None:
    """The coverage of weighted shares in one cell is that of the committed row."""
    settings = (0.2, 200, 1.0, 0.8)
    sums, true = weighted_sums(generator("weights", *settings), *settings)
    found = fieller_estimates(sums, 2, np.full(3, 0.95))
    cell = ("weights", 0.125, *settings[1:])
    (row,) = [row for row in ROWS if (row.kind, row.share, row.people, row.epsilon, row.response) == cell]

    assert true == 0.125
    assert row.covered == float(((found.low[:, 0] <= true) & (true <= found.high[:, 0])).mean())
