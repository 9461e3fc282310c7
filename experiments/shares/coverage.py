"""Coverage and width of 95 % intervals of shares behind randomized response: `python -m experiments.shares.coverage`.

Counts of reports are drawn from the exact channel, `DRAWS` samples for each cell with a seed of its own settings.
Kinds of cells:
- share: clipped score interval of the first of 2 or 4 labels;
- no answer: the same of the share of NULL;
- difference: profile likelihood interval of the difference of two groups, and how often the test of equal shares at a
  level of 5 % rejects;
- weights: people with weight 3 say yes half as often as those with weight 1; the share is that of the weighted people;
- epsilons: half of the people choose epsilon 3 and say yes a third as often as those who choose the cell's epsilon;
- strata: two strata with known totals 1 to 3, sampled in equal numbers;
- pooled: four tasks of each person, whose answers are equal with probability .4; the unit is the person.
`errors` is the distance of the share from 0 or 1 in standard errors (of weighted sums: half of the distance of the 16 %
and 84 % quantiles of the estimates). Some minutes on one core. Writes
`results/coverage.csv` and prints the smallest and largest coverage of each kind.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from experiments.rows import four_digits, read_rows, write_rows
from numpy.typing import NDArray

from crowdveil import Categories, RandomizedResponse
from crowdveil.quality.shares.counts import ReportSums
from crowdveil.quality.shares.differences import difference_interval, no_difference_statistic, profile
from crowdveil.quality.shares.score import ScoreTest, normal_quantile, score_estimates
from crowdveil.quality.shares.variance import unit_variance
from crowdveil.quality.shares.weighted import LinearSums, combined_strata, fieller_estimates, linear_sums

RESULTS = Path(__file__).parent / "results" / "coverage.csv"
DRAWS, DRAWS_OF_DIFFERENCES, DRAWS_OF_WIDTHS = 2000, 1000, 100
"""Samples of each cell; of score intervals the ends are computed for the first only, and the test at the true share."""
ROUNDING = 1e-5
"""Largest error of an end."""
LEVELS = np.full(5, 0.95)
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


def single_rows() -> Iterator[Row]:
    """Yield the coverage of shares and of no answer."""
    grid = [*product((2,), (0.02, 0.1, 0.35), (50, 200, 1000), (0.5, 1.0, 2.0, 4.0), (0.5, 0.8, 1.0))]
    grid += product((4,), (0.05, 0.25), (200, 1000), (0.5, 1.0, 2.0), (0.8,))
    for labels, share, people, epsilon, response in grid:
        shares, channel = cells_asked(share, response, labels), table(epsilon, labels)
        rng = generator("share", labels, share, people, epsilon, response)
        draws = rng.multinomial(people, shares @ channel, DRAWS).astype(float)
        found = score_estimates(draws[:DRAWS_OF_WIDTHS], channel, labels, LEVELS)
        for kind, target, true in (("share", 0, share), ("no answer", labels, 1 - response)):
            if kind == "no answer" and response != 0.8:
                continue
            holds = ScoreTest(draws, channel, labels, target).holding(normal_quantile(0.95))(np.full(DRAWS, true))
            low, high = found.low[:, target], found.high[:, target]
            close = np.minimum(np.abs(low - true), np.abs(high - true)) <= ROUNDING
            assert (close | (holds[:DRAWS_OF_WIDTHS] == (low <= true) & (true <= high))).all()
            errors = errors_from_end(shares, epsilon, people, target)
            width = float((high - low).mean())
            yield Row(kind, labels, true, None, people, epsilon, response, DRAWS, float(holds.mean()), width, errors)


def difference_rows() -> Iterator[Row]:
    """Yield the coverage of differences of two groups, and the level of the test."""
    pairs, settings = ((0.02, 0.02), (0.1, 0.1), (0.35, 0.35), (0.3, 0.1)), ((1.0, (0.9, 0.5)), (2.0, (0.8, 0.8)))
    for shares, people, (epsilon, response) in product(pairs, (100, 400), settings):
        channel, rng = table(epsilon), generator("difference", shares, people, epsilon, response)
        cells = [cells_asked(*pair) for pair in zip(shares, response, strict=True)]
        ends, rejected = np.empty((DRAWS_OF_DIFFERENCES, 2)), 0
        for draw in range(DRAWS_OF_DIFFERENCES):
            profiles = [profile(rng.multinomial(people, one @ channel).astype(float), channel, 2, 0) for one in cells]
            ends[draw] = difference_interval(profiles[0], profiles[1], 0.95)
            rejected += no_difference_statistic(profiles) > CRITICAL
        covered = held(ends[:, 0], ends[:, 1], shares[0] - shares[1])
        errors = min(errors_from_end(one, epsilon, people) for one in cells)
        yield Row(
            *("difference", 2, shares[0], shares[1], people, epsilon, response[0], DRAWS_OF_DIFFERENCES),
            *(*covered, errors, rejected / DRAWS_OF_DIFFERENCES),
        )


def sum_rows() -> Iterator[Row]:
    """Yield the coverage of Fieller's intervals of weighted sums."""
    for kind, share, people, epsilon, response in product(
        ("weights", "epsilons", "strata", "pooled"), (0.05, 0.2, 0.4), (200, 1000), (0.5, 1.0, 2.0), (0.5, 0.8)
    ):
        rng = generator(kind, share, people, epsilon, response)
        sums = {"weights": weighted_sums, "epsilons": sums_of_epsilons, "strata": strata_sums, "pooled": pooled_sums}
        found, true = sums[kind](rng, share, people, epsilon, response)
        estimates = fieller_estimates(found, 2, LEVELS)
        covered = held(estimates.low[:, 0], estimates.high[:, 0], true)
        spread = np.subtract(*np.nanquantile(estimates.unclipped[:, 0], (0.8413, 0.1587))) / 2
        errors = float(min(true, 1 - true) / spread)
        yield Row(kind, 2, true, None, people, epsilon, response, DRAWS, *covered, errors)


def weighted_sums(
    rng: np.random.Generator, share: float, people: int, epsilon: float, response: float
) -> tuple[LinearSums, float]:
    """Return the sums of people with weights 1 (half) and 3, and the share of the weighted people."""
    channel, parts = table(epsilon), []
    for weight, own in ((1.0, share), (3.0, share / 2)):
        draws = rng.multinomial(people // 2, cells_asked(own, response) @ channel, DRAWS)
        parts.append((weight * draws, weight**2 * draws))
    total, squares = np.sum(parts, axis=0)
    sums = ReportSums(total, squares, np.full(DRAWS, float(people)))
    return linear_sums(sums, channel, np.zeros(3, dtype=int), 2), (share + 3 * share / 2) / 4


def sums_of_epsilons(
    rng: np.random.Generator, share: float, people: int, epsilon: float, response: float
) -> tuple[LinearSums, float]:
    """Return the sums of people of whom half choose epsilon 3, and the share of all."""
    tables = (table(epsilon), table(3.0))
    draws = [
        rng.multinomial(people // 2, cells_asked(own, response) @ one, DRAWS).astype(float)
        for one, own in zip(tables, (share, share / 3), strict=True)
    ]
    total = np.concatenate(draws, axis=1)
    sums = ReportSums(total, total, np.full(DRAWS, float(people)))
    return linear_sums(sums, np.concatenate(tables, axis=1), np.repeat([0, 1], 3), 2), (share + share / 3) / 2


def strata_sums(
    rng: np.random.Generator, share: float, people: int, epsilon: float, response: float
) -> tuple[LinearSums, float]:
    """Return the sums of two strata with known totals 1 to 3, and the share of all who would answer."""
    channel, parts = table(epsilon), []
    for own in (share, share / 2):
        draws = rng.multinomial(people // 2, cells_asked(own, response) @ channel, DRAWS).astype(float)
        sums = ReportSums(draws, draws, np.full(DRAWS, people / 2))
        parts.append(linear_sums(sums, channel, np.zeros(3, dtype=int), 2, centred=True))
    rows = [
        combined_strata(LinearSums(*(np.stack(pair) for pair in zip(*one, strict=True))), np.array([0.25, 0.75]))
        for one in zip(*(zip(*part, strict=True) for part in parts), strict=True)
    ]
    return LinearSums(*(np.concatenate(part) for part in zip(*rows, strict=True))), (share + 3 * share / 2) / 4


def pooled_sums(
    rng: np.random.Generator, share: float, people: int, epsilon: float, response: float, tasks: int = 4
) -> tuple[LinearSums, float]:
    """Return the sums of four tasks of each person, and the share of all answers."""
    channel, cells, kept = table(epsilon), cells_asked(share, response), 0.4
    cumulative, parts = channel.cumsum(axis=1)[:, :-1], []
    for _ in range(DRAWS // 100):
        common = rng.choice(3, size=(100, people, 1), p=cells)
        own = rng.choice(3, size=(100, people, tasks), p=cells)
        answers = np.where(rng.random((100, people, tasks)) < kept**0.5, common, own)
        reports = (rng.random(answers.shape)[..., None] >= cumulative[answers]).sum(axis=-1)
        x = np.eye(3)[reports].sum(axis=2)
        parts.append((x.sum(axis=1), np.einsum("dux,duy->dxy", x, x)))
    total, squares = (np.concatenate(part) for part in zip(*parts, strict=True))
    sums = ReportSums(total, squares, np.full(len(total), float(people)))
    return linear_sums(sums, channel, np.zeros(3, dtype=int), 2), share


def rows() -> Iterator[Row]:
    """Yield all rows."""
    yield from single_rows()
    yield from sum_rows()
    yield from difference_rows()


if __name__ == "__main__":
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows(), four_digits)
    every: list[Row] = read_rows(RESULTS, Row)
    for kind in dict.fromkeys(row.kind for row in every):
        covered = [row.covered for row in every if row.kind == kind]
        inside = [row.covered for row in every if row.kind == kind and row.errors > 2]
        print(
            kind, len(covered), min(covered), max(covered), "more than 2 errors from an end:", min(inside), max(inside)
        )
