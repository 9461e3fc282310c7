"""Plans of real sets from pilots of fifty tasks, and the population of crowds that is learned from them.

Each set of labels is planned from four random pilots, with and without gold, as `crowdveil plan --pilot` does; the
measured errors are those of `results/real_sets.csv`. The share of shared mistakes and the shift of each set are fitted
to its five conditions; each set is then predicted from the other sets.

    python -m experiments.utility.pilots replay > experiments/utility/results/pilots.csv
    python -m experiments.utility.pilots
"""

import csv
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from experiments.rows import four_digits, read_rows, write_rows
from experiments.utility.real_sets import CONDITIONS, LABELS, answers_of, campaign_of, mechanism_of
from scipy.optimize import least_squares
from scipy.special import expit, logit

from crowdveil import Reports
from crowdveil.answers.datasets import load
from crowdveil.planning import predict_campaign_error, with_crowd_of_pilot
from crowdveil.planning.shared_mistakes import LEVEL, SMALLEST, Pilot, ReplayedSet, SharedMistakes
from crowdveil.randomness import seeded

RESULTS = Path(__file__).parent / "results"
TASKS, SEEDS = 50, (1, 2, 3, 4)
RESIDUAL = 0.05
"""Standard deviation of relative errors in the fit of a set."""
PRIOR_SHARE, PRIOR_SHARE_DEVIATION, PRIOR_SHIFT_DEVIATION = -1.5, 2.0, 1.0
"""Weak prior of the fit of a set: log-odds of the share, and the shift around 0."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One set, planned from one pilot, under one condition.

    `shares` are those of `Pilot`; `planned` and `pilot_planned` are errors against the consensus divided by that of the
    best constant.
    """

    set: str
    gold: str
    seed: int
    participation: str
    epsilon: float
    ability: float
    shares: str
    wrong: float
    planned: float
    pilot_planned: float
    measured: float
    measured_constant: float
    tasks: int

    @property
    def pilot(self) -> Pilot:
        """Pilot of the row."""
        known = self.gold == "yes"
        return Pilot(
            labels=tuple(map(str, range(len(self.shares.split())))),
            tasks=TASKS,
            workers=0,
            answered=0.0,
            ability=self.ability,
            shares=np.array(list(map(float, self.shares.split()))),
            wrong=self.wrong if known else None,
            known=TASKS if known else 0,
        )


def rows() -> list[Row]:
    """Return the rows of `results/pilots.csv`."""
    return read_rows(RESULTS / "pilots.csv", Row)


def of_tasks(answers: Reports, drawn: np.ndarray) -> Reports:
    """Return the answers to some tasks."""
    kept = np.isin(answers.task, drawn)
    workers = np.unique(answers.worker[kept])
    return replace(
        answers,
        task=np.searchsorted(drawn, answers.task[kept]).astype(np.int32),
        worker=np.searchsorted(workers, answers.worker[kept]).astype(np.int32),
        value=answers.value[kept],
        tasks=answers.tasks[drawn],
        workers=answers.workers[workers],
    )


def replay(name: str) -> Iterable[Row]:
    """Yield the rows of a set."""
    data = load(name)
    answers = answers_of(name, data)
    with (RESULTS / "real_sets.csv").open(encoding="utf-8") as stream:
        measured = [line for line in csv.DictReader(stream) if line["set"] == name]
    with_gold = np.flatnonzero(np.isin(np.asarray(answers.tasks).astype(str), list(data.gold)))
    for seed in SEEDS:
        part = of_tasks(answers, np.sort(seeded(seed).generator.permutation(with_gold)[:TASKS]))
        for gold in (data.gold, None):
            pilot = Pilot.of(part, gold)
            for (participation, epsilon), line in zip(CONDITIONS, measured, strict=True):
                campaign = with_crowd_of_pilot(campaign_of(answers, participation), pilot)
                found = replace(campaign, shared_mistakes=None)
                error = predict_campaign_error(found, mechanism_of(found, epsilon), seeds=1).error
                yield Row(
                    set=name,
                    gold="no" if gold is None else "yes",
                    seed=seed,
                    participation=participation,
                    epsilon=epsilon,
                    ability=pilot.ability,
                    shares=" ".join(f"{share:.4g}" for share in pilot.shares),
                    wrong=pilot.wrong or 0.0,
                    planned=error / campaign.crowd.constant_error,
                    pilot_planned=campaign.shared_mistakes.relative,
                    measured=float(line["measured"]),
                    measured_constant=float(line["measured_constant"]),
                    tasks=campaign.tasks,
                )


def fitted(name: str, found: Iterable[Row]) -> ReplayedSet:
    """Return the share and the shift that fit the rows of a set with gold best, rounded to thousandths."""
    chosen = [row for row in found if row.set == name and row.gold == "yes"]
    planned = logit(np.clip([row.planned for row in chosen], SMALLEST, 1 - SMALLEST))
    real = np.minimum([row.measured / row.measured_constant for row in chosen], 1.0)

    def residuals(at: np.ndarray) -> np.ndarray:
        share, consensus = expit(at[0]), expit(planned + at[1])
        prior = (at[0] - PRIOR_SHARE) / PRIOR_SHARE_DEVIATION, at[1] / PRIOR_SHIFT_DEVIATION
        return np.concatenate(((consensus + share * (1 - consensus) - real) / RESIDUAL, 2 * np.array(prior)))

    share, shift = (best := least_squares(residuals, [PRIOR_SHARE, 0.0]).x).tolist()
    rest = RESIDUAL * float(np.sqrt(np.mean(residuals(best)[:-2] ** 2)))
    return ReplayedSet(name, round(float(expit(share)), 3), round(shift, 3), round(rest, 3))


@dataclass(frozen=True)
class Coverage:
    """Intervals of left-out sets: number inside, all, mean width, mean measured less expected error."""

    inside: int
    every: int
    width: float
    bias: float
    distance: float


def coverage(found: Iterable[Row], sets: Iterable[ReplayedSet], gold: str, level: float = LEVEL) -> Coverage:
    """Return how intervals cover measured errors, each set left out of the population that predicts it."""
    chosen, known = [row for row in found if row.gold == gold], tuple(sets)
    inside, widths, errors = 0, [], []
    for row in chosen:
        others = tuple(one for one in known if one.name != row.set)
        model = SharedMistakes(pilot=row.pilot, relative=row.pilot_planned, sets=others)
        error, low, high = model.expected_error_interval(row.planned, row.tasks, level)
        inside += low <= row.measured <= high
        widths.append(high - low)
        errors.append(row.measured - error)
    bias, distance = float(np.mean(errors)), float(np.mean(np.abs(errors)))
    return Coverage(inside, len(chosen), float(np.mean(widths)), bias, distance)


def table(found: list[Row]) -> Iterator[str]:
    """Yield the population, and the lines of a table of its coverage."""
    sets = [fitted(name, found) for name in LABELS]
    yield from map(str, sets)
    yield "| gold | level | inside | width | measured less expected | distance |"
    yield "|---|---|---|---|---|---|"
    for gold, level in product(("yes", "no"), (0.8, 0.9, LEVEL)):
        one = coverage(found, sets, gold, level)
        figures = f"{one.width:.3f} | {one.bias:.3f} | {one.distance:.3f}"
        yield f"| {gold} | {level} | {one.inside} of {one.every} | {figures} |"


if __name__ == "__main__":
    if sys.argv[1:2] == ["replay"]:
        chosen = (row for name in sys.argv[2:] or LABELS for row in replay(name))
        write_rows(sys.stdout, Row, chosen, shown=four_digits)
    else:
        print("\n".join(table(rows())))
