"""Tables 1 and 2 and Figures 4 and 5 of Huai et al. (2019), on the available crowds, with the private methods.

Usage: python experiments/synthesis/crowds.py [--tasks N] [--seed N] [--only NAME]
Population: population_cut and population_tf, logarithms to base 10, bounds 0 .. 9. In place of Stock:
weather_temperature, degrees Fahrenheit, bounds -40 .. 120. In place of Indoor Floorplan: simulated, 247 workers walk 20
of 129 segments of 2 .. 20 metres each, bounds 0 .. 40. The paper does not name its units, so its figures cannot be met;
the order of the methods can. References: the originals' density by combined weights (the paper's) and by equal ones.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from density_error import (
    BASIC_EPSILONS,
    basic_release,
    integrated_squared_error,
    kernel_curve,
    summarize,
    truth_gap,
)
from numpy.typing import NDArray

from crowdveil.data import datasets
from crowdveil.data.reports import Reports
from crowdveil.randomness import seeded
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.huai2019.candidates import PrivacyTest
from crowdveil.synthesis.huai2019.kernel_density import Bandwidth, GaussianKernel, WeightedKernelDensity
from crowdveil.synthesis.huai2019.methods import HuaiPublished, trial_tasks
from crowdveil.synthesis.huai2019.weights import Kind, Weighting
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.pooled_shape import PooledShape

Floats = NDArray[np.float64]
WIDTH = Bandwidth(least=1 / 256)
"""Silverman's rule, but no bump narrower than 1/256 of the bounds: agreeing claims would give densities without end."""
TEST = PrivacyTest(k=5, gamma=4.0, epsilon0=1.0)


def floorplan(seed: int) -> Claims:
    """Return 247 workers' estimates of 129 lengths: own step length (10 %), noise of 3 %, one in 20 absurd."""
    random = np.random.default_rng(seed)
    length = random.uniform(2, 20, 129)
    task = np.concatenate([random.choice(129, 20, replace=False) for _ in range(247)])
    worker = np.repeat(np.arange(247), 20)
    stride = random.normal(1, 0.1, 247)[worker]
    value = length[task] * stride * random.normal(1, 0.03, len(task))
    absurd = random.random(len(task)) < 0.05
    return Claims.from_arrays(
        task, worker, np.where(absurd, random.uniform(0, 40, len(task)), value), bounds=(0, 40), outside="clip"
    )


def real(name: str) -> Claims:
    """Return a real crowd within its bounds, the outliers clipped."""
    found = datasets.load(name).answers
    value, bounds = found.value, (-40.0, 120.0)
    if name.startswith("population"):
        value, bounds = np.log10(np.maximum(value, 1.0)), (0.0, 9.0)
    whole = Reports(found.task, found.worker, value, found.tasks, found.workers)
    return Claims.from_reports(whole, bounds=bounds, outside="clip")


CROWDS: dict[str, Callable[[int], Claims]] = {
    "population_cut": lambda seed: real("population_cut"),
    "population_tf": lambda seed: real("population_tf"),
    "weather_temperature": lambda seed: real("weather_temperature"),
    "floorplan (simulated)": floorplan,
}


def published(kind: Kind, records: int = 30) -> HuaiPublished:
    """Return the paper's method with its own parameters."""
    return HuaiPublished(records=records, test=TEST, bandwidth=WIDTH, weighting=Weighting(kind=kind))


class Judge:
    """Compares releases with the original densities of the tasks that have at least k claims."""

    def __init__(self, claims: Claims, tasks: int) -> None:
        held = np.flatnonzero(claims.per_task >= TEST.k)
        self.claims = claims
        self.chosen = held[:: max(1, len(held) // tasks)]
        self.width = WIDTH.for_tasks(claims)
        self.references = {}
        for kind in ("combined", "uniform"):
            weight = published(kind).densities(claims).weight
            self.references[kind] = {
                int(task): self.curve(
                    int(task), claims.of_task(task), weight[claims.pointers[task] : claims.pointers[task + 1]]
                )
                for task in self.chosen
            }
        self.original = Reports(claims.task.astype(np.int32), claims.worker, claims.value, claims.tasks, claims.workers)

    def curve(self, task: int, value: Floats, weight: Floats | None = None):  # type: ignore[no-untyped-def]
        """Return the kernel density of some numbers on a task, with the bandwidth of the originals."""
        weight = np.full(len(value), 1 / len(value)) if weight is None else weight
        return kernel_curve(
            WeightedKernelDensity(
                value=value, weight=weight, bandwidth=float(self.width[task]), kernel=GaussianKernel()
            )
        )

    def errors(self, made: Reports, kind: str) -> list[float]:
        """Return the errors of the tasks that released anything."""
        ends = np.searchsorted(made.task, np.append(np.arange(len(made.tasks)), len(made.tasks)))
        return [
            integrated_squared_error(self.curve(t, made.value[ends[t] : ends[t + 1]]), self.references[kind][t])
            for t in map(int, self.chosen)
            if ends[t + 1] > ends[t]
        ]


def table(name: str, tasks: int, seed: int) -> None:
    """Print Table 2 for one crowd: both references, per-claim epsilon, and truths."""
    claims = CROWDS[name](seed)
    judge = Judge(claims, tasks)
    print(
        f"\n{name}: {len(claims.workers)} workers, {len(claims.tasks)} tasks, {len(claims)} claims, "
        f"{len(judge.chosen)} tasks judged; clipped {claims.clipped}"
    )
    made: dict[str, tuple[str, Reports]] = {
        "PrisCrowd (published)": ("inf", published("combined").release(claims, seeded(seed)).reports()),
        "Uniform (published)": ("inf", published("uniform").release(claims, seeded(seed)).reports()),
    }
    for level, epsilon in BASIC_EPSILONS.items():
        made[f"Basic ({level})"] = (f"{epsilon:g}", basic_release(claims, epsilon, seeded(seed)))
    for epsilon in (1.0, 2.0, 5.0, 10.0):
        for method in (Histogram(epsilon=epsilon), PooledShape(epsilon=epsilon)):
            made[f"{method.name}, epsilon {epsilon:g}"] = (
                f"{epsilon:g}",
                method.release(claims, seeded(seed)).reports(),
            )
    flat = Reports(
        np.repeat(np.arange(len(claims.tasks)), 30),
        np.tile(np.arange(30), len(claims.tasks)),
        (claims.low[:, None] + (claims.high - claims.low)[:, None] * (np.arange(30) + 0.5) / 30).ravel(),
        claims.tasks,
        np.arange(30),
    )
    made["flat over the bounds"] = ("0", flat)
    print(
        "method | epsilon per claim | ISE | SISE | mean (combined) | mean (uniform) | truth gap | best constant | corr"
    )
    for method, (epsilon, reports) in made.items():
        combined, uniform = (summarize(judge.errors(reports, kind)) for kind in ("combined", "uniform"))
        gap = truth_gap(judge.original, reports)
        print(
            f"{method} | {epsilon} | {combined.ise:.4g} | {combined.sise:.4g} | {combined.mean:.4f}"
            f" | {uniform.mean:.4f} | {gap.mean_absolute:.3f} | {gap.constant:.3f} | {gap.correlation:.3f}"
            f" ({combined.tasks})",
            flush=True,
        )


def by_records(name: str, tasks: int, seed: int) -> None:
    """Print Figures 4 and 5 for one crowd: mean error and seconds by the number of records."""
    claims = CROWDS[name](seed)
    judge = Judge(claims, tasks)
    print(f"{name}: mean error (combined) and seconds by records")
    for records in (1, 5, 10, 20, 30):
        row = []
        for method in (
            published("combined", records),
            Histogram(epsilon=5.0, records=records),
            PooledShape(epsilon=5.0, records=records),
        ):
            start = time.perf_counter()
            made = method.release(claims, seeded(seed)).reports()
            seconds = time.perf_counter() - start
            row.append(f"{method.name} {summarize(judge.errors(made, 'combined')).mean:.4f} {seconds:.2f} s")
        print(f"  {records}: " + ", ".join(row), flush=True)


def by_test(name: str, seed: int) -> None:
    """Print Figure 5 for one crowd: seconds of drawing records with and without the privacy test, by their number."""
    claims = CROWDS[name](seed)
    sampler = published("combined").densities(claims)
    for records in (1, 5, 10, 20, 30):
        task = trial_tasks(claims, TEST, records)
        clock = [time.perf_counter()]
        sampler.draw(task, seeded(seed))
        clock.append(time.perf_counter())
        sampler.until_pass(task, 1000, seeded(seed))
        clock.append(time.perf_counter())
        without, tested = np.diff(clock)
        print(f"  {name}, {records} records a task: {without:.4f} s without tests, {tested:.4f} s with", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=400, help="at most about twice as many tasks are judged")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=tuple(CROWDS))
    chosen = parser.parse_args()
    for crowd in (chosen.only,) if chosen.only else CROWDS:
        table(crowd, chosen.tasks, chosen.seed)
        by_records(crowd, chosen.tasks // 4, chosen.seed)
        by_test(crowd, chosen.seed)
