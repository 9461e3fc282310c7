"""Largest AUC of an answered and a NULL cell under any mechanism with an epsilon per cell."""

import math

import numpy as np
import pytest
from experiments.papers.sun2018.participation import largest_area


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_a_mechanism_with_this_epsilon_reaches_the_limit(epsilon: float):
    """A mechanism on two cells that reports which is answered has epsilon per cell, and the AUC of the limit."""
    right = largest_area(epsilon)
    first = {(1, 0): right, (0, 1): 1 - right, (0, 0): 0.5, (1, 1): 0.5}  # P(report "the first cell")
    losses = [
        abs(math.log(a / b))
        for one, p in first.items()
        for other, q in first.items()
        if sum(x != y for x, y in zip(one, other, strict=True)) == 1
        for a, b in ((p, q), (1 - p, 1 - q))
    ]

    assert max(losses) == pytest.approx(epsilon)
    assert right > math.exp(epsilon) / (1 + math.exp(epsilon))


def test_no_mechanism_exceeds_the_limit():
    """Of random mechanisms on two cells, none has an AUC above the limit of its own epsilon per cell."""
    generator = np.random.default_rng(1)
    shape = 10.0 ** generator.uniform(-1, 1, (2000, 1, 1))
    table = generator.dirichlet(np.ones(4), (2000, 4)) ** shape + 1e-6
    table /= table.sum(axis=2, keepdims=True)  # indexed [mechanism, pair of cells as 2 a + b, report]
    logs = np.log(table)
    steps = [(0, 1), (0, 2), (3, 1), (3, 2)]
    epsilon = np.max([np.abs(logs[:, a] - logs[:, b]).max(axis=1) for a, b in steps], axis=0)
    areas = 0.5 + np.abs(table[:, 1] - table[:, 2]).sum(axis=1) / 4

    assert (areas <= [largest_area(one) + 1e-12 for one in epsilon]).all()
