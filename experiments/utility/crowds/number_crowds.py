"""Simulated crowds that answer with numbers: answers with what an oracle knows of each, and a table of kinds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from experiments.utility.crowds.crowd import Random, pairs_of_tasks
from numpy.typing import NDArray

from crowdveil import Reports

TASKS, WORKERS, ANSWERS = 200, 20, 5
CENTRE, SPREAD, LOW, HIGH = 50.0, 10.0, 0.5, 6.0
"""Mean and deviation of truths, and range of the workers' deviations."""
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NumberCrowd:
    """Answers to simulated tasks.

    Attributes:
        task, worker, value: of each answer.
        bias, variance: of each answer; the variance is infinite where it says nothing about the truth.
        truth: of each task.
        workers: number of workers.
    """

    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    value: Array
    bias: Array
    variance: Array
    truth: Array
    workers: int

    @property
    def reports(self) -> Reports:
        """The answers as reports."""
        order = np.lexsort((self.worker, self.task))
        columns = self.task[order].astype(np.int32), self.worker[order].astype(np.int32), self.value[order]
        return Reports(*columns, np.arange(len(self.truth)), np.arange(self.workers), None)

    def oracle(self) -> Array:
        """Return the means that know every bias and variance; the plain one where no answer says anything."""
        weight = 1 / self.variance
        silent = np.bincount(self.task, weight, len(self.truth)) == 0
        weight[silent[self.task]] = 1.0
        sums = np.bincount(self.task, weight * (self.value - self.bias), len(self.truth))
        return sums / np.bincount(self.task, weight, len(self.truth))


Make = Callable[[Random], NumberCrowd]


class NumberKind(NamedTuple):
    """A kind of crowd: its name, and the function that draws one."""

    name: str
    make: Make


def crowd(
    rng: Random,
    *,
    tasks: int = TASKS,
    workers: int = WORKERS,
    answers: int = ANSWERS,
    low: float = LOW,
    high: float = HIGH,
    spread: float = SPREAD,
    bias: float = 0.0,
    experts: int = 0,
) -> NumberCrowd:
    """Return normal errors, whose deviations are even in a range; biases are normal, experts have deviation 0.5."""
    sigma, biases = rng.uniform(low, high, workers), bias * rng.normal(size=workers)
    sigma[:experts] = LOW
    truth = rng.normal(CENTRE, spread, tasks)
    task, worker = pairs_of_tasks(rng, tasks, workers, answers)
    value = truth[task] + biases[worker] + sigma[worker] * rng.normal(size=len(task))
    return NumberCrowd(task, worker, value, biases[worker], sigma[worker] ** 2, truth, workers)


def changed(made: NumberCrowd, where: NDArray[np.bool_], value: Array) -> NumberCrowd:
    """Return the crowd with other answers in some places, which say nothing about the truth."""
    found, variance = np.where(where, value, made.value), np.where(where, np.inf, made.variance)
    return NumberCrowd(made.task, made.worker, found, made.bias, variance, made.truth, made.workers)


def guessing(rng: Random, *, share: float, often: float = 1.0, answers: int = ANSWERS) -> NumberCrowd:
    """Return a crowd of whom a share answers evenly in 0 .. 100, so often."""
    made = crowd(rng, answers=answers)
    where = (made.worker < round(share * WORKERS)) & (rng.random(len(made.task)) < often)
    return changed(made, where, rng.uniform(0, 100, len(made.task)))


def repeating(rng: Random, *, share: float, number: float = CENTRE) -> NumberCrowd:
    """Return a crowd of whom a share always says the same number."""
    made = crowd(rng)
    return changed(made, made.worker < round(share * WORKERS), np.full(len(made.task), number))


def mistyping(
    rng: Random, *, share: float, factor: float = 1000.0, answers: int = ANSWERS, number: float | None = None
) -> NumberCrowd:
    """Return a crowd with a share of answers times a factor, or of one number; at least one answer."""
    made = crowd(rng, answers=answers)
    where = rng.random(len(made.task)) < share
    where[rng.integers(len(where))] = True
    return changed(made, where, made.value * factor if number is None else np.full(len(where), number))


def heavy(rng: Random, *, degrees: float) -> NumberCrowd:
    """Return Student errors; the oracle knows the scales only."""
    made = crowd(rng)
    own = np.sqrt(made.variance) * rng.standard_t(degrees, len(made.task))
    return NumberCrowd(
        made.task, made.worker, made.truth[made.task] + own, made.bias, made.variance, made.truth, WORKERS
    )


def rounded(rng: Random, *, grades: bool) -> NumberCrowd:
    """Return whole numbers: grades 0 .. 10 of truths N(5, 2), or answers about whole truths."""
    if not grades:
        made = crowd(rng)
        truth = made.truth.round()
        value = (made.value + (truth - made.truth)[made.task]).round()
        return NumberCrowd(made.task, made.worker, value, made.bias, made.variance, truth, WORKERS)
    made = crowd(rng, low=0.3, high=3.0)
    truth = np.clip(5 + (made.truth - CENTRE) / SPREAD * 2, 0, 10)
    value = np.clip((made.value + (truth - made.truth)[made.task]).round(), 0, 10)
    return NumberCrowd(made.task, made.worker, value, made.bias, made.variance, truth, WORKERS)


def difficult(rng: Random) -> NumberCrowd:
    """Return errors that are larger in some tasks than in others: times 0.3 to 3, evenly in its logarithm."""
    made = crowd(rng)
    hard = np.exp(rng.uniform(np.log(0.3), np.log(3), TASKS))[made.task]
    value = made.truth[made.task] + hard * (made.value - made.truth[made.task])
    return NumberCrowd(made.task, made.worker, value, made.bias, made.variance * hard**2, made.truth, WORKERS)


def drifting(rng: Random, *, start: float = 0.0, end: float = 6.0) -> NumberCrowd:
    """Return biases that move from N(0, start) in the first task to N(0, end) in the last; the oracle knows them."""
    made = crowd(rng)
    first, last = start * rng.normal(size=WORKERS), end * rng.normal(size=WORKERS)
    bias = first[made.worker] + (last - first)[made.worker] * made.task / TASKS
    return NumberCrowd(made.task, made.worker, made.value + bias, bias, made.variance, made.truth, WORKERS)


def copying(rng: Random, *, copies: int = 8, changed_by: float = 0.1) -> NumberCrowd:
    """Return a crowd of whom some give the answer of the first worker, a little changed."""
    made = crowd(rng, answers=10)
    source = made.truth + np.sqrt(rng.uniform(LOW, HIGH)) * rng.normal(size=TASKS)
    value = source[made.task] + changed_by * rng.normal(size=len(made.task))
    return changed(made, (made.worker > 0) & (made.worker <= copies), value)


def opposing(rng: Random, *, share: float) -> NumberCrowd:
    """Return a crowd of whom a share mirrors its answers at 50."""
    made = crowd(rng)
    return changed(made, made.worker < round(share * WORKERS), 2 * CENTRE - made.value)


def kinds() -> Iterator[NumberKind]:
    """Yield all kinds of crowds."""
    makes: dict[str, Make] = {
        "equal deviations": partial(crowd, low=3, high=3),
        "deviations .5 to 6": crowd,
        "10 answers": partial(crowd, answers=10),
        "2 answers": partial(crowd, answers=2),
        "4 workers": partial(crowd, workers=4),
        "3 workers": partial(crowd, workers=3),
        "400 workers": partial(crowd, workers=400),
        "12 tasks, 4 workers": partial(crowd, tasks=12, workers=4),
        "two experts": partial(crowd, low=4, high=8, experts=2),
        "truths alike": partial(crowd, spread=1.0),
        "biases": partial(crowd, bias=6),
        "biases, 10 answers": partial(crowd, bias=6, answers=10),
        "drift": drifting,
        "drift, weak": partial(drifting, end=3.0),
        "drift to another bias": partial(drifting, start=6.0),
        "difficulty": difficult,
        "grades 0 to 10": partial(rounded, grades=True),
        "whole truths": partial(rounded, grades=False),
        "8 of 20 copy": copying,
        "4 of 20 copy": partial(copying, copies=4),
        "20 % mirror": partial(opposing, share=0.2),
    }
    for share in (0.1, 0.3, 0.6):
        makes[f"{share:.0%} even in 0 to 100"] = partial(guessing, share=share)
    makes["30 % even, 10 answers"] = partial(guessing, share=0.3, answers=10)
    makes["half guess half the time"] = partial(guessing, share=0.5, often=0.5)
    for share in (0.1, 0.3, 0.5):
        makes[f"{share:.0%} always say 50"] = partial(repeating, share=share)
    makes["20 % always say 0"] = partial(repeating, share=0.2, number=0.0)
    for share in (0.0, 0.005, 0.05, 0.2):
        makes[f"{share:.1%} x 1000" if share else "one answer x 1000"] = partial(mistyping, share=share)
    makes |= {
        "5 % x 1000, 10 answers": partial(mistyping, share=0.05, answers=10),
        "5 % x 10": partial(mistyping, share=0.05, factor=10),
        "2 % x .1": partial(mistyping, share=0.02, factor=0.1),
        "1 % = 1e12": partial(mistyping, share=0.01, number=1e12),
        "2 % = -1": partial(mistyping, share=0.02, number=-1.0),
    }
    for degrees in (1.5, 3.0):
        makes[f"Student errors, {degrees:g} degrees"] = partial(heavy, degrees=degrees)
    return (NumberKind(name, make) for name, make in makes.items())
