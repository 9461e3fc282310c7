"""Limits of private tasks and of abilities that differ by task, by enumeration of small instances."""

import math

import numpy as np
import pytest
from experiments.theory.task_limits import (
    error_floor,
    exchangeable_posterior,
    garbling_of_randomized_response,
    known_accuracy_error_bound,
    reports_of_task_loss,
    smallest_error,
)


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
