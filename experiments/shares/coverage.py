"""Coverage and width of 95 % intervals of shares behind randomized response: `python -m experiments.shares.coverage`.

Reports are drawn from the exact channel, at least 1,000 samples for each cell and each of two seeds. Kinds of cells:
- share: clipped score interval of the first of 2 or 4 labels;
- no answer: the same of the share of NULL;
- difference: profile likelihood interval of the difference of two groups, and how often the test of equal shares at a
  level of 5 % rejects;
- weights, heavy weights, strata, heavy strata, tasks, clusters: clipped score interval of the effective number;
- epsilons: Fieller's interval of two channels. These are described in `designs`.
Few clusters are measured beside, also with strong effects, of which nothing is promised: a note names them in results.
Cells of seed `FRESH` were computed once, after the intervals were chosen, with settings that no choice was made by.
`errors` is the distance of the share from 0 or 1 in standard errors (of weighted sums: half of the distance of the 16 %
and 84 % quantiles of the estimates), `effective` the median of Kish's number of people.
Ten minutes on one core. Writes `results/coverage.csv` and prints the table of `README.md`.
"""

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from experiments.rows import four_digits, read_rows, write_rows
from experiments.shares import designs
from experiments.shares.designs import Sample
from numpy.typing import NDArray

from crowdveil import Categories, RandomizedResponse
from crowdveil.quality.shares.differences import (
    difference_interval,
    largest_sum,
    no_difference_statistic,
    profile,
)
from crowdveil.quality.shares.mixture import fit
from crowdveil.quality.shares.score import ScoreTest, interval_ends, normal_quantile, score_estimates
from crowdveil.quality.shares.variance import unit_variance
from crowdveil.quality.shares.weighted import (
    LinearSums,
    effective_test,
    fieller_estimates,
    t_quantile,
)

RESULTS = Path(__file__).parent / "results" / "coverage.csv"
DRAWS, DRAWS_OF_DIFFERENCES, DRAWS_OF_WIDTHS = 2000, 1000, 100
"""Samples of each cell; ends are computed for the first only, and the test at the true share for all."""
ROUNDING = 1e-5
"""Largest error of an end."""
LEVELS = np.full(5, 0.95)
SEEDS, FRESH = (1, 2), 3
"""Seeds of every cell, and that of cells computed once after the intervals were chosen."""
MIN_CLUSTERS = 10
"""Clusters from which coverage is required; fewer have a note."""
FAR, MOST = 2, 0.97
"""Standard errors from 0 and 1 from which intervals are to hold at most this often."""
NAMES = {
    "share": "a share",
    "no answer": "no answer",
    "difference": "the difference of two groups",
    "weights": "a share with weights 1 and 3",
    "epsilons": "a share with epsilons chosen by the answer",
    "strata": "a share with known totals of two strata",
    "tasks": "a share of four correlated tasks, pooled",
    "heavy weights": "a share with heavy weights",
    "heavy strata": "a share with totals and heavy weights",
    "clusters": "a share of 10 to 40 clusters",
    "few clusters": "a share of 5 clusters",
    "strong effects of few clusters": "a share of 4 or 8 clusters with strong effects",
}
"""What the intervals of each kind are of."""
CRITICAL = 3.841458820694124
"""The 95 % quantile of chi-squared with one degree of freedom."""


@dataclass(frozen=True, slots=True)
class Row:
    """Coverage and mean width of one cell; `rejected` is of differences only."""

    kind: str
    labels: int
    share: float
    other: float | None
    people: int
    epsilon: float
    response: float
    draws: int
    covered: float
    width: float
    errors: float
    rejected: float | None = None
    design: str = ""
    effective: float | None = None
    seed: int = 1


def table(epsilon: float, labels: int = 2) -> NDArray[np.float64]:
    """Return P(report | answer) of randomized response that protects participation."""
    names = Categories(tuple(map(str, range(labels))))
    return RandomizedResponse(alphabet=names, epsilon=epsilon).channel().probabilities


def cells_asked(share: float, response: float, labels: int = 2) -> NDArray[np.float64]:
    """Return the shares of all cells; labels after the first are equally frequent."""
    return np.array([share, *[(1 - share) / (labels - 1)] * (labels - 1), 0]) * response + [*[0] * labels, 1 - response]


def generator(*settings: object) -> np.random.Generator:
    """Return the random numbers of a cell."""
    return np.random.default_rng(zlib.crc32(repr(settings).encode()))


def errors_from_end(shares: NDArray[np.float64], epsilon: float, people: int, target: int = 0) -> float:
    """Return the distance of a share from the nearer end in standard errors."""
    channel, labels = table(epsilon, len(shares) - 1), len(shares) - 1
    true = shares[target] / (shares[:labels].sum() if target < labels else 1)
    error = (unit_variance(channel, shares, labels, target) / people) ** 0.5
    return float(min(true, 1 - true) / error)


def held(low: NDArray[np.float64], high: NDArray[np.float64], true: float) -> tuple[float, float]:
    """Return how often intervals hold a value, and their mean width."""
    return float(((low <= true) & (true <= high)).mean()), float((high - low).mean())


def require_same(holds: NDArray[np.bool_], low: NDArray[np.float64], high: NDArray[np.float64], true: float) -> None:
    """Fail where the ends of an interval contradict the test at the true share, of the first samples."""
    close = np.minimum(np.abs(low - true), np.abs(high - true)) <= ROUNDING
    assert (close | (holds[: len(low)] == (low <= true) & (true <= high))).all()


def single_rows(seed: int) -> Iterator[Row]:
    """Yield the coverage of shares and of no answer."""
    grid = [*product((2,), (0.02, 0.1, 0.35), (50, 200, 1000), (0.5, 1.0, 2.0, 4.0), (0.5, 0.8, 1.0))]
    grid += product((4,), (0.05, 0.25), (200, 1000), (0.5, 1.0, 2.0), (0.8,))
    for labels, share, people, epsilon, response in grid:
        shares, channel = cells_asked(share, response, labels), table(epsilon, labels)
        rng = generator(seed, "share", labels, share, people, epsilon, response)
        draws = rng.multinomial(people, shares @ channel, DRAWS).astype(float)
        found = score_estimates(draws[:DRAWS_OF_WIDTHS], channel, labels, LEVELS)
        for kind, target, true in (("share", 0, share), ("no answer", labels, 1 - response)):
            if kind == "no answer" and response != 0.8:
                continue
            holds = ScoreTest(draws, channel, labels, target).holding(normal_quantile(0.95))(np.full(DRAWS, true))
            low, high = found.low[:, target], found.high[:, target]
            require_same(holds, low, high, true)
            errors = errors_from_end(shares, epsilon, people, target)
            width = float((high - low).mean())
            cell = (kind, labels, true, None, people, epsilon, response, DRAWS)
            yield Row(*cell, float(holds.mean()), width, errors, seed=seed)


def difference_rows(seed: int) -> Iterator[Row]:
    """Yield the coverage of differences of two groups, and the level of the test."""
    pairs, settings = ((0.02, 0.02), (0.1, 0.1), (0.35, 0.35), (0.3, 0.1)), ((1.0, (0.9, 0.5)), (2.0, (0.8, 0.8)))
    for shares, people, (epsilon, response) in product(pairs, (100, 400), settings):
        channel, other_seed = table(epsilon), [] if seed == 1 else [seed]
        rng = generator("difference", shares, people, epsilon, response, *other_seed)
        cells = [cells_asked(*pair) for pair in zip(shares, response, strict=True)]
        ends, holds, rejected = np.empty((DRAWS_OF_WIDTHS, 2)), np.empty(DRAWS_OF_DIFFERENCES, dtype=bool), 0
        for draw in range(DRAWS_OF_DIFFERENCES):
            profiles = [profile(rng.multinomial(people, one @ channel).astype(float), channel, 2, 0) for one in cells]
            loss = sum(one.best for one in profiles) - largest_sum(profiles, (shares[0] - shares[1], 0.0))
            holds[draw] = 2 * loss <= CRITICAL
            rejected += no_difference_statistic(profiles) > CRITICAL
            if draw < DRAWS_OF_WIDTHS:
                ends[draw] = difference_interval(profiles[0], profiles[1], 0.95)
        require_same(holds, ends[:, 0], ends[:, 1], shares[0] - shares[1])
        errors = [errors_from_end(one, epsilon, people) for one in cells]
        width = float((ends[:, 1] - ends[:, 0]).mean())
        yield Row(
            *("difference", 2, shares[0], shares[1], people, epsilon, response[0], DRAWS_OF_DIFFERENCES),
            *(float(holds.mean()), width, min(errors), rejected / DRAWS_OF_DIFFERENCES),
            seed=seed,
        )


Sampler = Callable[[np.random.Generator], tuple[LinearSums, float]]
"""Function that draws samples and returns their unclipped shares with the true share."""


def sum_rows(seed: int) -> Iterator[Row]:
    """Yield the coverage of weighted sums."""
    for sample in _samples((0.05, 0.2, 0.4), (200, 1000), (0.5, 1.0, 2.0), (0.5, 0.8)):
        yield row_of_sums(seed, "weights", "1 and 3", sample, partial(designs.weighted, sample=sample))
        yield row_of_sums(seed, "epsilons", "and 3", sample, partial(designs.with_epsilons, sample=sample))
        yield row_of_sums(seed, "strata", "2", sample, partial(designs.with_totals, sample=sample))
        yield row_of_sums(seed, "tasks", "4", sample, partial(designs.with_tasks, sample=sample))


def design_rows(seed: int) -> Iterator[Row]:
    """Yield the coverage with heavy weights, and with clusters."""
    for sample, spread in product(_samples((0.05, 0.2, 0.4), (200, 500), (1.0, 4.0), (0.8,)), (1.0, 1.5)):
        yield from heavy_rows(seed, sample, spread)
    for sample, clusters in product(_samples((0.05, 0.2, 0.4), (400, 1000), (1.0, 4.0), (0.8,)), (5, 10, 20, 40)):
        yield from cluster_rows(seed, sample, clusters, 0.05)


def fresh_rows() -> Iterator[Row]:
    """Yield cells with settings by which no choice was made."""
    for sample, spread in product(_samples((0.1, 0.3), (300,), (2.0, 6.0), (0.6,)), (0.7, 1.2)):
        yield from heavy_rows(FRESH, sample, spread)
        public = replace(sample, participation="public", response=1.0)
        yield from heavy_rows(FRESH, public, spread)
        four = replace(sample, labels=4)
        yield from heavy_rows(FRESH, four, spread)
    for sample, clusters in product(_samples((0.1, 0.3), (600,), (2.0, 6.0), (0.6,)), (12, 25)):
        yield from cluster_rows(FRESH, sample, clusters, 0.02)
        yield from cluster_rows(FRESH, replace(sample, participation="public", response=1.0), clusters, 0.1)


def strong_rows() -> Iterator[Row]:
    """Yield clusters so few, and shares that differ so much between them, that nothing is promised."""
    sample = Sample(0.05, 1000, 4.0)
    for clusters, equal in product((4, 8), (True, False)):
        draw: Sampler = partial(designs.clustered, sample=sample, clusters=clusters, correlation=0.1, equal=equal)
        text = f"{clusters}, {'equal' if equal else 'unequal'}, 0.1"
        yield row_of_sums(1, "strong effects of few clusters", text, sample, draw)


def heavy_rows(seed: int, sample: Sample, spread: float) -> Iterator[Row]:
    """Yield the coverage of one sample with heavy weights, alone and with known totals."""
    for by_answer in (False, True):
        draw: Sampler = partial(designs.heavily_weighted, sample=sample, spread=spread, by_answer=by_answer)
        text = f"sd {spread}{', by answer' if by_answer else ''}"
        yield row_of_sums(seed, "heavy weights", text, sample, draw)
    for strata in designs.TOTALS:
        draw = partial(designs.with_totals, sample=sample, strata=strata, spread=spread)
        yield row_of_sums(seed, "heavy strata", f"{strata}, sd {spread}", sample, draw)


def cluster_rows(seed: int, sample: Sample, clusters: int, correlation: float) -> Iterator[Row]:
    """Yield the coverage of one sample of clusters."""
    kind = "clusters" if clusters >= MIN_CLUSTERS else "few clusters"
    for equal in (True, False):
        draw: Sampler = partial(
            designs.clustered, sample=sample, clusters=clusters, correlation=correlation, equal=equal
        )
        text = f"{clusters}, {'equal' if equal else 'unequal'}, {correlation}"
        yield row_of_sums(seed, kind, text, sample, draw)


def _samples(*settings: tuple[float, ...]) -> Iterator[Sample]:
    """Yield samples of all combinations of share, people, epsilon and response."""
    for share, people, epsilon, response in product(*settings):
        yield Sample(share, int(people), epsilon, response)


def row_of_sums(seed: int, kind: str, design: str, sample: Sample, draw: Sampler) -> Row:
    """Return the coverage of one cell of weighted sums."""
    found, true = draw(generator(seed, kind, design, sample))
    if kind == "epsilons":
        estimates = fieller_estimates(found, sample.labels, LEVELS)
        covered, width = held(estimates.low[:, 0], estimates.high[:, 0], true)
    else:
        covered, width = held_by_scores(found, sample, true)
    answered = found.shares[:, : sample.labels].sum(axis=1)
    unclipped = np.where(answered > 0, found.shares[:, 0] / answered, np.nan)
    spread = -np.subtract(*np.nanquantile(unclipped, (0.1587, 0.8413))) / 2
    return Row(
        *(kind, sample.labels, true, None, sample.people, sample.epsilon, sample.response),
        *(designs.DRAWS, covered, width),
        errors=float(min(true, 1 - true) / spread),
        design=design if sample.participation == "protected" else f"{design}, public",
        effective=float(np.median(found.cells)),
        seed=seed,
    )


def held_by_scores(found: LinearSums, sample: Sample, true: float) -> tuple[float, float]:
    """Return how often score intervals of effective numbers hold a share, and the mean width of the first."""
    best = fit(found.reports * found.cells[:, None], sample.table).reports
    test = effective_test(found, best, sample.table, sample.labels, 0)
    holds = test.holding(t_quantile(0.95, found.freedom))(np.full(len(found.shares), true))
    few = test._replace(counts=test.counts[:DRAWS_OF_WIDTHS])
    quantile = t_quantile(0.95, found.freedom[:DRAWS_OF_WIDTHS])
    low, high = interval_ends(few.start(best[:DRAWS_OF_WIDTHS]), few.holding(quantile))
    require_same(holds, low, high, true)
    return float(holds.mean()), float((high - low).mean())


def rows() -> Iterator[Row]:
    """Yield all rows."""
    for seed in SEEDS:
        yield from design_rows(seed)
        yield from sum_rows(seed)
        yield from single_rows(seed)
        yield from difference_rows(seed)
    yield from fresh_rows()
    yield from strong_rows()


def summary(every: list[Row]) -> list[str]:
    """Return the smallest and largest coverage of each kind, and of its cells far from an end, as rows of a table."""
    found = []
    for kind, name in NAMES.items():
        own = [row for row in every if row.kind == kind]
        covered = [row.covered for row in own]
        far = [row.covered for row in own if row.errors > FAR]
        above = sum(one > MOST for one in far)
        found.append(f"| {name} | {len(own)} | {_ends(covered)} | {len(far)} | {_ends(far)} | {above} |")
    return found


def _ends(covered: list[float]) -> str:
    """Return the smallest and largest coverage as text, rounded outwards."""
    if not covered:
        return ""
    low, high = math.floor(1000 * min(covered) + 1e-6), math.ceil(1000 * max(covered) - 1e-6)
    return f".{low:03} to .{high:03}"


if __name__ == "__main__":
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows(), four_digits)
    every: list[Row] = read_rows(RESULTS, Row)
    print("\n".join(summary(every)))
