"""Counterexamples of the verdicts on the papers that no exhibit measures: by enumeration, and of Table 2 of Huai."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from experiments.papers.huai2019.table1 import PRINTED as TABLE_1
from experiments.papers.huai2019.table2 import PRINTED as TABLE_2

from crowdveil.channels.alphabet import Categories
from crowdveil.data.reports import Reports
from crowdveil.estimators.dawid_skene import DawidSkene
from crowdveil.estimators.weighted_vote import WeightedVote


def test_no_reading_of_huais_measures_fits_all_cells_of_the_table() -> None:
    """Sums, means, and one of each over the objects of Table 1: every reading is violated by some cell.

    With x_i >= 0: sum x^2 <= (sum x)^2 and sum x^2 >= (sum x)^2 / N.
    """
    cells = [cell for ise, sise in TABLE_2.values() for cell in zip(ise, sise, strict=True)]
    objects = [objects for _, objects in TABLE_1.values()] * len(TABLE_2)
    between = {
        "sums": [(ise**2 / n, ise**2) for (ise, _), n in zip(cells, objects, strict=True)],
        "means": [(ise**2, n * ise**2) for (ise, _), n in zip(cells, objects, strict=True)],
        "mean, sum": [(n * ise**2, n**2 * ise**2) for (ise, _), n in zip(cells, objects, strict=True)],
        "sum, mean": [(ise**2 / n**2, ise**2 / n) for (ise, _), n in zip(cells, objects, strict=True)],
    }
    violated = {
        name: sum(not low <= sise <= high for (low, high), (_, sise) in zip(limits, cells, strict=True))
        for name, limits in between.items()
    }

    assert {"sums": 12, "means": 3, "mean, sum": 15, "sum, mean": 15} == violated


@pytest.mark.parametrize("cells", [1, 2, 5, 8])
def test_whole_reports_of_uniform_flips_do_not_tell_answers_from_their_complement(cells: int) -> None:
    """Under U(0, 1) with two labels P(report | answers) = P(report | complement), exactly, for all vectors of k cells.

    The probability of h differing cells is the Beta integral h! (k - h)! / (k + 1)!.
    """
    vectors = list(product((0, 1), repeat=cells))
    for answers, report in product(vectors, vectors):
        complement = tuple(1 - x for x in answers)

        assert uniform_flip_law(answers, report) == uniform_flip_law(complement, report)
    assert sum(uniform_flip_law(vectors[0], report) for report in vectors) == 1


def uniform_flip_law(answers: tuple[int, ...], report: tuple[int, ...]) -> Fraction:
    """P(report | answers) if one flip probability, uniform on [0, 1], serves all cells."""
    cells, differing = len(answers), sum(x != y for x, y in zip(answers, report, strict=True))
    return Fraction(math.factorial(differing) * math.factorial(cells - differing), math.factorial(cells + 1))


@pytest.mark.slow
@pytest.mark.parametrize("truth", [(0, 0, 0), (0, 0, 1), (1, 0, 1)])
@pytest.mark.parametrize("estimator", [WeightedVote(), DawidSkene(max_steps=20)], ids=lambda method: method.name)
def test_inference_from_uniform_flips_errs_half_the_time(estimator, truth) -> None:
    """Two workers of ability 4/5 on three tasks, all 64 tables of reports: the expected error is exactly 1/2.

    For every truth, skewed or not, as the estimators treat labels alike; ties are split.
    """
    vectors = list(product((0, 1), repeat=3))
    ability = (Fraction(1, 5), Fraction(4, 5))
    one_worker = {
        report: sum(
            uniform_flip_law(answers, report) * math.prod(ability[x == t] for x, t in zip(answers, truth, strict=True))
            for answers in vectors
        )
        for report in vectors
    }
    error = 0.0
    for table in product(vectors, repeat=2):
        worker, task = np.indices((2, 3)).reshape(2, -1)
        values = np.array(table).ravel()
        reports = Reports(task, worker, values, np.arange(3), np.arange(2), Categories(("0", "1")))
        winners = estimator.fit(reports).winners
        share = (winners / winners.sum(axis=1, keepdims=True))[np.arange(3), list(truth)]
        error += float(one_worker[table[0]] * one_worker[table[1]]) * float(1 - share.mean())

    assert error == pytest.approx(0.5, abs=1e-12)
