"""Dawid-Skene against the equations of Dawid and Skene (1979) written as loops, with repeats and on their own data."""

from typing import NamedTuple

import numpy as np
import pytest

from crowdveil import DawidSkene, Reports
from tests.estimators.dense import LABELS, Table, random_reports

SMOOTHING = 0.01


class Slow(NamedTuple):
    """Posterior [task, truth], confusions [worker, truth, answer], class prior and log-likelihoods of all steps."""

    truth: Table
    confusion: Table
    prior: Table
    likelihoods: list[float]


def slow_fit(reports: Reports, steps: int, gold: dict[int, int] | None = None) -> Slow:
    """Run that many E-steps of the paper with pseudo-counts, shares of votes (3.1) being the first."""
    tasks, workers, labels = len(reports.tasks), len(reports.workers), reports.labels
    counts = np.zeros((tasks, workers, labels))
    for task, worker, value in zip(reports.task, reports.worker, reports.value, strict=True):
        counts[task, worker, value] += 1
    known = gold or {}
    truth = np.full((tasks, labels), 1 / labels)
    for i in range(tasks):
        if counts[i].sum():
            truth[i] = counts[i].sum(axis=0) / counts[i].sum()
        if i in known:
            truth[i] = np.eye(labels)[known[i]]
    likelihoods: list[float] = []
    for _ in range(steps - 1):
        confusion, prior = slow_m_step(counts, truth)
        truth, likelihood = slow_e_step(counts, prior, confusion, known)
        likelihoods.append(likelihood)
    return Slow(truth, confusion, prior, likelihoods)


def slow_m_step(counts: Table, truth: Table) -> tuple[Table, Table]:
    """Return confusions by (2.3), a pseudo-count added to every cell, and the class prior by (2.4)."""
    tasks, workers, labels = counts.shape
    confusion = np.zeros((workers, labels, labels))
    for k in range(workers):
        for j in range(labels):
            row = [sum(truth[i, j] * counts[i, k, x] for i in range(tasks)) + SMOOTHING for x in range(labels)]
            confusion[k, j] = np.array(row) / sum(row)
    return confusion, np.array([sum(truth[i, j] for i in range(tasks)) / tasks for j in range(labels)])


def slow_e_step(counts: Table, prior: Table, confusion: Table, known: dict[int, int]) -> tuple[Table, float]:
    """Return posteriors by (2.5) and the log-likelihood (2.7); a task whose truth is known counts with that truth."""
    tasks, workers, labels = counts.shape
    truth, likelihood = np.zeros((tasks, labels)), 0.0
    for i in range(tasks):
        for j in range(labels):
            truth[i, j] = prior[j]
            for k in range(workers):
                for answer in range(labels):
                    truth[i, j] *= confusion[k, j, answer] ** counts[i, k, answer]
        likelihood += np.log(truth[i, known[i]] if i in known else truth[i].sum())
        truth[i] = np.eye(labels)[known[i]] if i in known else truth[i] / truth[i].sum()
    return truth, likelihood


@pytest.mark.parametrize("steps", [2, 3, 7])
@pytest.mark.parametrize("seed", range(3))
def test_steps_are_the_papers_equations(steps: int, seed: int) -> None:
    """After any number of steps posterior, confusions and likelihoods are those of the loops."""
    reports = random_reports(np.random.default_rng(seed), LABELS, tasks=9, workers=5, share=0.7)

    truth, confusion, prior, likelihoods = slow_fit(reports, steps)
    estimate = DawidSkene(max_steps=steps, tolerance=0.0).fit(reports)

    np.testing.assert_allclose(estimate.posterior, truth, rtol=0, atol=1e-9)
    np.testing.assert_allclose(estimate.workers.confusion, confusion, rtol=0, atol=1e-9)
    assert pytest.approx(likelihoods[-1] + SMOOTHING * np.log(confusion).sum()) == estimate.log_likelihoods[-1]
    assert steps - 1 == len(estimate.log_likelihoods)
    diagonal = np.array([[confusion[k, j, j] for j in range(3)] for k in range(5)])
    np.testing.assert_allclose(estimate.workers.quality, diagonal @ prior, rtol=0, atol=1e-9)


def test_gold_enters_both_steps() -> None:
    """Known truths are certain in every step, teach confusions and class prior, and count in the likelihood."""
    reports = random_reports(np.random.default_rng(4), LABELS, tasks=9, workers=5, share=0.7)
    gold = {0: 2, 3: 0, 8: 1}

    truth, confusion, _, likelihoods = slow_fit(reports, 4, gold)
    estimate = DawidSkene(max_steps=4, tolerance=0.0).fit(reports, gold={k: LABELS.names[v] for k, v in gold.items()})

    np.testing.assert_allclose(estimate.posterior, truth, rtol=0, atol=1e-9)
    np.testing.assert_allclose(estimate.workers.confusion, confusion, rtol=0, atol=1e-9)
    assert pytest.approx(likelihoods[-1] + SMOOTHING * np.log(confusion).sum()) == estimate.log_likelihoods[-1]


def test_a_public_prior_is_never_relearned() -> None:
    """With a public prior the class prior stays as given: one step of the loops with that prior gives the posterior."""
    reports = random_reports(np.random.default_rng(5), LABELS, tasks=9, workers=5, share=0.7)
    given = {"a": 0.2, "b": 0.5, "c": 0.3}
    counts = np.zeros((9, 5, 3))
    np.add.at(counts, (reports.task, reports.worker, reports.value), 1)
    _, confusion, _, _ = slow_fit(reports, 2)

    expected, likelihood = slow_e_step(counts, np.array(list(given.values())), confusion, {})
    estimate = DawidSkene(max_steps=2).fit(reports, prior=given)

    np.testing.assert_allclose(estimate.posterior, expected, rtol=0, atol=1e-9)
    assert pytest.approx(likelihood + SMOOTHING * np.log(confusion).sum()) == estimate.log_likelihoods[0]
