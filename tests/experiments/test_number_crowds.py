"""Simulated crowds of numbers: bad workers and typing errors cost the default little, honest crowds next to nothing."""

import numpy as np
import pytest
from experiments.rows import read_rows
from experiments.utility.crowds.number_crowds import kinds
from experiments.utility.crowds.numbers import (
    MEAN,
    MEDIAN,
    METHODS,
    ORACLE,
    RESULTS,
    NumberRow,
    crowd_of,
    error_and_share_inside,
    measured,
    table,
)

DEFAULT = METHODS[0]
SEEDS = (950, 951, 952, 953)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("equal deviations", 1.05),
        ("deviations .5 to 6", 1.15),
        ("10 answers", 1.1),
        ("2 answers", 1.25),
        ("3 workers", 1.25),
        ("truths alike", 1.15),
        ("difficulty", 1.15),
        ("grades 0 to 10", 1.15),
        ("20 % mirror", 1.15),
        ("30% even in 0 to 100", 1.15),
        ("60% even in 0 to 100", 1.15),
        ("30% always say 50", 1.6),
        ("20 % always say 0", 1.15),
        ("one answer x 1000", 1.15),
        ("5 % x 1000, 10 answers", 1.15),
        ("1 % = 1e12", 1.15),
        ("2 % = -1", 1.25),
        ("Student errors, 3 degrees", 1.15),
    ],
)
def test_the_default_is_near_the_oracle(name: str, times: float) -> None:
    """Over four crowds, seeds that nothing was chosen on, the error is at most so many times that of the oracle."""
    (kind,) = (one for one in kinds() if one.name == name)
    crowds = [crowd_of(kind, seed) for seed in SEEDS]

    own, best = (np.mean([error_and_share_inside(crowd, one)[0] for crowd in crowds]) for one in (DEFAULT, ORACLE))

    assert own <= times * best


@pytest.mark.slow
@pytest.mark.parametrize("name", ["biases", "drift", "drift to another bias", "Student errors, 1.5 degrees"])
def test_the_default_is_better_than_mean_median_and_methods_of_weights(name: str) -> None:
    """Where only an oracle knows biases, or errors have no variance, the default has the least error of all."""
    (kind,) = (one for one in kinds() if one.name == name)
    rows = {row.method: row for row in measured([kind], SEEDS, METHODS)}

    assert all(rows[DEFAULT].error <= 1.02 * row.error for method, row in rows.items() if method != ORACLE)


@pytest.mark.slow
def test_intervals_hold() -> None:
    """Over all kinds but copies, 88 to 97 % of truths are in their 90 % intervals, on one crowd each."""
    chosen = [kind for kind in kinds() if "copy" not in kind.name]
    inside = [error_and_share_inside(crowd_of(kind, SEEDS[0]), DEFAULT)[1] for kind in chosen]

    assert 0.88 <= np.mean(inside) <= 0.97


def test_a_crowd_is_that_of_its_seed() -> None:
    """The same kind and seed give the same crowd, another seed another one; the oracle knows every answer's error."""
    for kind in kinds():
        one, same, other = (crowd_of(kind, seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one.value, same.value)
        assert (one.truth != other.truth).any()
        assert len(one.value) == len(one.variance) == len(one.bias) == len(one.reports)
        assert np.isfinite(one.oracle()).all()


def test_every_method_has_a_row_for_every_crowd() -> None:
    """The results are complete, with mean, median and the oracle; their table has a line for every crowd."""
    rows = read_rows(RESULTS, NumberRow)

    methods = {row.method for row in rows}
    assert methods == {*METHODS, MEAN, MEDIAN, ORACLE}
    for method in methods:
        assert [kind.name for kind in kinds()] == [row.crowd for row in rows if row.method == method]
    assert len(table(rows)) == 2 + len(list(kinds()))
