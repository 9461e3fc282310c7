"""Verdicts on the papers that no exhibit measures: counterexamples and limits, by enumeration of small instances."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from experiments.papers.huai2019.table1 import PRINTED as TABLE_1
from experiments.papers.huai2019.table2 import PRINTED as TABLE_2
from experiments.papers.sun2018.participation import largest_area
from experiments.theory.task_limits import (
    error_floor,
    exchangeable_posterior,
    garbling_of_randomized_response,
    known_accuracy_error_bound,
    reports_of_task_loss,
    smallest_error,
)

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
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


def test_a_root_of_a_mean_would_fit_huais_table() -> None:
    """With ISE the mean of x and SISE the root of the mean of x^2, ISE <= SISE <= sqrt(N) ISE holds in all 15 pairs."""
    cells = [cell for ise, sise in TABLE_2.values() for cell in zip(ise, sise, strict=True)]
    objects = [objects for _, objects in TABLE_1.values()] * len(TABLE_2)

    assert 15 == len(cells)
    assert all(ise <= sise <= math.sqrt(n) * ise for (ise, sise), n in zip(cells, objects, strict=True))


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


def response(epsilon: float) -> np.ndarray:
    """Return binary randomized response."""
    keep = 1 / (1 + math.exp(-epsilon))
    return np.array([[keep, 1 - keep], [1 - keep, keep]])


def some_channel(generator: np.random.Generator, outputs: int) -> tuple[np.ndarray, float]:
    """Return a random channel of two inputs and its exact loss."""
    rows = generator.dirichlet(np.full(outputs, 2.0), 2)
    return rows, float(np.abs(np.log(rows[0] / rows[1])).max())


@pytest.mark.parametrize("seed", range(20))
def test_every_channel_is_randomized_response_and_more_noise(seed: int) -> None:
    """The second channel is stochastic at the channel's exact loss, and has a negative entry at any smaller one."""
    rows, loss = some_channel(np.random.default_rng(seed), 4)

    more = garbling_of_randomized_response(rows, loss)

    np.testing.assert_allclose(response(loss) @ more, rows, atol=1e-12)
    np.testing.assert_allclose(more.sum(axis=1), 1, atol=1e-12)
    assert more.min() >= -1e-12
    assert garbling_of_randomized_response(rows, 0.99 * loss).min() < 0


@pytest.mark.parametrize("seed", range(5))
def test_hidden_tasks_are_no_better_than_randomized_response(seed: int) -> None:
    """Three workers who see versions of a task err at least as often as perfect ones with randomized response."""
    rows, loss = some_channel(np.random.default_rng(seed), 3)

    assert smallest_error([rows] * 3) >= smallest_error([response(loss)] * 3) - 1e-12
    assert smallest_error([response(loss)] * 3) >= error_floor(3 * loss)
    assert smallest_error([response(loss)]) == pytest.approx(error_floor(loss))


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_reports_of_a_task_lose_the_sum(workers: int) -> None:
    """All answers to one task together lose epsilon times its workers."""
    assert reports_of_task_loss(response(0.7), workers) == pytest.approx(0.7 * workers)


@pytest.mark.parametrize("accuracies", [[0.9, 0.5, 0.5, 0.6], [1.0, 0.5, 0.7, 0.5, 0.55], [0.5, 0.8]])
def test_vote_is_optimal_if_each_task_has_other_experts(accuracies: list[float]) -> None:
    """The posterior of exchangeable reports is at least 1/2 if and only if ones are at least half."""
    found = exchangeable_posterior(accuracies)

    assert all(posterior >= 0.5 - 1e-12 for reports, posterior in found.items() if sum(reports) >= len(reports) / 2)
    assert all(posterior <= 0.5 + 1e-12 for reports, posterior in found.items() if sum(reports) <= len(reports) / 2)


def test_known_accuracies_bound_the_error_of_every_task() -> None:
    """The bound is above the smallest error, averaged over tasks with different accuracies."""
    accuracies = np.array([[0.9, 0.6], [0.7, 0.5], [0.55, 0.8]])
    errors = [smallest_error([[[p, 1 - p], [1 - p, p]] for p in task]) for task in accuracies.T]

    assert np.mean(errors) <= known_accuracy_error_bound(accuracies) < 0.5


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
