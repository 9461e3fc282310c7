"""Squared slopes of answers against their formula, written as loops over single reports."""

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.em.kernels import dispatch, reductions
from crowdveil.em.kernels.reductions import Slopes, squared_slopes
from tests.estimators.dense import random_reports


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("labels", [2, 3, 11])
def test_every_answer_adds_its_squared_slope(labels: int, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right with the posterior of its own label, wrong with all others'; in parts and threads, too."""
    rng = np.random.default_rng(labels)
    alphabet = Categories(tuple(f"label {k}" for k in range(labels)))
    reports = random_reports(rng, alphabet, tasks=40, workers=6, share=0.5)
    (block,) = reports.blocks()
    posterior = rng.dirichlet(np.ones(labels), 40)
    right, wrong = rng.random((2, 6, labels))
    expected = np.zeros(6)
    for task, worker, label in zip(reports.task, reports.worker, reports.value, strict=True):
        slope = -sum(posterior[task, z] * wrong[worker, z] for z in range(labels) if z != label)
        expected[worker] += (slope + posterior[task, label] * right[worker, label]) ** 2

    whole = squared_slopes(block, posterior, Slopes(right, wrong), compiled=compiled)
    monkeypatch.setattr(reductions, "CHUNK_REPORTS", 16)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv(dispatch.THREADS_VARIABLE, threads)
        found.append(squared_slopes(block, posterior, Slopes(right, wrong), compiled=compiled))

    np.testing.assert_allclose(whole, expected, rtol=1e-12)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    np.testing.assert_array_equal(found[0], found[1])


def test_a_block_without_answers_has_none() -> None:
    """Tasks without a single answer add nothing."""
    (block,) = random_reports(np.random.default_rng(0), Categories(("a", "b")), tasks=3, workers=2, share=0.0).blocks()

    squares = squared_slopes(block, np.full((3, 2), 0.5), Slopes(*np.ones((2, 2, 2))), compiled=True)

    np.testing.assert_array_equal(squares, np.zeros(2))
