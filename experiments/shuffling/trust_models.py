"""Error of inferred truths against the loss of a cell and of a worker, in three trust models.

Local: `gaussian` and `dawid-skene` read linked reports. Shuffled: `pooled-gaussian` and `pooled-dawid-skene` read the
same reports in random order without names, each task shuffled alone. Trusted curator: the same estimators read, for
each task, a histogram of the true answers with two-sided geometric noise (a replaced answer changes two counts by one).
Losses are (epsilon, 1e-6), composed over all tasks, since participation is protected. Sun's crowd has 2,000 workers and
200 tasks with a public prior N(0, 1); AdultContent2 has 825 workers and 11,028 tasks with 347 gold truths.

    python experiments/shuffling/trust_models.py > experiments/shuffling/results/trust_models.csv
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from experiments.rows import four_digits, write_rows
from numpy.typing import NDArray

from crowdveil import DawidSkene, Gaussian, QuantizedResponse, RandomizedResponse, Reports, Scale
from crowdveil.channels.channel import Channel
from crowdveil.data.datasets import load
from crowdveil.em.estimate import Estimate
from crowdveil.estimators.unlinked.pooled_dawid_skene import PooledDawidSkene
from crowdveil.estimators.unlinked.pooled_gaussian import PooledGaussian
from crowdveil.privacy.composition import pure_profile
from crowdveil.privacy.loss_distribution import channel_profile, composed_epsilon
from crowdveil.privacy.shuffling import shuffled, shuffled_worker
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd, perturb_cells

DELTA = 1e-6
SCALE, WORKERS, TASKS = Scale(0, 9), 2000, 200
CENTRAL = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Epsilon of a cell of the trusted curator."""


@dataclass(frozen=True, slots=True)
class Row:
    """One point: mean absolute error (numbers) or error rate (labels), and that of the best constant."""

    crowd: str
    model: str
    local_epsilon: float
    cell_epsilon: float
    worker_epsilon: float
    error: float
    constant: float
    seeds: int


@dataclass(frozen=True)
class Case:
    """A crowd with true answers, and how its truths are inferred and scored."""

    name: str
    answers: Reports
    truth: NDArray[np.float64]
    scored: NDArray[np.bool_]
    linked: object
    pooled: object
    numeric: bool

    def error(self, estimate: Estimate) -> float:
        """Return the mean absolute error, or the error rate with ties split."""
        if self.numeric:
            return float(np.abs(estimate.truth - self.truth)[self.scored].mean())
        posterior = estimate.posterior[self.scored]
        best = posterior >= posterior.max(axis=1, keepdims=True) - 1e-12
        right = best[np.arange(len(best)), self.truth[self.scored].astype(int)] / best.sum(axis=1)
        return float(1 - right.mean())

    @property
    def constant(self) -> float:
        """Return the error of the best public constant: 0 for numbers, the most frequent gold label else."""
        known = self.truth[self.scored]
        return (
            float(np.abs(known).mean())
            if self.numeric
            else float(1 - np.bincount(known.astype(int)).max() / len(known))
        )


def sun(sparsity: float, seed: int) -> Case:
    """Return Sun's simulated crowd."""
    crowd = numeric_crowd(workers=WORKERS, tasks=TASKS, sparsity=sparsity, scale=SCALE, source=seeded(seed))
    prior = {"prior_mean": 0.0, "prior_deviation": 1.0}
    everything = np.ones(TASKS, dtype=bool)
    return Case(
        f"sun {sparsity:g}", crowd.answers, crowd.truth, everything, Gaussian(**prior), PooledGaussian(**prior), True
    )


def adult2() -> Case:
    """Return AdultContent2 with its gold truths."""
    data = load("adult2")
    names = data.answers.tasks.tolist()
    truth = np.array([data.answers.alphabet.names.index(data.gold[n]) if n in data.gold else -1 for n in names])
    return Case("adult2", data.answers, truth.astype(float), truth >= 0, DawidSkene(), PooledDawidSkene(), False)


def channel_of(case: Case, epsilon: float) -> Channel:
    """Return blocks with one cut or two for numbers (see the README), randomized response for labels."""
    if not case.numeric:
        return RandomizedResponse(alphabet=case.answers.alphabet, epsilon=epsilon).channel()
    cuts = (1, 2) if case.name == "sun 0.5" and epsilon >= 3 else (1,)
    return QuantizedResponse(alphabet=SCALE, epsilon=epsilon, cuts=cuts).channel()


def unlinked(reports: Reports, seed: int) -> Reports:
    """Return the reports with a fresh random order of the senders on every task."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(reports.task, minlength=len(reports.tasks))
    worker = np.concatenate([rng.permutation(len(reports.workers))[:count] for count in counts])
    order = np.argsort(reports.task, kind="stable")
    return replace(reports, task=reports.task[order], worker=worker, value=reports.value[order])


def noisy_histograms(answers: Reports, epsilon: float, seed: int) -> Reports:
    """Return reports with the noisy counts of each task; negative counts are 0, surplus reports are dropped."""
    rng, tasks, labels, workers = np.random.default_rng(seed), len(answers.tasks), answers.labels, len(answers.workers)
    counts = np.zeros((tasks, labels), dtype=np.int64)
    np.add.at(counts, (answers.task, answers.value), 1)
    flat = -np.expm1(-epsilon / 2)
    counts = np.maximum(counts + rng.geometric(flat, counts.shape) - rng.geometric(flat, counts.shape), 0)
    task, value = (np.repeat(part.ravel(), counts.ravel()) for part in np.indices(counts.shape))
    place = np.arange(len(task)) - np.searchsorted(task, task)
    kept = place < workers
    return replace(answers, task=task[kept], worker=place[kept], value=value[kept])


def local_and_shuffled(case: Case, epsilon: float, seed: int, linked: bool) -> Iterator[tuple[str, float]]:
    """Yield the error of the shuffled and of the local model."""
    channel = channel_of(case, epsilon)
    sent = perturb_cells(case.answers, channel, seeded(1000 + seed))
    yield "shuffled", case.error(case.pooled.fit(unlinked(sent, seed), channel=channel))
    if linked:
        yield "local", case.error(case.linked.fit(sent, channel=channel))


def losses(case: Case, epsilon: float) -> dict[str, tuple[float, float]]:
    """Return the loss of a cell and of a worker in the local and the shuffled model."""
    channel, tasks, workers = channel_of(case, epsilon), len(case.answers.tasks), len(case.answers.workers)
    together = composed_epsilon([(channel_profile(channel), tasks)], DELTA)
    return {
        "local": (channel.epsilon, together),
        "shuffled": (
            shuffled(channel, reports=workers, delta=DELTA).epsilon,
            shuffled_worker(channel, reports=workers, cells=tasks, delta=DELTA).epsilon,
        ),
    }


def rows_of(cases: list[Case], epsilons: tuple[float, ...], linked: bool) -> Iterator[Row]:
    """Yield the points of one crowd, as means over its seeds."""
    first, seeds = cases[0], len(cases)
    constant = float(np.mean([case.constant for case in cases]))
    for epsilon in epsilons:
        loss, found = losses(first, epsilon), {}
        for seed, case in enumerate(cases):
            for model, error in local_and_shuffled(case, epsilon, seed, linked):
                found.setdefault(model, []).append(error)
        for model, errors in found.items():
            yield Row(first.name, model, epsilon, *loss[model], float(np.mean(errors)), constant, seeds)
    for epsilon in CENTRAL:
        worker = composed_epsilon([(pure_profile(epsilon), len(first.answers.tasks))], DELTA)
        errors = [
            case.error(case.pooled.fit(noisy_histograms(case.answers, epsilon, seed), channel=clean(case)))
            for seed, case in enumerate(cases)
        ]
        yield Row(first.name, "curator", float("nan"), epsilon, worker, float(np.mean(errors)), constant, seeds)


def clean(case: Case) -> Channel:
    """Return the channel of answers as they are, with NULL cells."""
    return Channel.identity(case.answers.alphabet, "protected")


def rows_of_crowds(given: argparse.Namespace) -> Iterator[Row]:
    """Yield the points of the crowds that are asked for."""
    for name in given.crowds:
        if name == "adult2":
            cases, epsilons = [adult2()], (3.0, 4.0, 5.0, 7.0)
        else:
            cases, epsilons = [sun(float(name), seed) for seed in range(given.seeds)], (1.0, 2.0, 3.0)
        yield from rows_of(cases, epsilons, linked=not given.without_local)


def main() -> None:
    """Print one line per crowd, model and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--crowds", nargs="+", default=["0.5", "0.9", "adult2"])
    parser.add_argument(
        "--without-local", action="store_true", help="leave out the fits of linked reports, which are slow"
    )
    given = parser.parse_args()
    write_rows(sys.stdout, Row, rows_of_crowds(given), shown=four_digits)


if __name__ == "__main__":
    main()
