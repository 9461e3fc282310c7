"""Errors of `student-t` on the public sets of numbers, beside mean, median, CRH, CATD and GTM, and its intervals.

    python experiments/methods/student_t_errors.py

prints the table of docs/explanation/estimators/student-t.md. Sets are read from the folder CROWDVEIL_DATA.
"""

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


def main() -> None:
    """Print the table."""
    for name in SETS:
        errors = absolute_errors(name)
        inside, own = errors.pop("inside"), errors.pop("student-t")
        best = min(errors, key=lambda method: errors[method])
        print(f"| {name} | {own:,.4g} | {errors[best]:,.4g} ({best}) | {inside:.2f} |")


if __name__ == "__main__":
    main()
