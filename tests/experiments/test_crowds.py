"""Simulated crowds: a minority of bad workers does not take the default over, and honest crowds lose nothing."""

import numpy as np
import pytest
from experiments.rows import read_rows
from experiments.utility.crowds.__main__ import RESULTS
from experiments.utility.crowds.kinds import kinds
from experiments.utility.crowds.measure import CONSTANT, METHODS, ORACLE, Row, crowd_of, measured

DEFAULT = METHODS[0]
SEEDS = (900, 901)


def mean_accuracy(family: str, part: str = "") -> tuple[float, float]:
    """Return the mean accuracy of the default and of the oracle on a family of crowds, by names that hold a part."""
    chosen = [kind for kind in kinds() if kind.family == family and part in kind.name]
    rows = list(measured(chosen, SEEDS, (DEFAULT,)))
    own, best = ([row.accuracy for row in rows if row.method == method] for method in (DEFAULT, ORACLE))
    return float(np.mean(own)), float(np.mean(best))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "part", "lost"),
    [
        ("repeaters 0%", "", 0.02),
        ("repeaters 40%", "", 0.03),
        ("repeaters 60%", "", 0.03),
        ("repeaters of different labels", "", 0.03),
        ("two labels in turn", "", 0.03),
        ("repeaters with 5 % others", "", 0.05),
        ("copies of a bad source, 0-2 % changed", "", 0.02),
        ("copies of a bad source, 4-30 % changed", "", 0.03),
        ("rare positives", "1%", 0.03),
    ],
)
def test_the_default_is_near_the_oracle(family: str, part: str, lost: float) -> None:
    """On two crowds of each kind, seeds that nothing was chosen on, at most so much accuracy is lost to the oracle."""
    own, best = mean_accuracy(family, part)

    assert own >= best - lost


def test_a_crowd_is_that_of_its_seed() -> None:
    """The same kind and seed give the same crowd, another seed another one; every answer has a likelihood."""
    for kind in list(kinds())[::20]:
        one, same, other = (crowd_of(kind, seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one.label, same.label)
        assert len(one.label) != len(other.label) or (one.label != other.label).any()
        assert one.likelihood.shape == (len(one.label), len(one.shares))
        assert one.reports.labels == len(one.shares)


def test_every_method_has_a_row_for_every_crowd() -> None:
    """The results are complete, with the best constant and the oracle."""
    rows = read_rows(RESULTS, Row)

    methods = {row.method for row in rows}
    assert methods >= {*METHODS, CONSTANT, ORACLE}
    for method in methods:
        assert [(kind.family, kind.name) for kind in kinds()] == [
            (row.family, row.crowd) for row in rows if row.method == method
        ]
