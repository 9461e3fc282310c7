"""Peer grading by plan: 40 students grade essays of others from 0 to 10, with budgets 2 to 20 per student.

Each budget is spent by laplace on five essays as before plans could be asked, and by what `crowdveil plan` chooses:
told nothing; told how much graders err; told that and how grades are spread, as inference is then, too. What is told
are rounded moments of the set peer_grading_mooc, as a teacher may know them from an earlier term; no staff grade is
used. True grades and errors are drawn from that set, and errors are against the drawn grades.

Run `python experiments/collection/planned_grading.py`; it writes results/planned_grading.csv.
"""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil import Gaussian, Reports, Scale
from crowdveil.campaign.document import Task
from crowdveil.campaign.settings.build import build_campaign
from crowdveil.campaign.settings.privacy_request import PLAN, PrivacyRequest
from crowdveil.campaign.settings.settings_file import CampaignSettings, read_settings
from crowdveil.data import datasets
from crowdveil.data.assignment import Assignment
from crowdveil.mechanisms import Laplace
from crowdveil.planning.settings.chosen_mechanism import ChosenMechanism, choose_mechanism
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells

RESULTS = Path(__file__).parent / "results" / "planned_grading.csv"
SETTINGS = Path(__file__).parents[2] / "docs" / "samples" / "campaign.toml"
STUDENTS, EACH, BUDGETS, RUNS = 40, 5, (2.0, 5.0, 10.0, 20.0), 20
GRADES = Scale(0, 10)
MEAN, DEVIATION, ERROR = 6.5, 1.5, 2.0
"""Moments that the plan and inference may be told: of grades, and of the errors of graders."""
FLOOR = 1e-4
"""Weight of every grade in the prior that is told, besides that of the normal distribution."""
FIELDS = ("told", "budget", "mechanism", "tasks_each", "epsilon_per_answer", "error", "standard_error", "unprotected",
          "best_constant", "told_constant")  # fmt: skip


class Told(NamedTuple):
    """What the plan is told, and with which method results are inferred."""

    name: str
    privacy: PrivacyRequest
    sigmas: tuple[float, ...] = ()
    each: int | None = None
    method: Gaussian = Gaussian()


class Graders(NamedTuple):
    """Distributions of true grades and of grading errors, as samples on the scale 0..10."""

    grades: NDArray[np.float64]
    errors: NDArray[np.float64]


def graders() -> Graders:
    """Return the distributions of the real set (grades 0..25, rescaled), without its staff grades."""
    answers = datasets.load("peer_grading_mooc", duplicates="first").answers
    value, task = answers.numbers / 2.5, answers.task
    counts = np.bincount(task)
    means = np.bincount(task, value) / np.maximum(counts, 1)
    several = counts > 1
    # Residuals from a mean of n grades are too small by (n - 1) / n in variance; means are spread too widely.
    residuals = ((value - means[task]) * np.sqrt(counts / np.maximum(counts - 1, 1))[task])[several[task]]
    spread = max(means[several].var() - residuals.var() * (1 / counts[several]).mean(), 0.0)
    centre = means[several].mean()
    grades = centre + (means[several] - centre) * np.sqrt(spread / means[several].var())
    return Graders(grades, residuals)


def gap(estimate: Any, truth: Any) -> float:
    """Return the mean absolute difference of inferred and other grades, over essays where both are known."""
    return float(np.nanmean(np.abs(np.asarray(estimate, dtype=float) - truth)))


def write_prior(folder: Path) -> Path:
    """Write the public prior of grades, a normal distribution on the scale with a floor; return its file."""
    weights = np.exp(-(((GRADES.values - MEAN) / DEVIATION) ** 2) / 2) + FLOOR
    rows = [f"{name},{weight:.9g}" for name, weight in zip(GRADES.names, weights / weights.sum(), strict=True)]
    path = folder / "prior.csv"
    path.write_text("label,probability\n" + "\n".join(rows) + "\n", "utf-8")
    return path


def campaigns(prior: Path, budget: float) -> Iterator[Told]:
    """Yield the compared campaigns of a budget."""
    plan = PrivacyRequest(mechanism=PLAN, budget_per_worker=budget)
    informed = Gaussian(prior_mean=MEAN, prior_deviation=DEVIATION)
    yield Told("laplace, five essays", replace(plan, mechanism=Laplace.name), each=EACH)
    yield Told("plan, told nothing", plan)
    yield Told("plan, told errors", plan, (ERROR,))
    yield Told("plan and inference, told errors and grades", replace(plan, prior=prior), (ERROR,), method=informed)


def settings(told: Told) -> CampaignSettings:
    """Return the settings of a campaign in which nobody grades the own essay."""
    source = read_settings(SETTINGS)
    rows = tuple(
        replace(source.rows[0], task=Task(f"essay-{essay}", "An essay."), not_for=()) for essay in range(STUDENTS)
    )
    return replace(
        source,
        rows=rows,
        slots=STUDENTS,
        names=(),
        excluded=tuple(frozenset([student]) for student in range(STUDENTS)),
        per_worker=told.each,
        privacy=told.privacy,
        expected=replace(source.expected, sigmas=told.sigmas),
    )


def errors(known: Graders, chosen: ChosenMechanism, method: Gaussian, seed: int) -> tuple[float, ...]:
    """Return the errors of one run: of the campaign, unprotected, of the best constant, and of the told one."""
    _, parts, (mechanism,) = build_campaign(chosen.source, seeded(seed + 1_000_000), build=chosen.build)
    lists = [np.array(tasks) for document in parts for tasks in document.lists]
    generator = np.random.default_rng(1_000 + seed)
    truth = np.clip(generator.choice(known.grades, STUDENTS), GRADES.low, GRADES.high)
    task, worker = np.concatenate(lists), np.repeat(np.arange(STUDENTS), [len(tasks) for tasks in lists])
    code = np.rint(np.clip(truth[task] + generator.choice(known.errors, len(task)), GRADES.low, GRADES.high))
    names = np.arange(STUDENTS), np.arange(STUDENTS)
    answers, assignment = Reports(task, worker, code.astype(int), *names, GRADES), Assignment(*names, task, worker)
    channel = mechanism.channel()
    sent = perturb_cells(answers, channel, seeded(seed), assignment=assignment)
    found = method.fit(sent, channel=channel, assignment=assignment).truth
    return gap(found, truth), gap(method.fit(answers).truth, truth), gap(np.median(truth), truth), gap(MEAN, truth)


def row(known: Graders, told: Told, budget: float, runs: int = RUNS) -> tuple[str, ...]:
    """Return a row of the table: means over runs."""
    chosen = choose_mechanism(settings(told))
    found = np.array([errors(known, chosen, told.method, seed) for seed in range(runs)])
    mean, deviation = found.mean(axis=0), found[:, 0].std(ddof=1) / np.sqrt(runs)
    mechanism = chosen.mechanism
    figures = [f"{value:.3f}" for value in (mean[0], deviation, *mean[1:])]
    epsilon = f"{mechanism.guarantee.epsilon:.3f}"
    return told.name, f"{budget:g}", mechanism.name, str(chosen.most_tasks), epsilon, *figures


def main() -> None:
    """Write the table."""
    known = graders()
    RESULTS.parent.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, RESULTS.open("w", newline="", encoding="utf-8") as stream:
        prior, table = write_prior(Path(folder)), csv.writer(stream, lineterminator="\n")
        table.writerow(FIELDS)
        for budget in BUDGETS:
            for told in campaigns(prior, budget):
                table.writerow(row(known, told, budget))
                stream.flush()
                print(told.name, budget, "done", flush=True)


if __name__ == "__main__":
    main()
