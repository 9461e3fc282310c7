"""Gold never hurts on public sets, and confidence where the assumptions of the default are broken."""

import numpy as np
import pytest
from experiments.methods import with_gold
from experiments.methods.comparison import SETS
from experiments.rows import read_rows
from experiments.utility import confidence
from experiments.utility.crowds.broken import broken_kinds
from experiments.utility.crowds.measure import CONSTANT

GOLD = read_rows(with_gold.RESULTS, with_gold.Row)
LOST = 0.01


def test_gold_costs_no_set_a_hundredth_of_accuracy() -> None:
    """In the results, with 10 to 200 gold tasks, no set's mean is .01 below the vote or the result without gold."""
    assert {row.data for row in GOLD} == set(SETS)
    assert {row.known for row in GOLD} == set(with_gold.SIZES)
    assert min(with_gold.losses(GOLD).values()) >= -LOST


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bluebird", "snow_rte"])
def test_a_set_measured_anew_loses_nothing_by_gold(name: str) -> None:
    """With 20 and 50 gold tasks, eight other draws, the mean accuracy is not .01 below that without gold or the vote;
    on a set where other methods are worse than the default, and on one where they are as good."""
    rows = list(with_gold.measured(name, (20, 50), range(200, 208)))

    assert len(rows) == 8
    assert min(with_gold.losses(rows).values()) >= -LOST


def test_every_broken_crowd_has_its_rows() -> None:
    """The results have every kind with every method and the best constant; truths are right at most as often as all."""
    rows = read_rows(confidence.RESULTS, confidence.Row)
    expected = [
        (kind.family, kind.name, method) for kind in broken_kinds() for method in (*confidence.METHODS, CONSTANT)
    ]

    assert [(row.family, row.crowd, row.method) for row in rows] == expected
    assert all(row.sure_right <= row.sure <= row.often for row in rows)


@pytest.mark.slow
def test_high_confidence_is_right_where_assumptions_are_broken() -> None:
    """On a crowd of each kind, with a seed that nothing was chosen on, a confidence of .99 is right in 95 %, and 90 %
    intervals of abilities hold in 80 %."""
    found = [
        row
        for kind in broken_kinds()
        for row in confidence.measured(kind, (900,))
        if row.method == confidence.METHODS[0]
    ]
    sure, right, workers, covered = np.sum(
        [(row.sure, row.sure_right, row.abilities, row.covered) for row in found], axis=0
    )

    assert right / sure >= 0.95
    assert covered / workers >= 0.8
