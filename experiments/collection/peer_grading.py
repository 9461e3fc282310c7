"""Peer grading end to end: 72 students grade five essays each, 0 to 10, with a budget of 5 per student.

No student grades the own essay. True grades and errors of the graders are simulated with the distribution of the real
set peer_grading_mooc (grades 0..25, rescaled), where the data directory has it, else with normal ones of the stated
moments. Errors are mean absolute errors against the simulated true grades, means over seeds; the rows of the real
grades are against the 23 grades of the staff and against the unprotected truths.

Run `python experiments/collection/peer_grading.py [--quick] [--http]`; --http adds one campaign with the service and
72 devices over HTTP on this computer.
"""

import argparse
import csv
import io
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil import Gaussian, Laplace, Reports, Scale
from crowdveil.campaign.assembly import Content
from crowdveil.campaign.document import Task
from crowdveil.data import datasets
from crowdveil.data.assignment import Assignment
from crowdveil.randomness import seeded
from crowdveil.simulate.campaigns import perturb_cells

STUDENTS, EACH, BUDGET = 72, 5, 5.0
GRADES = Scale(0, 10)
REAL = "peer_grading_mooc"
MEAN, DEVIATION, ERROR = 6.5, 1.8, 2.1
"""Moments of true grades and of grading errors without the real set, on the scale 0..10."""
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Graders:
    """Distributions of true grades and of grading errors, as samples on the scale 0..10."""

    grades: Numbers
    errors: Numbers
    source: str


def graders() -> Graders:
    """Return the distributions of the real set, without its staff grades; normal ones if it is absent."""
    if REAL not in datasets.available():
        drawn = np.random.default_rng(0)
        return Graders(drawn.normal(MEAN, DEVIATION, 10_000), drawn.normal(0, ERROR, 10_000), "normal distributions")
    answers = datasets.load(REAL, duplicates="first").answers
    value, task = answers.numbers / 2.5, answers.task
    counts = np.bincount(task)
    means = np.bincount(task, value) / np.maximum(counts, 1)
    several = counts > 1
    # Residuals from a mean of n grades are too small by (n - 1) / n in variance; means are spread too widely.
    residuals = ((value - means[task]) * np.sqrt(counts / np.maximum(counts - 1, 1))[task])[several[task]]
    spread = max(means[several].var() - residuals.var() * (1 / counts[several]).mean(), 0.0)
    centre = means[several].mean()
    grades = centre + (means[several] - centre) * np.sqrt(spread / means[several].var())
    return Graders(grades, residuals, f"{REAL}, {int(several.sum())} essays")


def assign(seed: int) -> list[list[int]]:
    """Return five essays of each student, never the own one; every essay has five graders."""
    order = np.random.default_rng(seed).permutation(STUDENTS)
    essays = [sorted(int(order[(place + step) % STUDENTS]) for step in range(1, EACH + 1)) for place in range(STUDENTS)]
    return [essays[place] for place in np.argsort(order)]


def simulate(known: Graders, seed: int) -> tuple[Numbers, Reports, Assignment]:
    """Return true grades, answers and assignment."""
    generator = np.random.default_rng(1000 + seed)
    truth = np.clip(generator.choice(known.grades, STUDENTS), GRADES.low, GRADES.high)
    task = np.concatenate([np.array(essays) for essays in assign(seed)])
    worker = np.repeat(np.arange(STUDENTS), EACH)
    code = np.rint(np.clip(truth[task] + generator.choice(known.errors, len(task)), GRADES.low, GRADES.high))
    essays, students = np.arange(STUDENTS), np.arange(STUDENTS)
    answers = Reports(task, worker, code.astype(int), essays, students, GRADES)
    return truth, answers, Assignment(essays, students, task, worker)


def gap(estimate: Any, truth: Any) -> float:
    """Return the mean absolute difference of inferred and other grades, over essays where both are known."""
    return float(np.nanmean(np.abs(np.asarray(estimate, dtype=float) - truth)))


def protected(answers: Reports, assignment: Assignment, budget: float, seed: int, method: Gaussian) -> Any:
    """Return the truths of a simulated campaign with this budget per worker."""
    channel = Laplace(alphabet=answers.alphabet, epsilon=budget / EACH).channel()
    sent = perturb_cells(answers, channel, seeded(seed), assignment=assignment)
    return method.fit(sent, channel=channel, assignment=assignment).truth


def public_prior(scale: Scale) -> Gaussian:
    """Return the method with a public normal prior: the middle of the scale, and a quarter of its range."""
    return Gaussian(prior_mean=(scale.low + scale.high) / 2, prior_deviation=(scale.high - scale.low) / 4)


def simulated_rows(known: Graders, seeds: int) -> Iterator[tuple[str, ...]]:
    """Yield the mean errors over seeds: unprotected, best constant, and protected by budget."""
    campaigns = [simulate(known, seed) for seed in range(seeds)]
    plain = [Gaussian().fit(answers).truth for _, answers, _ in campaigns]
    truths = [truth for truth, _, _ in campaigns]
    yield "constant", "", *_mean([gap(np.median(truth), truth) for truth in truths]), "", ""
    yield "unprotected", "", *_mean(list(map(gap, plain, truths))), "", ""
    for budget in (5.0, 10.0, 20.0, 40.0):
        for name, method in (("learned prior", Gaussian()), ("public prior", public_prior(GRADES))):
            found = [protected(own, cells, budget, s, method) for s, (_, own, cells) in enumerate(campaigns)]
            errors, differences = _mean(list(map(gap, found, truths))), _mean(list(map(gap, found, plain)))
            related = np.mean([_correlation(one, truth) for one, truth in zip(found, truths, strict=True)])
            yield f"protected, {name}", f"{budget:g}", *errors, differences[0], f"{related:.2f}"


def real_rows(seeds: int) -> Iterator[tuple[str, ...]]:
    """Yield the errors on the real grades, of which each student's first five count: budget 5, epsilon 1 a grade."""
    data = datasets.load(REAL, duplicates="first")
    answers = data.answers
    order = np.lexsort((answers.task, answers.worker))
    rank = np.empty(len(order), dtype=int)
    starts = np.concatenate([[0], np.cumsum(np.bincount(answers.worker))])
    rank[order] = np.arange(len(order)) - starts[answers.worker[order]]
    kept = rank < EACH
    scale = Scale(0, 25)
    lists = answers.tasks, answers.workers
    own = Reports(answers.task[kept], answers.worker[kept], answers.numbers[kept].astype(int), *lists, scale)
    asked = Assignment(*lists, own.task, own.worker)
    gold = {str(task): float(truth) for task, truth in data.gold.items()}
    places = [place for place, name in enumerate(own.tasks.tolist()) if str(name) in gold]
    staff = np.array([gold[str(own.tasks[place])] for place in places])
    plain = Gaussian().fit(own).truth
    middle = float(np.nanmedian(plain))
    yield "real, constant", "", f"{gap(middle, staff):.2f}", "", f"{gap(middle, plain):.2f}", ""
    yield "real, unprotected", "", f"{gap(plain[places], staff):.2f}", "", "", ""
    for name, method in (("learned prior", Gaussian()), ("public prior", public_prior(scale))):
        found = [protected(own, asked, BUDGET, seed, method) for seed in range(seeds)]
        related = np.mean([_correlation(one, plain) for one in found])
        errors = _mean([gap(one[places], staff) for one in found])
        yield f"real, {name}", f"{BUDGET:g}", *errors, _mean([gap(one, plain) for one in found])[0], f"{related:.2f}"


def http_row(known: Graders) -> tuple[str, ...]:
    """Return the error of one campaign with the service and devices over HTTP."""
    from crowdveil.service.loopback import run_on_loopback
    from crowdveil.service.store import today_utc

    truth, answers, _ = simulate(known, 0)
    today = today_utc()
    content = Content(
        title="Essays (simulated grades)",
        question="How good is this essay?",
        consent="The grades are simulated.",
        language="en",
        opens=today - timedelta(days=1),
        closes=today + timedelta(days=1),
        min_reports=30,
        channels=(Laplace(alphabet=GRADES, epsilon=BUDGET / EACH).channel(),),
        tasks=tuple(Task(f"essay-{essay:02}", f"Essay {essay}") for essay in range(STUDENTS)),
    )
    given: list[dict[int, str]] = [{} for _ in range(STUDENTS)]
    for task, worker, code in zip(answers.task.tolist(), answers.worker.tolist(), answers.value.tolist(), strict=True):
        given[worker][task] = GRADES.names[code]
    start = time.perf_counter()
    found = run_on_loopback(content, assign(0), given)
    seconds = time.perf_counter() - start
    rows = csv.DictReader(io.StringIO(found.result.files["truths.csv"].decode("utf-8")))
    inferred = np.array([float(row["truth"]) for row in rows])
    plain = Gaussian().fit(answers).truth
    print(f"HTTP: {STUDENTS} devices, {seconds:.0f} s in all")
    related = _correlation(inferred, truth)
    return (
        "over HTTP, one run",
        f"{BUDGET:g}",
        f"{gap(inferred, truth):.2f}",
        "",
        f"{gap(inferred, plain):.2f}",
        f"{related:.2f}",
    )


def _correlation(estimate: Any, truth: Any) -> float:
    """Return Pearson's correlation over essays where both are known; 0 for a constant."""
    known = np.isfinite(estimate) & np.isfinite(truth)
    if np.ptp(np.asarray(estimate)[known]) == 0:
        return 0.0
    return float(np.corrcoef(np.asarray(estimate)[known], np.asarray(truth)[known])[0, 1])


def _mean(values: list[float]) -> tuple[str, str]:
    """Return mean and standard error as text."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values):.2f}", f"{error:.2f}"


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three seeds in place of ten")
    parser.add_argument("--http", action="store_true", help="one campaign with the service and devices")
    given = parser.parse_args()
    known, seeds = graders(), 3 if given.quick else 10
    deviations = f"standard deviations {known.grades.std():.2f} and {known.errors.std():.2f}"
    print(f"grades and errors: {known.source}; {deviations}")
    print("| grades | budget | error | standard error | from unprotected | correlation |\n|" + "---|" * 6)
    rows = [*simulated_rows(known, seeds), *(real_rows(seeds) if REAL in datasets.available() else [])]
    for row in [*rows, *([http_row(known)] if given.http else [])]:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
