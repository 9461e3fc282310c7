"""What was compared before the intervals of shares were chosen: `python -m experiments.shares.choices`.

- Clipping: mean of clipped shares of .02, everybody answering, at epsilon 1, and the ratio of the means of both parts
  of unclipped ones, which is not the mean of their ratio.
- Epsilons: of 1,000 people at epsilon 3 a share of .05 says yes, of 1,000 at .5 a share of .15; mean estimates of the
  pooled likelihood, and of channels inverted each alone and averaged over people.
- Intervals: coverage of 95 % intervals by the score test without and with held numerator, and by profile likelihood,
  over grids of share, people, epsilon and response.
Some minutes on one core. Writes `results/choices.csv`.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from experiments.rows import four_digits, write_rows
from experiments.shares.coverage import cells_asked, table
from numpy.typing import NDArray

from crowdveil.quality.shares.counts import ReportSums
from crowdveil.quality.shares.mixture import fit, fit_with_share
from crowdveil.quality.shares.score import ScoreTest, normal_quantile, profile_holding, score_estimates
from crowdveil.quality.shares.weighted import fieller_estimates, linear_sums

RESULTS = Path(__file__).parent / "results" / "choices.csv"
DRAWS = 1000
QUANTILE = normal_quantile(0.95)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: `value` is a mean estimate, or a coverage over the cells of the grid."""

    what: str
    people: int | None
    smallest: float
    mean: float
    largest: float


def draws_of(share: float, people: int, epsilon: float, response: float) -> NDArray[np.float64]:
    """Return counts of reports; the seed is that of the settings."""
    rng = np.random.default_rng(zlib.crc32(repr((share, people, epsilon, response)).encode()))
    return rng.multinomial(people, cells_asked(share, response) @ table(epsilon), DRAWS).astype(float)


def clipping_rows() -> Iterator[Row]:
    """Yield means of clipped shares, and ratios of means of unclipped ones."""
    for people in (50, 200, 1000):
        found = score_estimates(draws_of(0.02, people, 1.0, 1.0), table(1.0), 2, np.full(3, 0.95))
        unclipped = float(found.of_asked[:, 0].mean() / found.of_asked[:, :2].sum(axis=1).mean())
        for what, mean in (("clipped", float(np.nanmean(found.share[:, 0]))), ("unclipped", unclipped)):
            yield Row(f"{what} estimate of .02", people, mean, mean, mean)


def epsilon_rows() -> Iterator[Row]:
    """Yield means of two estimates of .10 where the choice of epsilon depends on the answer."""
    tables = (table(3.0), table(0.5))
    draws = np.concatenate((draws_of(0.05, 1000, 3.0, 0.8), draws_of(0.15, 1000, 0.5, 0.8)), axis=1)
    both = np.concatenate(tables, axis=1)
    pooled = fit(draws, both / 2).shares
    sums = ReportSums(draws, draws, draws, np.full((DRAWS, 2), 2000.0))
    alone = linear_sums(sums, both, np.repeat([0, 1], 3), 2)
    averaged = fieller_estimates(alone, 2, np.full(3, 0.95)).unclipped[:, 0]
    for what, values in (
        ("pooled likelihood of .10", pooled[:, 0] / pooled[:, :2].sum(axis=1)),
        ("by channel", averaged),
    ):
        low, high = np.quantile(values, (0.1, 0.9)).tolist()
        yield Row(what, 2000, low, float(values.mean()), high)


def unclipped_holds(draws: NDArray[np.float64], channel: NDArray[np.float64], share: float) -> NDArray[np.bool_]:
    """Return whether the score interval without held numerator has the share."""
    test, given = ScoreTest(draws, channel, 2, 0), np.full(len(draws), share)
    reports = fit_with_share(draws, channel, 2, 0, given).reports
    found, contrast = test.shares(reports), np.array([1 - share, -share, 0.0])
    weights = np.linalg.solve(channel, contrast)
    distance = found[:, 0] - share * found[:, :2].sum(axis=1)
    return np.asarray(draws.sum(axis=1) * distance**2 <= QUANTILE**2 * (reports @ weights**2))


def interval_rows() -> Iterator[Row]:
    """Yield the smallest, mean and largest coverage over 54 cells of small epsilons, and 48 of large ones."""
    yield from coverage_rows("epsilon .5 to 2", (50, 200, 1000), (0.5, 1.0, 2.0))
    yield from coverage_rows("epsilon 3 to 8", (50, 200), (3.0, 4.0, 6.0, 8.0))


def coverage_rows(name: str, sizes: tuple[int, ...], epsilons: tuple[float, ...]) -> Iterator[Row]:
    """Yield the coverage of each interval over a grid."""
    covered: dict[str, list[float]] = {"score": [], "clipped score": [], "profile likelihood": []}
    for share, people, epsilon, response in product((0.02, 0.1, 0.35), sizes, epsilons, (0.5, 1.0)):
        draws, channel = draws_of(share, people, epsilon, response), table(epsilon)
        given = np.full(DRAWS, share)
        covered["score"].append(unclipped_holds(draws, channel, share).mean())
        covered["clipped score"].append(ScoreTest(draws, channel, 2, 0).holding(QUANTILE)(given).mean())
        covered["profile likelihood"].append(profile_holding(draws, channel, 2, 0, QUANTILE)(given).mean())
    for what, values in covered.items():
        yield Row(f"coverage of {what}, {name}", None, float(min(values)), float(np.mean(values)), float(max(values)))


def rows() -> Iterator[Row]:
    """Yield all rows."""
    yield from clipping_rows()
    yield from epsilon_rows()
    yield from interval_rows()


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows(), four_digits)
    print(RESULTS.read_text("utf-8"))
