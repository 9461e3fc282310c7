"""Errors of `student-t` on the public sets of numbers, beside mean, median, CRH, CATD and GTM, and its intervals.

    python experiments/methods/student_t_errors.py [--left-out]

prints the table of docs/explanation/estimators/student-t.md, then the coverage of the intervals on simulated panels by
the deviation of judges' biases, and of the shared and own errors. Sets are read from the folder CROWDVEIL_DATA.
`--left-out` prints, for every set and kind of panel, the constants of `error_correlation` with the least squared
distance of coverage from .9 on all others, and the coverage with them.
"""

import argparse
from itertools import product
from unittest.mock import patch

import numpy as np

from crowdveil.data import datasets
from crowdveil.data.reports import Reports
from crowdveil.estimators import ESTIMATORS, StudentT
from crowdveil.estimators.numeric import error_correlation

SETS = ("n_emotion", "snow_valence", "weather_temperature", "peer_grading_mooc", "population_tf", "population_cut")
OTHERS = {"CRH": "crh", "CATD": "catd", "GTM": "gtm"}
KINDS = ((1.0, 0.3), (0.5, 0.5), (0.3, 1.0), (0.0, 1.0), (0.0, 0.5))
"""Deviations of the shared and own errors of judges, in units of the truths' deviation."""
CONSTANTS = tuple(product((1.0, 1.25, 1.5, 1.75, 2.0, 2.5), (0.45, 0.55, 0.7, 0.85, 1.0), (0.0, 5.0, 10.0, 20.0)))
"""Choices of CORRELATION_PER_Q, LARGEST_CORRELATION and PRIOR_TASKS."""


def absolute_errors(name: str) -> dict[str, float]:
    """Return the mean absolute errors by method, and the share of gold inside the intervals of `student-t`."""
    data = datasets.load(name)
    position = {task: code for code, task in enumerate(data.answers.tasks)}
    gold = {position[task]: float(truth) for task, truth in data.gold.items() if task in position}
    at, truth = np.array(list(gold)), np.array(list(gold.values()))
    estimate = StudentT().fit(data.answers)
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
    """Return the share of true scores inside the intervals, over forty panels."""
    inside = []
    for seed in range(40):
        reports, truth = panel(seed, offset, shared, own)
        estimate = StudentT().fit(reports)
        inside.append(((estimate.low <= truth) & (truth <= estimate.high)).mean())
    return float(np.mean(inside))


def coverages(reports: Reports, at: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the share of truths of the tasks `at` inside the intervals, for each of `CONSTANTS`.

    The squared half width is linear in the correlation, and truths do not depend on it.
    """
    narrow, wide = (StudentT(error_correlation=rho).fit(reports) for rho in (0.0, 1.0))
    least, most = (((one.high - one.low) / 2)[at] ** 2 for one in (narrow, wide))
    away = (narrow.posterior[at] - truth) ** 2
    seen: list[np.ndarray] = []
    with patch("crowdveil.estimators.numeric.student_t.correlation_of", lambda sums: seen.append(sums) or 0.0):
        StudentT().fit(reports)
    found = []
    for constants in CONSTANTS:
        names = ("CORRELATION_PER_Q", "LARGEST_CORRELATION", "PRIOR_TASKS")
        with patch.multiple(error_correlation, **dict(zip(names, constants, strict=True))):
            rho = error_correlation.correlation_of(seen[-1])
        found.append((away <= least + rho * (most - least)).mean())
    return np.array(found)


def print_left_out() -> None:
    """Print for every set and kind of panel the constants chosen on all others, and the coverage with them."""
    rows = {}
    for name in SETS:
        data = datasets.load(name)
        gold = np.array([data.gold.get(task, np.nan) for task in data.answers.tasks.tolist()], dtype=float)
        at = np.flatnonzero(~np.isnan(gold))
        rows[name] = coverages(data.answers, at, gold[at])
    for offset, kind in product((0.0, 1.0, 2.0), KINDS):
        panels = [panel(seed, offset, *kind) for seed in range(10)]
        rows[f"panel {offset:g}, {kind}"] = np.mean([coverages(one, np.arange(600), truth) for one, truth in panels], 0)
    for name, own in rows.items():
        loss = sum((found - 0.9) ** 2 for other, found in rows.items() if other != name)
        best = int(np.argmin(loss))
        print(f"| {name} | {CONSTANTS[best]} | {own[best]:.3f} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--left-out", action="store_true")
    if parser.parse_args().left_out:
        print_left_out()
        return
    for name in SETS:
        errors = absolute_errors(name)
        inside, own = errors.pop("inside"), errors.pop("student-t")
        best = min(errors, key=lambda method: errors[method])
        print(f"| {name} | {own:,.4g} | {errors[best]:,.4g} ({best}) | {inside:.3f} |")
    for offset, (shared, own) in product((0.0, 1.0, 2.0), KINDS):
        print(f"| {offset:g} | {shared:g} | {own:g} | {panel_coverage(offset, shared, own):.3f} |")


if __name__ == "__main__":
    main()
