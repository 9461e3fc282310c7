"""Ablation of the default method for labels on ten public sets, and its settings chosen with each set left out.

It prints accuracy, expected calibration error and log-loss of methods, and of the steps from Dawid-Skene to
`hierarchical-dawid-skene`. `--leave-one-out` chooses its settings on nine sets and scores the tenth; `--gold N`
combines methods by N known truths and scores the rest (8 draws), beside the vote and the fits without and with gold;
`--answers N` keeps N random answers of each task. The first of repeated answers counts, ties are split, probabilities
are at least 0.001 in the log-loss.
"""

import argparse
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil import DawidSkene, HierarchicalDawidSkene, MajorityVote, OneCoin, Reports
from crowdveil.aggregation import evidence_of, fit_method
from crowdveil.data import datasets
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import Estimator
from crowdveil.estimators import WeightedVote
from crowdveil.evaluation.calibration import calibration_error, confidence_bins
from crowdveil.evaluation.gold import AlignedGold, align_gold, gold_codes, mean_error

SETS = ("d_product", "d_possent", "s_rel", "adult2", "bluebird", "dog", "snow_rte", "snow_wsd", "web_zhou", "duchenne")
SMALLEST = 1e-3
DRAWS = 8
START: dict[str, Any] = {
    "shrinkage": 5.0,
    "crowd_share": 0.0,
    "uniform_share": 0.0,
    "max_steps": 1000,
    "error_correlation": 0.0,
}
CHANGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("shrinkage 5 to ability 0.7", {}),
    ("+ to the crowd (share 0.75)", {"crowd_share": 0.75}),
    ("+ shrinkage 3", {"shrinkage": 3.0}),
    ("+ even pseudo-tasks (0.1)", {"uniform_share": 0.1}),
    ("+ 10 steps", {"max_steps": 10}),
    ("+ error correlation 0.25", {"error_correlation": 0.25}),
)
GRID = [
    {"shrinkage": shrinkage, "crowd_share": crowd, "uniform_share": even, "max_steps": steps}
    for shrinkage, crowd, even, steps in product((2.0, 3.0, 5.0), (0.0, 0.75, 1.0), (0.0, 0.1), (6, 10, 20))
]
CORRELATIONS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
VOTE_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


class Score(NamedTuple):
    """Accuracy, expected calibration error and log-loss of one fit."""

    accuracy: float
    calibration: float
    loss: float


def score(aligned: AlignedGold) -> Score:
    """Return the score of an estimate over gold tasks with reports."""
    given = aligned.estimate.posterior[aligned.at, gold_codes(aligned)]
    error = calibration_error(confidence_bins(aligned), len(aligned.at))
    return Score(1 - mean_error(aligned, "error_rate"), error, float(-np.log(np.maximum(given, SMALLEST)).mean()))


def scored_gold(estimate: Estimate, gold: dict[str, Any]) -> AlignedGold:
    """Return the gold of tasks with reports, aligned with the estimate."""
    aligned = align_gold(estimate, gold)
    keep = np.flatnonzero(estimate.reports_per_task[aligned.at] > 0)
    return AlignedGold(estimate, aligned.at[keep], [aligned.truths[at] for at in keep], 0)


def scores_of(method: Estimator[Any, Any], answers: int | None = None) -> NDArray[np.float64]:
    """Return the scores of a method on all answers, or on some of each task, indexed [set, score]."""
    found = []
    for name in SETS:
        data = datasets.load(name)
        reports = data.answers if answers is None else some_answers(data.answers, answers)
        found.append(score(scored_gold(method.fit(reports), data.gold)))
    return np.array(found)


def some_answers(reports: Reports, most: int) -> Reports:
    """Return at most `most` random answers of each task."""
    order = np.lexsort((np.random.default_rng(0).random(len(reports)), reports.task))
    tasks = reports.task[order]
    kept = np.sort(order[np.arange(len(tasks)) - np.searchsorted(tasks, tasks) < most])
    codes = reports.task[kept], reports.worker[kept], reports.value[kept]
    return Reports(*codes, reports.tasks, reports.workers, reports.alphabet)


def print_row(name: str, scores: NDArray[np.float64]) -> None:
    """Print a method's scores of each set as accuracy/calibration error, and the means."""
    cells = " ".join(f"{one[0]:.3f}/{one[1]:.2f}" for one in scores)
    print(f"{name:32} {cells} | {' '.join(f'{value:.3f}' for value in scores.mean(axis=0))}", flush=True)


def print_ablation() -> None:
    """Print methods, and the steps from Dawid-Skene to the default."""
    print(" " * 32, *SETS, "| accuracy, calibration error, log-loss")
    for method in (MajorityVote(), WeightedVote(), OneCoin(), DawidSkene()):
        print_row(method.name, scores_of(method))
    settings = dict(START)
    for name, change in CHANGES:
        settings |= change
        print_row(name, scores_of(HierarchicalDawidSkene(**settings)))


def print_leave_one_out() -> None:
    """Print the score of each set with settings, and then the error correlation, that are best on the other nine."""
    fits = np.array([scores_of(HierarchicalDawidSkene(**settings)) for settings in GRID])
    chosen = [int(np.delete(fits[:, :, 0], left, axis=1).mean(axis=1).argmax()) for left in range(len(SETS))]
    print("accuracy", np.mean([fits[best, left, 0] for left, best in enumerate(chosen)]).round(4))
    print("settings", *(GRID[best] for best in chosen), sep="\n  ")
    for setting, values in (("error_correlation", CORRELATIONS), ("vote_share", VOTE_SHARES)):
        fits = np.array([scores_of(HierarchicalDawidSkene(**{setting: value})) for value in values])
        for place, name in ((1, "calibration error"), (2, "log-loss")):
            best = [int(np.delete(fits[:, :, place], left, axis=1).mean(axis=1).argmin()) for left in range(len(SETS))]
            means = np.mean([fits[number, left] for left, number in enumerate(best)], axis=0)
            print(f"{setting} by {name}", means.round(4), [values[number] for number in best])


def print_with_gold(known: int) -> None:
    """Print scores of tasks other than `known` gold tasks: vote, default without and with gold, stack; 8 draws."""
    methods = ("majority-vote", "without gold", "guided by gold", "stack")
    rows = [gold_scores(name, known) for name in SETS]
    for place, method in enumerate(methods):
        print_row(f"{method}, {known} gold tasks", np.array([row[place] for row in rows]))


def gold_scores(name: str, known: int) -> NDArray[np.float64]:
    """Return the mean scores of a set, indexed [method, score]."""
    data, found = datasets.load(name), []
    alone = [method.fit(data.answers) for method in (MajorityVote(), HierarchicalDawidSkene())]
    tasks = sorted(str(alone[0].tasks[at]) for at in scored_gold(alone[0], data.gold).at)
    for seed in range(DRAWS):
        shown = set(np.random.default_rng(seed).permutation(tasks)[:known])
        gold = {task: data.gold[task] for task in shown}
        guided = HierarchicalDawidSkene().fit(data.answers, gold=gold)
        stack = fit_method(evidence_of(data.answers, None, None, None, {}), None, gold=gold).estimate
        rest = {task: data.gold[task] for task in tasks if task not in shown}
        found.append([score(scored_gold(one, rest)) for one in (*alone, guided, stack)])
    return np.mean(found, axis=0)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leave-one-out", action="store_true")
    parser.add_argument("--gold", type=int, default=0)
    parser.add_argument("--answers", type=int, default=0)
    given = parser.parse_args()
    if given.answers:
        for method in (MajorityVote(), DawidSkene(), HierarchicalDawidSkene()):
            print_row(method.name, scores_of(method, given.answers))
    elif given.leave_one_out:
        print_leave_one_out()
    elif given.gold:
        print_with_gold(given.gold)
    else:
        print_ablation()


if __name__ == "__main__":
    main()
