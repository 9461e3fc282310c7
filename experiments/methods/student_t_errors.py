"""Errors of `student-t` on the public sets of numbers, beside mean, median, CRH, CATD and GTM, and its intervals.

    python experiments/methods/student_t_errors.py

prints the table of docs/explanation/estimators/student-t.md, then the coverage of the intervals on simulated panels by
the deviation of judges' biases, and of the shared and own errors. Sets are read from the folder CROWDVEIL_DATA.
"""

from itertools import product

import numpy as np

from crowdveil.data import datasets
from crowdveil.data.reports import Reports
from crowdveil.estimators import ESTIMATORS, StudentT

SETS = ("n_emotion", "snow_valence", "weather_temperature", "peer_grading_mooc", "population_tf", "population_cut")
OTHERS = {"CRH": "crh", "CATD": "catd", "GTM": "gtm"}


def absolute_errors(name: str) -> dict[str, float]:
    """Return the mean absolute errors by method, and the share of gold inside the intervals of `student-t`."""
    data = datasets.load(name)
    position = {task: code for code, task in enumerate(data.answers.tasks)}
    gold = {position[task]: float(truth) for task, truth in data.gold.items() if task in position}
    at, truth = np.array(list(gold)), np.array(list(gold.values()))
    estimate = StudentT().fit(data.answers)
    assert estimate.low is not None
    assert estimate.high is not None
    found = {"student-t": estimate.posterior}
    found |= {label: ESTIMATORS[method]().fit(data.answers).posterior for label, method in OTHERS.items()}
    found |= centres(data.answers)
    errors = {label: float(np.abs(values[at] - truth).mean()) for label, values in found.items()}
    inside = (estimate.low[at] <= truth) & (truth <= estimate.high[at])
    return errors | {"inside": float(inside.mean())}


def centres(answers: Reports) -> dict[str, np.ndarray]:
    """Return mean and median of the answers to each task; nan without answers."""
    values, tasks = answers.numbers, np.arange(len(answers.tasks) + 1)
    parts = np.split(values, np.searchsorted(answers.task, tasks[1:-1]))
    return {
        "mean": np.array([part.mean() if len(part) else np.nan for part in parts]),
        "median": np.array([np.median(part) if len(part) else np.nan for part in parts]),
    }


def panel(seed: int, offset: float, shared: float, own: float) -> tuple[Reports, np.ndarray]:
    """Return scores 0 to 10 of 600 comments by 24 judges in four groups whose errors are alike, and the true scores.

    A score is 5 + 2 (z + shared error of the group + own error) + a bias of the judge, rounded and cut off.
    """
    rng = np.random.default_rng(seed)
    z, bias = rng.normal(size=600), offset * rng.normal(size=(24, 1))
    errors = np.repeat(shared * rng.normal(size=(4, 600)), 6, axis=0) + own * rng.normal(size=(24, 600))
    scores = np.rint(5 + bias + 2 * (z + errors)).clip(0, 10)
    judge, task = np.indices(scores.shape).reshape(2, -1)
    return Reports.from_arrays(task, judge, scores.ravel(), numeric=True), (5 + 2 * z).clip(0, 10)


def panel_coverage(offset: float, shared: float, own: float) -> float:
    """Return the share of true scores inside the intervals, over ten panels."""
    inside = []
    for seed in range(10):
        reports, truth = panel(seed, offset, shared, own)
        estimate = StudentT().fit(reports)
        inside.append(((estimate.low <= truth) & (truth <= estimate.high)).mean())
    return float(np.mean(inside))


def main() -> None:
    """Print the tables."""
    for name in SETS:
        errors = absolute_errors(name)
        inside, own = errors.pop("inside"), errors.pop("student-t")
        best = min(errors, key=lambda method: errors[method])
        print(f"| {name} | {own:,.4g} | {errors[best]:,.4g} ({best}) | {inside:.3f} |")
    for offset, (shared, own) in product((0.0, 1.0, 2.0), ((1.0, 0.3), (0.5, 0.5), (0.3, 1.0))):
        print(f"| {offset:g} | {shared:g} | {own:g} | {panel_coverage(offset, shared, own):.3f} |")


if __name__ == "__main__":
    main()
