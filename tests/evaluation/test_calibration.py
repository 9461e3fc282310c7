"""Expected calibration error: its definition as a loop, and the score that prints it."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil import Categories, Reports
from crowdveil.em.estimate import Estimate
from crowdveil.estimators import MajorityVote
from crowdveil.evaluation import metrics

LABELS = Categories(("a", "b", "c"))
TASKS = 400


def estimate_of(posterior: np.ndarray) -> Estimate:
    """Return an estimate with this posterior, one report on every task."""
    tasks = np.arange(len(posterior))
    reports = Reports(tasks, np.zeros(len(tasks)), np.zeros(len(tasks)), tasks.astype(str), np.array(["w"]), LABELS)
    return replace(MajorityVote().fit(reports), posterior=posterior)


@pytest.fixture
def case() -> tuple[np.ndarray, dict[str, str]]:
    """Return posteriors, [task, label], and truths drawn from them."""
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.ones(3), TASKS)
    return posterior, {str(task): LABELS.names[rng.choice(3, p=row)] for task, row in enumerate(posterior)}


def test_calibration_error_equals_its_definition(case: tuple[np.ndarray, dict[str, str]]) -> None:
    """The score's calibration error is the mean difference of confidence and accuracy over ten bins, weighted by tasks;
    the printed score has it beside the log-loss."""
    posterior, gold = case
    expected = 0.0
    for k in range(10):
        confidence = posterior.max(axis=1)
        own = [task for task in range(TASKS) if k / 10 <= confidence[task] < (k + 1) / 10]
        right = [LABELS.names[posterior[task].argmax()] == gold[str(task)] for task in own]
        expected += abs(sum(right) - sum(confidence[own])) / TASKS

    result = metrics.score(estimate_of(posterior), gold)

    assert pytest.approx(expected) == result.calibration_error
    assert f"calibration error {expected:.3f}" in str(result)
    assert f"log-loss {result.log_loss:.3f}" in str(result)
