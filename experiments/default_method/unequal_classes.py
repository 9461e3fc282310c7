"""The default for labels where one label is rare: accuracy of the default, of the same fit with the usual start, of
one-coin, Dawid-Skene and the vote, and of the best constant; then the calibration error of the first.

Simulated crowds of 40 workers with abilities of .6 to .95 and uniform errors; means over `SEEDS` crowds.
"""

from unittest.mock import patch

import numpy as np

from crowdveil import Categories, DawidSkene, HierarchicalDawidSkene, MajorityVote, OneCoin, Reports
from crowdveil.em.estimate import Estimate
from crowdveil.estimators import hierarchical_dawid_skene
from crowdveil.evaluation.metrics import score

WORKERS, TASKS, SEEDS = 40, 800, 20
LABELS = Categories(("no", "yes"))


def crowd(share: float, answers: int, seed: int) -> tuple[Reports, dict[int, str]]:
    """Return answers, as many for each task, and truths of which a share is "yes"."""
    rng = np.random.default_rng(seed)
    truth, ability = (rng.random(TASKS) < share).astype(int), rng.uniform(0.6, 0.95, WORKERS)
    worker = np.argsort(rng.random((TASKS, WORKERS)), axis=1)[:, :answers].ravel()
    task = np.repeat(np.arange(TASKS), answers)
    value = np.where(rng.random(len(task)) < ability[worker], truth[task], 1 - truth[task])
    names = np.arange(TASKS), np.arange(WORKERS)
    return Reports(task, worker, value, *names, LABELS), {place: LABELS.names[code] for place, code in enumerate(truth)}


def fits(reports: Reports) -> list[Estimate]:
    """Return the estimates in the order of the program's docstring."""
    estimators = HierarchicalDawidSkene(), OneCoin(), DawidSkene(), MajorityVote()
    with patch.object(hierarchical_dawid_skene, "starts_by_abilities", return_value=False):
        usual = estimators[0].fit(reports)
    default, *others = (estimator.fit(reports) for estimator in estimators)
    return [default, usual, *others]


def main() -> None:
    """Print a row for every share of the rare label and number of answers per task."""
    for share in (0.3, 0.1, 0.05, 0.03, 0.01):
        for answers in (3, 5, 10):
            rows = []
            for seed in range(SEEDS):
                reports, truth = crowd(share, answers, seed)
                scores = [score(estimate, truth) for estimate in fits(reports)]
                constant = list(truth.values()).count("no") / TASKS
                rows.append([*(1 - one.error for one in scores), constant, scores[0].calibration_error])
            print(f"{share:5} {answers:3} {' '.join(f'{value:.3f}' for value in np.mean(rows, axis=0))}", flush=True)


if __name__ == "__main__":
    main()
