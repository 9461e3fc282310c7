"""Crowds of the exhibits: the available and simulated stand-ins for the three data sets, and the paper's parameters.

Population: population_cut and population_tf, logarithms to base 10, bounds 0 .. 9. In place of Stock:
weather_temperature, degrees Fahrenheit, bounds -40 .. 120. In place of Indoor Floorplan: simulated, 247 workers walk 20
of 129 segments of 2 .. 20 metres each, bounds 0 .. 40. The paper names neither units nor bounds.
"""

from functools import cache

import numpy as np
from experiments.papers.huai2019.algorithm1.candidates import PrivacyTest
from experiments.papers.huai2019.algorithm1.huai_published import HuaiPublished
from experiments.papers.huai2019.algorithm1.kernel_density import Bandwidth
from experiments.papers.huai2019.algorithm1.weights import Kind, Weighting
from numpy.typing import NDArray

from crowdveil.answers import datasets
from crowdveil.answers.reports import Reports
from crowdveil.synthesis.original_claims import Claims

Floats = NDArray[np.float64]
FLOORPLAN = "floorplan (simulated)"
STANDS_FOR = {
    "population_cut": "Population",
    "population_tf": "Population",
    "weather_temperature": "Stock",
    FLOORPLAN: "Indoor Floorplan",
}
"""Crowds, with the data sets of the paper whose place they take."""
WIDTH = Bandwidth(least=1 / 256)
"""Silverman's rule, but no kernel narrower than 1/256 of the bounds: equal claims would give unbounded densities."""
TEST = PrivacyTest(k=5, gamma=4.0, epsilon0=1.0)
"""The paper's k and gamma; it does not give epsilon0."""
DELTA = 0.02
"""Largest delta at which claimed epsilons are read: with k = 5 and epsilon0 = 1 only t = 1 gives less (0.018)."""
SEGMENTS, SPREAD = 129, 0.1046
"""Number of segments; standard deviation of reliable claims over the length: strides (10 %) times noise (3 %)."""


@cache
def crowd(name: str, seed: int) -> Claims:
    """Return a crowd by its name in `STANDS_FOR`; the seed is of simulated claims."""
    return _floorplan(seed) if name == FLOORPLAN else _real(name)


def lengths(seed: int) -> Floats:
    """Return the true lengths of the simulated segments, shape (segments,), in metres."""
    return np.random.default_rng(seed).uniform(2, 20, SEGMENTS)


def truths(name: str, seed: int) -> Floats:
    """Return the true number of every task in the order of the claims' tasks, NaN where none is known."""
    claims = crowd(name, seed)
    if name == FLOORPLAN:
        return lengths(seed)
    gold = datasets.load(name).gold
    found = np.array([gold.get(str(task), np.nan) for task in claims.tasks], dtype=float)
    return np.log10(np.maximum(found, 1.0)) if name.startswith("population") else found


def published(kind: Kind, records: int = 30) -> HuaiPublished:
    """Return the paper's method with its own parameters."""
    return HuaiPublished(records=records, test=TEST, bandwidth=WIDTH, weighting=Weighting(kind=kind))


def _floorplan(seed: int) -> Claims:
    """Return 247 workers' estimates of 129 lengths: own step length (10 %), noise of 3 %, one in 20 absurd."""
    random = np.random.default_rng(seed)
    length = random.uniform(2, 20, SEGMENTS)
    task = np.concatenate([random.choice(SEGMENTS, 20, replace=False) for _ in range(247)])
    worker = np.repeat(np.arange(247), 20)
    stride = random.normal(1, 0.1, 247)[worker]
    value = length[task] * stride * random.normal(1, 0.03, len(task))
    absurd = random.random(len(task)) < 0.05
    value = np.where(absurd, random.uniform(0, 40, len(task)), value)
    return Claims.from_arrays(task, worker, value, bounds=(0, 40), outside="clip")


def _real(name: str) -> Claims:
    """Return a real crowd within its bounds, the outliers clipped."""
    found = datasets.load(name).answers
    value, bounds = found.value, (-40.0, 120.0)
    if name.startswith("population"):
        value, bounds = np.log10(np.maximum(value, 1.0)), (0.0, 9.0)
    whole = Reports(found.task, found.worker, value, found.tasks, found.workers)
    return Claims.from_reports(whole, bounds=bounds, outside="clip")
