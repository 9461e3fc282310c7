"""Errors of methods for numbers on the public sets, and the intervals of `student-t` there and on simulated panels.

`python -m experiments.methods.numbers` prints the tables of docs/explanation/estimators/student-t.md. Sets are read
from the folder CROWDVEIL_DATA. The last table has the coverage of the intervals on panels, by the deviation of judges'
biases and of the shared and own errors.
"""

from itertools import product

import numpy as np

from crowdveil.data import datasets
from crowdveil.data.reports import Reports
from crowdveil.estimators import ESTIMATORS, StudentT

SETS = ("n_emotion", "snow_valence", "weather_temperature", "peer_grading_mooc", "population_tf", "population_cut")
METHODS = ("student-t", "weighted-mean", "crh", "catd", "gtm")
PANELS = tuple(product((0.0, 1.0, 2.0), ((1.0, 0.3), (0.5, 0.5), (0.3, 1.0), (0.0, 1.0), (0.0, 0.5))))
"""Deviations of biases, and of the shared and own errors of judges in units of the truths' deviation."""


def errors(name: str) -> tuple[dict[str, float], float]:
    """Return the mean absolute errors by method, and the share of gold inside the intervals of `student-t`."""
    data = datasets.load(name)
    answers = data.answers
    gold = np.array([data.gold.get(task, np.nan) for task in answers.tasks.tolist()], dtype=float)
    parts = np.split(answers.numbers, np.searchsorted(answers.task, np.arange(1, len(answers.tasks))))
    found = {method: ESTIMATORS[method]().fit(answers) for method in METHODS}
    truths = {method: estimate.posterior for method, estimate in found.items()}
    for centre in (np.mean, np.median):
        truths[centre.__name__] = np.array([centre(part) if len(part) else np.nan for part in parts])
    held = (found["student-t"].low <= gold) & (gold <= found["student-t"].high)
    means = {method: float(np.nanmean(np.abs(numbers - gold))) for method, numbers in truths.items()}
    return means, float(held[~np.isnan(gold)].mean())


def panel(seed: int, offset: float, shared: float, own: float) -> tuple[Reports, np.ndarray]:
    """Return scores 0 to 10 of 600 comments by 24 judges in four groups whose errors are alike, and the true scores.

    A score is 5 + 2 (z + shared error of the group + own error) + a bias of the judge, rounded and cut off.
    """
    rng = np.random.default_rng(seed)
    z, bias = rng.normal(size=600), offset * rng.normal(size=(24, 1))
    noise = np.repeat(shared * rng.normal(size=(4, 600)), 6, axis=0) + own * rng.normal(size=(24, 600))
    scores = np.rint(5 + bias + 2 * (z + noise)).clip(0, 10)
    judge, task = np.indices(scores.shape).reshape(2, -1)
    return Reports.from_arrays(task, judge, scores.ravel(), numeric=True), (5 + 2 * z).clip(0, 10)


def panel_coverage(offset: float, shared: float, own: float) -> float:
    """Return the share of true scores inside the intervals, over forty panels."""
    inside = []
    for seed in range(40):
        reports, truth = panel(seed, offset, shared, own)
        estimate = StudentT().fit(reports)
        inside.append(((estimate.low <= truth) & (truth <= estimate.high)).mean())
    return float(np.mean(inside))


if __name__ == "__main__":
    print("| set | inside |", *(f"{method} |" for method in (*METHODS, "mean", "median")))
    for name in SETS:
        means, inside = errors(name)
        print(f"| {name} | {inside:.3f} |", *(f"{value:,.4g} |" for value in means.values()))
    for offset, (shared, own) in PANELS:
        print(f"| {offset:g} | {shared:g} | {own:g} | {panel_coverage(offset, shared, own):.3f} |")
