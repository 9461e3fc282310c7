"""Weighted medians and deviations by task, as loops."""

import numpy as np

from crowdveil.answers.reports import Reports
from crowdveil.estimators.numeric.task_medians import standard_deviation_per_task, weighted_medians


def median(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean of the smallest and the largest number with at most half of the weight on either side."""
    weights = weights if weights.sum() > 0 else np.ones_like(weights)
    half = weights.sum() / 2
    middle = [
        v for v in values if weights[values < v].sum() <= half + 1e-12 and weights[values > v].sum() <= half + 1e-12
    ]
    return float(min(middle) + max(middle)) / 2


def test_medians_equal_loops() -> None:
    """With weights of small integers, zeros among them, so that sums of one half occur; nan without numbers."""
    rng = np.random.default_rng(10)
    task, worker = np.nonzero(rng.random((60, 8)) < 0.5)
    task, worker = task[task != 30], worker[task != 30]
    reports = Reports(task, worker, rng.integers(0, 6, len(task)).astype(float), np.arange(60), np.arange(8), None)
    (block,) = reports.blocks()
    weight = rng.integers(0, 4, 8).astype(float)
    expected, spread = np.full(60, np.nan), np.zeros(60)
    for j in set(reports.task.tolist()):
        at = reports.task == j
        weights = weight[reports.worker[at]]
        positive = weights > 0 if weights.sum() else np.ones(len(weights), bool)
        expected[j] = median(reports.value[at][positive], weights[positive])
        spread[j] = np.std(reports.value[at])

    np.testing.assert_allclose(weighted_medians(block, block.value, weight), expected)
    np.testing.assert_allclose(standard_deviation_per_task(block, block.value), spread, atol=1e-12)
