"""Errors of methods for numbers on the public sets, and the coverage of the intervals of `student-t` there.

`python -m experiments.methods.numbers` prints the table of docs/explanation/estimators/student-t.md. Sets are read from
the folder CROWDVEIL_DATA.
"""

import numpy as np

from crowdveil.answers import datasets
from crowdveil.estimators import ESTIMATORS

SETS = ("n_emotion", "snow_valence", "weather_temperature", "peer_grading_mooc", "population_tf", "population_cut")
METHODS = ("student-t", "weighted-mean", "crh", "catd")


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


if __name__ == "__main__":
    print("| set | inside |", *(f"{method} |" for method in (*METHODS, "mean", "median")))
    for name in SETS:
        means, inside = errors(name)
        print(f"| {name} | {inside:.3f} |", *(f"{value:,.4g} |" for value in means.values()))
