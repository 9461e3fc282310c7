"""Dependence of answers: the equations as loops, independent answers, and known shares of copies."""

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil import Categories, Reports
from crowdveil.evaluation import dependence
from crowdveil.evaluation.dependence import LAGS, measure_dependence
from crowdveil.jit import KERNELS_VARIABLE

LABELS = Categories(("a", "b", "c"))
PRIOR = np.array([0.5, 0.3, 0.2])


def crowd(copied: float, tasks: int) -> tuple[Reports, NDArray[np.float64]]:
    """Return five answers to each task, each the task's common answer with probability sqrt(copied), and abilities."""
    rng = np.random.default_rng(4)
    confusion = np.array([one * np.eye(3) + (1 - one) / 3 for one in rng.uniform(0.3, 0.8, 20)])
    rows = []
    for task, truth in enumerate(rng.choice(3, tasks, p=PRIOR)):
        common = rng.choice(3, p=confusion.mean(axis=0)[truth])
        for worker in rng.choice(20, 5, replace=False):
            own = rng.choice(3, p=confusion[worker, truth])
            rows.append((task, worker, common if rng.random() < copied**0.5 else own))
    task, worker, value = np.array(rows).T
    return Reports(task, worker, value, np.arange(tasks), np.arange(20), LABELS), confusion


@pytest.mark.parametrize("kernels", ["plain", "compiled"])
def test_figures_are_the_equations(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Observed and predicted agreement, the share of copies and its error equal loops over pairs of answers."""
    monkeypatch.setenv(KERNELS_VARIABLE, kernels)
    monkeypatch.setattr(dependence, "CHUNK_NUMBERS", 9 * 17)
    reports, confusion = crowd(0.2, tasks=60)
    excess, room, agree = np.zeros(60), np.zeros(60), []
    for task in range(60):
        rows = sorted(np.flatnonzero(reports.task == task), key=lambda row: reports.worker[row])
        for one in range(5):
            for other in (one + lag for lag in LAGS if one + lag < 5):
                given = PRIOR.copy()
                for row in (row for at, row in enumerate(rows) if at not in (one, other)):
                    given *= confusion[reports.worker[row], :, reports.value[row]]
                pair = [confusion[reports.worker[rows[at]]] for at in (one, other)]
                predicted = given / given.sum() @ (pair[0] * pair[1]).sum(axis=1)
                agree.append(float(reports.value[rows[one]] == reports.value[rows[other]]))
                excess[task] += agree[-1] - predicted
                room[task] += 1 - predicted
    copied = excess.sum() / room.sum()

    found = measure_dependence(reports, confusion, PRIOR)

    assert found is not None
    assert (len(agree), pytest.approx(np.mean(agree))) == (found.pairs, found.observed)
    assert pytest.approx(np.mean(agree) - excess.sum() / len(agree)) == found.predicted
    assert pytest.approx(copied) == found.copied
    assert pytest.approx(np.linalg.norm(excess - copied * room) / room.sum()) == found.standard_error


@pytest.mark.slow
@pytest.mark.parametrize("copied", [0.0, 0.25])
def test_the_share_of_copies_is_found(copied: float) -> None:
    """With known confusion matrices the share of copies is within three standard errors, 0.03 at most each."""
    found = measure_dependence(*crowd(copied, tasks=1500), PRIOR)

    assert found is not None
    assert found.standard_error < 0.03
    assert pytest.approx(copied, abs=3 * found.standard_error) == found.copied
    assert (found.least_copied > 0) == (copied > 0)


def test_few_tasks_with_two_answers_say_nothing() -> None:
    """Below 50 tasks, and where every worker answers another task, nothing is measured."""
    reports, confusion = crowd(0.0, tasks=49)
    single = Reports(np.arange(90), np.arange(90), np.zeros(90, int), np.arange(90), np.arange(90), LABELS)

    assert measure_dependence(reports, confusion, PRIOR) is None
    assert measure_dependence(single, np.broadcast_to(np.eye(3), (90, 3, 3)), PRIOR) is None
